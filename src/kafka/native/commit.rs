//! A plain offset commit whose answer comes back as an event.
//!
//! The wrapper's asynchronous commit drops the answer: librdkafka sends it to a callback only, and the wrapper uses events.

use rdkafka::TopicPartitionList;
use rdkafka::bindings as sys;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};

use super::{Fault, rd_kafka_commit_queue};

/// Commits offsets of the consumer's group without waiting. The consumer hears of the answer in `ConsumerContext::commit_callback`,
/// on the thread that polls.
pub fn commit_async<C: ConsumerContext>(consumer: &BaseConsumer<C>, offsets: &TopicPartitionList) -> Result<(), Fault> {
    let rk = consumer.client().native_ptr();
    // SAFETY: the consumer is live during the call, the offsets are copied, and the queue reference taken here is given back.
    let code = unsafe {
        let queue = sys::rd_kafka_queue_get_consumer(rk);
        if queue.is_null() {
            return Err(Fault::of_code(super::local::INVALID_ARG));
        }
        let code = rd_kafka_commit_queue(rk, offsets.ptr(), queue, std::ptr::null(), std::ptr::null_mut());
        sys::rd_kafka_queue_destroy(queue);
        code
    };
    if code == 0 { Ok(()) } else { Err(Fault::of_code(code)) }
}

//! CreatePartitions of all topics in one request.
//!
//! librdkafka sends version 0, which the broker holds to the permissive quota: a plan is never torn by throttling.

use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rdkafka::bindings as sys;

use super::{
    ByTopic, ErrorText, Fault, Handle, c_text, describe_code, items, local, rd_kafka_topic_result_error, text, without_source,
};

/// Answers by topic, and how long the broker asks to wait.
pub type Created = (ByTopic<Result<(), Fault>>, Duration);

impl Handle {
    /// Grows topics to these totals, in one request, in the order of their names.
    pub fn create_partitions(&mut self, targets: &BTreeMap<String, u32>, timeout: Duration) -> Result<Created, Fault> {
        let targets = targets.iter().map(|(topic, total)| Target::new(topic, *total)).collect::<Result<Vec<_>, _>>()?;
        let mut pointers: Vec<_> = targets.iter().map(|target| target.0.as_ptr()).collect();
        let operation = sys::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_CREATEPARTITIONS;
        // Patient: a request that may still be sent must not be left behind.
        let event = self.request(operation, timeout, false, |rk, options, queue| {
            // SAFETY: the targets are live and copied by the request.
            unsafe { sys::rd_kafka_CreatePartitions(rk, pointers.as_mut_ptr(), pointers.len(), options, queue) }
        })?;
        let throttle = Duration::from_millis(u64::try_from(self.throttle.load(Ordering::Relaxed)).unwrap_or(0));
        // SAFETY: the event is live, and everything read here belongs to it; a result of another type is null.
        unsafe {
            let result = sys::rd_kafka_event_CreatePartitions_result(event.0.as_ptr());
            if result.is_null() {
                return Err(Fault::of_code(local::BAD_MSG));
            }
            let mut count = 0;
            let topics = sys::rd_kafka_CreatePartitions_result_topics(result, &raw mut count);
            let topics = items(topics, count).iter().filter(|topic| !topic.is_null()).map(|topic| created(*topic)).collect();
            Ok((topics, throttle))
        }
    }
}

/// # Safety
/// `result` is live.
pub(super) unsafe fn created(result: *const sys::rd_kafka_topic_result_t) -> (String, Result<(), Fault>) {
    // SAFETY: all that is read belongs to the result.
    unsafe {
        let name = text(sys::rd_kafka_topic_result_name(result));
        let code = rd_kafka_topic_result_error(result);
        if code == 0 {
            return (name, Ok(()));
        }
        let said = text(sys::rd_kafka_topic_result_error_string(result));
        (name, Err(Fault::new(code, if said.is_empty() { describe_code(code) } else { without_source(&said).to_owned() })))
    }
}

/// One topic of the request.
struct Target(NonNull<sys::rd_kafka_NewPartitions_t>);

impl Target {
    fn new(topic: &str, total: u32) -> Result<Self, Fault> {
        let name = c_text(topic)?;
        let mut text = ErrorText::new();
        // SAFETY: name and text are live; the name is copied.
        let target = unsafe { sys::rd_kafka_NewPartitions_new(name.as_ptr(), total as usize, text.as_mut_ptr(), text.len()) };
        NonNull::new(target).map(Self).ok_or_else(|| {
            Fault::new(local::INVALID_ARG, format!("{topic} cannot have {total} partitions: {}", text.into_string()))
        })
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // SAFETY: live and not used again.
        unsafe { sys::rd_kafka_NewPartitions_destroy(self.0.as_ptr()) }
    }
}

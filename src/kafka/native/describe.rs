//! Counts and ids of topics by name, in one Metadata request that never creates a topic.

use std::time::Duration;

use rdkafka::bindings as sys;

use super::{ByTopic, Fault, Handle, c_text, describe_code, items, local, rd_kafka_error_code, rd_kafka_metadata, text};

/// A topic as the broker described it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// Zero from brokers older than topic ids.
    pub id: u128,
    /// Number of partitions.
    pub partitions: usize,
}

impl Handle {
    /// Describes exactly these topics.
    pub fn describe_topics(&mut self, names: &[String], timeout: Duration) -> Result<ByTopic<Result<Described, Fault>>, Fault> {
        let names = names.iter().map(|name| c_text(name)).collect::<Result<Vec<_>, _>>()?;
        let mut pointers: Vec<_> = names.iter().map(|name| name.as_ptr()).collect();
        let operation = sys::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DESCRIBETOPICS;
        let event = self.request(operation, timeout, true, |rk, options, queue| {
            // SAFETY: the names are live and copied into the collection, which the request copies in turn.
            unsafe {
                let topics = sys::rd_kafka_TopicCollection_of_topic_names(pointers.as_mut_ptr(), pointers.len());
                sys::rd_kafka_DescribeTopics(rk, topics, options, queue);
                sys::rd_kafka_TopicCollection_destroy(topics);
            }
        })?;
        // SAFETY: the event is live, and everything read here belongs to it; a result of another type is null.
        unsafe {
            let result = sys::rd_kafka_event_DescribeTopics_result(event.0.as_ptr());
            if result.is_null() {
                return Err(Fault::of_code(local::BAD_MSG));
            }
            let mut count = 0;
            let topics = sys::rd_kafka_DescribeTopics_result_topics(result, &raw mut count);
            Ok(items(topics, count).iter().filter(|topic| !topic.is_null()).map(|topic| described(*topic)).collect())
        }
    }

    /// Names of all topics that the user may see.
    pub fn list_topics(&mut self, timeout: Duration) -> Result<Vec<String>, Fault> {
        let mut metadata = std::ptr::null();
        // SAFETY: the client is live; on success the answer is ours until it is destroyed below.
        unsafe {
            let code = rd_kafka_metadata(self.rk.as_ptr(), 1, std::ptr::null_mut(), &raw mut metadata, super::millis(timeout));
            let Some(answer) = metadata.as_ref().filter(|_| code == 0) else { return Err(Fault::of_code(code)) };
            let count = usize::try_from(answer.topic_cnt).unwrap_or(0);
            let names = items(answer.topics, count).iter().map(|topic| text(topic.topic)).collect();
            sys::rd_kafka_metadata_destroy(metadata);
            Ok(names)
        }
    }
}

/// # Safety
/// `topic` is a live description.
unsafe fn described(topic: *const sys::rd_kafka_TopicDescription_t) -> (String, Result<Described, Fault>) {
    // SAFETY: all that is read belongs to the description.
    unsafe {
        let name = text(sys::rd_kafka_TopicDescription_name(topic));
        let error = sys::rd_kafka_TopicDescription_error(topic);
        let code = if error.is_null() { 0 } else { rd_kafka_error_code(error) };
        if code != 0 {
            return (name, Err(Fault::new(code, describe_code(code))));
        }
        let mut partitions = 0;
        sys::rd_kafka_TopicDescription_partitions(topic, &raw mut partitions);
        let id = sys::rd_kafka_TopicDescription_topic_id(topic);
        let id = if id.is_null() {
            0
        } else {
            let half = |bits: i64| u128::from(bits.cast_unsigned());
            half(sys::rd_kafka_Uuid_most_significant_bits(id)) << 64 | half(sys::rd_kafka_Uuid_least_significant_bits(id))
        };
        (name, Ok(Described { id, partitions }))
    }
}

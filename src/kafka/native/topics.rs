//! Creating one topic, and reading one of its settings.

use std::ptr::NonNull;
use std::time::Duration;

use rdkafka::bindings as sys;

use super::create::created;
use super::{ErrorText, Fault, Handle, c_text, describe_code, items, local, rd_kafka_ConfigResource_error, text, without_source};

/// Lets the broker choose the number of replicas (KIP-464).
const BROKER_DEFAULT: i32 = -1;

impl Handle {
    /// Creates a topic. The inner error is that of the topic.
    pub fn create_topic(
        &mut self,
        topic: &str,
        partitions: u32,
        settings: &[(&str, &str)],
        timeout: Duration,
    ) -> Result<Result<(), Fault>, Fault> {
        let new = NewTopic::new(topic, partitions, settings)?;
        let mut pointer = new.0.as_ptr();
        let operation = sys::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_CREATETOPICS;
        let event = self.request(operation, timeout, true, |rk, options, queue| {
            // SAFETY: the topic is live and copied by the request.
            unsafe { sys::rd_kafka_CreateTopics(rk, &raw mut pointer, 1, options, queue) }
        })?;
        // SAFETY: the event is live, and everything read here belongs to it; a result of another type is null.
        unsafe {
            let result = sys::rd_kafka_event_CreateTopics_result(event.0.as_ptr());
            if result.is_null() {
                return Err(Fault::of_code(local::BAD_MSG));
            }
            let mut count = 0;
            let topics = sys::rd_kafka_CreateTopics_result_topics(result, &raw mut count);
            match items(topics, count).first().filter(|topic| !topic.is_null()) {
                Some(topic) => Ok(created(*topic).1),
                None => Err(Fault::of_code(local::BAD_MSG)),
            }
        }
    }

    /// One setting of a topic as it is in force; `None` if the broker does not tell it. The inner error is that of the topic.
    pub fn topic_setting(&mut self, topic: &str, key: &str, timeout: Duration) -> Result<Result<Option<String>, Fault>, Fault> {
        let name = c_text(topic)?;
        // SAFETY: the name is live and copied.
        let resource =
            unsafe { sys::rd_kafka_ConfigResource_new(sys::rd_kafka_ResourceType_t::RD_KAFKA_RESOURCE_TOPIC, name.as_ptr()) };
        let resource = Resource(NonNull::new(resource).ok_or_else(|| Fault::of_code(local::INVALID_ARG))?);
        let mut pointer = resource.0.as_ptr();
        let operation = sys::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS;
        let event = self.request(operation, timeout, true, |rk, options, queue| {
            // SAFETY: the resource is live and copied by the request.
            unsafe { sys::rd_kafka_DescribeConfigs(rk, &raw mut pointer, 1, options, queue) }
        })?;
        // SAFETY: the event is live, and everything read here belongs to it; a result of another type is null.
        unsafe {
            let result = sys::rd_kafka_event_DescribeConfigs_result(event.0.as_ptr());
            if result.is_null() {
                return Err(Fault::of_code(local::BAD_MSG));
            }
            let mut count = 0;
            let resources = sys::rd_kafka_DescribeConfigs_result_resources(result, &raw mut count);
            let Some(found) = items(resources.cast_const(), count).first().filter(|resource| !resource.is_null()) else {
                return Err(Fault::of_code(local::BAD_MSG));
            };
            let code = rd_kafka_ConfigResource_error(*found);
            if code != 0 {
                let said = text(sys::rd_kafka_ConfigResource_error_string(*found));
                let reason = if said.is_empty() { describe_code(code) } else { without_source(&said).to_owned() };
                return Ok(Err(Fault::new(code, reason)));
            }
            let mut count = 0;
            let entries = sys::rd_kafka_ConfigResource_configs(*found, &raw mut count);
            let entry = items(entries.cast_const(), count)
                .iter()
                .find(|entry| !entry.is_null() && text(sys::rd_kafka_ConfigEntry_name(**entry)) == key);
            Ok(Ok(entry.map(|entry| text(sys::rd_kafka_ConfigEntry_value(*entry)))))
        }
    }
}

/// The topic of the request.
struct NewTopic(NonNull<sys::rd_kafka_NewTopic_t>);

impl NewTopic {
    fn new(topic: &str, partitions: u32, settings: &[(&str, &str)]) -> Result<Self, Fault> {
        let name = c_text(topic)?;
        let count = i32::try_from(partitions).map_err(|_| Fault::of_code(local::INVALID_ARG))?;
        let mut words = ErrorText::new();
        // SAFETY: name and text are live; the name is copied.
        let new = unsafe { sys::rd_kafka_NewTopic_new(name.as_ptr(), count, BROKER_DEFAULT, words.as_mut_ptr(), words.len()) };
        let new = NonNull::new(new).map(Self);
        let new = new.ok_or_else(|| Fault::new(local::INVALID_ARG, format!("{topic}: {}", words.into_string())))?;
        for (key, value) in settings {
            let (key, value) = (c_text(key)?, c_text(value)?);
            // SAFETY: all are live; the texts are copied. It fails for a null key only.
            unsafe { sys::rd_kafka_NewTopic_set_config(new.0.as_ptr(), key.as_ptr(), value.as_ptr()) };
        }
        Ok(new)
    }
}

impl Drop for NewTopic {
    fn drop(&mut self) {
        // SAFETY: live and not used again.
        unsafe { sys::rd_kafka_NewTopic_destroy(self.0.as_ptr()) }
    }
}

/// The resource of the request.
struct Resource(NonNull<sys::rd_kafka_ConfigResource_t>);

impl Drop for Resource {
    fn drop(&mut self) {
        // SAFETY: live and not used again.
        unsafe { sys::rd_kafka_ConfigResource_destroy(self.0.as_ptr()) }
    }
}

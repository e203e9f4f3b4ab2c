//! librdkafka by hand: one handle, one event queue, no thread of ours.
//!
//! The safe admin client of `rdkafka` has no DescribeTopics, wakes a thread ten times a second, and turns an error code that it does
//! not know into undefined behaviour. So requests, errors and log lines share librdkafka's main queue here, and are read while a
//! call waits. Every pointer that comes back is checked, every text is copied, every error code is read as a plain number.
#![allow(unsafe_code, reason = "the one module that calls librdkafka")]

mod commit;
mod create;
mod describe;
mod groups;
mod topics;

pub use commit::commit_async;

use std::collections::{BTreeMap, VecDeque};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::bindings as sys;
use rdkafka::error::KafkaError;
use tracing::debug;

/// Error codes of librdkafka itself; codes of the broker are zero and above (and -1).
pub mod local {
    /// The answer could not be read.
    pub const BAD_MSG: i32 = -199;
    /// The connection failed.
    pub const TRANSPORT: i32 = -195;
    /// A host name does not resolve.
    pub const RESOLVE: i32 = -193;
    /// The topic is not there.
    pub const UNKNOWN_TOPIC: i32 = -188;
    /// The partition is not there.
    pub const UNKNOWN_PARTITION: i32 = -190;
    /// The offset to read is gone, and no other was to be chosen.
    pub const AUTO_OFFSET_RESET: i32 = -140;
    /// No broker is connected.
    pub const ALL_BROKERS_DOWN: i32 = -187;
    /// An argument or setting is not valid.
    pub const INVALID_ARG: i32 = -186;
    /// No answer in time.
    pub const TIMED_OUT: i32 = -185;
    /// TLS failed.
    pub const SSL: i32 = -181;
    /// SASL failed.
    pub const AUTHENTICATION: i32 = -169;
    /// No answer in time, not even sent.
    pub const TIMED_OUT_QUEUE: i32 = -166;
    /// The broker lacks a feature.
    pub const UNSUPPORTED_FEATURE: i32 = -165;
    /// An answer without some brokers.
    pub const PARTIAL: i32 = -158;
}

// The same functions as in the bindings, but with plain numbers for error codes: a broker may send a code that the generated
// enumeration does not have.
unsafe extern "C" {
    fn rd_kafka_err2str(code: c_int) -> *const c_char;
    fn rd_kafka_ConfigResource_error(resource: *const sys::rd_kafka_ConfigResource_t) -> c_int;
    fn rd_kafka_commit_queue(
        rk: *mut sys::rd_kafka_t,
        offsets: *const sys::rd_kafka_topic_partition_list_t,
        queue: *mut sys::rd_kafka_queue_t,
        callback: *const c_void,
        opaque: *mut c_void,
    ) -> c_int;
    fn rd_kafka_error_code(error: *const sys::rd_kafka_error_t) -> c_int;
    fn rd_kafka_event_error(event: *mut sys::rd_kafka_event_t) -> c_int;
    fn rd_kafka_list_groups(
        rk: *mut sys::rd_kafka_t,
        group: *const c_char,
        groups: *mut *const sys::rd_kafka_group_list,
        timeout_ms: c_int,
    ) -> c_int;
    fn rd_kafka_metadata(
        rk: *mut sys::rd_kafka_t,
        all_topics: c_int,
        only: *mut sys::rd_kafka_topic_t,
        metadata: *mut *const sys::rd_kafka_metadata,
        timeout_ms: c_int,
    ) -> c_int;
    fn rd_kafka_topic_result_error(result: *const sys::rd_kafka_topic_result_t) -> c_int;
}

/// An error code with what was said about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Code of the broker, or one of [`local`].
    pub code: i32,
    /// What was said, without a final newline.
    pub reason: String,
}

impl Fault {
    fn new(code: i32, reason: impl Into<String>) -> Self {
        Self { code, reason: reason.into() }
    }

    fn of_code(code: i32) -> Self {
        Self::new(code, describe_code(code))
    }
}

/// Time that an answer may take beyond the timeout of its request before the call gives up on librdkafka.
const GRACE: Duration = Duration::from_secs(1);

/// How long an answer may take before another broker is looked for, which may then be asked in place of one that is gone.
const NUDGE: Duration = Duration::from_millis(100);

/// How often the brokers are asked for in any case: all that are known could be replaced one by one.
const BROKERS_PACE: Duration = Duration::from_secs(60);

/// How long a broker may take to name the others.
const NUDGE_TIMEOUT: Duration = Duration::from_secs(1);

/// Ticket of the question for brokers, which nobody waits for.
const NO_TICKET: usize = 0;

/// A client of one cluster.
pub struct Handle {
    rk: NonNull<sys::rd_kafka_t>,
    queue: NonNull<sys::rd_kafka_queue_t>,
    /// Throttle time in ms that the last answer carried; written by [`note_throttle`].
    throttle: Box<AtomicI32>,
    /// Number of the last request, so that an answer that comes too late is not taken for the next one's.
    ticket: usize,
    troubles: Vec<Fault>,
    /// Ids of the brokers, the one to be asked next in front.
    brokers: VecDeque<i32>,
    /// When brokers were last asked for.
    refreshed: Instant,
}

// SAFETY: librdkafka's handles and queues may be used from any thread; `Handle` is not shared, as it has no `Sync`.
unsafe impl Send for Handle {}

impl Handle {
    /// Makes a client. Does not wait for a connection.
    pub fn new(config: &ClientConfig) -> Result<Self, Fault> {
        let native = config.create_native_config().map_err(refused)?;
        let throttle = Box::new(AtomicI32::new(0));
        let mut text = ErrorText::new();
        // SAFETY: `native` is a live configuration. `throttle` is boxed, so its address stays, and it is dropped after the client.
        let rk = unsafe {
            sys::rd_kafka_conf_set_events(native.ptr(), sys::RD_KAFKA_EVENT_ERROR | sys::RD_KAFKA_EVENT_LOG);
            sys::rd_kafka_conf_set_throttle_cb(native.ptr(), Some(note_throttle));
            sys::rd_kafka_conf_set_opaque(native.ptr(), (&raw const *throttle).cast_mut().cast());
            sys::rd_kafka_new(sys::rd_kafka_type_t::RD_KAFKA_PRODUCER, native.ptr(), text.as_mut_ptr(), text.len())
        };
        let rk = NonNull::new(rk).ok_or_else(|| Fault::new(local::INVALID_ARG, text.into_string()))?;
        // The client owns the configuration from here on.
        let _ = ManuallyDrop::new(native);
        // SAFETY: `rk` is live. `set_log_queue` cannot fail with `log.queue=true`, and if it did, lines would only go unread.
        let queue = unsafe {
            let queue = sys::rd_kafka_queue_get_main(rk.as_ptr());
            sys::rd_kafka_set_log_queue(rk.as_ptr(), queue);
            queue
        };
        match NonNull::new(queue) {
            Some(queue) => {
                let (troubles, brokers, refreshed) = (Vec::new(), VecDeque::new(), Instant::now());
                let mut handle = Self { rk, queue, throttle, ticket: NO_TICKET, troubles, brokers, refreshed };
                handle.refresh()?;
                Ok(handle)
            }
            None => {
                // SAFETY: `rk` is live and not used again.
                unsafe { sys::rd_kafka_destroy(rk.as_ptr()) };
                Err(Fault::new(local::INVALID_ARG, "librdkafka has no main queue"))
            }
        }
    }

    /// Errors of connections heard since the last call of this, oldest first.
    pub fn take_troubles(&mut self) -> Vec<Fault> {
        self.drain();
        std::mem::take(&mut self.troubles)
    }

    /// Sends one admin request and waits for its answer. With `impatient`, the news that no broker is reachable ends the wait.
    fn request(
        &mut self,
        operation: sys::rd_kafka_admin_op_t,
        timeout: Duration,
        impatient: bool,
        send: impl FnOnce(*mut sys::rd_kafka_t, *const sys::rd_kafka_AdminOptions_t, *mut sys::rd_kafka_queue_t),
    ) -> Result<Event, Fault> {
        self.drain();
        if self.refreshed.elapsed() > BROKERS_PACE {
            self.refresh()?;
        }
        self.throttle.store(0, Ordering::Relaxed);
        self.ticket = self.ticket.wrapping_add(1).max(NO_TICKET + 1);
        let options = Options::new(self.rk, operation, timeout, self.ticket)?;
        send(self.rk.as_ptr(), options.0.as_ptr(), self.queue.as_ptr());
        let deadline = Instant::now() + timeout + GRACE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Some(event) = self.poll(left.min(NUDGE)) else {
                if left.is_zero() {
                    return Err(Fault::of_code(local::TIMED_OUT));
                }
                self.refresh()?;
                continue;
            };
            match event.kind() {
                sys::RD_KAFKA_EVENT_LOG => self.troubles.extend(event.log()),
                sys::RD_KAFKA_EVENT_ERROR => {
                    let fault = event.fault();
                    let down = fault.code == local::ALL_BROKERS_DOWN;
                    self.troubles.push(fault.clone());
                    if down && impatient {
                        return Err(fault);
                    }
                }
                _ if event.ticket() == NO_TICKET => self.note_brokers(&event),
                _ if event.ticket() == self.ticket => {
                    let fault = event.fault();
                    return if fault.code == 0 { Ok(event) } else { Err(fault) };
                }
                _ => debug!("an answer came after its time and is not used"),
            }
        }
    }

    /// Lets librdkafka learn anew where to send admin requests. It sends all of them to the "controller" of its latest metadata,
    /// which with KRaft is just some broker, and if that one goes, it waits for it forever. So one known broker after the other is
    /// asked for the brokers there are. (`rd_kafka_metadata` would do, but without topics of its own it asks for all topics.)
    fn refresh(&mut self) -> Result<(), Fault> {
        let operation = sys::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DESCRIBECLUSTER;
        let options = Options::new(self.rk, operation, NUDGE_TIMEOUT, NO_TICKET)?;
        self.refreshed = Instant::now();
        if let Some(&broker) = self.brokers.front() {
            options.set(sys::rd_kafka_AdminOptions_set_broker, broker)?;
            self.brokers.rotate_left(1);
        }
        // SAFETY: all three are live.
        unsafe { sys::rd_kafka_DescribeCluster(self.rk.as_ptr(), options.0.as_ptr(), self.queue.as_ptr()) };
        Ok(())
    }

    /// Takes in which brokers there are, from an answer to the question for them.
    fn note_brokers(&mut self, event: &Event) {
        // SAFETY: the event is live, and everything read here belongs to it; a result of another type is null.
        let ids: Vec<i32> = unsafe {
            let result = sys::rd_kafka_event_DescribeCluster_result(event.0.as_ptr());
            if result.is_null() || event.fault().code != 0 {
                return;
            }
            let mut count = 0;
            let nodes = sys::rd_kafka_DescribeCluster_result_nodes(result, &raw mut count);
            items(nodes, count).iter().filter(|node| !node.is_null()).map(|node| sys::rd_kafka_Node_id(*node)).collect()
        };
        self.brokers.retain(|id| ids.contains(id));
        let new: Vec<i32> = ids.into_iter().filter(|id| !self.brokers.contains(id)).collect();
        self.brokers.extend(new);
    }

    /// Reads what has gathered on the queue between calls.
    fn drain(&mut self) {
        while let Some(event) = self.poll(Duration::ZERO) {
            match event.kind() {
                sys::RD_KAFKA_EVENT_LOG => self.troubles.extend(event.log()),
                sys::RD_KAFKA_EVENT_ERROR => self.troubles.push(event.fault()),
                _ if event.ticket() == NO_TICKET => self.note_brokers(&event),
                _ => {}
            }
        }
    }

    fn poll(&self, timeout: Duration) -> Option<Event> {
        // SAFETY: the queue lives as long as `self`; the event is ours to destroy.
        NonNull::new(unsafe { sys::rd_kafka_queue_poll(self.queue.as_ptr(), millis(timeout)) }).map(Event)
    }

    /// Id of the cluster, asked afresh.
    pub fn cluster_id(&mut self, timeout: Duration) -> Result<Option<String>, Fault> {
        let operation = sys::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DESCRIBECLUSTER;
        let event = self.request(operation, timeout, true, |rk, options, queue| {
            // SAFETY: all three are live during the call.
            unsafe { sys::rd_kafka_DescribeCluster(rk, options, queue) }
        })?;
        // SAFETY: the event is live, the result and its texts belong to it; a result of another type is null.
        unsafe {
            let result = sys::rd_kafka_event_DescribeCluster_result(event.0.as_ptr());
            if result.is_null() {
                return Err(Fault::of_code(local::BAD_MSG));
            }
            let id = sys::rd_kafka_DescribeCluster_result_cluster_id(result);
            Ok((!id.is_null()).then(|| text(id)))
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: both are live and not used again; the queue has to go before the client.
        unsafe {
            sys::rd_kafka_queue_destroy(self.queue.as_ptr());
            sys::rd_kafka_destroy(self.rk.as_ptr());
        }
    }
}

/// Keeps the throttle time of an answer. librdkafka calls it on the thread that polls the queue, before it hands out the answer.
unsafe extern "C" fn note_throttle(_: *mut sys::rd_kafka_t, _: *const c_char, _: i32, millis: c_int, opaque: *mut c_void) {
    // SAFETY: the opaque pointer is the `throttle` of the handle, which outlives the client.
    if let Some(throttle) = unsafe { opaque.cast::<AtomicI32>().as_ref() } {
        throttle.fetch_max(millis, Ordering::Relaxed);
    }
}

/// An event of the queue, destroyed when dropped.
struct Event(NonNull<sys::rd_kafka_event_t>);

impl Event {
    fn kind(&self) -> i32 {
        // SAFETY: the event is live.
        unsafe { sys::rd_kafka_event_type(self.0.as_ptr()) }
    }

    /// The ticket of the request it answers.
    fn ticket(&self) -> usize {
        // SAFETY: the event is live.
        unsafe { sys::rd_kafka_event_opaque(self.0.as_ptr()) }.addr()
    }

    /// Its error; code 0 if it has none.
    fn fault(&self) -> Fault {
        // SAFETY: the event is live; the text belongs to it.
        unsafe { Fault::new(rd_kafka_event_error(self.0.as_ptr()), text(sys::rd_kafka_event_error_string(self.0.as_ptr()))) }
    }

    /// Passes a log line on. What is told nowhere else is an error as well: a connection that the other side closed, and a
    /// controller that was asked for metadata.
    fn log(&self) -> Option<Fault> {
        let (mut facility, mut line, mut level) = (std::ptr::null(), std::ptr::null(), 0);
        // SAFETY: the event is live and fills in texts that belong to it.
        let (facility, line) = unsafe {
            if sys::rd_kafka_event_log(self.0.as_ptr(), &raw mut facility, &raw mut line, &raw mut level) != 0 {
                return None;
            }
            (text(facility), text(line))
        };
        debug!(target: "librdkafka", level, facility, "{line}");
        let line = line.split_once("]: ").map_or(line.as_str(), |(_, line)| line);
        match facility.as_str() {
            "FAIL" if line.contains(": Disconnected") => Some(Fault::new(local::TRANSPORT, line)),
            "METADATA" if line.contains("Required feature not supported") => Some(Fault::new(local::UNSUPPORTED_FEATURE, line)),
            _ => None,
        }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: the event is live and not used again.
        unsafe { sys::rd_kafka_event_destroy(self.0.as_ptr()) }
    }
}

/// Options of one admin request.
struct Options(NonNull<sys::rd_kafka_AdminOptions_t>);

impl Options {
    fn new(
        rk: NonNull<sys::rd_kafka_t>,
        operation: sys::rd_kafka_admin_op_t,
        timeout: Duration,
        ticket: usize,
    ) -> Result<Self, Fault> {
        // SAFETY: `rk` is live.
        let options = unsafe { sys::rd_kafka_AdminOptions_new(rk.as_ptr(), operation) };
        let options = Self(NonNull::new(options).ok_or_else(|| Fault::of_code(local::INVALID_ARG))?);
        // SAFETY: the options are live; the ticket is never read as a pointer.
        unsafe {
            let ticket = std::ptr::without_provenance_mut(ticket);
            sys::rd_kafka_AdminOptions_set_opaque(options.0.as_ptr(), ticket);
        }
        options.set(sys::rd_kafka_AdminOptions_set_request_timeout, millis(timeout))?;
        use sys::rd_kafka_admin_op_t::{RD_KAFKA_ADMIN_OP_CREATEPARTITIONS, RD_KAFKA_ADMIN_OP_CREATETOPICS};
        if matches!(operation, RD_KAFKA_ADMIN_OP_CREATEPARTITIONS | RD_KAFKA_ADMIN_OP_CREATETOPICS) {
            // Above zero, so that a time-out in the controller is told and not taken for success.
            options.set(sys::rd_kafka_AdminOptions_set_operation_timeout, millis(timeout))?;
        }
        Ok(options)
    }

    fn set(&self, setter: SetNumber, value: c_int) -> Result<(), Fault> {
        let mut text = ErrorText::new();
        // SAFETY: options and text are live.
        let code = unsafe { setter(self.0.as_ptr(), value, text.as_mut_ptr(), text.len()) };
        match code {
            sys::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR => Ok(()),
            code => Err(Fault::new(code as i32, text.into_string())),
        }
    }
}

type SetNumber = unsafe extern "C" fn(*mut sys::rd_kafka_AdminOptions_t, c_int, *mut c_char, usize) -> sys::rd_kafka_resp_err_t;

impl Drop for Options {
    fn drop(&mut self) {
        // SAFETY: the options are live and not used again.
        unsafe { sys::rd_kafka_AdminOptions_destroy(self.0.as_ptr()) }
    }
}

/// Room for an error text of librdkafka.
struct ErrorText([u8; 512]);

impl ErrorText {
    fn new() -> Self {
        Self([0; 512])
    }

    fn as_mut_ptr(&mut self) -> *mut c_char {
        self.0.as_mut_ptr().cast()
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn into_string(self) -> String {
        CStr::from_bytes_until_nul(&self.0).unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// librdkafka's words for a code, without the "Broker: " or "Local: " in front.
pub fn describe_code(code: i32) -> String {
    // SAFETY: takes any number; the text is static or thread-local, and copied at once.
    let words = unsafe { text(rd_kafka_err2str(code)) };
    without_source(&words).to_owned()
}

/// Takes the "Broker: " or "Local: " off librdkafka's words.
fn without_source(words: &str) -> &str {
    words.strip_prefix("Broker: ").or_else(|| words.strip_prefix("Local: ")).unwrap_or(words)
}

/// Copies a text; null is the empty text.
///
/// # Safety
/// `pointer` is null or a live, terminated text.
unsafe fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: as the caller promises.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().trim_end().to_owned()
}

/// An array of C as a slice; null is the empty slice.
///
/// # Safety
/// `first` is null or points to `count` live items.
unsafe fn items<'a, T>(first: *const T, count: usize) -> &'a [T] {
    if first.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts(first, count) }
}

/// A setting that librdkafka refuses, without its value, which may be a secret.
pub fn refused(error: KafkaError) -> Fault {
    let reason = match error {
        KafkaError::ClientConfig(_, reason, key, _) => format!("{key}: {reason}"),
        other => other.to_string(),
    };
    Fault::new(local::INVALID_ARG, reason)
}

fn c_text(text: &str) -> Result<CString, Fault> {
    CString::new(text).map_err(|_| Fault::new(local::INVALID_ARG, format!("the name {text:?} has a zero byte in it")))
}

/// At least 1 for anything above zero: 0 would mean "at once", or "no limit" in some calls.
fn millis(duration: Duration) -> c_int {
    c_int::try_from(duration.as_micros().div_ceil(1000)).unwrap_or(c_int::MAX)
}

/// One entry for each topic of an answer.
type ByTopic<T> = BTreeMap<String, T>;

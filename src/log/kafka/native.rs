//! The few calls of librdkafka that rust-rdkafka does not offer.
//!
//! Owns all unsafe code of the crate: who we are in the group, what a topic's id is and whether we may write to it, and
//! headers whose names are not UTF-8. Never keeps a pointer beyond a call.
//! Keeps: everything that librdkafka hands over is destroyed exactly once, by a guard.

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr;
use std::time::Duration;

use bytes::Bytes;
use rdkafka::bindings as sys;
use rdkafka::client::Client;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::message::BorrowedMessage;

use crate::timer::model::Header;

/// Who we are in the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Membership {
    /// The group's generation; negative for one that is no member.
    pub(super) generation: i32,
    /// Our id in it; empty for one that is no member.
    pub(super) member_id: String,
}

impl Membership {
    /// Returns whether the broker would fence by it.
    pub(super) fn is_valid(&self) -> bool {
        self.generation >= 0 && !self.member_id.is_empty()
    }
}

/// What the cluster says about a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TopicDescription {
    /// Its id, which changes when it is created anew.
    pub(super) id: [u8; 16],
    /// The number of its partitions.
    pub(super) partitions: usize,
    /// Why it cannot be used: it does not exist, or we may not see it.
    pub(super) error: Option<(RDKafkaErrorCode, String)>,
    /// Whether we may write to it.
    pub(super) is_writable: bool,
}

/// Returns who we are in the consumer's group.
pub(super) fn membership<C: ConsumerContext>(consumer: &BaseConsumer<C>) -> Option<Membership> {
    // SAFETY: the client lives as long as the borrowed consumer; the result is ours and destroyed by the guard.
    let metadata = Owned::new(
        unsafe { sys::rd_kafka_consumer_group_metadata(consumer.client().native_ptr()) },
        sys::rd_kafka_consumer_group_metadata_destroy,
    )?;
    // SAFETY: the guard holds a valid pointer.
    let generation = unsafe { sys::rd_kafka_consumer_group_metadata_generation_id(metadata.pointer) };
    // SAFETY: as above; the text belongs to the metadata and is copied before the guard goes.
    let member_id = unsafe { text(sys::rd_kafka_consumer_group_metadata_member_id(metadata.pointer)) };
    Some(Membership { generation, member_id })
}

/// Asks the cluster about topics and returns the answers in their order.
///
/// # Errors
/// A text, when the cluster does not answer within `timeout` or answers badly.
pub(super) fn describe_topics<C: ConsumerContext>(
    client: &Client<C>,
    topics: &[&str],
    timeout: Duration,
) -> Result<Vec<TopicDescription>, String> {
    let event = request_description(client, topics, timeout)?;
    // SAFETY: the event is valid; its texts belong to it and are copied here.
    let (code, detail) =
        unsafe { (sys::rd_kafka_event_error(event.pointer), text(sys::rd_kafka_event_error_string(event.pointer))) };
    if code != sys::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR {
        return Err(detail);
    }
    // SAFETY: the event is valid; the call returns null when it is not of this kind.
    let result = unsafe { sys::rd_kafka_event_DescribeTopics_result(event.pointer) };
    if result.is_null() {
        return Err("the cluster gave another answer than asked for".to_owned());
    }
    let mut count = 0_usize;
    // SAFETY: the result belongs to the event, which outlives the loop; `count` is written before it is read.
    let described = unsafe { sys::rd_kafka_DescribeTopics_result_topics(result, &raw mut count) };
    let mut found = Vec::with_capacity(count);
    for index in 0..count {
        // SAFETY: the array has `count` valid pointers, owned by the event.
        found.push(unsafe { read_description(*described.add(index)) });
    }
    topics
        .iter()
        .map(|topic| {
            let answer = found.iter().find(|(name, _)| name == topic);
            answer.map(|(_, description)| description.clone()).ok_or_else(|| format!("no answer about topic `{topic}`"))
        })
        .collect()
}

fn request_description<C: ConsumerContext>(
    client: &Client<C>,
    topics: &[&str],
    timeout: Duration,
) -> Result<Owned<sys::rd_kafka_event_t>, String> {
    let timeout_ms = c_int::try_from(timeout.as_millis()).unwrap_or(c_int::MAX);
    let names = topics
        .iter()
        .map(|topic| CString::new(*topic).map_err(|_| format!("topic `{topic}` has a zero byte in its name")))
        .collect::<Result<Vec<_>, _>>()?;
    let mut pointers: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
    let native = client.native_ptr();
    let out_of_memory = || "the client is out of memory".to_owned();
    // SAFETY: the names outlive the call, which copies them.
    let collection = unsafe { sys::rd_kafka_TopicCollection_of_topic_names(pointers.as_mut_ptr(), pointers.len()) };
    let collection = Owned::new(collection, sys::rd_kafka_TopicCollection_destroy).ok_or_else(out_of_memory)?;
    // SAFETY: the client lives as long as its borrow.
    let options =
        unsafe { sys::rd_kafka_AdminOptions_new(native, sys::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DESCRIBETOPICS) };
    let options = Owned::new(options, sys::rd_kafka_AdminOptions_destroy).ok_or_else(out_of_memory)?;
    // SAFETY: the options are valid; a null text buffer of size 0 is allowed.
    unsafe { sys::rd_kafka_AdminOptions_set_request_timeout(options.pointer, timeout_ms, ptr::null_mut(), 0) };
    // SAFETY: the options are valid; the error object, if any, is destroyed at once: without rights listed, a topic
    // counts as writable.
    unsafe {
        let error = sys::rd_kafka_AdminOptions_set_include_authorized_operations(options.pointer, 1);
        sys::rd_kafka_error_destroy(error);
    }
    // SAFETY: the client lives as long as its borrow, and the queue goes before it.
    let queue = unsafe { sys::rd_kafka_queue_new(native) };
    let queue = Owned::new(queue, sys::rd_kafka_queue_destroy).ok_or_else(out_of_memory)?;
    // SAFETY: all four are valid; the call copies what it needs.
    unsafe { sys::rd_kafka_DescribeTopics(native, collection.pointer, options.pointer, queue.pointer) };
    // The answer, also a timeout, comes as an event; the margin lets librdkafka's own timeout speak first.
    // SAFETY: the queue is valid; the event, if any, is ours.
    let event = unsafe { sys::rd_kafka_queue_poll(queue.pointer, timeout_ms.saturating_add(500)) };
    Owned::new(event, sys::rd_kafka_event_destroy).ok_or_else(|| "the cluster does not answer".to_owned())
}

/// Returns the name and the description of a topic.
///
/// # Safety
/// The pointer is a valid topic description whose event outlives the call.
unsafe fn read_description(topic: *const sys::rd_kafka_TopicDescription_t) -> (String, TopicDescription) {
    // SAFETY: the caller's promise; all texts and arrays belong to the event and are copied here.
    unsafe {
        let name = text(sys::rd_kafka_TopicDescription_name(topic));
        let error = sys::rd_kafka_TopicDescription_error(topic);
        let code = sys::rd_kafka_error_code(error);
        let error = (code != sys::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR)
            .then(|| (RDKafkaErrorCode::from(code), text(sys::rd_kafka_error_string(error))));
        let uuid = sys::rd_kafka_TopicDescription_topic_id(topic);
        let mut id = [0; 16];
        if !uuid.is_null() {
            let (high, low) =
                (sys::rd_kafka_Uuid_most_significant_bits(uuid), sys::rd_kafka_Uuid_least_significant_bits(uuid));
            let bits = (u128::from(high.cast_unsigned()) << 64) | u128::from(low.cast_unsigned());
            id = bits.to_be_bytes();
        }
        let mut partitions = 0_usize;
        sys::rd_kafka_TopicDescription_partitions(topic, &raw mut partitions);
        let mut count = 0_usize;
        let operations = sys::rd_kafka_TopicDescription_authorized_operations(topic, &raw mut count);
        let write = sys::rd_kafka_AclOperation_t::RD_KAFKA_ACL_OPERATION_WRITE;
        let is_writable = operations.is_null() || (0..count).any(|index| *operations.add(index) == write);
        (name, TopicDescription { id, partitions, error, is_writable })
    }
}

/// Returns the headers of a message. A name that is not UTF-8, which the protocol forbids, is read with replacements:
/// rust-rdkafka panics on it.
pub(super) fn headers(message: &BorrowedMessage<'_>) -> Vec<Header> {
    let mut native = ptr::null_mut();
    // SAFETY: the message is valid while borrowed; `native` is written when there are headers, and belongs to it.
    let code = unsafe { sys::rd_kafka_message_headers(message.ptr(), &raw mut native) };
    if code != sys::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR || native.is_null() {
        return Vec::new();
    }
    // SAFETY: the headers belong to the borrowed message.
    let count = unsafe { sys::rd_kafka_header_cnt(native) };
    let mut headers = Vec::with_capacity(count);
    for index in 0..count {
        let (mut name, mut value, mut size) = (ptr::null(), ptr::null(), 0_usize);
        // SAFETY: the headers belong to the borrowed message; the three are written when the call succeeds.
        let code = unsafe { sys::rd_kafka_header_get_all(native, index, &raw mut name, &raw mut value, &raw mut size) };
        if code != sys::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR {
            break;
        }
        let value = (!value.is_null()).then(|| {
            // SAFETY: a value that is not null has `size` bytes that belong to the borrowed message.
            Bytes::copy_from_slice(unsafe { std::slice::from_raw_parts(value.cast::<u8>(), size) })
        });
        // SAFETY: the name is a C text that belongs to the borrowed message.
        headers.push(Header { key: unsafe { text(name) }, value });
    }
    headers
}

/// Copies a C text; null is empty.
///
/// # Safety
/// The pointer is null or a valid C text.
unsafe fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

/// An object of librdkafka that is ours to destroy.
struct Owned<T> {
    pointer: *mut T,
    destroy: unsafe extern "C" fn(*mut T),
}

impl<T> Owned<T> {
    /// Takes what a constructor of librdkafka returned; null is none.
    fn new(pointer: *mut T, destroy: unsafe extern "C" fn(*mut T)) -> Option<Self> {
        (!pointer.is_null()).then_some(Self { pointer, destroy })
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: the pointer came from the constructor that belongs to `destroy`, and is destroyed here only.
        unsafe { (self.destroy)(self.pointer) };
    }
}

//! Messages of the command topic as records, and how many a poll may return.
//!
//! Owns the copy out of librdkafka's memory. Never looks into a command. Keeps: key, value and headers byte by byte.

use bytes::Bytes;
use rdkafka::message::{BorrowedMessage, Message};

use super::native;
use crate::log::InputRecord;
use crate::position::{Offset, Partition};
use crate::time::Timestamp;

/// How much a poll may return.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// Records.
    pub(super) records: usize,
    /// Bytes of keys, values and headers.
    pub(super) bytes: usize,
}

impl Room {
    /// Returns whether nothing fits any more.
    pub(super) fn is_full(&self) -> bool {
        self.records == 0 || self.bytes == 0
    }

    /// Takes the room of `records` with `bytes` together.
    pub(super) fn take(&mut self, records: usize, bytes: usize) {
        self.records = self.records.saturating_sub(records);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

/// Returns the message as a record, and its size.
pub(super) fn record(message: &BorrowedMessage<'_>, partition: Partition) -> (InputRecord, usize) {
    let record = InputRecord {
        partition,
        offset: Offset(message.offset()),
        timestamp: message.timestamp().to_millis().map(Timestamp::from_millis),
        key: message.key().map(Bytes::copy_from_slice),
        value: message.payload().map(Bytes::copy_from_slice),
        headers: native::headers(message),
    };
    let size = |bytes: &Option<Bytes>| bytes.as_ref().map_or(0, Bytes::len);
    let headers: usize = record.headers.iter().map(|header| header.key.len() + size(&header.value)).sum();
    let bytes = size(&record.key) + size(&record.value) + headers;
    (record, bytes)
}

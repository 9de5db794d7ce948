//! Headers and outbox records, as both commands and stored timers carry them.
//!
//! Owns the conversions between the core's values and protobuf. Keeps: order, duplicates, and null against empty.

use super::proto;
use crate::timer::model::{Header, OutboxRecord};

pub(super) fn headers_to_proto(headers: &[Header]) -> Vec<proto::Header> {
    headers.iter().map(|header| proto::Header { key: header.key.clone(), value: header.value.clone() }).collect()
}

pub(super) fn headers_from_proto(headers: Vec<proto::Header>) -> Vec<Header> {
    headers.into_iter().map(|header| Header { key: header.key, value: header.value }).collect()
}

pub(super) fn outbox_to_proto(records: &[OutboxRecord]) -> Vec<proto::OutboxRecord> {
    records.iter().map(outbox_record_to_proto).collect()
}

pub(super) fn outbox_record_to_proto(record: &OutboxRecord) -> proto::OutboxRecord {
    proto::OutboxRecord {
        key: record.key.clone(),
        value: record.value.clone(),
        headers: headers_to_proto(&record.headers),
    }
}

pub(super) fn outbox_from_proto(records: Vec<proto::OutboxRecord>) -> Vec<OutboxRecord> {
    records.into_iter().map(outbox_record_from_proto).collect()
}

pub(super) fn outbox_record_from_proto(record: proto::OutboxRecord) -> OutboxRecord {
    OutboxRecord { key: record.key, value: record.value, headers: headers_from_proto(record.headers) }
}

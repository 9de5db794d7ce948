//! A client that sends commands, as one would be written by somebody who has read the documentation only.
//!
//! Owns a plain producer, and messages of its own with the field numbers of `proto/`: were they the service's, a change of
//! a number would go unseen. Keeps: a command counts as sent only when the broker has acknowledged it.

use std::time::Duration;

use prost::Message;
use punctual::time::Timestamp;
use rdkafka::ClientConfig;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseRecord, Producer, ThreadedProducer};
use serde_json::Value;

const FLUSH_BOUND: Duration = Duration::from_mins(1);

/// How a client finds the partition of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Partitioner {
    /// Java's, and the service's.
    Murmur2,
    /// librdkafka's default: the commands of such a client are strays.
    Crc32,
}

/// A sender of commands to one arm topic.
pub(crate) struct Commands {
    topic: String,
    producer: ThreadedProducer<rdkafka::producer::DefaultProducerContext>,
}

impl Commands {
    /// Returns a client.
    pub(crate) fn new(client: &ClientConfig, topic: &str, partitioner: Partitioner) -> Self {
        let partitioner = match partitioner {
            Partitioner::Murmur2 => "murmur2_random",
            Partitioner::Crc32 => "consistent_random",
        };
        let mut config = client.clone();
        config.set("partitioner", partitioner).set("enable.idempotence", "true").set("linger.ms", "5");
        config.set("message.max.bytes", "2000000");
        Self { topic: topic.to_owned(), producer: config.create().unwrap() }
    }

    /// Arms a timer of `run` in protobuf.
    pub(crate) fn arm_in_protobuf(&self, run: &str, timer_id: &str, due: Timestamp) {
        let arm = Arm {
            timer_id: timer_id.to_owned(),
            kind: Some("email".to_owned()),
            at_ms: Some(due.as_millis()),
            payload: Some(timer_id.as_bytes().to_vec()),
        };
        let command = Command { run: run.to_owned(), arm: Some(arm) };
        self.send(Some(&format!("default/{run}")), Some(&command.encode_to_vec()), "application/x-protobuf");
    }

    /// Sends any command in JSON, under the key that it should have.
    pub(crate) fn send_json(&self, run: &str, command: &Value) {
        let tenant = command.get("tenant").and_then(Value::as_str).unwrap_or("default");
        self.send(Some(&format!("{tenant}/{run}")), Some(command.to_string().as_bytes()), "application/json");
    }

    /// Sends any record with a content type.
    pub(crate) fn send(&self, key: Option<&str>, value: Option<&[u8]>, content_type: &str) {
        self.send_record(key, value, &[("content-type", Some(content_type.as_bytes()))]);
    }

    /// Sends any record.
    pub(crate) fn send_record(&self, key: Option<&str>, value: Option<&[u8]>, headers: &[(&str, Option<&[u8]>)]) {
        let mut all = OwnedHeaders::new();
        for (key, value) in headers {
            all = all.insert(Header { key, value: *value });
        }
        let mut record = BaseRecord::<str, [u8]>::to(&self.topic).headers(all);
        record.key = key;
        record.payload = value;
        self.producer.send(record).map_err(|(error, _)| error).unwrap();
    }

    /// Waits until the broker has acknowledged everything.
    pub(crate) fn flush(&self) {
        self.producer.flush(FLUSH_BOUND).unwrap();
    }
}

/// `Command` of `proto/punctual/v1/command.proto`, as far as it is needed here.
#[derive(Clone, PartialEq, Message)]
struct Command {
    #[prost(string, tag = "2")]
    run: String,
    #[prost(message, optional, tag = "10")]
    arm: Option<Arm>,
}

/// `Arm` of the same file.
#[derive(Clone, PartialEq, Message)]
struct Arm {
    #[prost(string, tag = "1")]
    timer_id: String,
    #[prost(string, optional, tag = "3")]
    kind: Option<String>,
    #[prost(int64, optional, tag = "4")]
    at_ms: Option<i64>,
    #[prost(bytes = "vec", optional, tag = "11")]
    payload: Option<Vec<u8>>,
}

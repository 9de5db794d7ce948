//! An independent reader of topics: every record that a `read_committed` consumer sees, with the time of its receipt.
//!
//! Owns a consumer and its thread. Reads from the beginning, belongs to no group, knows nothing of timers but the names
//! of the headers. Keeps: records are never dropped, not even when they come twice.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use punctual::time::Timestamp;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{BorrowedMessage, Headers, Message};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use super::{now, wait};

const POLL: Duration = Duration::from_millis(50);
const METADATA_BOUND: Duration = Duration::from_secs(30);

/// A record, as a consumer got it.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    /// Where it was read.
    pub(crate) topic: String,
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    /// What it holds.
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) headers: Vec<(String, Option<Vec<u8>>)>,
    /// When it came.
    pub(crate) at: Timestamp,
}

/// A consumer of some topics.
pub(crate) struct Reader {
    records: Arc<Mutex<Vec<Received>>>,
    stops: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Reader {
    /// Starts to read the topics, which must be there, with `isolation.level=read_committed`.
    pub(crate) fn start(client: &ClientConfig, topics: &[String]) -> Self {
        let mut config = client.clone();
        config
            .set("group.id", "no-group")
            .set("enable.auto.commit", "false")
            .set("isolation.level", "read_committed")
            .set("auto.offset.reset", "earliest")
            .set("fetch.wait.max.ms", "100");
        let consumer: BaseConsumer = config.create().unwrap();
        consumer.assign(&beginning_of(&consumer, topics)).unwrap();
        let records = Arc::new(Mutex::new(Vec::new()));
        let stops = Arc::new(AtomicBool::new(false));
        let (sink, stop) = (Arc::clone(&records), Arc::clone(&stops));
        let thread = thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                // An error is one of the connection: the scenario that restarts the broker sees it, and the client recovers.
                if let Some(Ok(message)) = consumer.poll(POLL) {
                    sink.lock().unwrap().push(receive(&message));
                }
            }
        });
        Self { records, stops, thread: Some(thread) }
    }

    /// Returns what has come so far.
    pub(crate) fn records(&self) -> Vec<Received> {
        self.records.lock().unwrap().clone()
    }

    /// Returns how many records have come so far.
    pub(crate) fn count(&self) -> usize {
        self.records.lock().unwrap().len()
    }

    /// Waits until at least `count` records have come, and returns them all.
    pub(crate) fn wait_for(&self, count: usize, bound: Duration, what: &str) -> Vec<Received> {
        wait::until_true(bound, &format!("{count} records come: {what}"), || self.count() >= count);
        self.records()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.stops.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

impl Received {
    /// Returns the value of the first header of this name, as text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self.headers.iter().find(|(key, _)| key == name)?;
        std::str::from_utf8(value.as_deref()?).ok()
    }

    /// Returns the value as text.
    pub(crate) fn text(&self) -> &str {
        self.value.as_deref().map_or("", |value| std::str::from_utf8(value).expect("the value is text"))
    }

    /// Returns the value as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(self.text()).unwrap_or_else(|error| panic!("{error} in {}", self.text()))
    }
}

fn beginning_of(consumer: &BaseConsumer, topics: &[String]) -> TopicPartitionList {
    let mut assignment = TopicPartitionList::new();
    for topic in topics {
        let partitions = wait::until(METADATA_BOUND, &format!("topic {topic} has partitions"), || {
            let metadata = consumer.fetch_metadata(Some(topic), METADATA_BOUND).ok()?;
            metadata.topics().first().map(|topic| topic.partitions().len()).filter(|count| *count > 0)
        });
        for partition in 0..i32::try_from(partitions).unwrap() {
            assignment.add_partition_offset(topic, partition, Offset::Beginning).unwrap();
        }
    }
    assignment
}

fn receive(message: &BorrowedMessage<'_>) -> Received {
    let headers = message.headers().map(|headers| {
        headers.iter().map(|header| (header.key.to_owned(), header.value.map(<[u8]>::to_vec))).collect()
    });
    Received {
        topic: message.topic().to_owned(),
        partition: message.partition(),
        offset: message.offset(),
        key: message.key().map(<[u8]>::to_vec),
        value: message.payload().map(<[u8]>::to_vec),
        headers: headers.unwrap_or_default(),
        at: now(),
    }
}

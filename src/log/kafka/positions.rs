//! Sends positions into a transaction, with an end.
//!
//! librdkafka's call has none, whatever time-out it is given: a request that begins to wait for a group coordinator which is
//! down looks again only when some connection comes up or goes down, and that can be never. So the call is made on a thread
//! of its own, and left behind with its producer when it does not come back.
//!
//! Owns that thread. Never decides what follows. Keeps: a producer that is left behind ends no transaction; the next one
//! with its id fences it.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use rdkafka::TopicPartitionList;
use rdkafka::consumer::ConsumerGroupMetadata;
use rdkafka::error::KafkaError;
use rdkafka::producer::{BaseProducer, Producer};

use super::report::ReportContext;
use super::settings::TRANSACTION_TIMEOUT;
use crate::log::LogError;
use crate::log::transaction::order::RESEND_AFTER;

/// How long the call may take: one request that gets no answer, and another.
const PATIENCE: Duration = RESEND_AFTER.saturating_add(Duration::from_secs(1));

/// One call, with all that it needs to outlive the one who asked.
struct Call {
    producer: Arc<BaseProducer<ReportContext>>,
    positions: TopicPartitionList,
    group: Arc<ConsumerGroupMetadata>,
}

/// The thread's end for one producer.
pub(super) struct PositionSender {
    calls: Sender<Call>,
    answers: Receiver<Result<(), KafkaError>>,
}

impl PositionSender {
    /// Starts the thread; it ends with this value.
    ///
    /// # Errors
    /// [`LogError::Fatal`] when there is no thread to be had.
    pub(super) fn start() -> Result<Self, LogError> {
        let (calls, calls_there) = mpsc::channel::<Call>();
        let (answers_there, answers) = mpsc::channel();
        let thread = thread::Builder::new().name("kafka-positions".to_owned());
        let spawned = thread.spawn(move || {
            for Call { producer, positions, group } in calls_there {
                let sent = producer.send_offsets_to_transaction(&positions, &group, TRANSACTION_TIMEOUT);
                // Before the answer, so that whoever gets it has the only hold on the producer again.
                drop(producer);
                if answers_there.send(sent).is_err() {
                    return;
                }
            }
        });
        match spawned {
            Ok(_detached) => Ok(Self { calls, answers }),
            Err(error) => Err(LogError::Fatal {
                doing: "starting the thread that sends positions".to_owned(),
                detail: error.to_string(),
            }),
        }
    }

    /// Sends positions into the producer's transaction; `None` when there is no answer, and the producer is to be given up.
    pub(super) fn send(
        &self,
        producer: &Arc<BaseProducer<ReportContext>>,
        positions: &TopicPartitionList,
        group: &Arc<ConsumerGroupMetadata>,
    ) -> Option<Result<(), KafkaError>> {
        let (producer, group) = (Arc::clone(producer), Arc::clone(group));
        self.calls.send(Call { producer, positions: positions.clone(), group }).ok()?;
        self.answers.recv_timeout(PATIENCE).ok()
    }
}

//! A pod's end of the simulated broker: the seam `Log`, as the clients of Kafka behave behind it.
//!
//! Owns the translation of each call of the seam into requests. Never decides what a worker does next. Keeps: who we are in
//! the group is captured after each poll, and fences every transaction until the next.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use punctual::log::transaction::rotation::Producers;
use punctual::log::{
    Aborted, CommitOutcome, Destination, Extent, FencingPosition, Log, LogError, LogEvent, TopicIds, Transaction,
};
use punctual::planted::{Bug, is_on};
use punctual::position::{Partition, Position};

use crate::broker::Refusal;
use crate::broker::group::Standing;
use crate::cluster::{Fence, Line, SimClient};
use crate::plan::Fault;
use crate::reader::{Reader, Reading};
use crate::sim::{CallError, Millis, Sim};

/// How often a join is tried again within the session before the clash of instance ids is an error.
const FENCED_BEFORE_FATAL: u32 = 1;

pub(crate) struct SimLog {
    sim: Rc<Sim>,
    pod: usize,
    /// The process: each start of a pod has another.
    incarnation: u64,
    /// The instance id; `None` makes a dynamic member.
    instance: Option<String>,
    reader: Rc<RefCell<Reader>>,
    line: Line,
    producers: Producers<SimClient>,
    last_fenced: Option<Millis>,
    fenced: u32,
}

impl SimLog {
    /// Connects: takes the transactional ids over first, then joins with the first poll.
    ///
    /// # Errors
    /// When the ids cannot be taken over.
    pub(crate) fn connect(
        sim: &Rc<Sim>,
        pod: usize,
        incarnation: u64,
        reader: &Rc<RefCell<Reader>>,
    ) -> Result<Self, LogError> {
        let instance = sim.pods[pod].instance.clone();
        let line = Line { sim: Rc::clone(sim), pod, owner: incarnation, instance: instance.clone() };
        Ok(Self {
            sim: Rc::clone(sim),
            pod,
            incarnation,
            producers: Producers::new(&line)?,
            line,
            instance: sim.plan.is_static.then_some(instance),
            reader: Rc::clone(reader),
            last_fenced: None,
            fenced: 0,
        })
    }

    fn retriable(doing: &'static str, error: &CallError) -> LogError {
        LogError::Retriable { doing: doing.to_owned(), detail: format!("{error:?}") }
    }

    /// Hears what the group has to say.
    fn hear(&mut self, events: &mut Vec<LogEvent>) -> Result<(), LogError> {
        let now = self.sim.now();
        if self.reader.borrow().deaf_until > now {
            return Ok(());
        }
        let member = self.reader.borrow().member;
        let standing = member.map(|member| self.sim.broker.borrow().group.standing(member));
        match (member, standing) {
            (Some(member), Some(Standing::Member)) => {
                let mut broker = self.sim.broker.borrow_mut();
                let told = broker.group.take_events(member);
                self.reader.borrow_mut().captured = broker.group.membership(member);
                drop(broker);
                for event in &told {
                    self.sim.note(|| format!("pod {}: {event:?}", self.pod));
                    if let LogEvent::Assigned(partitions) = event {
                        self.sim.oracle.borrow_mut().assigned(&self.sim, self.incarnation, partitions);
                    }
                }
                events.extend(told);
            }
            (Some(_), Some(Standing::Fenced)) => {
                let is_again = self.last_fenced.is_some_and(|last| now - last < self.sim.plan.session);
                self.fenced = if is_again { self.fenced + 1 } else { 0 };
                self.last_fenced = Some(now);
                if self.fenced >= FENCED_BEFORE_FATAL {
                    let detail = "another process has the instance id".to_owned();
                    return Err(LogError::Fatal { doing: "being a member".to_owned(), detail });
                }
                self.lose(events);
            }
            (Some(_), Some(Standing::Unknown) | None) => self.lose(events),
            (None, _) => {
                let id = self.sim.broker.borrow_mut().group.join(self.instance.as_deref(), now);
                self.sim.note(|| format!("pod {}: joins as member {id}", self.pod));
                self.reader.borrow_mut().member = Some(id);
            }
        }
        Ok(())
    }

    fn lose(&mut self, events: &mut Vec<LogEvent>) {
        let mut reader = self.reader.borrow_mut();
        reader.member = None;
        reader.captured = None;
        let held: Vec<Partition> = reader.held.keys().copied().collect();
        self.sim.note(|| format!("pod {}: lost {held:?}", self.pod));
        if !held.is_empty() {
            events.push(LogEvent::Lost(held));
        }
    }

    fn extent(&mut self, name: &'static str, place: (Destination, Partition)) -> Result<Extent, LogError> {
        let extent = self.sim.call(self.pod, name, |broker, _| {
            let log = broker.log(place);
            Ok(Extent { start: Position(log.start), end: Position(log.end) })
        });
        extent.map_err(|error| Self::retriable(name, &error))
    }
}

impl Log for SimLog {
    fn poll(&mut self, timeout: Duration, records_max: usize, _bytes_max: usize) -> Result<Vec<LogEvent>, LogError> {
        self.sim.gate(self.pod, "poll");
        let mut events = Vec::new();
        let records_max = records_max.min(self.sim.draw("fetch", |rng| [1, 3, 20, 2_000][rng.usize(0..4)]));
        {
            let broker = self.sim.broker.borrow();
            let mut reader = self.reader.borrow_mut();
            events.extend(reader.read_changelogs(&broker, records_max.max(2)));
            events.extend(reader.read_commands(&broker, records_max));
        }
        self.hear(&mut events)?;
        let patience = Millis::try_from(timeout.as_millis()).expect("a poll is short");
        let until = self.sim.now() + if events.is_empty() { patience } else { 0 };
        self.sim.pods[self.pod].sleeps_until(until);
        Ok(events)
    }

    fn accept(&mut self, partitions: &[Partition]) -> Result<(), LogError> {
        self.sim.gate(self.pod, "accept");
        let mut reader = self.reader.borrow_mut();
        for partition in partitions {
            reader.held.entry(*partition).or_insert(Reading::Paused);
        }
        Ok(())
    }

    fn release(&mut self, partitions: &[Partition]) -> Result<(), LogError> {
        self.sim.gate(self.pod, "release");
        let mut reader = self.reader.borrow_mut();
        for partition in partitions {
            reader.held.remove(partition);
            reader.restoring.remove(partition);
        }
        if let Some(member) = reader.member {
            self.sim.broker.borrow_mut().group.released(member, partitions, self.sim.now());
        }
        Ok(())
    }

    fn fencing_position(&mut self, partition: Partition) -> Result<FencingPosition, LogError> {
        const DOING: &str = "fetch positions";
        let is_home = partition.0 < self.sim.plan.partitions;
        let committed = self.sim.call(self.pod, DOING, |broker, _| {
            // The client that asks reads open transactions too, so that it is told the older position; where the group's
            // position is the truth it asks for a stable one.
            if is_home { Ok(broker.offsets.fetch_stale(partition)) } else { broker.offsets.fetch_stable(partition) }
        });
        if let Some(position) = committed.map_err(|error| Self::retriable(DOING, &error))? {
            return Ok(FencingPosition { position, committed: true });
        }
        let position = self.extent("list offsets", (Destination::Arm, partition))?.start;
        Ok(FencingPosition { position, committed: false })
    }

    fn input_extent(&mut self, partition: Partition) -> Result<Extent, LogError> {
        let mut extent = self.extent("list offsets of commands", (Destination::Arm, partition))?;
        if is_on(Bug::GateAtStableOffset) {
            extent.end = Position(self.sim.broker.borrow().log((Destination::Arm, partition)).last_stable());
        }
        Ok(extent)
    }

    fn changelog_extent(&mut self, partition: Partition) -> Result<Extent, LogError> {
        self.extent("list offsets of changelog", (Destination::Changelog, partition))
    }

    fn topic_ids(&mut self) -> Result<TopicIds, LogError> {
        const DOING: &str = "describe topics";
        let answer = self.sim.call(self.pod, DOING, |_, _| Ok::<_, Refusal>(()));
        answer.map_err(|error| Self::retriable(DOING, &error))?;
        Ok(TopicIds { arm: [1; 16], changelog: [2; 16] })
    }

    fn restore(&mut self, partition: Partition, from: Position) -> Result<(), LogError> {
        self.sim.gate(self.pod, "restore");
        self.reader.borrow_mut().restoring.insert(partition, from.0);
        Ok(())
    }

    fn stop_restore(&mut self, partition: Partition) -> Result<(), LogError> {
        self.sim.gate(self.pod, "stop restore");
        self.reader.borrow_mut().restoring.remove(&partition);
        Ok(())
    }

    fn consume(&mut self, partition: Partition, from: Position) -> Result<(), LogError> {
        self.sim.gate(self.pod, "consume");
        let is_refused = self.sim.strikes(Fault::LostRequest, "lost request", self.sim.plan.calls_between);
        match self.reader.borrow_mut().held.get_mut(&partition) {
            Some(reading) if !is_refused => {
                *reading = Reading::From(from.0);
                Ok(())
            }
            Some(_) | None => {
                Err(LogError::Retriable { doing: "reading".to_owned(), detail: "cannot seek now".to_owned() })
            }
        }
    }

    fn pause(&mut self, partition: Partition) -> Result<(), LogError> {
        self.sim.gate(self.pod, "pause");
        if let Some(reading @ Reading::From(_)) = self.reader.borrow_mut().held.get_mut(&partition) {
            *reading = Reading::Paused;
        }
        Ok(())
    }

    fn position(&self, partition: Partition) -> Option<Position> {
        match self.reader.borrow().held.get(&partition) {
            Some(Reading::From(from)) => Some(Position(*from)),
            Some(Reading::Paused | Reading::Fallen) | None => None,
        }
    }

    fn commit(&mut self, transaction: &Transaction) -> CommitOutcome {
        self.sim.gate(self.pod, "commit");
        let aborted =
            |detail: &str| CommitOutcome::Aborted(Aborted { refused: BTreeMap::new(), detail: detail.to_owned() });
        let Some(member) = self.reader.borrow().captured.clone() else {
            return aborted("not a member of the group at this moment");
        };
        let is_held = |partition| self.reader.borrow().held.contains_key(partition);
        if !transaction.positions.keys().all(is_held) {
            return aborted("a partition is not held");
        }
        let fence = Fence { positions: transaction.positions.clone(), member };
        let outcome = self.producers.commit(&self.line, transaction, &fence);
        self.sim.note(|| format!("pod {}: transaction: {outcome:?}", self.pod));
        outcome
    }

    fn rebuild(&mut self) -> Result<(), LogError> {
        self.producers.rebuild(&self.line)
    }
}

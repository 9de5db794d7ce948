//! The transactional clients of a pod, below the code that orders their calls.
//!
//! Owns what librdkafka does there: a queue of records that are under way, requests that are sent again until they are
//! answered, and the flags of a client. Never decides in which order calls are made, nor what follows from a failure: that
//! is `punctual::log::transaction`, which runs here as it does over Kafka.
//! Keeps: a request that is sent again takes effect once, except the one that ends a transaction, whose copy may arrive late.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use punctual::log::transaction::{AbortFound, CallFailure, Cluster, Remedy};
use punctual::log::{Committed, Destination, Emission, LogError};
use punctual::position::{Offset, Partition, Position};
use punctual::time::Timestamp;

use crate::broker::group::Membership;
use crate::broker::partition::Data;
use crate::broker::transactions::ProducerId;
use crate::broker::{Broker, Place, Refusal};
use crate::murmur::java_partition;
use crate::plan::Fault;
use crate::sim::{CallError, EPOCH, Millis, Sim};

/// Between two tries of what cannot be done yet.
const STEP: Millis = 20;
/// How long an abort may take before the client is given up.
const ABORT_PATIENCE: Millis = 20_000;
/// How late the copy of a request to end a transaction may arrive.
const COPY_DELAY: Millis = 8_000;

/// A pod's line to the cluster.
pub(crate) struct Line {
    pub(crate) sim: Rc<Sim>,
    pub(crate) pod: usize,
    /// The process.
    pub(crate) owner: u64,
    pub(crate) instance: String,
}

/// What fences a transaction.
pub(crate) struct Fence {
    pub(crate) positions: BTreeMap<Partition, Position>,
    pub(crate) member: Membership,
}

#[derive(Default)]
struct Client {
    id: String,
    who: Option<ProducerId>,
    queue: VecDeque<Emission>,
    added: Vec<Place>,
    committed: Committed,
    refused: BTreeMap<Destination, String>,
    is_troubled: bool,
    is_fenced: bool,
    is_broken: bool,
}

/// A client with a transactional id.
#[derive(Default)]
pub(crate) struct SimClient(RefCell<Client>);

impl SimClient {
    fn id(&self) -> String {
        self.0.borrow().id.clone()
    }

    fn who(&self) -> Result<ProducerId, CallFailure> {
        let client = self.0.borrow();
        client.who.filter(|_| !client.is_broken).ok_or_else(|| give_up("the client is broken".to_owned()))
    }
}

fn give_up(detail: String) -> CallFailure {
    CallFailure { remedy: Remedy::GiveUp, ..CallFailure::abort(detail) }
}

impl Line {
    /// Makes a request until it is answered.
    fn retry<T>(
        &self,
        client: &SimClient,
        name: &'static str,
        mut ask: impl FnMut(&mut Broker, Millis) -> Result<T, Refusal>,
    ) -> Result<T, CallFailure> {
        let began = self.sim.now();
        loop {
            match self.sim.call(self.pod, name, &mut ask) {
                Ok(answer) => return Ok(answer),
                Err(CallError::NoAnswer) => client.0.borrow_mut().is_troubled = true,
                Err(CallError::Refused(Refusal::ConcurrentTransactions)) => {}
                Err(CallError::Refused(Refusal::Topic(to))) => {
                    client.0.borrow_mut().refused.insert(to, "unknown topic".to_owned());
                    return Err(CallFailure::abort(format!("{name}: {to} refuses")));
                }
                Err(CallError::Refused(Refusal::ProducerFenced)) => {
                    let mut client = client.0.borrow_mut();
                    client.is_fenced = true;
                    client.is_broken = true;
                    return Err(give_up(format!("{name}: fenced")));
                }
                Err(CallError::Refused(refusal)) => return Err(CallFailure::abort(format!("{name}: {refusal:?}"))),
            }
            if self.sim.now() - began > self.sim.plan.transaction_timeout {
                return Err(CallFailure::abort(format!("{name}: timed out")));
            }
            self.sim.wait(self.pod, STEP);
        }
    }

    fn deliver(&self, client: &SimClient, emission: Emission) -> Result<(), CallFailure> {
        let place = self.place(&emission);
        let who = client.who()?;
        let is_added = client.0.borrow().added.contains(&place);
        if !is_added {
            self.retry(client, "add partition", |broker, now| broker.add_partition(who, place, now))?;
            client.0.borrow_mut().added.push(place);
        }
        let timestamp = emission.timestamp.map_or_else(|| self.sim.now(), |at| at.as_millis() - EPOCH);
        let Emission { key, value, headers, .. } = emission;
        let data = Data { key, value, headers, timestamp: Some(timestamp) };
        let mut done = None;
        let mut is_again = false;
        // Sent again under the same number, the broker takes it once, and does not tell its place again.
        self.retry(client, "produce", |broker, now| {
            is_again = done.is_some();
            if done.is_none() {
                done = Some((broker.produce(who, place, data.clone(), now)?, now));
            }
            Ok(())
        })?;
        if let (Destination::Changelog, Some((offset, appended))) = (place.0, done) {
            let committed = &mut client.0.borrow_mut().committed;
            if !is_again {
                committed.changelog.entry(place.1).or_default().insert(Offset(offset));
            }
            committed.appended = Some(Timestamp::from_millis(EPOCH + appended));
        }
        Ok(())
    }

    fn place(&self, emission: &Emission) -> Place {
        let count = self.sim.broker.borrow().partitions[&emission.to];
        let partition = emission.partition.unwrap_or_else(|| match &emission.key {
            Some(key) => java_partition(key, count),
            None => Partition(self.sim.draw("keyless", |rng| rng.u32(0..count))),
        });
        (emission.to, partition)
    }

    fn end(&self, client: &SimClient, is_commit: bool, patience: Millis) -> Result<(), CallFailure> {
        let who = client.who()?;
        let began = self.sim.now();
        loop {
            let answer =
                self.sim.call(self.pod, "end transaction", |broker, now| broker.end_transaction(who, is_commit, now));
            match answer {
                Ok(()) => return Ok(()),
                Err(CallError::Refused(Refusal::ConcurrentTransactions)) => {}
                Err(CallError::Refused(refusal)) => {
                    let mut client = client.0.borrow_mut();
                    client.is_fenced |= refusal == Refusal::ProducerFenced;
                    client.is_broken = true;
                    return Err(give_up(format!("{refusal:?}")));
                }
                Err(CallError::NoAnswer) => {
                    client.0.borrow_mut().is_troubled = true;
                    let until = self.sim.now() + COPY_DELAY;
                    self.sim.broker.borrow_mut().end_again(who, is_commit, until);
                    if self.sim.draw("give up", fastrand::Rng::bool) {
                        return Err(give_up("no answer".to_owned()));
                    }
                }
            }
            if self.sim.now() - began > patience {
                return Err(give_up("timed out".to_owned()));
            }
            self.sim.wait(self.pod, STEP);
        }
    }
}

impl Cluster for Line {
    type Client = SimClient;
    type Fence = Fence;

    fn make(&self, number: usize) -> Result<SimClient, LogError> {
        let id = format!("timers-{}-{number}", self.instance);
        Ok(SimClient(RefCell::new(Client { id, ..Client::default() })))
    }

    fn init(&self, client: &SimClient) -> Result<bool, LogError> {
        let (id, owner, timeout) = (client.id(), self.owner, self.sim.plan.transaction_timeout);
        let who =
            self.sim.call(self.pod, "init producer", |broker, now| broker.init_producer(&id, owner, timeout, now));
        client.0.borrow_mut().who = who.as_ref().ok().copied();
        Ok(who.is_ok())
    }

    fn retire(&self, client: SimClient) {
        drop(client);
    }

    fn begin(&self, client: &SimClient) -> Result<(), String> {
        let id = client.id();
        if self.sim.strikes(Fault::FatalProducer, "fatal", self.sim.plan.calls_between) {
            self.sim.note(|| format!("pod {}: FATAL PRODUCER {id}", self.pod));
            client.0.borrow_mut().is_broken = true;
        }
        let mut client = client.0.borrow_mut();
        let (who, is_broken) = (client.who, client.is_broken);
        *client = Client { id, who, is_broken, ..Client::default() };
        Ok(())
    }

    fn send(&self, client: &SimClient, emission: &Emission) -> Result<(), CallFailure> {
        client.0.borrow_mut().queue.push_back(emission.clone());
        Ok(())
    }

    fn drain(&self, client: &SimClient) -> Result<(), CallFailure> {
        loop {
            let next = client.0.borrow_mut().queue.pop_front();
            let Some(emission) = next else { return Ok(()) };
            self.deliver(client, emission)?;
        }
    }

    /// Invalid positions are dropped without a word, and if none is left nothing is sent at all.
    fn send_positions(&self, client: &SimClient, fence: &Fence) -> Result<(), CallFailure> {
        let valid = fence.positions.iter().filter(|(_, position)| position.0 >= 0);
        let valid: BTreeMap<Partition, Position> = valid.map(|(partition, position)| (*partition, *position)).collect();
        if valid.is_empty() {
            return Ok(());
        }
        let who = client.who()?;
        self.retry(client, "commit positions", |broker, now| broker.commit_positions(who, &fence.member, &valid, now))
    }

    /// What is still under way is delivered first.
    fn commit(&self, client: &SimClient, patience: Duration) -> Result<Committed, CallFailure> {
        self.drain(client)?;
        self.end(client, true, Millis::try_from(patience.as_millis()).expect("a patience is short"))?;
        Ok(client.0.borrow().committed.clone())
    }

    fn abort(&self, client: &SimClient) -> Result<AbortFound, String> {
        client.0.borrow_mut().queue.clear();
        let is_open = !client.0.borrow().added.is_empty();
        if !is_open {
            return Ok(AbortFound::Nothing);
        }
        self.end(client, false, ABORT_PATIENCE).map_err(|failure| failure.detail)?;
        Ok(AbortFound::Transaction)
    }

    fn refused(&self, client: &SimClient) -> BTreeMap<Destination, String> {
        client.0.borrow().refused.clone()
    }

    fn is_troubled(&self, client: &SimClient) -> bool {
        client.0.borrow().is_troubled
    }

    fn is_fenced(&self, client: &SimClient) -> bool {
        client.0.borrow().is_fenced
    }

    fn refusals(&self, destinations: &BTreeSet<Destination>) -> Option<BTreeMap<Destination, String>> {
        let refusing = self.sim.call(self.pod, "describe topics", |broker, _| Ok(broker.refusing.clone())).ok()?;
        let refused = destinations.intersection(&refusing);
        Some(refused.map(|to| (*to, "unknown topic".to_owned())).collect())
    }

    fn now(&self) -> Duration {
        Duration::from_millis(self.sim.now().unsigned_abs())
    }

    fn pause(&self, moment: Duration) {
        self.sim.wait(self.pod, Millis::try_from(moment.as_millis()).expect("a moment is short").max(1));
    }
}

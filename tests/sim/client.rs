//! The clients: what they ask for, and the records that say so.
//!
//! Owns every command ever sent, by its number, which its record carries in a header: what the oracle judges is what was
//! asked for, not what the library made of it. Keeps: an ask has at most one defect, so that its reason is known.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::num::NonZeroU64;
use std::time::Duration;

use bytes::Bytes;
use punctual::calendar::cron::Cron;
use punctual::calendar::interval::Interval;
use punctual::calendar::zone::Zone;
use punctual::log::Destination;
use punctual::position::Partition;
use punctual::time::Timestamp;
use punctual::timer::command::{Action, Arm, Command, Encoding, OnConflict, RecurringWish, Reply, RuleWish, When};
use punctual::timer::identity::{Run, RunKey, Tenant, TimerId, TimerKey};
use punctual::timer::kind::KindRef;
use punctual::timer::model::{Generation, Header, OutboxRecord};
use punctual::wire;

use crate::asks;
use crate::broker::partition::Data;
use crate::broker::transactions::ProducerId;
use crate::murmur::java_partition;
use crate::plan::Fault;
use crate::setting::kind_number;
use crate::sim::{EPOCH, Millis, Sim};

/// The header that names the command.
pub(crate) const NUMBER: &str = "sim";

/// How a command names its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KindAsk {
    Name(&'static str),
    Number(u32),
}

/// When a timer is to fire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhenAsk {
    /// At an instant, in milliseconds since 1970.
    At(i64),
    After(i64),
    /// Each interval from the arming on, so often.
    Every {
        interval: i64,
        count: u64,
    },
    /// By a cron expression: at each second of a minute that is a multiple, so often.
    Cron {
        seconds: i64,
        count: u64,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct ArmAsk {
    pub(crate) id: String,
    pub(crate) kind: KindAsk,
    pub(crate) when: WhenAsk,
    pub(crate) is_replacing: bool,
    pub(crate) payload: Option<Bytes>,
    pub(crate) key: Option<Bytes>,
    pub(crate) headers: Vec<Header>,
    pub(crate) outbox: Vec<OutboxRecord>,
}

#[derive(Clone, Debug)]
pub(crate) enum Ask {
    Arm(Box<ArmAsk>),
    Disarm {
        id: String,
        generation: Option<u64>,
    },
    Pause {
        id: String,
        generation: Option<u64>,
    },
    Resume {
        id: String,
        generation: Option<u64>,
    },
    DisarmRun,
    SealRun {
        retention: Option<Millis>,
    },
    /// No command at all: its bytes.
    Garbage(Option<Bytes>),
}

/// A command as a client means it.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    pub(crate) number: u64,
    pub(crate) tenant: &'static str,
    pub(crate) run: String,
    pub(crate) correlation: Option<String>,
    pub(crate) ask: Ask,
}

impl Spec {
    /// Returns `tenant/run`.
    pub(crate) fn routing(&self) -> String {
        format!("{}/{}", self.tenant, self.run)
    }

    fn run_key(&self) -> RunKey {
        RunKey { tenant: Tenant::parse(self.tenant).expect("valid"), run: Run::parse(&self.run).expect("valid") }
    }

    fn timer_key(&self, id: &str) -> TimerKey {
        TimerKey { run: self.run_key(), id: TimerId::parse(id).expect("valid") }
    }

    fn value(&self, encoding: Encoding) -> Option<Bytes> {
        let reply = self.correlation.clone().map(|correlation_id| Reply { correlation_id, encoding });
        let action = match &self.ask {
            Ask::Garbage(bytes) => return bytes.clone(),
            Ask::Arm(arm) => Action::Arm(Box::new(Arm {
                key: self.timer_key(&arm.id),
                kind: match arm.kind {
                    KindAsk::Name(name) => KindRef::Name(name.to_owned()),
                    KindAsk::Number(number) => KindRef::Number(kind_number(number)),
                },
                when: match arm.when {
                    WhenAsk::At(at) => When::At(Timestamp::from_millis(at)),
                    WhenAsk::After(after) => When::AfterMillis(after),
                    WhenAsk::Every { interval, count } => every(interval, count),
                    WhenAsk::Cron { seconds, count } => cron(seconds, count),
                },
                on_conflict: if arm.is_replacing { OnConflict::Replace } else { OnConflict::Keep },
                payload: arm.payload.clone(),
                record_key: arm.key.clone(),
                headers: arm.headers.clone(),
                outbox: arm.outbox.clone(),
            })),
            Ask::Disarm { id, generation } => {
                Action::Disarm { key: self.timer_key(id), generation: generation.map(Generation) }
            }
            Ask::Pause { id, generation } => {
                Action::Pause { key: self.timer_key(id), generation: generation.map(Generation) }
            }
            Ask::Resume { id, generation } => {
                Action::Resume { key: self.timer_key(id), generation: generation.map(Generation) }
            }
            Ask::DisarmRun => Action::DisarmRun { run: self.run_key() },
            Ask::SealRun { retention } => Action::SealRun {
                run: self.run_key(),
                retention: retention.map(|millis| Duration::from_millis(millis.unsigned_abs())),
            },
        };
        Some(wire::command::encode(&Command { reply, action }, encoding))
    }
}

fn every(interval: i64, count: u64) -> When {
    let interval = Interval::new(0, 0, interval).expect("valid");
    let rule = RuleWish::Every { interval, zone: Zone::utc(), anchor: None };
    When::Recurring(Box::new(RecurringWish { rule, count: NonZeroU64::new(count), until: None, from: None }))
}

fn cron(seconds: i64, count: u64) -> When {
    let rule = RuleWish::Cron(Cron::parse(&format!("*/{seconds} * * * * *"), Zone::utc()).expect("valid"));
    When::Recurring(Box::new(RecurringWish { rule, count: NonZeroU64::new(count), until: None, from: None }))
}

/// A client's open transaction.
struct Open {
    who: ProducerId,
    ends_at: Millis,
    /// `None`: the client has died, and only the time-out ends it.
    is_commit: Option<bool>,
}

#[derive(Default)]
pub(crate) struct Client {
    specs: BTreeMap<u64, Spec>,
    next_at: Millis,
    sent: u32,
    open: Option<Open>,
    transactions: u64,
}

impl Client {
    pub(crate) fn spec(&self, number: u64) -> &Spec {
        &self.specs[&number]
    }

    /// Returns the number of the next command.
    pub(crate) fn next_number(&self) -> u64 {
        self.specs.last_key_value().map_or(0, |(number, _)| number + 1)
    }

    /// Returns when the client next does something; `None` if it is done.
    pub(crate) fn next_at(&self, sim: &Sim) -> Option<Millis> {
        let sends = (self.sent < sim.plan.commands).then_some(self.next_at);
        sends.into_iter().chain(self.open.as_ref().map(|open| open.ends_at)).min()
    }

    pub(crate) fn is_done(&self, sim: &Sim) -> bool {
        self.next_at(sim).is_none()
    }

    /// Does what is due.
    pub(crate) fn act(&mut self, sim: &Sim) {
        if self.open.as_ref().is_some_and(|open| open.ends_at <= sim.now()) {
            self.end(sim);
        }
        if self.sent < sim.plan.commands && self.next_at <= sim.now() {
            sim.step();
            self.sent += 1;
            let is_skipped = sim.plan.skipped.contains(&self.sent);
            let pause = sim.draw("client pace", |rng| match rng.u32(0..10) {
                // Bursts, and now and then a silence in which timers become due.
                0..4 => 0,
                4..9 => rng.i64(0..=sim.plan.pace * 2),
                _ => rng.i64(0..=sim.plan.reach),
            });
            self.next_at = sim.now() + pause;
            for spec in asks::draw(sim, self.next_number()) {
                if !is_skipped {
                    self.send(sim, spec);
                }
            }
        }
    }

    /// Sends a command, perhaps in a transaction, perhaps to a wrong partition, perhaps twice.
    pub(crate) fn send(&mut self, sim: &Sim, spec: Spec) {
        let encoding = sim.draw("encoding", |rng| if rng.bool() { Encoding::Json } else { Encoding::Protobuf });
        let count = sim.broker.borrow().partitions[&Destination::Arm];
        let is_stray = sim.strikes(Fault::Stray, "stray", 4);
        let partition = if is_stray {
            Partition(sim.draw("stray", |rng| rng.u32(0..count)))
        } else {
            java_partition(spec.routing().as_bytes(), count)
        };
        let mut headers = vec![Header { key: NUMBER.to_owned(), value: Some(Bytes::from(spec.number.to_string())) }];
        if !matches!(spec.ask, Ask::Garbage(_)) {
            headers.push(wire::content_type::header(encoding));
        }
        let data = Data {
            key: Some(Bytes::from(spec.routing())),
            value: spec.value(encoding),
            headers,
            timestamp: Some(sim.now()),
        };
        let times = if sim.plan.has_copies && sim.draw("twice", |rng| rng.u32(0..12)) == 0 { 2 } else { 1 };
        for _ in 0..times {
            let offset = self.append(sim, partition, data.clone());
            sim.note(|| format!("client: {} to {partition} at {offset}: {}", spec.number, shown(&spec)));
        }
        self.specs.insert(spec.number, spec);
    }

    fn append(&mut self, sim: &Sim, partition: Partition, data: Data) -> i64 {
        let place = (Destination::Arm, partition);
        let mut broker = sim.broker.borrow_mut();
        if self.open.is_none() && sim.strikes(Fault::OpenTransaction, "client transaction", 8) {
            self.transactions += 1;
            let id = format!("client-{}", self.transactions);
            let who = broker.init_producer(&id, 0, sim.plan.transaction_timeout, sim.now());
            let who = who.expect("a new id has nothing open");
            let long = sim.draw("client transaction", |rng| rng.i64(0..sim.plan.transaction_timeout * 2));
            let is_commit = sim.draw("client transaction", |rng| [Some(true), Some(false), None][rng.usize(0..3)]);
            sim.note(|| format!("client: OPENS A TRANSACTION for {long} ms, commit: {is_commit:?}"));
            self.open = Some(Open { who, ends_at: sim.now() + long, is_commit });
        }
        if let Some(open) = &self.open
            && sim.draw("client transaction", fastrand::Rng::bool)
            && broker.add_partition(open.who, place, sim.now()).is_ok()
        {
            let sent = broker.produce(open.who, place, data.clone(), sim.now());
            if let Ok(offset) = sent {
                return offset;
            }
        }
        broker.append(place, data, sim.now())
    }

    fn end(&mut self, sim: &Sim) {
        let Some(open) = self.open.take() else { return };
        if let Some(is_commit) = open.is_commit {
            let ended = sim.broker.borrow_mut().end_transaction(open.who, is_commit, sim.now());
            sim.note(|| format!("client: ends its transaction, commit: {is_commit}, {ended:?}"));
        }
    }
}

/// Returns a command as the trace shows it.
fn shown(spec: &Spec) -> String {
    let mut text = format!("{} ", spec.routing());
    match &spec.ask {
        Ask::Arm(arm) => {
            let when = match arm.when {
                WhenAsk::At(at) => format!("at {}", at - EPOCH),
                WhenAsk::After(after) => format!("after {after}"),
                WhenAsk::Every { interval, count } => format!("every {interval}, {count} times"),
                WhenAsk::Cron { seconds, count } => format!("cron {seconds} s, {count} times"),
            };
            write!(text, "arm {} {:?} {when} replace: {}", arm.id, arm.kind, arm.is_replacing)
        }
        Ask::Disarm { id, generation } => write!(text, "disarm {id} {generation:?}"),
        Ask::Pause { id, generation } => write!(text, "pause {id} {generation:?}"),
        Ask::Resume { id, generation } => write!(text, "resume {id} {generation:?}"),
        Ask::DisarmRun => write!(text, "disarm run"),
        Ask::SealRun { retention } => write!(text, "seal run {retention:?}"),
        Ask::Garbage(_) => write!(text, "garbage"),
    }
    .expect("a text takes any text");
    text
}

//! What a client was promised, and whether it came so.
//!
//! ```text
//!   committed transaction ──▶ parts ──▶ commands applied to a plain map ──▶ expected answers, letters, forwards
//!                                │                                                        │ compared
//!                                └──▶ answers, letters, forwards, fired events, changelog ┘
//! ```
//!
//! Owns a plain map of timers and a sorted list of their dues for each partition, fed with the commands in the order in
//! which they stand on the partition. Never calls the core: it judges commands by its own reading of the documents.
//! Keeps: it looks at each transaction when it is decided, so that the first wrong one is the one that is named.

pub(crate) mod guess;
pub(crate) mod happening;
pub(crate) mod judge;
pub(crate) mod parts;
pub(crate) mod pausing;
pub(crate) mod remembered;
pub(crate) mod settle;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use punctual::log::Destination;
use punctual::position::Partition;
use punctual::wire::fired as names;
use punctual::wire::key::StateKey;

use crate::broker::partition::Data;
use crate::broker::transactions::Decision;
use crate::client::ArmAsk;
use crate::sim::{Millis, Sim, Violation};

/// Longest hold of a topic that refused, with what it takes to try it again.
const HOLD_MAX: Millis = 6_000;

/// `tenant`, `run`.
pub(crate) type RunName = (String, String);
/// `run`, `timer id`.
pub(crate) type TimerName = (RunName, String);

/// A timer that is armed.
#[derive(Clone, Debug)]
pub(crate) struct Armed {
    pub(crate) generation: u64,
    /// In milliseconds since 1970.
    pub(crate) due: i64,
    /// When it fires next: its due, the end of its lease, or its resume.
    pub(crate) wake: i64,
    /// Whether it is paused.
    pub(crate) is_paused: bool,
    /// How often it was delivered.
    pub(crate) attempts: u32,
    pub(crate) kind: u32,
    /// The time of arming: between these, by the clock of the process that took it.
    pub(crate) at: (i64, i64),
    pub(crate) ask: ArmAsk,
    /// Where its occurrences count from, if it recurs, in milliseconds since 1970.
    pub(crate) anchor: i64,
    /// How often it has fired, if it recurs.
    pub(crate) fired: u64,
    /// When the command was there.
    pub(crate) sent: Millis,
}

/// What is known of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunModel {
    /// When its seal ends, in milliseconds since 1970; `i64::MAX` is never.
    pub(crate) sealed_until: Option<i64>,
    /// Who waits for the number of timers removed.
    pub(crate) waiting: Vec<Waiting>,
}

/// A command on a whole run that is not answered yet.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub(crate) correlation: Option<String>,
    pub(crate) is_seal: bool,
    /// How many timers it removed.
    pub(crate) removed: u64,
}

/// How a timer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Fired,
    Disarmed,
    Replaced,
    Swept,
    Expired,
    /// By its handler.
    Dated,
}

/// One partition, as it is promised.
#[derive(Clone, Debug, Default)]
pub(crate) struct Home {
    /// The next command.
    pub(crate) position: i64,
    pub(crate) next_generation: u64,
    pub(crate) timers: BTreeMap<TimerName, Armed>,
    /// When those of them that are not paused fire next.
    pub(crate) dues: BTreeSet<(i64, TimerName)>,
    pub(crate) runs: BTreeMap<RunName, RunModel>,
    /// The process whose barrier was the last.
    pub(crate) owner: u64,
    /// Where that barrier stands.
    pub(crate) barrier: i64,
    /// Per partition that was added to the command topic: the offset behind its last command that was forwarded here.
    pub(crate) came: BTreeMap<Partition, i64>,
    /// How timers ended, by name and generation.
    pub(crate) ended: BTreeMap<(TimerName, u64), End>,
    /// The ids that are remembered, each with all that may be right, until the changelog shows which.
    pub(crate) remembered: BTreeMap<TimerName, Vec<remembered::Memory>>,
    /// Ids of which it is not known whether a disarm met the row of a timer that was swept, and is not remembered.
    pub(crate) unsure: BTreeSet<TimerName>,
    /// Whether ids are remembered at all.
    pub(crate) has_remember: bool,
}

impl Home {
    pub(crate) fn put(&mut self, name: TimerName, timer: Armed) {
        self.end(&name, End::Replaced);
        if !timer.is_paused {
            self.dues.insert((timer.wake, name.clone()));
        }
        self.timers.insert(name, timer);
    }

    /// A delivery holds the timer.
    pub(crate) fn hold(&mut self, name: &TimerName, until: i64) {
        if let Some(timer) = self.timers.get_mut(name) {
            self.dues.remove(&(timer.wake, name.clone()));
            timer.wake = until;
            timer.attempts += 1;
            self.dues.insert((until, name.clone()));
        }
    }

    pub(crate) fn end(&mut self, name: &TimerName, end: End) -> Option<Armed> {
        let timer = self.timers.remove(name)?;
        self.dues.remove(&(timer.wake, name.clone()));
        self.ended.insert((name.clone(), timer.generation), end);
        Some(timer)
    }
}

/// A process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process {
    pub(crate) pod: usize,
    pub(crate) is_old: bool,
}

/// How much was looked at, so that a run that checks nothing is noticed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) transactions: u64,
    pub(crate) commands: u64,
    pub(crate) fired: u64,
    pub(crate) answers: u64,
    pub(crate) letters: u64,
    pub(crate) forwards: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, other: &Self) {
        self.transactions += other.transactions;
        self.commands += other.commands;
        self.fired += other.fired;
        self.answers += other.answers;
        self.letters += other.letters;
        self.forwards += other.forwards;
    }
}

#[derive(Clone)]
pub(crate) struct Oracle {
    pub(crate) homes: BTreeMap<Partition, Home>,
    pub(crate) processes: BTreeMap<u64, Process>,
    /// Where the commands ended when a process was given a partition.
    pub(crate) gates: BTreeMap<(u64, Partition), i64>,
    /// Until when answers may be missing, because their topic refused them.
    pub(crate) answers_missing_until: Millis,
    pub(crate) counts: Counts,
    /// Longest lateness since the trouble ended.
    pub(crate) lateness_max: Millis,
    /// Those of the transaction that is looked at.
    pub(crate) guesses: guess::Guesses,
    incarnations: u64,
}

impl Oracle {
    pub(crate) fn new(partitions: u32, has_remember: bool) -> Self {
        let home = |number| (Partition(number), Home { next_generation: 1, has_remember, ..Home::default() });
        Self {
            homes: (0..partitions).map(home).collect(),
            processes: BTreeMap::new(),
            gates: BTreeMap::new(),
            answers_missing_until: -1,
            counts: Counts::default(),
            lateness_max: 0,
            guesses: guess::Guesses::default(),
            incarnations: 0,
        }
    }

    pub(crate) fn next_incarnation(&mut self) -> u64 {
        self.incarnations += 1;
        self.incarnations
    }

    pub(crate) fn started(&mut self, incarnation: u64, pod: usize, is_old: bool) {
        self.processes.insert(incarnation, Process { pod, is_old });
    }

    /// The trouble ends: whoever holds answers back sends them soon.
    pub(crate) fn calm(&mut self, now: Millis) {
        if self.answers_missing_until >= 0 {
            self.answers_missing_until = self.answers_missing_until.min(now + HOLD_MAX);
        }
    }

    /// A process was given partitions: what stands on them now is applied before it fires.
    pub(crate) fn assigned(&mut self, sim: &Sim, incarnation: u64, partitions: &[Partition]) {
        for partition in partitions {
            let end = sim.broker.borrow().log((Destination::Arm, *partition)).end;
            self.gates.insert((incarnation, *partition), end);
        }
    }

    /// Looks at a committed transaction.
    ///
    /// # Errors
    /// The first invariant that it breaks.
    pub(crate) fn judge(&mut self, sim: &Sim, decision: &Decision) -> Result<(), Violation> {
        if decision.owner == 0 {
            return Ok(());
        }
        self.counts.transactions += 1;
        sim.note(|| format!("process {}: committed {}", decision.owner, shown(decision)));
        settle::settle(self, sim, decision)
    }

    /// Returns the earliest due of a timer that can fire.
    pub(crate) fn first_due(&self, fires: impl Fn(u32) -> bool) -> Option<(Partition, i64, TimerName)> {
        let of_home = |(partition, home): (&Partition, &Home)| {
            let mut dues = home.dues.iter();
            let due = dues.find(|(_, name)| fires(home.timers[name].kind))?;
            Some((*partition, due.0, due.1.clone()))
        };
        self.homes.iter().filter_map(of_home).min_by_key(|(_, due, _)| *due)
    }
}

fn shown(decision: &Decision) -> String {
    let records = decision.records.iter().map(|((topic, partition), offset, data)| {
        let value = data.value.as_ref().map_or("null".to_owned(), |value: &Bytes| format!("{} bytes", value.len()));
        format!("{topic} [{partition}] {offset}{}: {value}", of(*topic, data))
    });
    let records: Vec<String> = records.collect();
    format!("{}; positions {:?}", records.join(", "), decision.positions)
}

/// Returns whose a record is, as far as it says so.
fn of(topic: Destination, data: &Data) -> String {
    match topic {
        Destination::Changelog => match StateKey::decode(data.key.as_deref().unwrap_or_default()) {
            Ok(StateKey::Timer(key)) => format!(" {key}"),
            Ok(StateKey::Run(run)) => format!(" {run}"),
            Ok(StateKey::Remembered(key)) => format!(" remembered {key}"),
            Ok(StateKey::Meta) => " meta".to_owned(),
            Ok(StateKey::Barrier) => " barrier".to_owned(),
            Err(_) => String::new(),
        },
        Destination::Fired(_) => {
            let id = parts::text(&data.headers, names::CE_ID).unwrap_or_default();
            format!(" {id} attempt {}", parts::text(&data.headers, names::ATTEMPT).unwrap_or_default())
        }
        Destination::Arm | Destination::Results | Destination::DeadLetter | Destination::Outbox(_) => String::new(),
    }
}

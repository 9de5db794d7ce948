//! One committed transaction: what it had to contain, and what it contains.
//!
//! Owns the order of the checks. Keeps: the commands that the new position covers are applied to the promise first, in the
//! order of their partition; then what fired is taken from it; then everything that the transaction wrote is compared.

use std::collections::BTreeSet;

use punctual::log::Destination;
use punctual::position::Partition;

use super::guess::{Guesses, may_guess};
use super::happening::{self, Happening};
use super::judge::{self, Verdict, When};
use super::parts::{Changes, FORWARDED, Parts, number_of, origin_of, take_apart, text};
use super::pausing;
use super::remembered::{Memory, longest};
use super::{End, Home, Oracle, Process, RunName, TimerName};
use crate::broker::partition::{Data, Fate};
use crate::broker::transactions::Decision;
use crate::client::{Ask, Spec, WhenAsk};
use crate::invariants::{
    answers, changelog_folds, exactly_once, expiry, fences, forwards, gate, handlers, never_early, paused, positions,
    rejections, remembered as ids, zombies,
};
use crate::murmur::java_partition;
use crate::plan::Fault;
use crate::pod::Skew;
use crate::sim::{EPOCH, Sim, Violation};

/// An answer that has to be given.
#[derive(Clone, Debug)]
pub(crate) struct ExpectedAnswer {
    pub(crate) spec: Spec,
    pub(crate) verdict: Verdict,
    /// The generation that the command gave.
    pub(crate) generation: Option<u64>,
}

/// A dead letter that has to be written.
#[derive(Clone, Debug)]
pub(crate) struct ExpectedLetter {
    pub(crate) partition: Partition,
    pub(crate) offset: i64,
    pub(crate) reason: &'static str,
    pub(crate) original: Data,
}

/// What a transaction has to contain.
#[derive(Default)]
pub(crate) struct Expected {
    pub(crate) answers: Vec<ExpectedAnswer>,
    pub(crate) letters: Vec<ExpectedLetter>,
    /// The command's number, its home, and its record.
    pub(crate) forwards: Vec<(u64, Partition, Data)>,
    /// Timers that changed.
    pub(crate) touched: BTreeSet<(Partition, TimerName)>,
    /// Runs that were disarmed or sealed.
    pub(crate) runs: BTreeSet<(Partition, RunName)>,
}

/// Who wrote a transaction, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writer {
    pub(crate) process: Process,
    pub(crate) skew: Skew,
}

pub(super) fn settle(oracle: &mut Oracle, sim: &Sim, decision: &Decision) -> Result<(), Violation> {
    oracle.guesses = Guesses::default();
    let before = may_guess(oracle, decision).then(|| oracle.clone());
    let first = read(oracle, sim, decision);
    let Some(before) = before.filter(|_| first.is_err()) else { return first };
    for (guess, reading) in oracle.guesses.others() {
        let mut other = Oracle { guesses: Guesses::otherwise(guess, reading), ..before.clone() };
        if read(&mut other, sim, decision).is_ok() {
            *oracle = other;
            return Ok(());
        }
    }
    first
}

fn read(oracle: &mut Oracle, sim: &Sim, decision: &Decision) -> Result<(), Violation> {
    let mut parts = take_apart(decision)?;
    answers::check_routes(sim, decision)?;
    let process = oracle.processes[&decision.owner];
    let skew = sim.pods[process.pod].state.borrow().skew;
    let writer = Writer { process, skew };
    fences::check(&parts, decision)?;
    zombies::check(oracle, &parts, decision.owner)?;
    let mut expected = Expected::default();
    let touched: BTreeSet<Partition> = decision.positions.keys().chain(parts.changes.keys()).copied().collect();
    for partition in touched {
        let changes = parts.changes.get(&partition).cloned().unwrap_or_default();
        let home = oracle.homes.entry(partition).or_default();
        let is_home = partition.0 < sim.plan.partitions;
        let before = if is_home { home.position } else { began(&parts, partition, home.position) };
        let after = positions::check(sim, partition, home, &changes, decision)?;
        for offset in before..after {
            take_command(oracle, sim, &Place { partition, offset, writer, parts: &parts }, &mut expected)?;
        }
        oracle.homes.entry(partition).or_default().position = after;
    }
    for happening in happenings(sim, &mut parts) {
        let outbox = &mut parts.outbox;
        take_happening(oracle, sim, happening, &mut Within { writer, owner: decision.owner, outbox }, &mut expected)?;
    }
    exactly_once::check_outbox(&parts.outbox)?;
    answers::check(oracle, sim, &parts.answers, expected.answers)?;
    rejections::check(oracle, &parts.letters, expected.letters)?;
    forwards::check(oracle, &parts.forwards, expected.forwards)?;
    changelog_folds::check(oracle, sim, &parts.changes, &expected.touched)?;
    ids::check(oracle, sim, &parts.changes, &expected.touched, &writer)?;
    changelog_folds::check_runs(oracle, sim, &parts.changes, expected.runs, &writer)
}

/// Takes what time did out of a transaction, in order.
fn happenings(sim: &Sim, parts: &mut Parts) -> Vec<Happening> {
    let mut all: Vec<Happening> = std::mem::take(&mut parts.fired).into_iter().map(Happening::Fired).collect();
    let is_dating = |(_, data): &mut (Destination, Data)| happening::is_dating(data);
    all.extend(parts.outbox.extract_if(.., is_dating).map(|(_, data)| Happening::Dated(data)));
    all.extend(parts.letters.extract_if(.., |letter| expiry::is_expiry(letter)).map(Happening::Expired));
    happening::in_order(sim, all, &parts.changes)
}

/// The transaction that a happening is in.
struct Within<'a> {
    writer: Writer,
    owner: u64,
    /// Its outbox records that no fire has claimed yet.
    outbox: &'a mut Vec<(Destination, Data)>,
}

fn take_happening(
    oracle: &mut Oracle,
    sim: &Sim,
    happening: Happening,
    within: &mut Within<'_>,
    expected: &mut Expected,
) -> Result<(), Violation> {
    paused::check(oracle, sim, &happening)?;
    let (home, name) = match happening {
        Happening::Fired(fired) => {
            let timer = exactly_once::check(oracle, sim, &fired, within.outbox)?;
            never_early::check(sim, &timer.armed, &fired, &within.writer)?;
            expiry::check(&timer.armed, &fired.data)?;
            crate::invariants::fairness::note(oracle, sim, &timer.armed);
            oracle.counts.fired += 1;
            let others = handlers::fired(oracle, &timer, &fired)?;
            expected.touched.extend(others.into_iter().map(|name| (timer.home, name)));
            (timer.home, timer.name)
        }
        Happening::Expired(letter) => expiry::expired(oracle, sim, &letter, &within.writer)?,
        Happening::Dated(data) => handlers::dated(oracle, sim, &data, &within.writer)?,
    };
    gate::check(oracle, sim, home, within.owner)?;
    expected.touched.insert((home, name));
    Ok(())
}

/// Returns where a transaction began to forward: where the last one ended, or earlier, if the group has lost that.
fn began(parts: &Parts, partition: Partition, before: i64) -> i64 {
    let forwarded = parts.forwards.iter().filter_map(|(_, _, data)| origin_of(data));
    let refused = parts.letters.iter().filter_map(rejections::place_of);
    let offsets = forwarded.chain(refused).filter(|(from, _)| *from == partition).map(|(_, offset)| offset);
    offsets.min().map_or(before, |first| first.min(before))
}

/// A place on the command topic, and the transaction that took it.
pub(crate) struct Place<'a> {
    partition: Partition,
    offset: i64,
    writer: Writer,
    parts: &'a Parts,
}

fn take_command(oracle: &mut Oracle, sim: &Sim, at: &Place<'_>, expected: &mut Expected) -> Result<(), Violation> {
    let broker = sim.broker.borrow();
    let log = broker.log((Destination::Arm, at.partition));
    let Some(entry) = log.entries.get(&at.offset) else {
        return Err(positions::beyond_end(at.partition, at.offset));
    };
    let Some(data) = entry.data.clone().filter(|_| entry.fate != Fate::Aborted) else { return Ok(()) };
    if entry.fate != Fate::Visible {
        return Err(positions::passed_open(at.partition, at.offset));
    }
    let number = number_of(&data).expect("every command has its number");
    let spec = sim.client.borrow().spec(number).clone();
    if at.offset < log.start && !is_evident(at, &spec) {
        // It was removed before it was read.
        return Ok(());
    }
    let when = When {
        recorded: EPOCH + data.timestamp.expect("every command has a timestamp"),
        low: EPOCH + entry.appended + at.writer.skew.low,
        high: EPOCH + sim.now() + at.writer.skew.high,
        is_old: at.writer.process.is_old,
        is_forwarded: text(&data.headers, FORWARDED).is_some(),
        sent: entry.appended,
        has_corrupt_rows: sim.plan.has(Fault::CorruptRow),
    };
    drop(broker);
    oracle.counts.commands += 1;
    crate::invariants::fairness::note_command(oracle, sim, when.sent);
    let home = java_partition(spec.routing().as_bytes(), sim.plan.partitions);
    let is_garbage = matches!(spec.ask, Ask::Garbage(_));
    if home != at.partition && !is_garbage {
        take_stray(at, home, Given { spec, data, when }, expected);
        return Ok(());
    }
    let model = oracle.homes.entry(at.partition).or_default();
    if let Some((from, offset)) = origin_of(&data).filter(|(from, _)| from.0 >= sim.plan.partitions) {
        let came = model.came.entry(from).or_default();
        if offset < *came {
            // It came before: the group had lost where the added partition was read.
            return Ok(());
        }
        *came = offset + 1;
    }
    let verdict = choose(model, &spec, &when, at, (&expected.answers, &mut oracle.guesses));
    let touched_before: BTreeSet<TimerName> = timers_of(model, &spec);
    let notes = judge::verdicts(model, &spec, &when).into_iter().filter_map(|verdict| verdict.is_noted());
    let notes: BTreeSet<bool> = notes.collect();
    let before = memories_of(model, &spec);
    let generation = judge::apply(model, &spec, &when, &verdict);
    if verdict.is_noted().is_some() && notes.contains(&true) {
        let before = if notes.contains(&false) { before } else { Vec::new() };
        note_doubt(model, &spec, &when, before);
    }
    sim.note(|| {
        format!("oracle: {} [{}] {}: {verdict:?}, generation {generation:?}", spec.number, at.partition, at.offset)
    });
    if matches!(verdict, Verdict::Swept { .. }) {
        expected.runs.insert((at.partition, judge::run_of(&spec)));
    }
    let touched = touched_before.into_iter().chain(timers_of(model, &spec));
    expected.touched.extend(touched.map(|name| (at.partition, name)));
    note(at, Given { spec, data, when }, verdict, generation, expected);
    Ok(())
}

/// A command as it stands on the topic.
struct Given {
    spec: Spec,
    data: Data,
    when: When,
}

/// Returns what may be remembered of the id that a disarm is about.
fn memories_of(home: &Home, spec: &Spec) -> Vec<Memory> {
    let Ask::Disarm { id, .. } = &spec.ask else { return Vec::new() };
    home.remembered.get(&(judge::run_of(spec), id.clone())).cloned().unwrap_or_default()
}

/// Notes where it is not known whether a disarm found something remembered, or the row of a timer that was swept.
fn note_doubt(home: &mut Home, spec: &Spec, when: &When, before: Vec<Memory>) {
    let Ask::Disarm { id, .. } = &spec.ask else { return };
    let name = (judge::run_of(spec), id.clone());
    let was_swept = home.ended.range((name.clone(), 0)..=(name.clone(), u64::MAX)).next_back();
    if was_swept.is_some_and(|(_, end)| *end == End::Swept) && before.is_empty() {
        home.unsure.insert(name.clone());
    }
    let noted = Memory { end: None, ended: (when.low, when.high), lasts: longest(home, when.is_old) };
    let mut all = before;
    all.push(noted);
    home.remembered.insert(name, all);
}

/// Notes what a command has to lead to.
fn note(at: &Place<'_>, given: Given, verdict: Verdict, generation: Option<u64>, expected: &mut Expected) {
    let Given { spec, data, .. } = given;
    if let Verdict::Rejected { reason } = verdict {
        let (partition, offset) = (at.partition, at.offset);
        expected.letters.push(ExpectedLetter { partition, offset, reason, original: data });
    }
    let is_swept = matches!(verdict, Verdict::Swept { .. });
    let is_garbage = matches!(spec.ask, Ask::Garbage(_));
    if spec.correlation.is_some() && !is_swept && !is_garbage {
        expected.answers.push(ExpectedAnswer { spec, verdict, generation });
    }
}

fn take_stray(at: &Place<'_>, home: Partition, given: Given, expected: &mut Expected) {
    let Given { spec, when, .. } = &given;
    let is_forwarded = at.parts.forwards.iter().any(|(number, _, _)| *number == spec.number);
    let now = if is_forwarded { when.high } else { when.low };
    let resolved = match &spec.ask {
        Ask::Arm(arm) if matches!(arm.when, WhenAsk::After(_) | WhenAsk::Every { .. } | WhenAsk::Cron { .. }) => {
            judge::resolve(arm.when, when.recorded, now)
        }
        Ask::Arm(_)
        | Ask::Disarm { .. }
        | Ask::Pause { .. }
        | Ask::Resume { .. }
        | Ask::DisarmRun
        | Ask::SealRun { .. }
        | Ask::Garbage(_) => Ok(0),
    };
    let reason = if when.is_forwarded { Err("forward_loop") } else { resolved.map(|_| ()) };
    match reason {
        Ok(()) => expected.forwards.push((spec.number, home, given.data)),
        Err(reason) => note(at, given, Verdict::Rejected { reason }, None, expected),
    }
}

/// Returns the timers of the run that the command is about.
fn timers_of(home: &Home, spec: &Spec) -> BTreeSet<TimerName> {
    let run = judge::run_of(spec);
    match &spec.ask {
        Ask::Arm(arm) => BTreeSet::from([(run, arm.id.clone())]),
        Ask::Disarm { id, .. } | Ask::Pause { id, .. } | Ask::Resume { id, .. } => BTreeSet::from([(run, id.clone())]),
        Ask::DisarmRun | Ask::SealRun { .. } => home.timers.keys().filter(|name| name.0 == run).cloned().collect(),
        Ask::Garbage(_) => BTreeSet::new(),
    }
}

/// Returns what came of a command: the only thing that may, or among several the one that was done.
fn choose(
    home: &Home,
    spec: &Spec,
    when: &When,
    at: &Place<'_>,
    (expected, guesses): (&[ExpectedAnswer], &mut Guesses),
) -> Verdict {
    let mut candidates = judge::verdicts(home, spec, when);
    if candidates.len() == 1 {
        return candidates.remove(0);
    }
    // A command that was sent twice is answered twice, in order.
    let before = expected.iter().filter(|expected| expected.spec.number == spec.number).count();
    let mut answered = at.parts.answers.iter().filter(|a| Some(&a.correlation_id) == spec.correlation.as_ref());
    let answered = answered.nth(before);
    let is_done = |verdict: &Verdict| match answered {
        Some(answer) => {
            let reason = if let Verdict::Rejected { reason } = verdict { Some(*reason) } else { None };
            answers::outcome(verdict, spec) == answer.outcome
                && verdict.is_of_version(answer.generation)
                && answer.reason.as_deref() == reason
                && verdict.is_of_ending(answer.generation)
        }
        None => match verdict {
            Verdict::Armed { .. } => is_armed(home, spec, at),
            Verdict::Rejected { .. } => is_rejected(at),
            Verdict::Paused { .. } | Verdict::Resumed { .. } | Verdict::NotPaused { .. } => {
                !is_rejected(at) && pausing::is_done(verdict, spec, at)
            }
            Verdict::AlreadyArmed { .. }
            | Verdict::Disarmed { .. }
            | Verdict::NotFound { .. }
            | Verdict::AlreadyEnded { .. }
            | Verdict::TooLate { .. }
            | Verdict::Changed { .. }
            | Verdict::Swept { .. }
            | Verdict::Sealed
            | Verdict::Skipped => !is_armed(home, spec, at) && !is_rejected(at),
        },
    };
    let found = candidates.iter().position(is_done).unwrap_or(0);
    candidates.swap(0, found);
    let reading = if answered.is_none() { guesses.take(candidates.len()) } else { 0 };
    candidates.swap_remove(reading)
}

/// Returns whether the transaction shows the timer that the command would have armed, or that it has ended already.
fn is_armed(home: &Home, spec: &Spec, at: &Place<'_>) -> bool {
    let Ask::Arm(arm) = &spec.ask else { return false };
    let generation = home.next_generation;
    let name = (judge::run_of(spec), arm.id.clone());
    let in_changelog = |changes: &Changes| {
        changelog_folds::writes(changes, &name, generation, arm) || ids::has_ended(changes, &name, generation)
    };
    at.parts.changes.get(&at.partition).is_some_and(in_changelog)
        || at
            .parts
            .fired
            .iter()
            .any(|fired| exactly_once::is_of(fired, &name, generation) && fired.data.value == arm.payload)
}

/// Returns whether the transaction has this version of a timer: in the changelog, or as it fires.
pub(crate) fn shows(at: &Place<'_>, name: &TimerName, generation: u64) -> bool {
    at.parts.changes.get(&at.partition).is_some_and(|changes| changelog_folds::has_version(changes, name, generation))
        || at.parts.fired.iter().any(|fired| exactly_once::is_of(fired, name, generation))
}

/// Returns whether the transaction has a dead letter of the command.
fn is_rejected(at: &Place<'_>) -> bool {
    at.parts.letters.iter().any(|letter| rejections::place_of(letter) == Some((at.partition, at.offset)))
}

/// Returns whether the transaction shows that a command was read before it was removed.
fn is_evident(at: &Place<'_>, spec: &Spec) -> bool {
    let is_answered = at.parts.answers.iter().any(|answer| Some(&answer.correlation_id) == spec.correlation.as_ref());
    let is_forwarded = at.parts.forwards.iter().any(|(number, _, _)| *number == spec.number);
    is_answered || is_forwarded || is_rejected(at)
}

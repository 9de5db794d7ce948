//! What a command leads to, by the oracle's own reading of the documents.
//!
//! Owns [`verdicts`]: what may be answered, and [`apply`]: what is promised from then on. Never calls the core. Where the
//! outcome depends on the clock of the process that took the command, it says all that are right; what was done decides.

use punctual::timer::kind::PastDue;

use super::pausing;
use super::remembered::{Memory, longest};
use super::{Armed, End, Home, RunName, TimerName, Waiting};
use crate::client::{ArmAsk, Ask, KindAsk, Spec, WhenAsk};
use crate::setting::{Delivery, HORIZON_DAYS, KINDS, KindRow, SKEW_MAX, kinds_of, remember_of};
use crate::sim::Millis;

const DAY: i64 = 86_400_000;
/// An instant below this looks like seconds.
const SECONDS_BELOW: i64 = 100_000_000_000;

/// What comes of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Armed {
        due: i64,
        kind: u32,
        replaced: bool,
    },
    AlreadyArmed {
        generation: u64,
    },
    Disarmed {
        generation: u64,
    },
    NotFound {
        /// Whether it is remembered from now on.
        is_noted: bool,
    },
    /// The id is remembered: how it ended, and which version did.
    AlreadyEnded {
        end: Option<(End, u64)>,
    },
    TooLate {
        generation: u64,
    },
    Changed {
        generation: u64,
    },
    Paused {
        generation: u64,
    },
    Resumed {
        generation: u64,
        due: i64,
    },
    NotPaused {
        generation: u64,
    },
    /// The run's timers are gone; whether it was sealed, and until when.
    Swept {
        sealed_until: Option<i64>,
    },
    Sealed,
    Skipped,
    Rejected {
        reason: &'static str,
    },
}

impl Verdict {
    /// Returns whether an answer with this generation tells of the ending that is meant, if one is.
    pub(crate) fn is_of_ending(&self, generation: Option<u64>) -> bool {
        if let Self::AlreadyEnded { end } = self { end.map(|(_, ended)| ended) == generation } else { true }
    }

    /// Returns whether an answer with this generation tells of the resumed version that is meant, if one is.
    pub(crate) fn is_of_version(&self, generation: Option<u64>) -> bool {
        if let Self::Resumed { generation: resumed, .. } = self { generation == Some(*resumed) } else { true }
    }

    /// Returns whether a disarm that found no timer is remembered.
    pub(crate) fn is_noted(&self) -> Option<bool> {
        if let Self::NotFound { is_noted } = self { Some(*is_noted) } else { None }
    }
}

/// When a command is judged, in milliseconds since 1970: its record's timestamp, and the least and the most that the clock of
/// the process may have said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct When {
    pub(crate) recorded: i64,
    pub(crate) low: i64,
    pub(crate) high: i64,
    pub(crate) is_old: bool,
    /// Its due was resolved where it was forwarded.
    pub(crate) is_forwarded: bool,
    /// When the command was there.
    pub(crate) sent: Millis,
    /// Whether there may be rows that cannot be read.
    pub(crate) has_corrupt_rows: bool,
}

/// Returns everything that may come of a command, the likeliest first.
pub(crate) fn verdicts(home: &Home, spec: &Spec, when: &When) -> Vec<Verdict> {
    let mut found: Vec<Verdict> = Vec::new();
    for now in instants(home, spec, when) {
        let time = when.recorded.min(now);
        for sealed_until in seals(home, &run_of(spec), when) {
            let is_sealed = sealed_until.is_some_and(|until| time < until);
            for memory in memories(home, spec, when) {
                let clock = Clock { now, is_sealed, memory };
                for verdict in
                    pausing::verdicts(home, spec, when).unwrap_or_else(|| vec![verdict(home, spec, when, &clock)])
                {
                    if !found.contains(&verdict) {
                        found.push(verdict);
                    }
                }
            }
        }
    }
    found
}

/// One reading of what is not known exactly.
struct Clock {
    now: i64,
    is_sealed: bool,
    memory: Option<Memory>,
}

fn memories(home: &Home, spec: &Spec, when: &When) -> Vec<Option<Memory>> {
    match &spec.ask {
        Ask::Arm(arm) => home.memories(&name_of(spec, &arm.id), when.high),
        Ask::Disarm { id, .. } => home.memories(&name_of(spec, id), when.high),
        Ask::Pause { .. } | Ask::Resume { .. } | Ask::DisarmRun | Ask::SealRun { .. } | Ask::Garbage(_) => vec![None],
    }
}

/// Returns the instants that the clock may have said, one between any two at which the outcome changes.
fn instants(home: &Home, spec: &Spec, when: &When) -> Vec<i64> {
    let mut instants = vec![when.high, when.low, when.recorded, when.recorded - SKEW_MAX];
    if let Some(until) = home.runs.get(&run_of(spec)).and_then(|run| run.sealed_until) {
        instants.extend([until, until - 1]);
    }
    if let Ask::Arm(arm) = &spec.ask
        && let Ok(due) = resolve(arm.when, when.recorded, when.high)
    {
        instants.extend([due, due - 1]);
    }
    for memory in memories(home, spec, when).into_iter().flatten() {
        let starts = [memory.ended.0, memory.until().0 - memory.lasts];
        let lasts = KINDS.iter().map(|kind| remember_of(home.has_remember, kind.number)).chain([memory.lasts]);
        let ends = lasts.flat_map(|lasts| starts.map(|start| start.saturating_add(lasts)));
        instants.extend(ends.flat_map(|end| [end, end - 1]));
    }
    instants.retain(|instant| (when.low..=when.high).contains(instant));
    instants
}

/// Returns the seals that the run may have: one that has ended by the clock of the process may be gone or not.
fn seals(home: &Home, run: &RunName, when: &When) -> Vec<Option<i64>> {
    match home.runs.get(run).and_then(|run| run.sealed_until) {
        None => vec![None],
        Some(until) if until <= when.high => vec![Some(until), None],
        Some(until) => vec![Some(until)],
    }
}

fn verdict(home: &Home, spec: &Spec, when: &When, clock: &Clock) -> Verdict {
    let now = clock.now;
    match &spec.ask {
        Ask::Garbage(_) => Verdict::Rejected { reason: "unreadable" },
        Ask::Arm(arm) => arm_verdict(home, spec, arm, when, clock),
        Ask::Disarm { id, generation } => match home.timers.get(&name_of(spec, id)) {
            None => late_verdict(home, *generation, when, clock),
            Some(timer) if generation.is_some_and(|wanted| wanted != timer.generation) => {
                Verdict::Changed { generation: timer.generation }
            }
            Some(timer) => Verdict::Disarmed { generation: timer.generation },
        },
        Ask::Pause { .. } | Ask::Resume { .. } => unreachable!("these are judged in `pausing`"),
        Ask::DisarmRun => Verdict::Swept { sealed_until: None },
        Ask::SealRun { retention } => {
            let until = retention.map_or(i64::MAX, |retention| when.recorded.min(now) + retention);
            Verdict::Swept { sealed_until: Some(until) }
        }
    }
}

/// Returns what comes of a disarm that finds no timer.
fn late_verdict(home: &Home, generation: Option<u64>, when: &When, clock: &Clock) -> Verdict {
    let time = when.recorded.min(clock.now);
    let held = clock.memory.as_ref().filter(|memory| time < memory.until().0);
    match held.map(|memory| memory.end) {
        Some(Some((End::Fired | End::Expired, ended))) if generation.is_none_or(|wanted| wanted == ended) => {
            Verdict::TooLate { generation: ended }
        }
        Some(_) => Verdict::NotFound { is_noted: false },
        None => Verdict::NotFound { is_noted: generation.is_none() && longest(home, when.is_old) > 0 },
    }
}

fn arm_verdict(home: &Home, spec: &Spec, arm: &ArmAsk, when: &When, clock: &Clock) -> Verdict {
    let now = clock.now;
    let rejected = |reason| Verdict::Rejected { reason };
    let Some((number, kind)) = kind_of(arm.kind, when.is_old) else { return rejected("unknown_kind") };
    let now_there = if when.is_forwarded { when.recorded } else { now };
    let due = match resolve(arm.when, when.recorded, now_there) {
        Ok(due) => due,
        Err(reason) => return rejected(reason),
    };
    let armed = when.recorded.min(now);
    if due - armed > i64::try_from(HORIZON_DAYS).expect("few") * DAY {
        return rejected("beyond_horizon");
    }
    if !arm.outbox.is_empty() && kind.is_some_and(|kind| !kind.has_outbox) {
        return rejected("no_outbox");
    }
    if arm.headers.iter().any(|header| header.key.starts_with("ce_")) {
        return rejected("reserved_header");
    }
    let is_claimed = kind.is_some_and(|kind| matches!(kind.delivery, Delivery::Claim { .. }));
    if is_claimed && matches!(arm.when, WhenAsk::Every { .. } | WhenAsk::Cron { .. }) {
        return rejected("invalid_schedule");
    }
    let past_due = kind.filter(|_| due <= armed).map_or(PastDue::Fire, |kind| kind.past_due);
    if past_due == PastDue::Reject {
        return rejected("past_due");
    }
    if clock.is_sealed {
        return Verdict::Sealed;
    }
    let before = home.timers.get(&name_of(spec, &arm.id));
    if let Some(timer) = before.filter(|_| !arm.is_replacing) {
        return Verdict::AlreadyArmed { generation: timer.generation };
    }
    let remember = kind.map_or(0, |kind| remember_of(home.has_remember, kind.number));
    if let Some(memory) = clock.memory.as_ref().filter(|memory| before.is_none() && memory.refuses(remember, armed)) {
        return Verdict::AlreadyEnded { end: memory.end };
    }
    if past_due == PastDue::Skip {
        return Verdict::Skipped;
    }
    Verdict::Armed { due, kind: number, replaced: before.is_some() }
}

/// Returns the due.
pub(crate) fn resolve(ask: WhenAsk, recorded: i64, now: i64) -> Result<i64, &'static str> {
    match ask {
        WhenAsk::At(at) if at < SECONDS_BELOW => Err("due_in_seconds"),
        WhenAsk::At(at) => Ok(at),
        WhenAsk::After(after) if after <= 0 => Err("invalid_duration"),
        WhenAsk::After(_) | WhenAsk::Every { .. } | WhenAsk::Cron { .. } if recorded - now > SKEW_MAX => {
            Err("timestamp_ahead")
        }
        WhenAsk::Every { interval, .. } => Ok(recorded + interval),
        WhenAsk::Cron { seconds, .. } => Ok((recorded / (seconds * 1_000) + 1) * seconds * 1_000),
        WhenAsk::After(after) => Ok(recorded + after),
    }
}

/// Returns the kind's number, and the kind if the release knows it; `None` if it is named and not known.
fn kind_of(ask: KindAsk, is_old: bool) -> Option<(u32, Option<&'static KindRow>)> {
    let known = |find: &dyn Fn(&KindRow) -> bool| kinds_of(is_old).find(|kind| find(kind));
    match ask {
        KindAsk::Number(number) => Some((number, known(&|kind| kind.number == number))),
        KindAsk::Name(name) => known(&|kind| kind.name == name).map(|kind| (kind.number, Some(kind))),
    }
}

/// Takes what came of a command into the promise. Returns the generation that it gave.
pub(crate) fn apply(home: &mut Home, spec: &Spec, when: &When, verdict: &Verdict) -> Option<u64> {
    let generation = home.next_generation;
    match (verdict, &spec.ask) {
        (Verdict::Armed { due, kind, .. }, Ask::Arm(arm)) => {
            home.next_generation += 1;
            let at = (when.recorded.min(when.low), when.recorded.min(when.high));
            let timer = Armed {
                generation,
                due: *due,
                wake: *due,
                is_paused: false,
                attempts: 0,
                kind: *kind,
                at,
                ask: (**arm).clone(),
                anchor: when.recorded,
                fired: 0,
                sent: when.sent,
            };
            home.remembered.remove(&name_of(spec, &arm.id));
            home.put(name_of(spec, &arm.id), timer);
            Some(generation)
        }
        (Verdict::Disarmed { .. }, Ask::Disarm { id, .. }) => {
            if let Some(timer) = home.end(&name_of(spec, id), End::Disarmed) {
                let end = (End::Disarmed, timer.generation);
                home.remember(&name_of(spec, id), end, timer.kind, (when.low, when.high));
            }
            None
        }
        (Verdict::NotFound { is_noted: true }, Ask::Disarm { id, .. }) => {
            let memory = Memory { end: None, ended: (when.low, when.high), lasts: longest(home, when.is_old) };
            home.remembered.insert(name_of(spec, id), vec![memory]);
            None
        }
        (Verdict::Paused { .. }, Ask::Pause { id, .. }) => {
            pausing::pause(home, &name_of(spec, id));
            None
        }
        (Verdict::Resumed { generation, due }, Ask::Resume { id, .. }) => {
            pausing::resume(home, &name_of(spec, id), (*generation, *due), when.recorded);
            None
        }
        (Verdict::Swept { sealed_until }, _) => {
            home.next_generation += 1;
            sweep(home, spec, when, *sealed_until);
            None
        }
        (_, Ask::DisarmRun | Ask::SealRun { .. }) => {
            home.next_generation += 1;
            None
        }
        (_, _) => None,
    }
}

fn sweep(home: &mut Home, spec: &Spec, when: &When, sealed_until: Option<i64>) {
    let run = run_of(spec);
    let names: Vec<TimerName> = home.timers.keys().filter(|name| name.0 == run).cloned().collect();
    for name in &names {
        if let Some(timer) = home.end(name, End::Swept) {
            let end = (End::Disarmed, timer.generation);
            home.remember(name, end, timer.kind, (when.low, i64::MAX));
        }
    }
    let model = home.runs.entry(run).or_default();
    model.waiting.push(Waiting {
        correlation: spec.correlation.clone(),
        is_seal: matches!(spec.ask, Ask::SealRun { .. }),
        removed: names.len() as u64,
    });
    // Sealing again never shortens a seal.
    model.sealed_until = model.sealed_until.max(sealed_until);
}

pub(crate) fn run_of(spec: &Spec) -> RunName {
    (spec.tenant.to_owned(), spec.run.clone())
}

pub(crate) fn name_of(spec: &Spec, id: &str) -> TimerName {
    (run_of(spec), id.to_owned())
}

/// Returns the name of a kind, as fired records carry it.
pub(crate) fn kind_name(number: u32) -> Option<&'static str> {
    KINDS.iter().find(|kind| kind.number == number).map(|kind| kind.name)
}

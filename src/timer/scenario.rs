//! A world of maps for the tests of the core: commands and time go in, a readable trace comes out.
//!
//! Owns the simplest state that a [`View`] can be read from, and folds mutations into it by the letter of their docs.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::time::Duration;

use bytes::Bytes;

use super::apply::{Context, apply};
use super::budget::{Budget, Tick};
use super::command::{Action, Arm, Command, Encoding, OnConflict, Reply, When};
use super::fire::{FireReport, FireRules, Looks, fire_due};
use super::handler::Handlers;
use super::identity::{Run, RunKey, Tenant, TimerId, TimerKey};
use super::kind::{Kind, KindNumber, KindRef, PastDue, Registry};
use super::limits::Limits;
use super::model::{Claim, DueKey, Ending, Generation, Located, Remembered, RunState, Timer};
use super::outcome::{Effect, Mutation, Outcome, Verdict};
use super::sweep;
use super::view::{DueRow, Lookup, View};
use crate::calendar::rules::Rules;
use crate::time::Timestamp;

/// 2026-12-01T00:00:00Z: the zero of the scenarios, in milliseconds.
pub(super) const ZERO_MS: i64 = 1_796_083_200_000;

/// Returns the instant `seconds` after the zero of the scenarios.
pub(super) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(ZERO_MS + seconds * 1000)
}

/// How the timers of kind 4 are delivered.
pub(super) const CLAIM: Claim = Claim { lease: Duration::from_mins(1), attempts_max: Some(3) };

/// How long the ids of kind 6 are remembered; those of kind 7, which delivers by claim, half as long.
pub(super) const REMEMBER: Duration = Duration::from_mins(10);

#[derive(Default)]
pub(super) struct Maps {
    pub(super) timers: BTreeMap<TimerKey, Timer>,
    pub(super) runs: BTreeMap<RunKey, RunState>,
    pub(super) remembered: BTreeMap<TimerKey, Remembered>,
    pub(super) cursors: BTreeMap<KindNumber, DueKey>,
    pub(super) undecodable: Vec<(KindNumber, DueKey)>,
}

impl Lookup for Maps {
    type Error = Infallible;

    fn locate(&self, key: &TimerKey) -> Result<Option<Located>, Infallible> {
        Ok(self.timers.get(key).map(Timer::located))
    }

    fn remembered(&self, key: &TimerKey) -> Result<Option<Remembered>, Infallible> {
        Ok(self.remembered.get(key).copied())
    }

    fn run(&self, run: &RunKey) -> Result<RunState, Infallible> {
        Ok(self.runs.get(run).cloned().unwrap_or_default())
    }

    fn is_sweeping(&self) -> bool {
        self.runs.values().any(|state| state.sweep.is_some())
    }
}

impl View for Maps {
    fn timer(&self, at: Located) -> Result<Option<Timer>, Infallible> {
        let is_broken = self.undecodable.contains(&(at.kind, at.at));
        Ok(self.timers.values().find(|timer| timer.located() == at && !is_broken).cloned())
    }

    fn timers_of(
        &self,
        run: &RunKey,
        after: Option<&TimerId>,
        rows_max: usize,
    ) -> Result<Vec<(TimerKey, Located)>, Infallible> {
        let timers = self.timers.iter().filter(|(key, _)| key.run == *run && after.is_none_or(|after| key.id > *after));
        Ok(timers.take(rows_max).map(|(key, timer)| (key.clone(), timer.located())).collect())
    }

    fn due(
        &self,
        kind: KindNumber,
        after: Option<DueKey>,
        until: Timestamp,
        rows_max: usize,
    ) -> Result<Vec<DueRow>, Infallible> {
        let cursor = self.cursors.get(&kind).copied().unwrap_or(DueKey::MIN);
        let timers = self.timers.values().filter(|t| t.kind == kind).map(|t| DueRow::Timer(Box::new(t.clone())));
        let broken = self.undecodable.iter().filter(|(k, _)| *k == kind);
        let broken = broken.map(|(_, at)| DueRow::Undecodable { at: *at, problem: "broken".to_owned() });
        let mut rows: Vec<DueRow> = timers.chain(broken).collect();
        rows.retain(|row| row.at().wake <= until && row.at() >= cursor && after.is_none_or(|after| row.at() > after));
        rows.sort_by_key(DueRow::at);
        rows.truncate(rows_max);
        Ok(rows)
    }

    fn agenda(&self, until: Timestamp, rows_max: usize) -> Result<Vec<RunKey>, Infallible> {
        let runs = self.runs.iter().filter(|(_, state)| state.agenda().is_some_and(|instant| instant <= until));
        Ok(runs.take(rows_max).map(|(run, _)| run.clone()).collect())
    }
}

impl Maps {
    pub(super) fn fold(&mut self, mutation: Mutation) {
        match mutation {
            Mutation::Put { timer, previous } => {
                let cursor = self.cursors.entry(timer.kind).or_insert(DueKey::MIN);
                *cursor = (*cursor).min(timer.due_key());
                let old = self.timers.insert(timer.key.clone(), *timer);
                assert_eq!(old.as_ref().map(Timer::located), previous, "a put names what it replaces");
            }
            Mutation::Remove { key, previous } => {
                let old = self.timers.remove(&key).expect("only what is there is removed");
                assert_eq!(old.located(), previous, "a removal names what it removes");
            }
            Mutation::Run { run, previous, state } => {
                assert_eq!(self.run(&run).unwrap(), previous, "a change of a run names what it changes");
                if state.is_empty() {
                    self.runs.remove(&run)
                } else {
                    self.runs.insert(run, state)
                };
            }
            Mutation::Remember { key, previous, state } => {
                let known = match state {
                    Some(state) => self.remembered.insert(key, state),
                    None => self.remembered.remove(&key),
                };
                assert_eq!(known, previous, "a change names what was remembered");
            }
            Mutation::Advance { kind, to } => {
                let skipped = self.timers.values().filter(|t| t.kind == kind && t.due_key() < to).count();
                assert_eq!(skipped, 0, "INV-CURSOR-1: the cursor never passes a live row");
                let broken = self.undecodable.iter().filter(|(k, at)| *k == kind && *at < to).count();
                assert_eq!(broken, 0, "INV-CURSOR-1: the cursor never passes an undecodable row");
                self.cursors.insert(kind, to);
            }
        }
    }
}

/// A world in which scenarios run, and the trace of what happened.
pub(super) struct World {
    pub(super) maps: Maps,
    pub(super) limits: Limits,
    pub(super) budget: Budget,
    pub(super) trace: String,
    pub(super) next_generation: u64,
    pub(super) calendar: Rules,
    pub(super) handlers: Handlers,
    pub(super) looks: Looks,
    kinds: Registry,
}

impl World {
    pub(super) fn new() -> Self {
        let kind = |number, name: &str, past_due, outbox| Kind {
            past_due,
            outbox,
            ..Kind::new(KindNumber::new(number).unwrap(), name)
        };
        let kinds = Registry::new([
            kind(1, "email", PastDue::Fire, true),
            kind(2, "sms", PastDue::Reject, false),
            kind(3, "push", PastDue::Skip, false),
            Kind { claim: Some(CLAIM), ..kind(4, "job", PastDue::Fire, false) },
            Kind { expires_after: Some(Duration::from_secs(30)), ..kind(5, "fresh", PastDue::Fire, false) },
            Kind { remember: REMEMBER, ..kind(6, "order", PastDue::Fire, false) },
            Kind { remember: REMEMBER / 2, claim: Some(CLAIM), ..kind(7, "task", PastDue::Fire, false) },
        ]);
        Self {
            maps: Maps::default(),
            limits: Limits::default(),
            budget: Budget::default(),
            trace: String::new(),
            next_generation: 1,
            calendar: Rules::default(),
            handlers: Handlers::new(),
            looks: Looks::new(),
            kinds: kinds.unwrap(),
        }
    }

    /// Applies a command whose record has the timestamp `recorded`, at `now`; both in seconds.
    pub(super) fn command(&mut self, recorded: Option<Timestamp>, now: Timestamp, action: Action) -> Outcome {
        let reply = Reply { correlation_id: "c".to_owned(), encoding: Encoding::Json };
        let command = Command { reply: Some(reply), action };
        let context = Context {
            registry: &self.kinds,
            limits: &self.limits,
            calendar: &self.calendar,
            now,
            recorded,
            next_generation: Generation(self.next_generation),
        };
        let outcome = apply(&self.maps, &command, &context).unwrap();
        self.next_generation += 1;
        self.take(&outcome);
        outcome
    }

    pub(super) fn arm(&mut self, now: i64, arm: Arm) -> &mut Self {
        self.command(Some(at(now)), at(now), Action::Arm(Box::new(arm)));
        self
    }

    pub(super) fn disarm(&mut self, now: i64, id: &str, generation: Option<u64>) -> &mut Self {
        let generation = generation.map(Generation);
        self.command(Some(at(now)), at(now), Action::Disarm { key: key(id), generation });
        self
    }

    pub(super) fn pause(&mut self, now: i64, id: &str, generation: Option<u64>) -> &mut Self {
        let generation = generation.map(Generation);
        self.command(Some(at(now)), at(now), Action::Pause { key: key(id), generation });
        self
    }

    pub(super) fn resume(&mut self, now: i64, id: &str, generation: Option<u64>) -> &mut Self {
        let generation = generation.map(Generation);
        self.command(Some(at(now)), at(now), Action::Resume { key: key(id), generation });
        self
    }

    pub(super) fn disarm_run(&mut self, now: i64) -> &mut Self {
        self.command(Some(at(now)), at(now), Action::DisarmRun { run: key("x").run });
        self
    }

    pub(super) fn seal_run(&mut self, now: i64, retention: Option<Duration>) -> &mut Self {
        self.command(Some(at(now)), at(now), Action::SealRun { run: key("x").run, retention });
        self
    }

    /// Makes one pass, and folds nothing.
    pub(super) fn pass(
        &mut self,
        kinds: &[KindNumber],
        now: Timestamp,
        tick: &mut Tick,
        elapsed: &dyn Fn() -> Duration,
    ) -> (Outcome, FireReport) {
        let rules = FireRules {
            kinds,
            registry: &self.kinds,
            limits: &self.limits,
            calendar: &self.calendar,
            now,
            elapsed,
            attempt: &|ctx, timer| self.handlers.attempt(ctx, timer),
            is_here: &|run| run.run.as_str() != "elsewhere",
            next_generation: Generation(self.next_generation),
        };
        fire_due(&self.maps, &rules, tick, &mut self.looks).unwrap()
    }

    /// Fires what is due, as a task would in one tick that takes no time.
    pub(super) fn tick(&mut self, now: Timestamp) -> &mut Self {
        let kinds: Vec<KindNumber> = self.kinds.iter().map(|kind| kind.number).collect();
        let mut tick = Tick::new(self.budget);
        let (outcome, report) = self.pass(&kinds, now, &mut tick, &|| Duration::ZERO);
        for mutation in &outcome.mutations {
            if let Mutation::Put { timer, .. } = mutation {
                self.next_generation = self.next_generation.max(timer.generation.0 + 1);
            }
        }
        self.take(&outcome);
        for (key, attempt, detail) in &report.failures {
            writeln!(self.trace, "{} fails, attempt {attempt}: {detail}", key.id.as_str()).unwrap();
        }
        if report.raced > 0 {
            writeln!(self.trace, "{} raced", report.raced).unwrap();
        }
        for (_, at, _) in &report.undecodable {
            writeln!(self.trace, "undecodable at {}", at.wake).unwrap();
        }
        for kind in &report.unfinished {
            writeln!(self.trace, "kind {kind} has more").unwrap();
        }
        self
    }

    pub(super) fn work_off(&mut self, now: i64, rows_max: usize) -> &mut Self {
        for run in self.maps.agenda(at(now), 10).unwrap() {
            let outcome = sweep::work_off(&self.maps, &run, &self.kinds, at(now), rows_max).unwrap();
            let removed = outcome.mutations.iter().filter(|m| matches!(m, Mutation::Remove { .. })).count();
            writeln!(self.trace, "worked off {removed}").unwrap();
            self.take(&outcome);
        }
        self
    }

    /// Forgets what has ended, as a store does.
    pub(super) fn forget(&mut self, now: i64) -> &mut Self {
        self.maps.remembered.retain(|_, state| state.until > at(now));
        self
    }

    fn take(&mut self, outcome: &Outcome) {
        for mutation in outcome.mutations.clone() {
            self.maps.fold(mutation);
        }
        for answer in &outcome.answers {
            let id = answer.timer.as_ref().map_or("run", |key| key.id.as_str());
            writeln!(self.trace, "{id}: {}", verdict(&answer.verdict)).unwrap();
        }
        for expired in &outcome.expired {
            let Timer { key, attempt, .. } = &expired.timer;
            writeln!(self.trace, "{} expires after {attempt} attempts, {:?}", key.id.as_str(), expired.reason).unwrap();
        }
        for event in &outcome.fired {
            let Timer { key, generation, due, .. } = &event.timer;
            let what = match event.effect {
                Effect::Published if event.attempt == 1 => "fires".to_owned(),
                Effect::Published => format!("fires, attempt {}", event.attempt),
                Effect::Silent => "fires silently".to_owned(),
                Effect::Rescheduled => "is rescheduled".to_owned(),
            };
            writeln!(self.trace, "{} {what}: generation {}, due {due}", key.id.as_str(), generation.0).unwrap();
        }
    }
}

fn verdict(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Armed { generation, due } => format!("armed {} for {due}", generation.0),
        Verdict::Replaced { generation, due } => format!("replaced by {} for {due}", generation.0),
        Verdict::AlreadyArmed { generation } => format!("already armed {}", generation.0),
        Verdict::Disarmed { generation } => format!("disarmed {}", generation.0),
        Verdict::Changed { generation } => format!("changed to {}", generation.0),
        Verdict::AlreadyEnded { ending: Ending::Fired(ended) } => format!("already fired {}", ended.0),
        Verdict::AlreadyEnded { ending: Ending::Disarmed(ended) } => format!("already disarmed {}", ended.0),
        Verdict::AlreadyEnded { ending: Ending::Expired(ended) } => format!("already expired {}", ended.0),
        Verdict::AlreadyEnded { ending: Ending::NeverArmed } => "already disarmed".to_owned(),
        Verdict::TooLate { generation } => format!("too late for {}", generation.0),
        Verdict::Paused { generation } => format!("paused {}", generation.0),
        Verdict::Resumed { generation, due } => format!("resumed {} for {due}", generation.0),
        Verdict::NotPaused { generation } => format!("not paused {}", generation.0),
        Verdict::Ended { generation } => format!("ended {}", generation.0),
        Verdict::NotFound => "not found".to_owned(),
        Verdict::RunDisarmed { count } => format!("run disarmed, {count}"),
        Verdict::RunSealed { count } => format!("run sealed, {count}"),
        Verdict::Sealed => "sealed".to_owned(),
        Verdict::Skipped => "skipped".to_owned(),
        Verdict::Rejected(rejection) => format!("rejected, {}: {}", rejection.reason.name(), rejection.detail),
    }
}

/// Returns the identity of a timer of the scenarios' run.
pub(super) fn key(id: &str) -> TimerKey {
    let run = RunKey { tenant: Tenant::parse("").unwrap(), run: Run::parse("order").unwrap() };
    TimerKey { run, id: TimerId::parse(id).unwrap() }
}

/// Returns an arm of kind 1 that is due `seconds` after the zero.
pub(super) fn arm_at(id: &str, seconds: i64) -> Arm {
    arm_when(id, When::At(at(seconds)))
}

/// Returns an arm of another kind.
pub(super) fn of_kind(number: u32, arm: Arm) -> Arm {
    Arm { kind: KindRef::Number(KindNumber::new(number).unwrap()), ..arm }
}

pub(super) fn arm_when(id: &str, when: When) -> Arm {
    Arm {
        key: key(id),
        kind: KindRef::Number(KindNumber::new(1).unwrap()),
        when,
        on_conflict: OnConflict::Keep,
        payload: Some(Bytes::from_static(b"payload")),
        record_key: None,
        headers: Vec::new(),
        outbox: Vec::new(),
    }
}

//! Takes commands and time into the open transaction.
//!
//! Owns the way from a record to mutations and emissions: decode, check the partition, judge, fold; and from the clock to
//! fired events. Never commits. Keeps: a record that is not a command, or is rejected, goes to the dead-letter topic as it
//! is, with the reason; nothing is skipped.

use std::collections::BTreeSet;
use std::time::Duration;

use super::rules::Rules;
use super::{Phase, Task, emit};
use crate::log::{Emission, InputRecord};
use crate::planted::{Bug, is_on};
use crate::position::Position;
use crate::store::{Store, StoreError};
use crate::time::Timestamp;
use crate::timer::apply::{Context, apply};
use crate::timer::budget::Tick;
use crate::timer::command::{Action, Command};
use crate::timer::fire::{FireReport, FireRules, fire_due};
use crate::timer::guard;
use crate::timer::kind::KindNumber;
use crate::timer::model::{DueKey, Generation};
use crate::timer::outcome::{Answer, Effect, Mutation, Outcome, Reason, Rejection, Verdict};
use crate::timer::schedule;
use crate::timer::sweep;
use crate::timer::view::View;
use crate::wire::command::{Refused, decode_record};
use crate::wire::forward;
use crate::wire::partition::partition_of;

/// Most runs worked off in one tick.
const AGENDA_RUNS: usize = 16;
/// Most rows of one run removed in one tick.
const AGENDA_ROWS: usize = 1024;
/// Most remembered ids forgotten in one tick.
const FORGOTTEN_MAX: usize = 1024;
/// Most partitions that were added to the command topic whose places are remembered.
const FORWARDERS_MAX: u32 = 1_000;
/// When a kind is looked at again whose budget was used up without any progress.
const IDLE_RETRY: Duration = Duration::from_secs(5);

/// What the tasks of a worker share while they fire.
pub struct Firing<'a> {
    /// The kinds that may fire, in the order of their turns.
    pub kinds: &'a [KindNumber],
    /// What is left of the tick's budget.
    pub tick: Tick,
    /// Tells how long the tick has lasted.
    pub elapsed: &'a dyn Fn() -> Duration,
}

impl<S: Store> Task<S> {
    /// Takes one record of the command topic.
    ///
    /// # Errors
    /// When the store cannot be read.
    ///
    /// # Panics
    /// When the task does not take commands (INV-GATE-1).
    pub fn absorb(&mut self, record: &InputRecord, now: Timestamp, rules: &Rules) -> Result<(), StoreError> {
        assert!(self.takes_commands(), "INV-GATE-1: commands are taken after the restore only");
        let position = self.position();
        if record.offset.next() <= position {
            // Read again after a rewind that overlapped; it is applied already.
            return Ok(());
        }
        if self.came_already(record, rules) {
            self.tally.unchanged += 1;
        } else {
            match decode_record(record.key.as_ref(), record.value.as_ref(), &record.headers) {
                Ok(command) => self.absorb_command(record, &command, now, rules)?,
                Err(refused) => self.refuse(record, refused, rules),
            }
        }
        self.open.position = Some(record.offset.next());
        Ok(())
    }

    /// Notes that a command was forwarded here from a partition that the changelog does not have, and returns whether it came
    /// before: without the group's position such a partition is forwarded from its start.
    fn came_already(&mut self, record: &InputRecord, rules: &Rules) -> bool {
        let Some(origin) = forward::origin(&record.headers) else {
            return false;
        };
        // Added partitions follow those of the changelog. Anybody may write this header, and each place is in every transaction.
        let added = rules.partitions..rules.partitions.saturating_add(FORWARDERS_MAX);
        if !added.contains(&origin.partition.0) || !self.has_changelog() {
            return false;
        }
        let position = self.open.forwarders.entry(origin.partition).or_insert(Position(0));
        if origin.offset.next() <= *position {
            return true;
        }
        *position = origin.offset.next();
        false
    }

    fn absorb_command(
        &mut self,
        record: &InputRecord,
        command: &Command,
        now: Timestamp,
        rules: &Rules,
    ) -> Result<(), StoreError> {
        let context = Context {
            registry: &rules.registry,
            limits: &rules.limits,
            calendar: &*rules.calendar,
            now,
            // Brokers take any number for a timestamp; one before the epoch is none.
            recorded: record.timestamp.filter(|at| *at >= Timestamp::EPOCH),
            next_generation: self.open.generation,
        };
        let home = partition_of(command.action.run(), rules.partitions);
        if home != self.partition && !(is_on(Bug::StrayApplied) && self.has_changelog()) {
            match forwarded(record, command, &context, rules) {
                Ok(emission) => {
                    self.tally.forwarded += 1;
                    if !is_on(Bug::StrayLeftOut) {
                        self.emissions.push(emission);
                    }
                }
                Err(rejection) => self.refuse(record, refused(command, rejection), rules),
            }
            return Ok(());
        }
        let outcome = apply(&self.overlay, command, &context)?;
        if let Some(rejection) = &outcome.rejection {
            *self.tally.rejected.entry(rejection.reason).or_insert(0) += 1;
            self.send_dead_letter(record, rejection, rules);
        } else if outcome.mutations.iter().all(|mutation| matches!(mutation, Mutation::Remember { .. })) {
            self.tally.unchanged += 1;
        }
        self.tally.late += u64::from(outcome.is_late);
        let next = self.open.generation;
        if outcome.mutations.iter().any(|mutation| mutation.generation_behind(next) > next)
            || is_removal(&command.action)
        {
            self.open.generation = Generation(next.0 + 1);
        }
        let cause = if is_pause(&command.action) { Cause::Pause } else { Cause::Command };
        self.take(outcome, rules, cause);
        Ok(())
    }

    fn refuse(&mut self, record: &InputRecord, refused: Refused, rules: &Rules) {
        *self.tally.rejected.entry(refused.rejection.reason).or_insert(0) += 1;
        self.send_dead_letter(record, &refused.rejection, rules);
        if let (Some(reply), Some(run)) = (refused.reply, refused.run) {
            let verdict = Verdict::Rejected(refused.rejection);
            self.answer(&Answer { reply, run, timer: refused.timer, verdict }, rules);
        }
    }

    fn send_dead_letter(&mut self, record: &InputRecord, rejection: &Rejection, rules: &Rules) {
        if !is_on(Bug::LetterLeftOut) {
            self.emissions.push(emit::dead_letter(record, rejection, rules));
        }
    }

    fn answer(&mut self, answer: &Answer, rules: &Rules) {
        if rules.results {
            self.tally.answered += 1;
            self.emissions.push(emit::answer(answer));
        }
    }

    /// Fires what is due, within the tick that all tasks of the worker share.
    ///
    /// # Errors
    /// When the store cannot be read.
    ///
    /// # Panics
    /// When the task is not running (INV-GATE-1).
    pub fn fire(&mut self, now: Timestamp, rules: &Rules, firing: &mut Firing<'_>) -> Result<FireReport, StoreError> {
        assert!(self.phase == Phase::Running, "INV-GATE-1: nothing fires before the gate is open");
        let Firing { kinds, tick, elapsed } = firing;
        let mut due = Vec::with_capacity(kinds.len());
        for kind in *kinds {
            if self.wake_of(*kind)?.is_some_and(|wake| wake <= now) {
                due.push(*kind);
            }
        }
        if due.is_empty() {
            return Ok(FireReport::default());
        }
        for kind in &due {
            if let Some(share) = rules.handlers.share_max(*kind) {
                tick.lower_share(*kind, share);
            }
        }
        let partition = self.partition;
        let told = FireRules {
            kinds: &due,
            registry: &rules.registry,
            limits: &rules.limits,
            calendar: &*rules.calendar,
            now,
            elapsed: *elapsed,
            attempt: &|ctx, timer| guard::attempt(&rules.handlers, ctx, timer),
            is_here: &|run| partition_of(run, rules.partitions) == partition,
            next_generation: self.open.generation,
        };
        let (outcome, report) = fire_due(&self.overlay, &told, tick, &mut self.looks)?;
        let has_progressed = !outcome.mutations.is_empty();
        self.tally.raced += u64::try_from(report.raced).unwrap_or(u64::MAX);
        for (kind, failed) in &report.failed {
            *self.tally.failed.entry(*kind).or_insert(0) += u64::try_from(*failed).unwrap_or(u64::MAX);
        }
        let rearmed = armed_for_now(&outcome, now);
        self.take(outcome, rules, Cause::Time);
        for kind in due {
            if rearmed.contains(&kind) {
                self.wakes.remove(&kind);
                continue;
            }
            let wake = if !report.unfinished.contains(&kind) {
                // What is left up to now cannot be fired (undecodable); it must not keep the loop awake.
                let from = DueKey { wake: Timestamp::from_millis(now.as_millis() + 1), generation: Generation(0) };
                self.overlay.next_wake_from(kind, from)?
            } else if has_progressed || report.scanned == 0 {
                // Where nothing was looked at, other tasks have used the budget up; the next tick begins with another.
                self.wakes.remove(&kind);
                continue;
            } else {
                now.checked_add(IDLE_RETRY)
            };
            self.wakes.insert(kind, wake);
        }
        Ok(report)
    }

    /// Works off what runs have on their agenda: sweeps under way, seals that end. Returns whether there was any.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn work_off(&mut self, now: Timestamp, rules: &Rules) -> Result<bool, StoreError> {
        let runs = self.overlay.agenda(now, AGENDA_RUNS)?;
        for run in &runs {
            let outcome = sweep::work_off(&self.overlay, run, &rules.registry, now, AGENDA_ROWS)?;
            self.take(outcome, rules, Cause::Command);
        }
        Ok(!runs.is_empty())
    }

    /// Forgets remembered ids that have ended, a slice in each tick. Returns whether there was any.
    ///
    /// # Errors
    /// When the store cannot be read.
    ///
    /// # Panics
    /// When the task is not running: the commands that stood there at the assignment may be duplicates of what is remembered.
    pub fn forget(&mut self, now: Timestamp) -> Result<bool, StoreError> {
        assert!(self.phase == Phase::Running, "nothing is forgotten before the gate is open");
        Ok(self.overlay.forget(now, FORGOTTEN_MAX)? > 0)
    }

    fn take(&mut self, outcome: Outcome, rules: &Rules, cause: Cause) {
        for mutation in outcome.mutations {
            match (&mutation, cause) {
                (Mutation::Put { timer, .. }, Cause::Command) => *self.tally.armed.entry(timer.kind).or_insert(0) += 1,
                (Mutation::Put { timer, .. }, Cause::Time) => {
                    let next = mutation.generation_behind(self.open.generation);
                    if next > self.open.generation {
                        self.open.generation = next;
                        *self.tally.armed.entry(timer.kind).or_insert(0) += 1;
                    }
                }
                (Mutation::Remove { .. }, Cause::Command | Cause::Pause) => self.tally.disarmed += 1,
                (Mutation::Put { .. }, Cause::Pause)
                | (Mutation::Remove { .. }, Cause::Time)
                | (
                    Mutation::Run { .. } | Mutation::Remember { .. } | Mutation::Advance { .. },
                    Cause::Command | Cause::Pause | Cause::Time,
                ) => {}
            }
            self.fold(mutation);
        }
        for expired in &outcome.expired {
            *self.tally.expired.entry(expired.timer.kind).or_insert(0) += 1;
            self.emissions.push(emit::expired(expired, rules));
        }
        for event in &outcome.fired {
            if event.effect != Effect::Rescheduled {
                self.tally.fired.push((event.timer.kind, event.lateness()));
            }
            self.tally.outbox += u64::try_from(event.timer.outbox.len()).unwrap_or(u64::MAX);
            self.emissions.extend(emit::fired(event, rules));
        }
        for answer in &outcome.answers {
            self.answer(answer, rules);
        }
    }
}

/// What led to an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Command,
    /// A pause or a resume: what it puts was armed before.
    Pause,
    Time,
}

/// Returns the kinds of timers that handlers armed for an instant that has come: they fire with the next tick.
fn armed_for_now(outcome: &Outcome, now: Timestamp) -> BTreeSet<KindNumber> {
    let due = outcome.mutations.iter().filter_map(|mutation| match mutation {
        Mutation::Put { timer, .. } => Some(timer).filter(|timer| timer.due_key().wake <= now),
        Mutation::Remove { .. } | Mutation::Run { .. } | Mutation::Remember { .. } | Mutation::Advance { .. } => None,
    });
    due.map(|timer| timer.kind).collect()
}

fn is_pause(action: &Action) -> bool {
    matches!(action, Action::Pause { .. } | Action::Resume { .. })
}

fn is_removal(action: &Action) -> bool {
    matches!(action, Action::DisarmRun { .. } | Action::SealRun { .. })
}

/// Returns the record of a command that is forwarded: with its due resolved, since it gets a new timestamp on the way.
fn forwarded(
    record: &InputRecord,
    command: &Command,
    context: &Context<'_>,
    rules: &Rules,
) -> Result<Emission, Rejection> {
    if forward::is_forwarded(&record.headers) {
        let detail = "the command was forwarded before and is on a wrong partition still; the command topic and the \
                      changelog disagree about their partitions";
        return Err(Rejection::new(Reason::ForwardLoop, detail));
    }
    let mut command = command.clone();
    if let Action::Arm(arm) = &mut command.action
        && !is_on(Bug::ForwardedAfresh)
    {
        arm.when = schedule::independent(&arm.when, context)?;
    }
    let home = partition_of(command.action.run(), rules.partitions);
    let emission = emit::forward(record, &command, home);
    // What came compressed, or in fewer bytes of JSON, may not fit on its way back, and would stop all commands.
    if emission.bytes() > rules.arm_bytes_max {
        let detail = format!(
            "the command belongs to partition {home} and takes {} bytes when it is forwarded there; at most {} fit: \
             send it with the key `tenant/run` and the partitioner murmur2",
            emission.bytes(),
            rules.arm_bytes_max
        );
        return Err(Rejection::new(Reason::TooLarge, detail));
    }
    Ok(emission)
}

fn refused(command: &Command, rejection: Rejection) -> Refused {
    Refused {
        rejection,
        reply: command.reply.clone(),
        run: Some(command.action.run().clone()),
        timer: command.action.timer().cloned(),
    }
}

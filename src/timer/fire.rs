//! Finds what is due and fires it.
//!
//! Owns [`fire_due`]: one pass over the due rows of the known kinds, in turns, within a [`Tick`].
//!
//! ```text
//!   due rows of a kind:  │ head, in due order ─────▶│ passed over ... │ look ahead ──▶│ ...... │ now
//!                        cursor                                       where the last tick's look ended
//! ```
//!
//! Where more is due than a tick may fire, a quarter of it is kept for the tenants that have nothing at the head (L10). They are
//! found by a look ahead that goes on where that of the last tick ended, and begins again at the head when it has come to the
//! end. So with `D` rows due and `L` rows looked at in a tick, each is looked at within `D / L + 2` ticks, and then fires. If the
//! quarter is used up it is the first of the next tick; if its tenant has had its share, it is looked at in the next round.
//!
//! Never fires early (INV-FIRE-1), never fires a row of a swept generation, and never lets a row that cannot be read
//! hold up the rows behind it: such a row stays, and the kind's cursor stays before it (INV-CURSOR-1), as it stays before a row
//! that was passed over.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::budget::Tick;
use super::conclude::{Concluded, Rest, conclude, expire};
use super::handler::{Attempt, FireContext, Fired};
use super::identity::{RunKey, Tenant, TimerKey};
use super::kind::{Kind, KindNumber, Registry};
use super::limits::Limits;
use super::model::{DueKey, Ending, Generation, Timer};
use super::outcome::{Effect, ExpiryReason, Mutation, Outcome};
use super::remember;
use super::staged::Staged;
use super::sweep;
use super::view::{DueRow, Lookup, View};
use crate::calendar::Calendar;
use crate::planted::{Bug, is_on};
use crate::time::Timestamp;

/// Most rows read at once.
const PAGE_ROWS: usize = 512;
/// Most rows of one look ahead, which take a few milliseconds.
const LOOK_ROWS_MAX: usize = 4_096;
/// Most failures that a report describes; the others are counted.
const FAILURES_DESCRIBED_MAX: usize = 16;

/// What a pass is told beside the state.
#[derive(Clone, Copy)]
pub struct FireRules<'a> {
    /// The kinds to fire, in the order of their turns: the caller rotates it.
    pub kinds: &'a [KindNumber],
    /// The kinds that this binary knows.
    pub registry: &'a Registry,
    /// The limits of what handlers return.
    pub limits: &'a Limits,
    /// The rules and calendars of the arms that handlers return.
    pub calendar: &'a dyn Calendar,
    /// The tick's time.
    pub now: Timestamp,
    /// Tells how long the tick has lasted.
    pub elapsed: &'a dyn Fn() -> Duration,
    /// Lets a handler fire a timer.
    pub attempt: &'a dyn Fn(&FireContext, &Timer) -> Attempt,
    /// Tells whether a run belongs to this partition.
    pub is_here: &'a dyn Fn(&RunKey) -> bool,
    /// The next generation to give.
    pub next_generation: Generation,
}

/// Per kind with more due than a tick may fire: where the next look ahead begins.
pub type Looks = BTreeMap<KindNumber, DueKey>;

/// What a pass found, beside its outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FireReport {
    /// Rows looked at.
    pub scanned: usize,
    /// Timers that fired, those that a handler dated anew not counted.
    pub fired: usize,
    /// Timers that a handler dated anew.
    pub rescheduled: usize,
    /// Timers that rest after a failure, or because their handler asked for it.
    pub retried: BTreeMap<KindNumber, usize>,
    /// How many of them because of a failure.
    pub failed: BTreeMap<KindNumber, usize>,
    /// The first failures: the timer, the attempt, and what failed.
    pub failures: Vec<(TimerKey, u32, String)>,
    /// Timers that changed between the scan and their turn, by what a handler before them did; they did not fire.
    pub raced: usize,
    /// Rows that could not be decoded, with what is wrong; they are kept.
    pub undecodable: Vec<(KindNumber, DueKey, String)>,
    /// The kinds with due work left.
    pub unfinished: Vec<KindNumber>,
}

/// Fires what is due.
///
/// # Errors
/// When the state cannot be read.
pub fn fire_due<V: View>(
    view: &V,
    rules: &FireRules<'_>,
    tick: &mut Tick,
    looks: &mut Looks,
) -> Result<(Outcome, FireReport), V::Error> {
    let mut pass = Pass {
        view,
        rules,
        staged: Staged::on(view),
        next: rules.next_generation,
        outcome: Outcome::default(),
        report: FireReport::default(),
        swept: BTreeMap::new(),
    };
    for kind in rules.kinds {
        pass.fire_kind(*kind, tick, looks)?;
    }
    for (run, rows) in std::mem::take(&mut pass.swept) {
        let previous = pass.staged.run(&run)?;
        pass.staged.push(sweep::count(run, previous, rows));
    }
    let Pass { staged, mut outcome, report, .. } = pass;
    outcome.mutations = staged.into_mutations();
    Ok((outcome, report))
}

/// One tick's pass over one task.
struct Pass<'a, V> {
    view: &'a V,
    rules: &'a FireRules<'a>,
    staged: Staged<'a, V>,
    next: Generation,
    outcome: Outcome,
    report: FireReport,
    /// How many swept rows of each run were removed on the way.
    swept: BTreeMap<RunKey, u64>,
}

/// One kind's part of a pass.
struct Course {
    /// How far the head has come.
    after: Option<DueKey>,
    /// Whether a row was left behind, so that the cursor must not pass it.
    is_stuck: bool,
    advance: Option<DueKey>,
    /// How far the look ahead has come.
    look: DueKey,
    /// The tenants that had a row at the head.
    tenants: BTreeSet<Tenant>,
    /// The places of the rows that the look ahead has taken.
    taken: BTreeSet<DueKey>,
}

impl<V: View> Pass<'_, V> {
    fn fire_kind(&mut self, kind: KindNumber, tick: &mut Tick, looks: &mut Looks) -> Result<(), V::Error> {
        let mut course = Course {
            after: None,
            is_stuck: false,
            advance: None,
            look: DueKey::MIN,
            tenants: BTreeSet::new(),
            taken: BTreeSet::new(),
        };
        let mut reserve = 0;
        if let Some(look) = looks.get(&kind) {
            course.look = *look;
            let allowance = tick.allowance(kind, (self.rules.elapsed)());
            reserve = if allowance > 1 { (allowance / 4).max(1) } else { 0 };
        }
        let mut is_finished = self.fire_head(kind, reserve, &mut course, tick)?;
        if !is_finished && reserve > 0 {
            self.look_ahead(kind, reserve, &mut course, tick)?;
            is_finished = self.fire_head(kind, 0, &mut course, tick)?;
        }
        if is_finished {
            looks.remove(&kind);
        } else {
            looks.insert(kind, course.look);
            self.report.unfinished.push(kind);
        }
        if is_on(Bug::CursorPassesBudget) {
            let behind = Timestamp::from_millis(self.rules.now.as_millis() + 1);
            course.advance = Some(DueKey { wake: behind, generation: Generation(0) });
        }
        if let Some(to) = course.advance {
            // A handler may have armed a timer for an instant that has passed.
            let to = self.staged.earliest(kind).map_or(to, |earliest| earliest.min(to));
            self.staged.push(Mutation::Advance { kind, to });
        }
        Ok(())
    }

    /// Fires in due order until `reserve` is left of the kind's allowance. Returns whether the kind has no due row left.
    fn fire_head(
        &mut self,
        kind: KindNumber,
        reserve: usize,
        course: &mut Course,
        tick: &mut Tick,
    ) -> Result<bool, V::Error> {
        loop {
            let page_rows = tick.allowance(kind, (self.rules.elapsed)()).saturating_sub(reserve).min(PAGE_ROWS);
            if page_rows == 0 {
                return Ok(self.view.due(kind, course.after, self.rules.now, 1)?.is_empty());
            }
            let page = self.view.due(kind, course.after, self.rules.now, page_rows)?;
            let is_last = page.len() < page_rows;
            for row in page {
                if tick.allowance(kind, (self.rules.elapsed)()) == 0 {
                    return Ok(false);
                }
                let place = row.at();
                course.after = Some(place);
                match row {
                    DueRow::Undecodable { at, problem } => {
                        self.charge_scan(tick);
                        course.is_stuck = true;
                        self.report.undecodable.push((kind, at, problem));
                    }
                    DueRow::Timer(timer) => {
                        if !course.is_stuck || is_on(Bug::CursorPassesUndecodable) {
                            course.advance = Some(place.next());
                        }
                        if !course.taken.remove(&place) {
                            self.charge_scan(tick);
                            if reserve > 0 {
                                course.tenants.insert(timer.key.run.tenant.clone());
                            }
                            self.take(*timer, tick)?;
                        }
                    }
                }
            }
            if is_last {
                return Ok(true);
            }
        }
    }

    /// Fires up to `fires_max` rows of tenants that have none at the head.
    fn look_ahead(
        &mut self,
        kind: KindNumber,
        fires_max: usize,
        course: &mut Course,
        tick: &mut Tick,
    ) -> Result<(), V::Error> {
        let rows_max = tick.scans_left().saturating_sub(fires_max).min(LOOK_ROWS_MAX);
        if rows_max == 0 || tick.allowance(kind, (self.rules.elapsed)()) == 0 {
            return Ok(());
        }
        let after = course.after.max(Some(course.look)).filter(|after| *after > DueKey::MIN);
        let page = self.view.due(kind, after, self.rules.now, rows_max)?;
        let is_last = page.len() < rows_max;
        let mut shares: BTreeMap<Tenant, usize> = BTreeMap::new();
        let mut left = fires_max;
        for row in page {
            let place = row.at();
            if let DueRow::Timer(timer) = row
                && !course.tenants.contains(&timer.key.run.tenant)
            {
                let share = shares.entry(timer.key.run.tenant.clone()).or_insert(0);
                if *share < tick.tenant_share() {
                    if left == 0 || tick.allowance(kind, (self.rules.elapsed)()) == 0 {
                        return Ok(());
                    }
                    *share += 1;
                    left -= 1;
                    course.taken.insert(place);
                    self.take(*timer, tick)?;
                }
            }
            self.charge_scan(tick);
            course.look = place;
        }
        if is_last {
            course.look = DueKey::MIN;
        }
        Ok(())
    }

    fn charge_scan(&mut self, tick: &mut Tick) {
        tick.charge_scan();
        self.report.scanned += 1;
    }

    /// Takes a row: fires it, unless it is gone already.
    fn take(&mut self, timer: Timer, tick: &mut Tick) -> Result<(), V::Error> {
        let now = self.rules.now;
        assert!(timer.wake <= now, "INV-FIRE-1: a timer is never looked at before its wake");
        assert!(timer.due <= now, "INV-FIRE-1: a timer never fires before its due");
        if self.staged.is_indexed() && self.staged.locate(&timer.key)? != Some(timer.located()) {
            self.report.raced += 1;
            return Ok(());
        }
        let is_swept = self.view.is_sweeping()
            && self.staged.run(&timer.key.run)?.swept(timer.generation)
            && !is_on(Bug::SweptFires);
        if is_swept {
            // Removed here, so that the swept rows of a large run hide nothing behind them for longer than one look.
            let (kind, ending) = (self.rules.registry.get(timer.kind), Ending::Disarmed(timer.generation));
            let remembers = remember::ended(&self.staged, &timer.key, kind, ending, now)?;
            self.staged.push(Mutation::Remove { key: timer.key.clone(), previous: timer.located() });
            if let Some(mutation) = remembers {
                self.staged.push(mutation);
            }
            *self.swept.entry(timer.key.run).or_insert(0) += 1;
            return Ok(());
        }
        // An attempt that fails has used its kind's share as well.
        tick.charge_fire(timer.kind, emitted_bytes(&timer));
        let kind = self.rules.registry.get(timer.kind);
        // A timer that recurs was armed before its kind delivered by claim.
        let claim = timer.claim.or_else(|| kind.and_then(|kind| kind.claim)).filter(|_| timer.recurring.is_none());
        let timer = Timer { claim, ..timer };
        let concluded = if let Some(reason) = expiry(&timer, kind, now) {
            expire(&self.staged, timer, reason, (self.rules.registry, now), self.next)?
        } else {
            let attempt = timer.attempt.saturating_add(1);
            let tried = (self.rules.attempt)(&FireContext { now, attempt }, &timer);
            if matches!(&tried, Attempt::Decided(Fired::Done(done)) if !done.commands.is_empty()) {
                self.staged.index();
            }
            conclude(&self.staged, timer, tried, self.rules, self.next)?
        };
        self.note(concluded);
        Ok(())
    }

    fn note(&mut self, concluded: Concluded) {
        if let (Some(rest), Some(Mutation::Put { timer, .. })) = (concluded.rest, concluded.mutations.first()) {
            *self.report.retried.entry(timer.kind).or_insert(0) += 1;
            if let Rest::Failed(detail) = rest {
                *self.report.failed.entry(timer.kind).or_insert(0) += 1;
                if self.report.failures.len() < FAILURES_DESCRIBED_MAX {
                    self.report.failures.push((timer.key.clone(), timer.attempt, detail));
                }
            }
        }
        for mutation in concluded.mutations {
            self.next = mutation.generation_behind(self.next);
            self.staged.push(mutation);
        }
        if let Some(event) = concluded.fired {
            match event.effect {
                Effect::Published | Effect::Silent => self.report.fired += 1,
                Effect::Rescheduled => self.report.rescheduled += 1,
            }
            self.outcome.fired.push(event);
        }
        self.outcome.expired.extend(concluded.expired);
    }
}

/// Returns why a timer is not to fire any more, if it is not. A claimed one that was delivered once is late by intention.
pub(super) fn expiry(timer: &Timer, kind: Option<&Kind>, now: Timestamp) -> Option<ExpiryReason> {
    if timer.claim.is_some_and(|claim| claim.is_used_up(timer.attempt)) {
        return Some(ExpiryReason::AttemptsExhausted);
    }
    let lateness_max = kind.and_then(|kind| kind.expires_after).filter(|_| timer.claim.is_none() || timer.attempt == 0);
    let lateness = now.since(timer.due.max(timer.armed));
    lateness_max.filter(|max| lateness > *max && !is_on(Bug::TooLateFires)).map(|_| ExpiryReason::TooLate)
}

fn emitted_bytes(timer: &Timer) -> usize {
    let outbox: usize = timer.outbox.iter().filter_map(|record| record.value.as_ref()).map(bytes::Bytes::len).sum();
    timer.payload.as_ref().map_or(0, bytes::Bytes::len) + outbox
}

#[cfg(test)]
#[path = "fire_test.rs"]
mod tests;

//! A naive model of a store and its overlay, and the check that compares them after each step: for tests of every store.
//!
//! Owns the model, and values that tests of this layer share. The model is ordered maps of the timers and runs that are,
//! committed and open. Keeps: whatever can be read is compared, also what a later process would find in the store.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::Store;
use super::model_steps::Step;
use super::overlay::Overlay;
use crate::time::Timestamp;
use crate::timer::identity::{Run, RunKey, Tenant, TimerId, TimerKey};
use crate::timer::kind::KindNumber;
use crate::timer::model::{DueKey, Ending, Generation, Remembered, RunState, Timer};
use crate::timer::outcome::Mutation;
use crate::timer::view::{DueRow, Lookup, View};

const PAGES: [usize; 4] = [0, 1, 3, 1000];
pub(super) const RUNS: [(&str, &str); 4] = [("a", "r"), ("default", "r"), ("default", "r0"), ("default", "ré")];
pub(super) const IDS: [&str; 3] = [" ", "a", "a b"];
pub(super) const KINDS: [u32; 3] = [1, 2, 239];

pub(super) fn millis(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

pub(super) fn kind(number: u32) -> KindNumber {
    KindNumber::new(number).unwrap()
}

pub(super) fn run_key((tenant, run): (&str, &str)) -> RunKey {
    RunKey { tenant: Tenant::parse(tenant).unwrap(), run: Run::parse(run).unwrap() }
}

pub(super) fn timer(id: &str, wake: i64, generation: u64) -> Timer {
    Timer {
        key: TimerKey { run: run_key(("default", "r")), id: TimerId::parse(id).unwrap() },
        kind: kind(1),
        due: millis(wake),
        wake: millis(wake),
        generation: Generation(generation),
        attempt: 0,
        armed: Timestamp::EPOCH,
        payload: Some(Bytes::from_static(b"payload")),
        record_key: None,
        headers: Vec::new(),
        outbox: Vec::new(),
        recurring: None,
        resolved_with: None,
        paused: None,
        claim: None,
    }
}

pub(super) fn put(timer: &Timer, previous: Option<&Timer>) -> Mutation {
    Mutation::Put { timer: Box::new(timer.clone()), previous: previous.map(Timer::located) }
}

pub(super) fn remove(timer: &Timer) -> Mutation {
    Mutation::Remove { key: timer.key.clone(), previous: timer.located() }
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    timers: BTreeMap<TimerKey, Timer>,
    runs: BTreeMap<RunKey, RunState>,
    remembered: BTreeMap<TimerKey, Remembered>,
}

impl Model {
    /// Returns the timers of a kind that are not paused, in due order.
    fn live(&self, kind: KindNumber) -> Vec<&Timer> {
        let mut timers: Vec<&Timer> = self.of_kind(kind).filter(|timer| timer.paused.is_none()).collect();
        timers.sort_by_key(|timer| (timer.wake, timer.generation));
        timers
    }

    fn of_kind(&self, kind: KindNumber) -> impl Iterator<Item = &Timer> {
        self.timers.values().filter(move |timer| timer.kind == kind)
    }

    /// Returns how many timers of a kind are pending, and how many of them are paused.
    fn counts(&self, kind: KindNumber) -> (u64, u64) {
        (self.of_kind(kind).count() as u64, self.of_kind(kind).filter(|timer| timer.paused.is_some()).count() as u64)
    }

    fn ends(&self) -> Vec<(TimerKey, Remembered)> {
        let mut rows: Vec<_> = self.remembered.iter().map(|(key, state)| (key.clone(), *state)).collect();
        rows.sort_by_key(|(key, state)| (state.until, key.clone()));
        rows
    }

    fn agenda(&self) -> Vec<(Timestamp, RunKey)> {
        let mut rows: Vec<_> = self.runs.iter().filter_map(|(run, s)| s.agenda().map(|at| (at, run.clone()))).collect();
        rows.sort();
        rows
    }
}

struct Check<S> {
    overlay: Overlay<S>,
    committed: Model,
    open: Model,
    touched: BTreeSet<TimerKey>,
    generation: u64,
}

/// Takes the steps and compares all that can be read after each.
pub(super) fn check_steps<S: Store>(store: S, steps: &[Step]) {
    let overlay = Overlay::new(store).unwrap();
    let (committed, open) = (Model::default(), Model::default());
    let mut check = Check { overlay, committed, open, touched: BTreeSet::new(), generation: 0 };
    for step in steps {
        check.take(step);
        check.compare();
    }
}

impl<S: Store> Check<S> {
    fn take(&mut self, step: &Step) {
        match *step {
            Step::Arm { run, id, kind: of, wake } => {
                self.generation += 1;
                let mut armed = timer(IDS[id], wake, self.generation);
                armed.key.run = run_key(RUNS[run]);
                armed.kind = kind(KINDS[of]);
                self.put(&armed);
            }
            Step::Redate { run, id, by } => {
                if let Some(mut later) = self.open.timers.get(&key(run, id)).cloned() {
                    later.wake = millis(later.due.as_millis() + by);
                    later.attempt += 1;
                    self.put(&later);
                }
            }
            Step::Pause { run, id } => {
                if let Some(mut timer) = self.open.timers.get(&key(run, id)).cloned() {
                    timer.paused = if timer.paused.is_some() { None } else { Some(Timestamp::EPOCH) };
                    self.put(&timer);
                }
            }
            Step::Remove { run, id } => {
                if let Some(gone) = self.open.timers.remove(&key(run, id)) {
                    self.touched.insert(gone.key.clone());
                    self.overlay.fold(remove(&gone));
                }
            }
            Step::Know { run, ref state } => self.know(run_key(RUNS[run]), state.clone()),
            Step::Advance { kind: of, short_of } => self.advance(kind(KINDS[of]), short_of),
            Step::Remember { run, id, until } => {
                let ending = if until % 2 == 0 { Ending::Fired(Generation(1)) } else { Ending::NeverArmed };
                let state = Remembered { ending, ended: Timestamp::EPOCH, until: millis(until) };
                self.remember(key(run, id), Some(state));
            }
            Step::Drop { run, id } => self.remember(key(run, id), None),
            Step::Forget { now, rows_max } => self.forget(millis(now), rows_max),
            Step::Commit => self.commit(),
            Step::Clear => {
                self.overlay.clear();
                self.touched.clear();
                self.open = self.committed.clone();
            }
        }
    }

    fn put(&mut self, timer: &Timer) {
        let previous = self.open.timers.insert(timer.key.clone(), timer.clone());
        self.touched.insert(timer.key.clone());
        self.overlay.fold(put(timer, previous.as_ref()));
    }

    fn know(&mut self, run: RunKey, state: RunState) {
        let previous = self.open.runs.remove(&run).unwrap_or_default();
        if !state.is_empty() {
            self.open.runs.insert(run.clone(), state.clone());
        }
        self.overlay.fold(Mutation::Run { run, previous, state });
    }

    fn remember(&mut self, key: TimerKey, state: Option<Remembered>) {
        let previous = match state {
            Some(state) => self.open.remembered.insert(key.clone(), state),
            None => self.open.remembered.remove(&key),
        };
        self.overlay.fold(Mutation::Remember { key, previous, state });
    }

    fn forget(&mut self, now: Timestamp, rows_max: usize) {
        let ended: Vec<_> = self.open.ends().into_iter().filter(|(_, state)| state.until <= now).collect();
        let forgotten = self.overlay.forget(now, rows_max).unwrap();
        assert_eq!(forgotten, ended.len().min(rows_max), "what has ended is forgotten, a slice at a time");
        let left = ended.into_iter().filter(|(key, _)| self.overlay.remembered(key).unwrap().is_some()).count();
        self.open.remembered.retain(|key, state| now < state.until || self.overlay.remembered(key).unwrap().is_some());
        assert_eq!(self.open.ends().iter().filter(|(_, state)| state.until <= now).count(), left, "and nothing else");
    }

    fn advance(&mut self, kind: KindNumber, short_of: u64) {
        let end = DueKey { wake: millis(60), generation: Generation(0) };
        let mut to = self.open.live(kind).first().map_or(end, |timer| timer.due_key());
        to.generation.0 = to.generation.0.saturating_sub(short_of);
        let before = self.overlay.cursor(kind);
        self.overlay.fold(Mutation::Advance { kind, to });
        assert_eq!(self.overlay.cursor(kind), before.max(to), "an advance moves forward only, and as far as it says");
    }

    fn commit(&mut self) {
        let batch = self.overlay.batch();
        let place = |model: &Model, key| model.timers.get(key).map(Timer::located);
        let touched =
            self.touched.iter().filter(|key| place(&self.committed, key).is_some() || place(&self.open, key).is_some());
        let expected: Vec<_> =
            touched.map(|key| (key.clone(), place(&self.committed, key), place(&self.open, key))).collect();
        let changes = batch.timers.iter();
        let found: Vec<_> = changes
            .map(|change| (change.key.clone(), change.before, change.after.as_ref().map(|(at, _)| *at)))
            .collect();
        assert_eq!(found, expected, "the batch has the net changes, each key once");
        self.overlay.commit(batch).unwrap();
        self.committed = self.open.clone();
        self.touched.clear();
        assert!(self.overlay.is_empty(), "nothing is left after a commit");
        self.compare_store();
    }

    /// Compares what a later process would find.
    fn compare_store(&self) {
        let store = self.overlay.store();
        for kind in KINDS.map(kind) {
            let cursor = store.header().cursors.get(&kind).copied().unwrap_or(DueKey::MIN);
            let rows = store.due(kind, cursor, Timestamp::MAX, 1000).unwrap();
            assert_eq!(rows, due_rows(self.committed.live(kind)), "no live row is below the persisted cursor (R25)");
            let counts = [&store.header().pending, &store.header().paused].map(|counts| of(counts, kind));
            assert_eq!(<(u64, u64)>::from(counts), self.committed.counts(kind), "counts are persisted");
        }
        for timer in self.committed.timers.values() {
            assert_eq!(store.timer(timer.located()).unwrap().as_ref(), Some(timer));
        }
        assert_eq!(store.agenda(Timestamp::MAX, 1000).unwrap(), self.committed.agenda());
        let ends = self.committed.ends();
        assert_eq!(store.header().remembered, ends.len() as u64, "what is remembered is counted");
        for (from, until, rows_max) in [(0, 1000, 1000), (0, 20, 2), (7, 7, 1), (15, 22, 1000), (9, 8, 1000)] {
            let (first, last) = (millis(from), millis(until));
            let ends = ends.iter().filter(|(_, state)| first <= state.until && state.until <= last).take(rows_max);
            let found = store.ending(first, last, rows_max).unwrap();
            assert_eq!(found, ends.cloned().collect::<Vec<_>>(), "from {from} to {until}");
        }
        let is_sweeping = self.committed.runs.values().any(|state| state.agenda() == Some(Timestamp::EPOCH));
        assert_eq!(self.overlay.is_sweeping(), is_sweeping, "after a commit the answer is exact");
    }

    fn compare(&self) {
        for (run, id) in (0..RUNS.len()).flat_map(|run| (0..IDS.len()).map(move |id| (run, id))) {
            let key = key(run, id);
            assert_eq!(self.overlay.locate(&key).unwrap(), self.open.timers.get(&key).map(Timer::located), "{key}");
            assert_eq!(self.overlay.remembered(&key).unwrap(), self.open.remembered.get(&key).copied(), "{key}");
            if let Some(timer) = self.open.timers.get(&key) {
                assert_eq!(self.overlay.timer(timer.located()).unwrap().as_ref(), Some(timer), "{key}");
            }
        }
        for kind in KINDS.map(kind) {
            self.compare_kind(kind);
        }
        for run in RUNS.map(run_key) {
            self.compare_run(&run);
        }
        for tenant in ["a", "default"].map(|tenant| Tenant::parse(tenant).unwrap()) {
            let count = self.open.timers.keys().filter(|key| key.run.tenant == tenant).count();
            assert_eq!(self.overlay.pending_of(&tenant).unwrap(), count as u64, "pending of {tenant:?} (L8)");
        }
        assert_eq!(self.overlay.remembered_count(), self.open.remembered.len() as u64);
        let first = self.open.ends().first().map(|(_, state)| state.until);
        let next = self.overlay.next_end();
        assert!(first.is_none_or(|first| next.is_some_and(|next| next <= first)), "an end is never overlooked");
        let agenda = self.open.agenda();
        assert_eq!(self.overlay.next_agenda().unwrap(), agenda.first().map(|(at, _)| *at));
        for (until, rows_max) in [(0, 1), (10, 2), (29, 1000)] {
            let due = agenda.iter().filter(|(at, _)| *at <= millis(until)).take(rows_max);
            let due: Vec<RunKey> = due.map(|(_, run)| run.clone()).collect();
            assert_eq!(self.overlay.agenda(millis(until), rows_max).unwrap(), due, "agenda until {until}");
        }
        let sweeps = self.open.runs.values().any(|state| state.sweep.is_some());
        assert!(self.overlay.is_sweeping() || !sweeps, "a sweep is never overlooked");
        assert!(!self.overlay.is_empty() || self.open == self.committed, "a change is never overlooked");
    }

    fn compare_kind(&self, kind: KindNumber) {
        let timers = self.open.live(kind);
        let counts = [self.overlay.pending(), self.overlay.paused()].map(|counts| of(counts, kind));
        assert_eq!(<(u64, u64)>::from(counts), self.open.counts(kind), "pending and paused of kind {kind} (L8)");
        assert_eq!(self.overlay.next_wake(kind).unwrap(), timers.first().map(|timer| timer.wake), "kind {kind}");
        for until in [0, 7, 15, 100] {
            let due = timers.iter().copied().filter(|timer| timer.wake <= millis(until));
            let due = due_rows(due.collect());
            for rows_max in PAGES {
                let overdue = self.overlay.overdue(kind, millis(until), rows_max).unwrap();
                assert_eq!(overdue, due.len().min(rows_max), "overdue of kind {kind} until {until}");
                self.compare_pages(kind, millis(until), rows_max, &due);
            }
        }
    }

    fn compare_pages(&self, kind: KindNumber, until: Timestamp, rows_max: usize, due: &[DueRow]) {
        let (mut pages, mut after) = (Vec::new(), None);
        loop {
            let page = self.overlay.due(kind, after, until, rows_max).unwrap();
            assert!(page.len() <= rows_max, "a page has no more than {rows_max} rows");
            let is_last = page.len() < rows_max;
            after = page.last().map(DueRow::at).or(after);
            pages.extend(page);
            if is_last || rows_max == 0 {
                break;
            }
        }
        let due = if rows_max == 0 { &[] } else { due };
        assert_eq!(pages, due, "kind {kind} until {until} by {rows_max}: a short page is the last");
    }

    fn compare_run(&self, run: &RunKey) {
        let state = self.open.runs.get(run).cloned().unwrap_or_default();
        assert_eq!(self.overlay.run(run).unwrap(), state, "run {run}");
        let timers = self.open.timers.values().filter(|timer| timer.key.run == *run);
        let timers: Vec<_> = timers.map(|timer| (timer.key.clone(), timer.located())).collect();
        for rows_max in PAGES {
            for after in std::iter::once(None).chain(IDS.map(|id| Some(TimerId::parse(id).unwrap()))) {
                let behind = timers.iter().filter(|(key, _)| after.as_ref().is_none_or(|after| *after < key.id));
                let behind: Vec<_> = behind.take(rows_max).cloned().collect();
                assert_eq!(self.overlay.timers_of(run, after.as_ref(), rows_max).unwrap(), behind, "{run} {after:?}");
            }
        }
    }
}

fn of(counts: &BTreeMap<KindNumber, u64>, kind: KindNumber) -> u64 {
    counts.get(&kind).copied().unwrap_or_default()
}

fn key(run: usize, id: usize) -> TimerKey {
    TimerKey { run: run_key(RUNS[run]), id: TimerId::parse(IDS[id]).unwrap() }
}

fn due_rows(timers: Vec<&Timer>) -> Vec<DueRow> {
    timers.into_iter().map(|timer| DueRow::Timer(Box::new(timer.clone()))).collect()
}

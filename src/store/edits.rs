//! What the open transaction changes: for each row its place in the store and what it will be.
//!
//! Owns the fold of mutations, and the cursors and counts that follow from it. Never reads a store: each mutation says what
//! it found. Keeps:
//! - the changes are net: a row that was not there before and is not there after is no change;
//! - no live row is below its kind's cursor (INV-CURSOR-1): a `Put` below rewinds it, an `Advance` stops at the first row;
//! - counts are exact and never negative (L8).

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::remembered::Memory;
use super::{Batch, RunChange, StoreHeader, TimerChange};
use crate::planted::{Bug, is_on};
use crate::time::Timestamp;
use crate::timer::identity::{RunKey, Tenant, TimerId, TimerKey};
use crate::timer::kind::KindNumber;
use crate::timer::model::{DueKey, Header, Located, RunState, Timer};
use crate::timer::outcome::Mutation;
use crate::wire::state::{encode_run, encode_timer};

/// What a row costs beside its variable parts: framing, numbers, the key in two families.
const ROW_BYTES: usize = 64;

/// The changes of the open transaction.
#[derive(Debug, Default)]
pub(super) struct Edits {
    timers: BTreeMap<TimerKey, TimerEdit>,
    /// The places of the timers that are live after the transaction; each has its entry in `timers`.
    places: BTreeMap<(KindNumber, DueKey), TimerKey>,
    /// The places in the store of all rows that `timers` replaces or removes.
    hidden: BTreeSet<(KindNumber, DueKey)>,
    runs: BTreeMap<RunKey, RunEdit>,
    pub(super) memory: Memory,
    /// How many of `runs` have a sweep under way.
    sweeping: usize,
    tenants: BTreeMap<Tenant, i64>,
    pub(super) cursors: BTreeMap<KindNumber, DueKey>,
    pending: BTreeMap<KindNumber, u64>,
    /// How many of the pending timers are paused.
    paused: BTreeMap<KindNumber, u64>,
    bytes: usize,
}

/// A timer that changes.
#[derive(Debug)]
pub(super) struct TimerEdit {
    /// Where its row is in the store.
    pub(super) before: Option<Located>,
    /// The timer from now on.
    pub(super) after: Option<Box<Timer>>,
}

/// A run that changes.
#[derive(Debug)]
pub(super) struct RunEdit {
    /// What the store knows of it.
    pub(super) before: RunState,
    /// What is known from now on.
    pub(super) after: RunState,
}

impl Edits {
    /// Returns no changes, with the cursors and counts of a store in which no remembered id ends before `first_end`.
    pub(super) fn above(header: &StoreHeader, first_end: Timestamp) -> Self {
        let memory = Memory::above(header, first_end);
        let (pending, paused) = (header.pending.clone(), header.paused.clone());
        Self { cursors: header.cursors.clone(), pending, paused, memory, ..Self::default() }
    }

    /// Takes a mutation.
    pub(super) fn fold(&mut self, mutation: Mutation) {
        match mutation {
            Mutation::Put { timer, previous } => {
                self.unlink(&timer.key, previous);
                let is_resumed = previous.is_some_and(|previous| previous.at.is_parked());
                self.link(timer, is_resumed && is_on(Bug::ResumeNotRewound));
            }
            Mutation::Remove { key, previous } => {
                let edit = self.unlink(&key, Some(previous));
                if edit.before.is_none() {
                    self.timers.remove(&key);
                    self.bytes -= row_bytes(&key);
                }
            }
            Mutation::Run { run, previous, state } => self.change_run(run, previous, state),
            Mutation::Remember { key, previous, state } => self.memory.fold(key, previous, state),
            Mutation::Advance { kind, to } => self.advance(kind, to),
        }
    }

    /// Returns which changed timer has this place.
    pub(super) fn at(&self, at: Located) -> Option<&TimerKey> {
        self.places.get(&(at.kind, at.at))
    }

    /// Takes a timer from the place where the mutation found it.
    fn unlink(&mut self, key: &TimerKey, previous: Option<Located>) -> &TimerEdit {
        if let Some(previous) = previous {
            self.count(key, previous, -1);
        }
        match self.timers.entry(key.clone()) {
            Entry::Vacant(entry) => {
                if let Some(previous) = previous {
                    self.hidden.insert((previous.kind, previous.at));
                }
                self.bytes += row_bytes(key);
                entry.insert(TimerEdit { before: previous, after: None })
            }
            Entry::Occupied(entry) => {
                let edit = entry.into_mut();
                let after = edit.after.take();
                assert_eq!(after.as_deref().map(Timer::located), previous, "the mutation knows where {key} is");
                if let Some(timer) = after {
                    self.places.remove(&(timer.kind, timer.due_key()));
                    self.bytes -= body_bytes(&timer);
                }
                edit
            }
        }
    }

    /// Puts a timer at its place, and the cursor before it (N1).
    fn link(&mut self, timer: Box<Timer>, keeps_cursor: bool) {
        let (kind, place) = (timer.kind, timer.due_key());
        self.count(&timer.key, timer.located(), 1);
        if let Some(cursor) = self.cursors.get_mut(&kind)
            && !keeps_cursor
            && !is_on(Bug::CursorNotRewound)
        {
            *cursor = place.min(*cursor);
        }
        let displaced = self.places.insert((kind, place), timer.key.clone());
        assert!(displaced.is_none(), "no two timers share a place (INV-STORE-3): {} and {displaced:?}", timer.key);
        self.bytes += body_bytes(&timer);
        let edit = self.timers.get_mut(&timer.key).expect("a timer is unlinked before it is linked");
        edit.after = Some(timer);
    }

    fn count(&mut self, key: &TimerKey, Located { kind, at }: Located, by: i64) {
        let counts = [Some(&mut self.pending), Some(&mut self.paused).filter(|_| at.is_parked())];
        for counts in counts.into_iter().flatten() {
            let count = counts.entry(kind).or_default();
            *count = count.checked_add_signed(by).expect("what is removed was counted when it was put (L8)");
        }
        let tenant = self.tenants.entry(key.run.tenant.clone()).or_default();
        *tenant += by;
        if *tenant == 0 {
            self.tenants.remove(&key.run.tenant);
        }
    }

    fn change_run(&mut self, run: RunKey, previous: RunState, state: RunState) {
        let edit = self.runs.remove(&run);
        let before = match edit {
            None => previous,
            Some(edit) => {
                assert_eq!(edit.after, previous, "the mutation knows the state of run {run}");
                self.sweeping -= usize::from(edit.after.sweep.is_some());
                edit.before
            }
        };
        if before != state {
            self.sweeping += usize::from(state.sweep.is_some());
            self.runs.insert(run, RunEdit { before, after: state });
        }
    }

    fn advance(&mut self, kind: KindNumber, to: DueKey) {
        let first = self.live(kind, DueKey::MIN).next().map(Timer::due_key);
        debug_assert!(
            first.is_none_or(|first| to <= first),
            "INV-CURSOR-1: kind {kind} has {first:?} below its new cursor {to:?}"
        );
        // Where asserts are off a late cursor costs a scan, a cursor behind a live row costs the timer.
        let to = first.map_or(to, |first| to.min(first));
        let cursor = self.cursors.entry(kind).or_insert(DueKey::MIN);
        *cursor = to.max(*cursor);
    }

    /// Returns the net changes, with a header that has the cursors and counts from now on.
    pub(super) fn batch(&self, header: &StoreHeader) -> Batch {
        let timer = |(key, edit): (&TimerKey, &TimerEdit)| TimerChange {
            key: key.clone(),
            before: edit.before.filter(|_| edit.after.is_none() || !is_on(Bug::ReplacedRowKept)),
            after: edit.after.as_deref().map(|timer| (timer.located(), encode_timer(timer))),
        };
        let run = |(run, edit): (&RunKey, &RunEdit)| RunChange {
            run: run.clone(),
            before: if is_on(Bug::RunBeforeForgotten) { RunState::default() } else { edit.before.clone() },
            after: edit.after.clone(),
            body: encode_run(&edit.after),
        };
        Batch {
            timers: self.timers.iter().map(timer).collect(),
            runs: self.runs.iter().map(run).collect(),
            remembered: self.memory.batch(),
            tenants: self.tenants.clone(),
            header: StoreHeader {
                cursors: self.cursors.clone(),
                pending: self.pending.clone(),
                paused: self.paused.clone(),
                remembered: self.memory.count(),
                ..header.clone()
            },
            outbox: None,
        }
    }

    /// Returns whether no row changes; a cursor that has moved is not worth a batch of its own.
    pub(super) fn is_empty(&self) -> bool {
        self.rows() == 0
    }

    /// Returns how many rows change.
    pub(super) fn rows(&self) -> usize {
        self.timers.len() + self.runs.len() + self.memory.rows()
    }

    /// Returns about how many bytes the changed timers have.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the change of a timer.
    pub(super) fn timer(&self, key: &TimerKey) -> Option<&TimerEdit> {
        self.timers.get(key)
    }

    /// Returns the changes of a run's timers behind `after`, in order of their ids.
    pub(super) fn timers_of(&self, run: &RunKey, after: Option<&TimerId>) -> impl Iterator<Item = (&TimerKey, &Timer)> {
        let behind = self.timers.range((TimerKey::scan_start(run, after), Bound::Unbounded));
        let of_run = behind.take_while(move |(key, _)| key.run == *run);
        of_run.filter_map(|(key, edit)| edit.after.as_deref().map(|timer| (key, timer)))
    }

    /// Returns the changed timers of a kind that are live, at or behind `from`, in due order.
    pub(super) fn live(&self, kind: KindNumber, from: DueKey) -> impl Iterator<Item = &Timer> {
        let places = self.places.range((kind, from)..).take_while(move |((k, _), _)| *k == kind);
        places.map(|(_, key)| {
            let edit = self.timers.get(key).expect("each place has its entry in timers");
            edit.after.as_deref().expect("a timer that is gone has no place")
        })
    }

    /// Returns whether the row at this place of the store is replaced or removed.
    pub(super) fn hides(&self, kind: KindNumber, at: DueKey) -> bool {
        self.hidden.contains(&(kind, at))
    }

    /// Returns the change of a run.
    pub(super) fn run(&self, run: &RunKey) -> Option<&RunEdit> {
        self.runs.get(run)
    }

    /// Returns the changes of runs.
    pub(super) fn runs(&self) -> impl Iterator<Item = (&RunKey, &RunEdit)> {
        self.runs.iter()
    }

    /// Returns whether a changed run has a sweep under way.
    pub(super) fn is_sweeping(&self) -> bool {
        self.sweeping > 0
    }

    /// Returns where scans of the kind start.
    pub(super) fn cursor(&self, kind: KindNumber) -> DueKey {
        self.cursors.get(&kind).copied().unwrap_or(DueKey::MIN)
    }

    /// Returns per kind how many timers are pending.
    pub(super) fn pending(&self) -> &BTreeMap<KindNumber, u64> {
        &self.pending
    }

    /// Returns per kind how many of them are paused.
    pub(super) fn paused(&self) -> &BTreeMap<KindNumber, u64> {
        &self.paused
    }

    /// Returns by how much the tenant's number of pending timers changes.
    pub(super) fn pending_of(&self, tenant: &Tenant) -> i64 {
        self.tenants.get(tenant).copied().unwrap_or_default()
    }

    /// Returns the instants from which changed runs need work of their own, up to `until`.
    pub(super) fn agenda(&self, until: Timestamp) -> impl Iterator<Item = (Timestamp, &RunKey)> {
        let instants = self.runs.iter().filter_map(|(run, edit)| edit.after.agenda().map(|at| (at, run)));
        instants.filter(move |(at, _)| *at <= until)
    }
}

fn row_bytes(key: &TimerKey) -> usize {
    ROW_BYTES + key.run.tenant.as_str().len() + key.run.run.as_str().len() + key.id.as_str().len()
}

fn body_bytes(timer: &Timer) -> usize {
    let header = |header: &Header| header.key.len() + header.value.as_ref().map_or(0, bytes::Bytes::len);
    let mut bytes = timer.payload.as_ref().map_or(0, bytes::Bytes::len);
    bytes += timer.record_key.as_ref().map_or(0, bytes::Bytes::len);
    bytes += timer.headers.iter().map(header).sum::<usize>();
    for record in &timer.outbox {
        bytes += record.key.as_ref().map_or(0, bytes::Bytes::len);
        bytes += record.value.as_ref().map_or(0, bytes::Bytes::len);
        bytes += record.headers.iter().map(header).sum::<usize>();
    }
    bytes
}

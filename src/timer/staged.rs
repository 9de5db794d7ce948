//! A state with mutations on top that are decided and not folded yet.
//!
//! Owns what one pass has decided so far, so that the next decision sees it. Never changes the state below. Keeps: what is looked
//! up is the state after all staged mutations, once it was asked for ([`Staged::index`]): most passes never ask, and save the cost.

use std::collections::BTreeMap;

use super::identity::{RunKey, TimerKey};
use super::kind::KindNumber;
use super::model::{DueKey, Located, Remembered, RunState};
use super::outcome::Mutation;
use super::view::Lookup;

/// Mutations on top of a state.
pub(super) struct Staged<'a, V> {
    below: &'a V,
    timers: BTreeMap<TimerKey, Option<Located>>,
    remembered: BTreeMap<TimerKey, Option<Remembered>>,
    runs: BTreeMap<RunKey, RunState>,
    /// Per kind the earliest place at which a timer was put.
    earliest: BTreeMap<KindNumber, DueKey>,
    mutations: Vec<Mutation>,
    /// Whether `timers` and `remembered` have what the mutations do.
    is_indexed: bool,
}

impl<'a, V: Lookup> Staged<'a, V> {
    /// Returns a state with nothing on top.
    pub(super) fn on(below: &'a V) -> Self {
        Self {
            below,
            timers: BTreeMap::new(),
            remembered: BTreeMap::new(),
            runs: BTreeMap::new(),
            earliest: BTreeMap::new(),
            mutations: Vec::new(),
            is_indexed: false,
        }
    }

    /// Takes a mutation that was decided on the state as it is now.
    pub(super) fn push(&mut self, mutation: Mutation) {
        match &mutation {
            Mutation::Put { timer, .. } => {
                let place = timer.due_key();
                let earliest = self.earliest.entry(timer.kind).or_insert(place);
                *earliest = place.min(*earliest);
            }
            Mutation::Run { run, state, .. } => {
                self.runs.insert(run.clone(), state.clone());
            }
            Mutation::Remove { .. } | Mutation::Remember { .. } | Mutation::Advance { .. } => {}
        }
        if self.is_indexed {
            Self::enter(&mut self.timers, &mut self.remembered, &mutation);
        }
        self.mutations.push(mutation);
    }

    fn enter(
        timers: &mut BTreeMap<TimerKey, Option<Located>>,
        remembered: &mut BTreeMap<TimerKey, Option<Remembered>>,
        mutation: &Mutation,
    ) {
        match mutation {
            Mutation::Put { timer, .. } => {
                timers.insert(timer.key.clone(), Some(timer.located()));
            }
            Mutation::Remove { key, .. } => {
                timers.insert(key.clone(), None);
            }
            Mutation::Remember { key, state, .. } => {
                remembered.insert(key.clone(), *state);
            }
            Mutation::Run { .. } | Mutation::Advance { .. } => {}
        }
    }

    /// From now on timers can be looked up.
    pub(super) fn index(&mut self) {
        if !self.is_indexed {
            self.is_indexed = true;
            let (timers, remembered) = (&mut self.timers, &mut self.remembered);
            self.mutations.iter().for_each(|mutation| Self::enter(timers, remembered, mutation));
        }
    }

    /// Returns whether timers can be looked up: a handler had commands, and each row has to be before it fires.
    pub(super) fn is_indexed(&self) -> bool {
        self.is_indexed
    }

    /// Returns the earliest place of the kind at which a timer was put: no cursor may pass it.
    pub(super) fn earliest(&self, kind: KindNumber) -> Option<DueKey> {
        self.earliest.get(&kind).copied()
    }

    /// Returns the mutations, in the order in which they were decided.
    pub(super) fn into_mutations(self) -> Vec<Mutation> {
        self.mutations
    }
}

impl<V: Lookup> Lookup for Staged<'_, V> {
    type Error = V::Error;

    fn locate(&self, key: &TimerKey) -> Result<Option<Located>, V::Error> {
        assert!(self.is_indexed || self.mutations.is_empty(), "what is looked up is indexed");
        match self.timers.get(key) {
            Some(located) => Ok(*located),
            None => self.below.locate(key),
        }
    }

    /// Where nothing is indexed each timer of a pass has ended once at most, so that only the state below may know its id.
    fn remembered(&self, key: &TimerKey) -> Result<Option<Remembered>, V::Error> {
        match self.remembered.get(key) {
            Some(state) => Ok(*state),
            None => self.below.remembered(key),
        }
    }

    fn run(&self, run: &RunKey) -> Result<RunState, V::Error> {
        match self.runs.get(run) {
            Some(state) => Ok(state.clone()),
            None => self.below.run(run),
        }
    }

    /// Handlers begin no sweep.
    fn is_sweeping(&self) -> bool {
        self.below.is_sweeping()
    }
}

//! A state with mutations on top that are decided and not folded yet.
//!
//! Owns what one pass has decided so far, so that the next decision sees it. Never changes the state below. Keeps: what is looked
//! up is the state after all staged mutations.

use std::collections::BTreeMap;

use super::identity::{RunKey, TimerKey};
use super::kind::KindNumber;
use super::model::{DueKey, Located, RunState};
use super::outcome::Mutation;
use super::view::Lookup;

/// Mutations on top of a state.
pub(super) struct Staged<'a, V> {
    below: &'a V,
    timers: BTreeMap<TimerKey, Option<Located>>,
    runs: BTreeMap<RunKey, RunState>,
    /// Per kind the earliest place at which a timer was put.
    earliest: BTreeMap<KindNumber, DueKey>,
    mutations: Vec<Mutation>,
    has_commands: bool,
}

impl<'a, V: Lookup> Staged<'a, V> {
    /// Returns a state with nothing on top.
    pub(super) fn on(below: &'a V) -> Self {
        Self {
            below,
            timers: BTreeMap::new(),
            runs: BTreeMap::new(),
            earliest: BTreeMap::new(),
            mutations: Vec::new(),
            has_commands: false,
        }
    }

    /// Takes a mutation that was decided on the state as it is now.
    pub(super) fn push(&mut self, mutation: Mutation) {
        match &mutation {
            Mutation::Put { timer, .. } => {
                let place = timer.due_key();
                let earliest = self.earliest.entry(timer.kind).or_insert(place);
                *earliest = place.min(*earliest);
                self.timers.insert(timer.key.clone(), Some(timer.located()));
            }
            Mutation::Remove { key, .. } => {
                self.timers.insert(key.clone(), None);
            }
            Mutation::Run { run, state, .. } => {
                self.runs.insert(run.clone(), state.clone());
            }
            Mutation::Advance { .. } => {}
        }
        self.mutations.push(mutation);
    }

    /// Notes that timers other than the fired ones may have changed.
    pub(super) fn note_commands(&mut self) {
        self.has_commands = true;
    }

    /// Returns whether timers other than the fired ones may have changed: then each row is looked up before it fires.
    pub(super) fn has_commands(&self) -> bool {
        self.has_commands
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
        match self.timers.get(key) {
            Some(located) => Ok(*located),
            None => self.below.locate(key),
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

//! The read side of state, as the core needs it: the seam between the core and whatever holds the timers.
//!
//! Owns the traits [`Lookup`], which is enough to judge a command about one timer, and [`View`]. Their implementors answer from
//! committed state with the changes of the open transaction on top.
//! Keeps: a page is a consistent cut; rows come in the order of [`DueKey`]; a row below the kind's cursor is never returned.

use super::identity::{RunKey, TimerId, TimerKey};
use super::kind::KindNumber;
use super::model::{DueKey, Located, Remembered, RunState, Timer};
use crate::time::Timestamp;

/// A row of the due order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DueRow {
    /// A timer.
    Timer(Box<Timer>),
    /// A row whose body cannot be read: kept, counted, and stepped over.
    Undecodable {
        /// Its place, which is known from its key.
        at: DueKey,
        /// What is wrong with it.
        problem: String,
    },
}

impl DueRow {
    /// Returns the row's place.
    pub fn at(&self) -> DueKey {
        match self {
            Self::Timer(timer) => timer.due_key(),
            Self::Undecodable { at, .. } => *at,
        }
    }
}

/// State as the core looks one timer or one run up.
pub trait Lookup {
    /// What can go wrong when reading.
    type Error;

    /// Returns where the timer's row is, swept or not.
    ///
    /// # Errors
    /// When the state cannot be read.
    fn locate(&self, key: &TimerKey) -> Result<Option<Located>, Self::Error>;

    /// Returns what is remembered of the id; it may have lapsed, and wait to be forgotten.
    ///
    /// # Errors
    /// When the state cannot be read.
    fn remembered(&self, key: &TimerKey) -> Result<Option<Remembered>, Self::Error>;

    /// Returns the run's state; empty if nothing is known of it.
    ///
    /// # Errors
    /// When the state cannot be read.
    fn run(&self, run: &RunKey) -> Result<RunState, Self::Error>;

    /// Returns whether any run has a sweep under way; while none has, no fire needs to look at its run.
    fn is_sweeping(&self) -> bool;
}

/// State as the core reads it.
pub trait View: Lookup {
    /// Returns the timer at this place, if its body can be decoded.
    ///
    /// # Errors
    /// When the state cannot be read.
    fn timer(&self, at: Located) -> Result<Option<Timer>, Self::Error>;

    /// Returns up to `rows_max` timers of the run, in order of their ids, behind `after`.
    ///
    /// # Errors
    /// When the state cannot be read.
    fn timers_of(
        &self,
        run: &RunKey,
        after: Option<&TimerId>,
        rows_max: usize,
    ) -> Result<Vec<(TimerKey, Located)>, Self::Error>;

    /// Returns up to `rows_max` rows of the kind with a wake at or before `until`, behind `after`, from the kind's cursor on.
    ///
    /// # Errors
    /// When the state cannot be read. A row that cannot be decoded is no error but a [`DueRow::Undecodable`].
    fn due(
        &self,
        kind: KindNumber,
        after: Option<DueKey>,
        until: Timestamp,
        rows_max: usize,
    ) -> Result<Vec<DueRow>, Self::Error>;

    /// Returns up to `rows_max` runs whose [`RunState::agenda`] is at or before `until`, earliest first.
    ///
    /// # Errors
    /// When the state cannot be read.
    fn agenda(&self, until: Timestamp, rows_max: usize) -> Result<Vec<RunKey>, Self::Error>;
}

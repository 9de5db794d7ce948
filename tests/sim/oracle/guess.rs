//! Commands of which nothing shows what came of them: no answer, and no row, because a later command of the same transaction took it.
//!
//! Owns which of several right readings is tried. Never excuses anything: a reading counts only if the whole transaction fits it.

use super::Oracle;
use crate::broker::transactions::Decision;

/// The guesses of one transaction, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Guesses {
    /// How many readings each guess had.
    had: Vec<usize>,
    /// The guess that is read otherwise, and how; all others take the first reading.
    otherwise: Option<(usize, usize)>,
}

impl Guesses {
    /// Makes one guess otherwise.
    pub(crate) fn otherwise(guess: usize, reading: usize) -> Self {
        Self { had: Vec::new(), otherwise: Some((guess, reading)) }
    }

    /// Returns which of so many readings to take.
    pub(crate) fn take(&mut self, readings: usize) -> usize {
        let guess = self.had.len();
        self.had.push(readings);
        self.otherwise.filter(|(which, _)| *which == guess).map_or(0, |(_, reading)| reading)
    }

    /// Returns every way to make one guess otherwise.
    pub(crate) fn others(&self) -> Vec<(usize, usize)> {
        let of_guess = |(guess, readings): (usize, &usize)| (1..*readings).map(move |reading| (guess, reading));
        self.had.iter().enumerate().flat_map(of_guess).collect()
    }
}

/// Returns whether there may be a command whose outcome depends on the clock of the process, and another one that hides it.
pub(crate) fn may_guess(oracle: &Oracle, decision: &Decision) -> bool {
    decision.positions.iter().any(|(partition, after)| {
        oracle.homes.get(partition).is_some_and(|home| {
            let is_unclear = || {
                !home.remembered.is_empty()
                    || home.runs.values().any(|run| run.sealed_until.is_some())
                    || home.timers.values().any(|timer| timer.is_paused)
            };
            after.0 > home.position + 1 && is_unclear()
        })
    })
}

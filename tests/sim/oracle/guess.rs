//! Commands of which nothing shows what came of them: no answer, and no row, because a later command of the same transaction took it.
//!
//! Owns which of several right readings is tried. Never excuses anything: a reading counts only if the whole transaction fits it.

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

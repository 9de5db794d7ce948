//! What happened in a run, line by line.
//!
//! Owns the lines. They are written only where somebody wants them: a run that passes needs none. Keeps: one seed gives one
//! trace, which a test checks.

use std::collections::VecDeque;
use std::fmt::Write as _;

use crate::sim::Millis;

/// How many lines of a failure are shown.
pub(crate) const LINES_SHOWN: usize = 120;

pub(crate) struct Trace {
    /// How many of the last lines are kept; none if nobody looks.
    lines_max: usize,
    lines: VecDeque<(Millis, String)>,
}

impl Trace {
    /// Returns a trace that keeps nothing.
    pub(crate) fn off() -> Self {
        Self { lines_max: 0, lines: VecDeque::new() }
    }

    /// Returns a trace that keeps the last lines.
    pub(crate) fn last(lines_max: usize) -> Self {
        Self { lines_max, lines: VecDeque::new() }
    }

    pub(crate) fn note(&mut self, now: Millis, line: impl FnOnce() -> String) {
        if self.lines_max == 0 {
            return;
        }
        if self.lines.len() == self.lines_max {
            self.lines.pop_front();
        }
        self.lines.push_back((now, line()));
    }

    /// Returns the kept lines as text; equal lines that follow each other are counted.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let mut lines = self.lines.iter().peekable();
        while let Some((now, line)) = lines.next() {
            let mut times = 1;
            while lines.next_if(|(_, next)| next == line).is_some() {
                times += 1;
            }
            let times = if times > 1 { format!(" (x{times})") } else { String::new() };
            writeln!(text, "{now:>9} {line}{times}").expect("a text takes any line");
        }
        text
    }
}

//! What is held back because a topic refuses its records.
//!
//! Owns [`Holds`]: a kind whose fired or outbox topic is deleted, without rights or refuses a record is left out of the
//! ticks for a while, so that it never delays another; the same for commands whose dead letters or forwards are refused,
//! and for results. Keeps: nothing is lost by a hold: held timers stay due, held commands are read again. Only answers are
//! dropped while the results topic refuses them.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::log::Destination;
use crate::planted::{Bug, is_on};
use crate::timer::kind::KindNumber;

const HOLD_FIRST: Duration = Duration::from_secs(1);
/// A topic that is back is noticed within this time; a try costs one look at its metadata, or one aborted transaction.
const HOLD_MAX: Duration = Duration::from_secs(5);

/// Something held, until a time of the boot clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Hold {
    until: Duration,
    refusals: u32,
}

impl Hold {
    fn prolong(&mut self, boot: Duration) {
        let wait = (HOLD_FIRST * 2_u32.pow(self.refusals.min(5))).min(HOLD_MAX);
        self.refusals = self.refusals.saturating_add(1);
        self.until = boot.saturating_add(wait);
    }
}

/// What is held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Holds {
    kinds: BTreeMap<KindNumber, Hold>,
    commands: Option<Hold>,
    results: Option<Hold>,
}

impl Holds {
    /// Holds what the destination serves. Returns whether it was not held before.
    pub(super) fn refuse(&mut self, destination: Destination, boot: Duration) -> bool {
        match destination {
            Destination::Fired(kind) | Destination::Outbox(kind) => {
                let is_new = !self.kinds.contains_key(&kind);
                self.kinds.entry(kind).or_default().prolong(boot);
                is_new
            }
            Destination::Arm | Destination::Changelog | Destination::DeadLetter => {
                let is_new = self.commands.is_none();
                self.commands.get_or_insert_default().prolong(boot);
                is_new
            }
            Destination::Results => {
                let is_new = self.results.is_none();
                self.results.get_or_insert_default().prolong(boot);
                is_new
            }
        }
    }

    /// Forgets the holds of destinations that have just taken a record. Returns the kinds that are free again.
    pub(super) fn accept(&mut self, destinations: impl IntoIterator<Item = Destination>) -> Vec<KindNumber> {
        let mut freed = Vec::new();
        if self.kinds.is_empty() && self.commands.is_none() && self.results.is_none() {
            return freed;
        }
        for destination in destinations {
            match destination {
                Destination::Fired(kind) => {
                    if self.kinds.remove(&kind).is_some() {
                        freed.push(kind);
                    }
                }
                Destination::DeadLetter | Destination::Arm => self.commands = None,
                Destination::Results => self.results = None,
                Destination::Outbox(_) | Destination::Changelog => {}
            }
        }
        freed
    }

    /// Returns whether the kind may fire.
    pub(super) fn is_free(&self, kind: KindNumber, boot: Duration) -> bool {
        self.kinds.get(&kind).is_none_or(|hold| hold.until <= boot && !is_on(Bug::HoldNeverEnds))
    }

    /// Returns whether commands may be taken.
    pub(super) fn commands_are_free(&self, boot: Duration) -> bool {
        self.commands.is_none_or(|hold| hold.until <= boot)
    }

    /// Returns whether answers may be sent.
    pub(super) fn results_are_free(&self, boot: Duration) -> bool {
        self.results.is_none_or(|hold| hold.until <= boot && !is_on(Bug::ResultsHoldNeverEnds))
    }

    /// Returns the earliest end of a hold after `boot`.
    pub(super) fn next_end(&self, boot: Duration) -> Option<Duration> {
        let kinds = self.kinds.values().map(|hold| hold.until);
        kinds.chain(self.commands.map(|hold| hold.until)).filter(|until| *until > boot).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusing_topic_holds_its_kind_only_and_longer_each_time() {
        let (one, two) = (KindNumber::new(1).unwrap(), KindNumber::new(2).unwrap());
        let mut holds = Holds::default();
        let at = Duration::from_secs(100);
        assert!(holds.refuse(Destination::Fired(one), at), "new");
        assert!(!holds.is_free(one, at) && holds.is_free(two, at), "only the refusing kind");
        assert_eq!(holds.next_end(at), Some(Duration::from_secs(101)));
        let later = Duration::from_secs(101);
        assert!(holds.is_free(one, later), "tried again");
        assert!(!holds.refuse(Destination::Outbox(one), later), "still held");
        assert_eq!(holds.next_end(later), Some(Duration::from_secs(103)));
        assert_eq!(holds.accept([Destination::Fired(one)]), vec![one]);
        assert_eq!(holds, Holds::default());
    }

    #[test]
    fn a_hold_is_bounded() {
        let mut holds = Holds::default();
        for _ in 0..100 {
            holds.refuse(Destination::DeadLetter, Duration::ZERO);
        }
        assert!(!holds.commands_are_free(Duration::from_secs(4)), "held");
        assert!(holds.commands_are_free(HOLD_MAX), "tried again after the longest hold");
    }
}

//! What one tick may do.
//!
//! Owns [`Budget`] (the limits) and [`Tick`] (what is left of them). One tick is shared by all tasks of a worker.
//! Keeps: a limit of 0 means 1, so that every tick makes progress.

use std::collections::BTreeMap;
use std::time::Duration;

use super::kind::KindNumber;

/// The limits of one tick. The defaults are those of the library; the service has its own in its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Most timers fired.
    pub fired_max: usize,
    /// Most timers fired of one kind.
    pub fired_per_kind_max: usize,
    /// Most timers fired of one tenant and kind, of what is kept for tenants that have nothing at the head of the due order.
    pub fired_per_tenant_max: usize,
    /// Most rows looked at.
    pub scanned_max: usize,
    /// Most bytes of payload fired; the timer that exceeds it still fires.
    pub bytes_max: usize,
    /// Longest time; when it has passed, no further row is begun.
    pub elapsed_max: Duration,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            fired_max: 128,
            fired_per_kind_max: 32,
            fired_per_tenant_max: 2,
            scanned_max: 512,
            bytes_max: usize::MAX,
            elapsed_max: Duration::from_secs(10),
        }
    }
}

/// One tick's remaining allowance.
#[derive(Clone, Debug)]
pub struct Tick {
    budget: Budget,
    fired: usize,
    scanned: usize,
    bytes: usize,
    fired_per_kind: BTreeMap<KindNumber, usize>,
    shares: BTreeMap<KindNumber, usize>,
}

impl Tick {
    /// Begins a tick.
    pub fn new(budget: Budget) -> Self {
        Self { budget, fired: 0, scanned: 0, bytes: 0, fired_per_kind: BTreeMap::new(), shares: BTreeMap::new() }
    }

    /// Lowers the share of a kind; a larger one than it has changes nothing, and 0 means 1.
    pub fn lower_share(&mut self, kind: KindNumber, fired_max: usize) {
        let share = self.shares.entry(kind).or_insert(usize::MAX);
        *share = fired_max.max(1).min(*share);
    }

    /// Returns the limits.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Charges work that is done beside the engine in the same tick, if all of it fits into what is left. Returns whether it
    /// does; a charge that does not fit changes nothing.
    pub fn try_charge(&mut self, fired: usize, scanned: usize, bytes: usize) -> bool {
        let fired_left = self.budget.fired_max.max(1).saturating_sub(self.fired);
        let bytes_left = self.budget.bytes_max.max(1).saturating_sub(self.bytes);
        let fits = fired <= fired_left && scanned <= self.scans_left() && bytes <= bytes_left;
        if fits {
            self.fired += fired;
            self.scanned += scanned;
            self.bytes += bytes;
        }
        fits
    }

    /// Returns how many rows may still be looked at.
    pub fn scans_left(&self) -> usize {
        self.budget.scanned_max.max(1).saturating_sub(self.scanned)
    }

    /// Returns the share of one tenant in what is kept for others.
    pub fn tenant_share(&self) -> usize {
        self.budget.fired_per_tenant_max.max(1)
    }

    /// Returns how many rows of the kind may still be looked at and fired, given the time that has passed.
    pub fn allowance(&self, kind: KindNumber, elapsed: Duration) -> usize {
        if self.is_out_of_time(elapsed) || self.bytes >= self.budget.bytes_max.max(1) {
            return 0;
        }
        let of_kind = self.fired_per_kind.get(&kind).copied().unwrap_or(0);
        let fired = self.budget.fired_max.max(1).saturating_sub(self.fired);
        let share = self.shares.get(&kind).copied().unwrap_or(usize::MAX);
        let per_kind = self.budget.fired_per_kind_max.max(1).min(share).saturating_sub(of_kind);
        fired.min(per_kind).min(self.scans_left())
    }

    /// Returns whether no further row may be begun. The first row of a tick is always begun.
    pub fn is_out_of_time(&self, elapsed: Duration) -> bool {
        self.scanned > 0 && elapsed >= self.budget.elapsed_max
    }

    /// Charges a row looked at.
    pub fn charge_scan(&mut self) {
        self.scanned = self.scanned.saturating_add(1);
    }

    /// Charges a timer fired.
    pub fn charge_fire(&mut self, kind: KindNumber, bytes: usize) {
        self.fired = self.fired.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes);
        let of_kind = self.fired_per_kind.entry(kind).or_insert(0);
        *of_kind = of_kind.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_of_zero_means_one() {
        let kind = KindNumber::new(1).unwrap();
        let zero = Budget {
            fired_max: 0,
            fired_per_kind_max: 0,
            fired_per_tenant_max: 0,
            scanned_max: 0,
            bytes_max: 0,
            elapsed_max: Duration::ZERO,
        };
        let mut tick = Tick::new(zero);
        assert_eq!(tick.allowance(kind, Duration::MAX), 1, "the first row is always begun");
        tick.charge_scan();
        tick.charge_fire(kind, 10);
        assert_eq!(tick.allowance(kind, Duration::ZERO), 0);
        assert_eq!(tick.tenant_share(), 1);
    }

    #[test]
    fn a_handler_lowers_its_share_and_never_raises_it() {
        let [slow, eager, zero] = [1, 2, 3].map(|number| KindNumber::new(number).unwrap());
        let mut tick = Tick::new(Budget { fired_per_kind_max: 32, ..Budget::default() });
        tick.lower_share(slow, 5);
        tick.lower_share(eager, 1_000);
        tick.lower_share(zero, 0);
        let allowance = |kind| tick.allowance(kind, Duration::ZERO);
        assert_eq!([slow, eager, zero].map(allowance), [5, 32, 1]);
        tick.lower_share(slow, 10);
        assert_eq!(tick.allowance(slow, Duration::ZERO), 5, "nor does the handler of another engine");
    }

    #[test]
    fn a_charge_that_does_not_fit_changes_nothing() {
        let kind = KindNumber::new(1).unwrap();
        let budget = Budget { fired_max: 3, scanned_max: 5, bytes_max: 10, ..Budget::default() };
        let mut tick = Tick::new(budget);
        for (fired, scanned, bytes) in [(4, 0, 0), (0, 6, 0), (0, 0, 11), (usize::MAX, usize::MAX, usize::MAX)] {
            assert!(!tick.try_charge(fired, scanned, bytes), "{fired}, {scanned}, {bytes}");
            assert_eq!((tick.allowance(kind, Duration::ZERO), tick.scans_left()), (3, 5));
        }
        assert!(tick.try_charge(2, 3, 10), "it fits");
        assert_eq!((tick.allowance(kind, Duration::ZERO), tick.scans_left()), (0, 2), "the bytes are used up");
    }
}

//! Makes a run that fails small.
//!
//! Owns [`shrink`]: it leaves out classes of trouble, then cuts the run short, then leaves out single commands, and keeps
//! each change after which the same invariant still does not hold. Keeps: what it returns fails.

use crate::plan::Plan;
use crate::trace::Trace;
use crate::world::{Report, run};

/// Most runs that a search may take.
const RUNS_MAX: u32 = 400;

struct Search {
    smallest: Report,
    runs: u32,
}

/// Returns the smallest run that was found to fail as this one does.
pub(crate) fn shrink(failed: &Report) -> Report {
    let mut search = Search { smallest: failed.clone(), runs: 0 };
    search.leave_out_faults();
    search.cut_short();
    search.leave_out_faults();
    search.leave_out_commands();
    search.smallest
}

impl Search {
    /// Tries a plan, and keeps it if it fails in the same way.
    fn accept(&mut self, change: impl FnOnce(&mut Plan)) -> bool {
        let mut plan = self.smallest.plan.clone();
        change(&mut plan);
        if self.runs == RUNS_MAX {
            return false;
        }
        self.runs += 1;
        let report = run(&plan, Trace::off());
        let id = |report: &Report| report.violation.as_ref().map(|violation| violation.id);
        let is_same = id(&report) == id(&self.smallest);
        if is_same {
            self.smallest = report;
        }
        is_same
    }

    fn leave_out_faults(&mut self) {
        for fault in self.smallest.plan.faults.clone() {
            self.accept(|plan| {
                plan.faults.remove(&fault);
            });
        }
    }

    fn cut_short(&mut self) {
        let troubles = self.smallest.troubles;
        self.accept(|plan| plan.troubles = troubles);
        for divisor in [2, 4, 8, 16] {
            while self.accept(|plan| plan.commands -= plan.commands / divisor) {}
            while self.accept(|plan| plan.troubles -= plan.troubles / divisor) && self.smallest.plan.troubles >= divisor
            {
            }
        }
        while self.smallest.plan.troubles > 0 && self.accept(|plan| plan.troubles -= 1) {}
    }

    fn leave_out_commands(&mut self) {
        for command in (1..=self.smallest.plan.commands).rev() {
            self.accept(|plan| {
                plan.skipped.insert(command);
            });
        }
    }
}

/// Returns the command that makes the run again.
pub(crate) fn command(plan: &Plan) -> String {
    let whole = Plan::of(plan.seed);
    let list = |items: Vec<String>| items.join(",");
    let without = list(whole.faults.difference(&plan.faults).map(ToString::to_string).collect());
    let skipped = list(plan.skipped.iter().map(ToString::to_string).collect());
    format!(
        "PUNCTUAL_SEED={} PUNCTUAL_WITHOUT={without} PUNCTUAL_COMMANDS={} PUNCTUAL_TROUBLES={} PUNCTUAL_SKIP={skipped} \
         cargo test --locked --test sim one_seed -- --nocapture",
        plan.seed, plan.commands, plan.troubles
    )
}

//! The steps of the check of stores against a model.
//!
//! Owns what may happen, and how it is drawn. Keeps: identities are few, so that steps meet each other.

use proptest::prelude::*;

use super::model_check::{IDS, KINDS, RUNS, millis};
use crate::timer::command::{Encoding, Reply};
use crate::timer::model::{Generation, RunState, Seal, Sweep, SweepReply};

/// What may happen to the state; numbers choose among the few identities.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Arm {
        run: usize,
        id: usize,
        kind: usize,
        wake: i64,
    },
    Redate {
        run: usize,
        id: usize,
        by: i64,
    },
    /// Pauses the timer, or resumes it.
    Pause {
        run: usize,
        id: usize,
    },
    Remove {
        run: usize,
        id: usize,
    },
    Know {
        run: usize,
        state: RunState,
    },
    Advance {
        kind: usize,
        short_of: u64,
    },
    Remember {
        run: usize,
        id: usize,
        until: i64,
    },
    Drop {
        run: usize,
        id: usize,
    },
    Forget {
        now: i64,
        rows_max: usize,
    },
    Commit,
    Clear,
}

pub(super) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (run, id, kind) = (0..RUNS.len(), 0..IDS.len(), 0..KINDS.len());
    let step = prop_oneof![
        6 => (run.clone(), id.clone(), kind.clone(), 0..30_i64)
            .prop_map(|(run, id, kind, wake)| Step::Arm { run, id, kind, wake }),
        3 => (run.clone(), id.clone(), 0..30_i64).prop_map(|(run, id, by)| Step::Redate { run, id, by }),
        4 => (run.clone(), id.clone()).prop_map(|(run, id)| Step::Remove { run, id }),
        2 => (run.clone(), run_state()).prop_map(|(run, state)| Step::Know { run, state }),
        3 => (kind, 0..3_u64).prop_map(|(kind, short_of)| Step::Advance { kind, short_of }),
        4 => (run.clone(), id.clone(), 0..30_i64).prop_map(|(run, id, until)| Step::Remember { run, id, until }),
        1 => (run.clone(), id.clone()).prop_map(|(run, id)| Step::Drop { run, id }),
        2 => (0..35_i64, 0..4_usize).prop_map(|(now, rows_max)| Step::Forget { now, rows_max }),
        2 => Just(Step::Commit),
        1 => Just(Step::Clear),
        3 => (0..RUNS.len(), 0..IDS.len()).prop_map(|(run, id)| Step::Pause { run, id }),
    ];
    proptest::collection::vec(step, 1..60)
}

fn run_state() -> impl Strategy<Value = RunState> {
    let seal = proptest::option::of(0..30_i64).prop_map(|until| Seal { until: until.map(millis) });
    let sweep = (1..9_u64).prop_map(|below| {
        let reply = Reply { correlation_id: "c".to_owned(), encoding: Encoding::Json };
        Sweep { below: Generation(below), removed: 1, replies: vec![SweepReply { reply, sealed: true }] }
    });
    let (seal, sweep) = (proptest::option::of(seal), proptest::option::of(sweep));
    (seal, sweep).prop_map(|(seal, sweep)| RunState { seal, sweep })
}

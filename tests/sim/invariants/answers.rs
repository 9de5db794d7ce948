//! INV-ANSWER-1: answers agree with what happened: each command with a correlation id is answered once, in the transaction
//! that takes it, or when its sweep ends, with the outcome, version, due and number that are true.

use punctual::log::Destination;
use punctual::time::Timestamp;
use punctual::wire::answer::Received;

use crate::broker::transactions::Decision;
use crate::client::{Ask, Spec};
use crate::murmur::java_partition;
use crate::oracle::judge::Verdict;
use crate::oracle::settle::ExpectedAnswer;
use crate::oracle::{End, Oracle, Waiting};
use crate::sim::{Sim, Violation};

pub(crate) fn check(
    oracle: &mut Oracle,
    sim: &Sim,
    answers: &[Received],
    mut expected: Vec<ExpectedAnswer>,
) -> Result<(), Violation> {
    for answer in answers {
        oracle.counts.answers += 1;
        if answer.outcome == "run_disarmed" || answer.outcome == "run_sealed" {
            check_sweep(oracle, sim, answer)?;
            continue;
        }
        let found = expected.iter().position(|expected| is_equal(expected, answer));
        let Some(found) = found else {
            let of_same = expected.iter().find(|e| e.spec.correlation.as_ref() == Some(&answer.correlation_id));
            return Err(violation(format!("{answer:?}, expected was {of_same:?}")));
        };
        expected.remove(found);
    }
    match expected.first() {
        Some(missing) if sim.now() > oracle.answers_missing_until => {
            Err(violation(format!("not answered: {missing:?}")))
        }
        Some(_) | None => Ok(()),
    }
}

/// Checks that answers go where their run's records go.
pub(crate) fn check_routes(sim: &Sim, decision: &Decision) -> Result<(), Violation> {
    let count = sim.broker.borrow().partitions[&Destination::Results];
    for ((topic, partition), _, data) in &decision.records {
        let key = data.key.as_deref().unwrap_or_default();
        if *topic == Destination::Results && *partition != java_partition(key, count) {
            return Err(violation(format!("an answer went to partition {partition}: {data:?}")));
        }
    }
    Ok(())
}

fn check_sweep(oracle: &mut Oracle, sim: &Sim, answer: &Received) -> Result<(), Violation> {
    let routing = format!("{}/{}", answer.tenant, answer.run);
    let home = java_partition(routing.as_bytes(), sim.plan.partitions);
    let run = (answer.tenant.clone(), answer.run.clone());
    let may_be_missing = oracle.answers_missing_until >= 0;
    let model = oracle.homes.entry(home).or_default().runs.entry(run).or_default();
    let is_seal = answer.outcome == "run_sealed";
    let is_it =
        |waiting: &Waiting| waiting.correlation.as_ref() == Some(&answer.correlation_id) && waiting.is_seal == is_seal;
    let total: u64 = model.waiting.iter().map(|waiting| waiting.removed).sum();
    let count = answer.count.unwrap_or(u64::MAX);
    // The answer to an earlier copy of the command may have been left out while its topic refused it.
    let is_left_out = |waiting: &Waiting| may_be_missing && waiting.removed > count;
    let mut those = (0..model.waiting.len()).filter(|at| is_it(&model.waiting[*at]));
    let first = those.next();
    let Some(at) = first.filter(|at| !is_left_out(&model.waiting[*at])).or_else(|| those.next_back()).or(first) else {
        return Err(violation(format!("nobody waits for {answer:?}")));
    };
    let own = model.waiting[at].removed;
    // Commands that share a sweep are told the number of all that share it; which they are depends on its slices.
    let is_right = own <= count && count <= total;
    if !is_right {
        return Err(violation(format!("{answer:?}, but {own} were removed, or {total} with others")));
    }
    // Whoever shares the sweep is still to be told the whole number.
    model.waiting[at].correlation = None;
    if model.waiting.iter().all(|waiting| waiting.correlation.is_none()) {
        model.waiting.clear();
    }
    Ok(())
}

/// Returns the name of the outcome.
pub(crate) fn outcome(verdict: &Verdict, spec: &Spec) -> &'static str {
    match verdict {
        Verdict::Armed { replaced: false, .. } => "armed",
        Verdict::Armed { replaced: true, .. } => "replaced",
        Verdict::AlreadyArmed { .. } => "already_armed",
        Verdict::Disarmed { .. } => "disarmed",
        Verdict::NotFound { .. } => "not_found",
        Verdict::AlreadyEnded { end: Some((End::Fired, _)) } => "already_fired",
        Verdict::AlreadyEnded { end: Some((End::Expired, _)) } => "already_expired",
        Verdict::AlreadyEnded { end: Some((End::Disarmed | End::Swept | End::Replaced | End::Dated, _)) | None } => {
            "already_disarmed"
        }
        Verdict::TooLate { .. } => "too_late",
        Verdict::Changed { .. } => "changed",
        Verdict::Paused { .. } => "paused",
        Verdict::Resumed { .. } => "resumed",
        Verdict::NotPaused { .. } => "not_paused",
        Verdict::Swept { .. } if matches!(spec.ask, Ask::SealRun { .. }) => "run_sealed",
        Verdict::Swept { .. } => "run_disarmed",
        Verdict::Sealed => "sealed",
        Verdict::Skipped => "skipped",
        Verdict::Rejected { .. } => "rejected",
    }
}

fn is_equal(expected: &ExpectedAnswer, answer: &Received) -> bool {
    let ExpectedAnswer { spec, verdict, generation } = expected;
    let (mut due, mut reason) = (None, None);
    let generation = match verdict {
        Verdict::Armed { due: at, .. } => {
            due = Some(Timestamp::from_millis(*at));
            *generation
        }
        Verdict::Resumed { generation, due: at } => {
            due = Some(Timestamp::from_millis(*at));
            Some(*generation)
        }
        Verdict::AlreadyArmed { generation }
        | Verdict::Paused { generation }
        | Verdict::NotPaused { generation }
        | Verdict::Disarmed { generation }
        | Verdict::Changed { generation }
        | Verdict::TooLate { generation } => Some(*generation),
        Verdict::AlreadyEnded { end } => end.map(|(_, generation)| generation),
        Verdict::Rejected { reason: why } => {
            reason = Some((*why).to_owned());
            None
        }
        Verdict::NotFound { .. } | Verdict::Swept { .. } | Verdict::Sealed | Verdict::Skipped => None,
    };
    let timer_id = match &spec.ask {
        Ask::Arm(arm) => Some(arm.id.clone()),
        Ask::Disarm { id, .. } | Ask::Pause { id, .. } | Ask::Resume { id, .. } => Some(id.clone()),
        Ask::DisarmRun | Ask::SealRun { .. } | Ask::Garbage(_) => None,
    };
    let same = Received {
        correlation_id: spec.correlation.clone().unwrap_or_default(),
        tenant: spec.tenant.to_owned(),
        run: spec.run.clone(),
        timer_id,
        outcome: outcome(verdict, spec).to_owned(),
        generation,
        due,
        count: None,
        reason,
        detail: answer.detail.clone(),
    };
    same == *answer
}

fn violation(detail: String) -> Violation {
    Violation { id: "INV-ANSWER-1", detail }
}

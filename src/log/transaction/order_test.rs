//! Tests of the order: the calls that were made, and how the transaction ended.

use super::*;
use crate::log::transaction::script::{Script, transaction};
use crate::log::{Aborted, Committed, Destination};

/// Writes a transaction. Returns the calls, how it ended, and whether the client may write the next one.
fn written(script: &Script) -> (String, CommitOutcome, bool) {
    let ending = write(script, &String::new(), &transaction(), &());
    (script.take_calls(), ending.outcome, ending.is_sound)
}

fn aborted(detail: &str) -> CommitOutcome {
    CommitOutcome::Aborted(Aborted { detail: detail.to_owned(), ..Aborted::default() })
}

fn unknown(detail: &str) -> CommitOutcome {
    CommitOutcome::Unknown { detail: detail.to_owned() }
}

#[test]
fn records_are_delivered_before_the_positions_are_sent_and_both_before_the_commit() {
    let committed = CommitOutcome::Committed(Committed::default());
    let calls = "begin send send drain positions commit".to_owned();
    assert_eq!(written(&Script::default()), (calls, committed, true));
}

#[test]
fn what_fails_before_the_commit_is_aborted() {
    for (call, calls) in [
        ("send", "begin send abort"),
        ("drain", "begin send send drain abort"),
        ("positions", "begin send send drain positions abort"),
        ("commit", "begin send send drain positions commit abort"),
    ] {
        let script = Script::failing(call, Remedy::Abort);
        assert_eq!(written(&script), (calls.to_owned(), aborted(&format!("{call} failed")), true));
    }
}

#[test]
fn a_transaction_that_does_not_begin_is_none_and_its_client_is_not_used_again() {
    let script = Script::failing("begin", Remedy::Abort);
    let outcome = aborted("beginning a transaction: begin failed");
    assert_eq!(written(&script), ("begin".to_owned(), outcome, false));
}

#[test]
fn an_outcome_is_not_guessed() {
    let script = Script::failing("drain", Remedy::GiveUp);
    assert_eq!(written(&script), ("begin send send drain".to_owned(), unknown("drain failed"), false));
    let script = Script::failing("commit", Remedy::GiveUp);
    let calls = "begin send send drain positions commit".to_owned();
    assert_eq!(written(&script), (calls, unknown("committing: commit failed"), false));
    let script = Script::failing("drain", Remedy::Abort);
    script.failures.borrow_mut().push_back(("abort", CallFailure::abort("abort failed".to_owned())));
    let outcome = unknown("drain failed; and aborting failed: abort failed");
    assert_eq!(written(&script), ("begin send send drain abort".to_owned(), outcome, false));
}

#[test]
fn a_commit_that_decided_nothing_is_called_again_until_patience_ends() {
    let script = Script::failing("commit", Remedy::Again);
    let committed = CommitOutcome::Committed(Committed::default());
    let calls = "begin send send drain positions commit commit".to_owned();
    assert_eq!(written(&script), (calls, committed, true));
    let script = Script { commit_takes: COMMIT_PATIENCE, ..Script::failing("commit", Remedy::Again) };
    let again = CallFailure { remedy: Remedy::Again, ..CallFailure::abort("no".to_owned()) };
    script.failures.borrow_mut().push_back(("commit", again));
    let calls = "begin send send drain positions commit commit".to_owned();
    assert_eq!(written(&script), (calls, unknown("committing: no"), false));
}

#[test]
fn a_client_is_not_used_again_when_its_last_request_may_still_be_under_way() {
    let slow = Script { commit_takes: RESEND_AFTER, ..Script::default() };
    assert!(!written(&slow).2, "the request may have been sent again");
    let troubled = Script { is_troubled: true, ..Script::default() };
    assert!(!written(&troubled).2, "an answer may have been lost");
    let nothing = Script { finds_nothing: true, ..Script::failing("drain", Remedy::Abort) };
    assert!(!written(&nothing).2, "the client takes itself for open");
}

#[test]
fn the_cluster_is_asked_who_refused_when_the_failure_does_not_say() {
    let refused = BTreeMap::from([(Destination::Results, "gone".to_owned())]);
    let script = Script { told: refused.clone(), ..Script::default() };
    let failure = CallFailure { may_be_topic: true, ..CallFailure::abort("no".to_owned()) };
    script.failures.borrow_mut().push_back(("positions", failure));
    let outcome = CommitOutcome::Aborted(Aborted { refused: refused.clone(), detail: "no".to_owned() });
    assert_eq!(written(&script), ("begin send send drain positions abort ask".to_owned(), outcome, true));
    let script = Script { found: refused.clone(), ..Script::failing("drain", Remedy::Abort) };
    let outcome = CommitOutcome::Aborted(Aborted { refused, detail: "drain failed".to_owned() });
    assert_eq!(written(&script), ("begin send send drain abort".to_owned(), outcome, true));
}

#[test]
fn a_transaction_that_nothing_would_fence_is_refused() {
    assert_eq!(check(&transaction()), Ok(()));
    let mut without = transaction();
    without.positions.clear();
    assert!(check(&without).is_err(), "no position");
    let mut invalid = transaction();
    invalid.positions.values_mut().for_each(|position| position.0 = -1001);
    assert!(check(&invalid).is_err(), "dropped by the client without a word");
    let mut empty = transaction();
    empty.emissions.clear();
    assert!(check(&empty).is_err(), "no record");
}

//! Tests of the turns: which client writes, and what happens to one that did not end well.

use super::*;
use crate::log::Committed;
use crate::log::transaction::Remedy;
use crate::log::transaction::script::{Script, transaction};

fn commit(producers: &mut Producers<String>, script: &Script) -> (String, CommitOutcome) {
    let outcome = producers.commit(script, &transaction(), &());
    (script.take_calls(), outcome)
}

fn committed() -> CommitOutcome {
    CommitOutcome::Committed(Committed::default())
}

/// Returns producers that have written once, so that the destinations are known.
fn started(script: &Script) -> Producers<String> {
    let mut producers = Producers::new(script).unwrap();
    assert_eq!(script.take_calls(), "make0 init0 make1 init1 make2 init2");
    let calls = "ask begin0 send0 send0 drain0 positions0 commit0".to_owned();
    assert_eq!(commit(&mut producers, script), (calls, committed()));
    producers
}

#[test]
fn three_take_turns() {
    let script = Script::default();
    let mut producers = started(&script);
    for number in [1, 2, 0, 1] {
        let calls = format!("begin{number} send{number} send{number} drain{number} positions{number} commit{number}");
        assert_eq!(commit(&mut producers, &script), (calls, committed()));
    }
}

#[test]
fn a_client_that_is_not_sound_is_replaced_before_its_id_writes_again() {
    let mut script = Script::default();
    let mut producers = started(&script);
    script.is_troubled = true;
    let calls = "begin1 send1 send1 drain1 positions1 commit1 retire1 make1 init1".to_owned();
    assert_eq!(commit(&mut producers, &script), (calls, committed()));
}

#[test]
fn nothing_is_written_while_an_outcome_is_not_known() {
    let mut script = Script::default();
    let mut producers = started(&script);
    script.failures = Script::failing("commit", Remedy::GiveUp).failures;
    let (calls, outcome) = commit(&mut producers, &script);
    assert_eq!(calls, "begin1 send1 send1 drain1 positions1 commit1 retire1");
    assert!(matches!(outcome, CommitOutcome::Unknown { .. }), "{outcome:?}");
    let (calls, outcome) = commit(&mut producers, &script);
    assert!(calls.is_empty() && matches!(outcome, CommitOutcome::Aborted(_)), "{calls}: {outcome:?}");
    producers.rebuild(&script).unwrap();
    assert_eq!(script.take_calls(), "make1 init1");
    let calls = "begin2 send2 send2 drain2 positions2 commit2".to_owned();
    assert_eq!(commit(&mut producers, &script), (calls, committed()));
}

#[test]
fn an_id_that_somebody_has_taken_is_left_to_them_for_a_moment() {
    let mut script = Script { is_fenced: true, ..Script::default() };
    let mut producers = started(&script);
    script.failures = Script::failing("drain", Remedy::GiveUp).failures;
    commit(&mut producers, &script);
    assert!(matches!(producers.rebuild(&script), Err(LogError::Retriable { .. })), "too early");
    script.pause(FENCED_PAUSE);
    producers.rebuild(&script).unwrap();
}

#[test]
fn a_rebuild_of_sound_producers_makes_all_anew() {
    let script = Script::default();
    let mut producers = started(&script);
    producers.rebuild(&script).unwrap();
    assert_eq!(script.take_calls(), "retire0 retire1 retire2 make0 init0 make1 init1 make2 init2");
}

#[test]
fn a_take_over_is_waited_for_but_not_for_ever() {
    let script = Script::default();
    script.looks.set(30);
    Producers::new(&script).unwrap();
    assert!(READY_STEP <= script.now.get() && script.now.get() < READY_PATIENCE, "{:?}", script.now);
    script.looks.set(u32::MAX);
    assert!(matches!(Producers::new(&script), Err(LogError::Retriable { .. })), "given up");
}

#[test]
fn a_destination_that_refuses_is_named_before_anything_is_written() {
    let refused = BTreeMap::from([(Destination::Results, "gone".to_owned())]);
    let script = Script { told: refused.clone(), ..Script::default() };
    let mut producers = Producers::new(&script).unwrap();
    script.take_calls();
    let outcome = aborted(refused, "a destination takes no records");
    assert_eq!(commit(&mut producers, &script), ("ask".to_owned(), outcome.clone()));
    assert_eq!(commit(&mut producers, &script), ("ask".to_owned(), outcome), "asked until it takes records");
}

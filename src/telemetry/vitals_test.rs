//! The judgements live, ready and started (N9, O4, R14, R28).

use super::*;

const P0: Partition = Partition(0);
const P1: Partition = Partition(1);

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// N9: a loop that has stopped is not live.
#[test]
fn a_worker_that_makes_no_pass_is_not_live() {
    let mut vitals = Vitals::new(at(100));
    assert_eq!(vitals.ailment(at(130)), None);
    assert_eq!(vitals.ailment(at(131)).as_deref(), Some("has done no pass for 31 s"));
    vitals.seen(at(131));
    assert_eq!(vitals.ailment(at(131)), None);
    vitals.ended();
    assert_eq!(vitals.ailment(at(131)).as_deref(), Some("has ended"));
}

/// O4: a broker that is down keeps a call waiting within its bound: live.
#[test]
fn a_named_call_is_judged_by_its_own_bound() {
    let mut vitals = Vitals::new(at(0));
    vitals.entered(at(10), "commit", at(600));
    assert_eq!(vitals.ailment(at(610)), None);
    assert_eq!(vitals.ailment(at(615)).as_deref(), Some("`commit` should have been back 5 s ago"));
    vitals.seen(at(615));
    assert_eq!(vitals.ailment(at(615)), None);
}

#[test]
fn a_worker_without_partitions_is_ready_once_it_has_joined() {
    let mut vitals = Vitals::new(at(0));
    assert_eq!(vitals.unreadiness().as_deref(), Some("has not joined the group yet"));
    assert_eq!(vitals.start_up().as_deref(), Some("has not joined the group yet"));
    vitals.joined();
    assert_eq!(vitals.unreadiness(), None);
    assert_eq!(vitals.start_up(), None);
}

/// R14, O4: restoring is visible, and neither ready nor started.
#[test]
fn start_ends_with_the_restore_and_readiness_with_catching_up() {
    let mut vitals = Vitals::new(at(0));
    vitals.task(P0, TaskState::Restoring);
    vitals.task(P1, TaskState::Restoring);
    vitals.joined();
    vitals.restore(P1, 450, 1000);
    let progress = "restoring: partition 0 1 (450 of 1000 offsets)";
    assert_eq!(vitals.start_up().as_deref(), Some(progress));
    assert_eq!(vitals.unreadiness().as_deref(), Some(progress));
    vitals.task(P0, TaskState::Running);
    vitals.task(P1, TaskState::CatchingUp);
    assert_eq!(vitals.start_up(), None);
    assert_eq!(vitals.unreadiness().as_deref(), Some("catching_up: partition 1"));
    vitals.task(P1, TaskState::Running);
    assert_eq!(vitals.unreadiness(), None);
}

#[test]
fn readiness_latches() {
    let mut vitals = Vitals::new(at(0));
    vitals.task(P0, TaskState::Running);
    vitals.joined();
    vitals.task(P1, TaskState::Restoring);
    assert_eq!(vitals.unreadiness(), None, "a rebalance does not make a ready worker unready");
    assert_eq!(vitals.start_up(), None);
}

/// R28: a full disk makes not ready, and live.
#[test]
fn a_closed_task_makes_not_ready_until_it_is_open_again() {
    let mut vitals = Vitals::new(at(0));
    vitals.task(P0, TaskState::Running);
    vitals.joined();
    vitals.task(P0, TaskState::Closed);
    assert_eq!(vitals.unreadiness().as_deref(), Some("closed, the store is full or failing: partition 0"));
    assert_eq!(vitals.ailment(at(1)), None);
    vitals.task(P0, TaskState::Restoring);
    assert_eq!(vitals.unreadiness(), None);
    vitals.task(P0, TaskState::Closed);
    vitals.task_gone(P0);
    assert_eq!(vitals.unreadiness(), None);
}

#[test]
fn many_partitions_are_named_in_part() {
    let mut vitals = Vitals::new(at(0));
    for partition in 0..10 {
        vitals.task(Partition(partition), TaskState::Restoring);
    }
    vitals.joined();
    assert_eq!(vitals.start_up().as_deref(), Some("restoring: partition 0 1 2 3 4 5 6 7 and 2 more"));
}

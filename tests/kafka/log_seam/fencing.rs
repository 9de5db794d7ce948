//! Who may commit.

use std::time::Duration;

use punctual::log::{CommitOutcome, FencingPosition, Log, LogError, LogEvent};
use punctual::position::{Partition, Position};

use super::rig::{BOUND, Member, Rig, state, timed, values};
use crate::harness::broker::Broker;
use crate::harness::wait;

#[test]
fn a_member_that_was_left_behind_cannot_commit() {
    // D5, D11, D17: the zombie does not poll, so that it knows of nothing; only the broker can fence it.
    let rig = Rig::new(Broker::shared(), "zombie", 1);
    let mut settings = rig.settings("zombie");
    settings.session_timeout = Duration::from_secs(3);
    settings.properties.insert("max.poll.interval.ms".to_owned(), "3000".to_owned());
    let mut zombie = Member::connect(&settings);
    zombie.hold(1);
    zombie.commit_surely(&[state("before")]);

    let mut owner = rig.member("owner", 1);
    owner.commit_surely(&[state("owner")]);
    let outcome = zombie.commit(vec![state("zombie")]);
    println!("the zombie's commit: {outcome:?}");
    assert!(matches!(outcome, CommitOutcome::Aborted(_) | CommitOutcome::Unknown { .. }), "{outcome:?}");

    // It learns what happened, and still cannot.
    let lost = wait::until(BOUND, "the zombie learns that it lost", || {
        let mut lost = None;
        for event in zombie.log.poll(Duration::from_millis(50), 10, 10_000).unwrap() {
            match event {
                LogEvent::Lost(partitions) => lost = Some(partitions),
                // An answer to the rebalance that it slept through.
                LogEvent::Assigned(partitions) => zombie.log.accept(&partitions).unwrap(),
                event @ (LogEvent::Revoked(_)
                | LogEvent::Record(_)
                | LogEvent::Changelog(_)
                | LogEvent::OutOfRange(_)) => panic!("{event:?}"),
            }
            let outcome = zombie.commit(vec![state("zombie")]);
            assert!(matches!(outcome, CommitOutcome::Aborted(_)), "{outcome:?}");
        }
        lost
    });
    assert_eq!(lost, [Partition(0)]);
    let outcome = zombie.commit(vec![state("zombie")]);
    assert!(matches!(outcome, CommitOutcome::Aborted(_)), "{outcome:?}");
    zombie.log.release(&lost).unwrap();
    let outcome = zombie.commit(vec![state("zombie")]);
    assert!(matches!(outcome, CommitOutcome::Aborted(_)), "{outcome:?}");

    owner.commit_surely(&[state("owner again")]);
    let seen = rig.reader(&rig.topics.changelog).wait_for(3, BOUND, "what was committed");
    assert_eq!(values(&seen), ["before", "owner", "owner again"]);
}

#[test]
fn a_second_process_with_the_same_instance_ends_the_first_by_name() {
    // R20
    let rig = Rig::new(Broker::shared(), "clash", 1);
    let mut settings = rig.settings("same");
    settings.static_membership = true;
    let mut first = Member::connect(&settings);
    first.hold(1);
    let mut second = Member::connect(&settings);
    let ended = wait::until(BOUND, "the first is fenced", || {
        second.poll().unwrap();
        first.poll().err()
    });
    let LogError::Fatal { doing, detail } = ended else { panic!("{ended:?}") };
    assert!(doing.contains("`same`") && detail.contains("instance"), "{doing}: {detail}");
    let outcome = first.commit(vec![state("first")]);
    assert!(!matches!(outcome, CommitOutcome::Committed(_)), "{outcome:?}");
    second.hold(1);
    second.commit_surely(&[state("second")]);
    let seen = rig.reader(&rig.topics.changelog).wait_for(1, BOUND, "what was committed");
    assert_eq!(values(&seen), ["second"]);
}

#[test]
fn partitions_move_to_a_second_member_and_both_commit() {
    let rig = Rig::new(Broker::shared(), "share", 4);
    let mut first = rig.member("first", 4);
    first.commit_surely(&[state("first alone")]);
    let mut second = Member::connect(&rig.settings("second"));
    wait::until_true(BOUND, "the partitions are shared", || {
        first.poll().unwrap();
        second.poll().unwrap();
        // A member that keeps partitions goes on during the rebalance.
        assert!(!matches!(first.commit(vec![state("during")]), CommitOutcome::Unknown { .. }), "never unknown");
        first.held.len() == 2 && second.held.len() == 2
    });
    first.commit_surely(&[state("first")]);
    second.commit_surely(&[state("second")]);
    let ((), took) = timed(|| drop(second));
    println!("leaving took {took:?}");
    first.hold(4);
    first.commit_surely(&[state("first again")]);
}

#[test]
fn a_restarted_static_member_has_its_partitions_again() {
    let rig = Rig::new(Broker::shared(), "static", 2);
    let mut settings = rig.settings("stays");
    settings.static_membership = true;
    let mut member = Member::connect(&settings);
    member.hold(2);
    member.commit_surely(&[state("before")]);
    drop(member);
    let mut member = Member::connect(&settings);
    member.hold(2);
    member.commit_surely(&[state("after")]);
}

#[test]
fn the_position_of_an_added_partition_is_that_of_the_last_transaction() {
    // R26: no changelog holds it, so that an old answer would forward commands again.
    let rig = Rig::new(Broker::shared(), "added", 1);
    rig.add_partitions(&rig.topics.arm, 2);
    let mut member = rig.member("a", 2);
    let added = Partition(1);
    for number in 1..=100 {
        member.held.insert(added, Position(number));
        member.commit_surely(&[state("forwarded")]);
        let found = wait::until(BOUND, "the transaction is settled", || match member.log.fencing_position(added) {
            Ok(found) => Some(found),
            Err(LogError::Retriable { .. }) => None,
            Err(error @ LogError::Fatal { .. }) => panic!("{error}"),
        });
        assert_eq!(found, FencingPosition { position: Position(number), committed: true });
    }
}

#[test]
fn topics_that_were_created_anew_have_other_ids() {
    let rig = Rig::new(Broker::shared(), "ids", 1);
    let mut member = rig.member("a", 1);
    let before = member.log.topic_ids().unwrap();
    assert_eq!(member.log.topic_ids().unwrap(), before, "the same as long as they are the same");
    assert!(before.arm != before.changelog && before.arm != [0; 16], "{before:?}");
    rig.delete(&rig.topics.changelog);
    wait::until_true(BOUND, "the topic is gone", || member.log.topic_ids().is_err());
    rig.create(&rig.topics.changelog);
    let after = wait::until(BOUND, "the topic is back", || member.log.topic_ids().ok());
    assert_eq!(after.arm, before.arm);
    assert_ne!(after.changelog, before.changelog);
}

#[test]
fn a_changelog_with_another_partition_count_is_refused_by_name() {
    // R8, R26
    let rig = Rig::new(Broker::shared(), "count", 2);
    let mut settings = rig.settings("a");
    settings.partitions = 3;
    let error = punctual::log::kafka::KafkaLog::connect(&settings).err().unwrap();
    let LogError::Fatal { detail, .. } = error else { panic!("{error:?}") };
    assert!(detail.contains(&rig.topics.changelog) && detail.contains("2 partitions instead of 3"), "{detail}");
}

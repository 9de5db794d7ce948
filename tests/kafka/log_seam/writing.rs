//! What a transaction writes, and what a failed one leaves.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use punctual::log::places::Places;
use punctual::log::{CommitOutcome, Destination, Log};
use punctual::position::{Offset, Partition, Position};
use punctual::timer::kind::KindNumber;

use super::rig::{BOUND, Member, Rig, emission, fired, state, timed, values};
use crate::harness::broker::Broker;
use crate::harness::wait;

#[test]
fn committed_records_are_seen_and_move_the_position_of_the_group() {
    let rig = Rig::new(Broker::shared(), "commit", 2);
    let mut member = rig.member("a", 2);
    let before = member.log.fencing_position(Partition(1)).unwrap();
    assert_eq!((before.position, before.committed), (Position(0), false));
    member.held = BTreeMap::from([(Partition(0), Position(0)), (Partition(1), Position(7))]);
    let emissions = vec![state("state"), fired(1, "event"), emission(Destination::Results, "result")];
    let committed = member.commit_surely(&emissions);
    let mut first = Places::default();
    first.insert(Offset(0));
    assert_eq!(committed.changelog, BTreeMap::from([(Partition(0), first)]));
    assert!(committed.appended.is_some(), "the changelog has the broker's time");

    let seen = rig.reader(rig.fired_topic(1)).wait_for(1, BOUND, "the event");
    assert_eq!(values(&seen), ["event"]);
    assert_eq!(seen[0].headers, [("name".to_owned(), Some(Vec::new())), ("name".to_owned(), None)]);
    // A marker may still be under way when the commit is answered.
    wait::until_true(BOUND, "the group's position moves", || {
        let after = member.log.fencing_position(Partition(1)).unwrap();
        (after.position, after.committed) == (Position(7), true)
    });
}

#[test]
fn three_producers_take_turns_and_a_lone_record_commits_in_milliseconds() {
    let rig = Rig::new(Broker::shared(), "rotation", 1);
    let mut member = rig.member("a", 1);
    let mut took = Vec::new();
    for number in 0..30 {
        member.poll().unwrap();
        let (outcome, time) = timed(|| member.commit(vec![state(&format!("key-{number}"))]));
        took.push(time);
        let CommitOutcome::Committed(committed) = outcome else { panic!("{number}: {outcome:?}") };
        assert_eq!(committed.changelog.keys().collect::<Vec<_>>(), [&Partition(0)]);
    }
    took.drain(..3);
    took.sort_unstable();
    println!(
        "commit of a lone record: fastest {:?}, median {:?}, slowest {:?}",
        took[0],
        took[took.len() / 2],
        took[26]
    );
    assert!(took[took.len() / 2] < Duration::from_millis(250), "median {:?}", took[took.len() / 2]);
    let seen = rig.reader(&rig.topics.changelog).wait_for(30, BOUND, "all states");
    assert_eq!(seen.len(), 30);
}

#[test]
fn producers_that_follow_each_other_at_once_do_not_wait_for_markers() {
    let rig = Rig::new(Broker::shared(), "at-once", 1);
    let mut member = rig.member("a", 1);
    member.commit_surely(&[state("first")]);
    let ((), took) = timed(|| {
        for number in 0..60 {
            member.commit_surely(&[state(&format!("key-{number}"))]);
        }
    });
    println!("60 transactions at once: {:?} each", took / 60);
    assert!(took < Duration::from_secs(20), "{took:?}");
}

#[test]
fn a_record_that_is_too_large_is_refused_and_nothing_of_its_transaction_is_seen() {
    let rig = Rig::new(Broker::shared(), "too-large", 1);
    let mut member = rig.member("a", 1);
    let mut large = fired(2, "large");
    // Larger than the topic takes, smaller than the client's own limit.
    large.value = Some(Bytes::from(vec![b'x'; 3_000_000]));
    let outcome = member.commit(vec![state("lost"), fired(1, "lost"), large]);
    let CommitOutcome::Aborted(aborted) = outcome else { panic!("{outcome:?}") };
    assert_eq!(aborted.refused.keys().collect::<Vec<_>>(), [&Destination::Fired(KindNumber::new(2).unwrap())]);
    let mut larger = fired(2, "larger");
    larger.value = Some(Bytes::from(vec![b'x'; 20_000_000]));
    let outcome = member.commit(vec![state("lost"), larger]);
    let CommitOutcome::Aborted(aborted) = outcome else { panic!("{outcome:?}") };
    assert_eq!(aborted.refused.keys().collect::<Vec<_>>(), [&Destination::Fired(KindNumber::new(2).unwrap())]);

    member.commit_surely(&[state("kept"), fired(1, "kept")]);
    for topic in [&rig.topics.changelog, rig.fired_topic(1)] {
        let seen = rig.reader(topic).wait_for(1, BOUND, "what was committed");
        assert_eq!(values(&seen), ["kept"]);
    }
}

#[test]
fn a_deleted_topic_refuses_soon_and_the_rest_commits_without_it() {
    let rig = Rig::new(Broker::shared(), "deleted", 1);
    let mut member = rig.member("a", 1);
    let kind = KindNumber::new(2).unwrap();
    for number in 0..4 {
        member.commit_surely(&[state(&format!("{number}")), fired(2, "early")]);
    }
    rig.delete(rig.fired_topic(2));
    for emissions in [vec![state("lost"), fired(1, "lost"), fired(2, "lost")], vec![fired(2, "lost")]] {
        member.poll().unwrap();
        let (outcome, took) = timed(|| member.commit(emissions));
        let CommitOutcome::Aborted(aborted) = outcome else { panic!("{outcome:?}") };
        println!("refused after {took:?}: {aborted:?}");
        assert_eq!(aborted.refused.keys().collect::<Vec<_>>(), [&Destination::Fired(kind)], "{}", aborted.detail);
        assert!(took < Duration::from_secs(4), "{took:?}");
    }
    member.commit_surely(&[state("kept"), fired(1, "kept")]);
    rig.create(rig.fired_topic(2));
    member.commit_surely(&[fired(2, "again")]);
    let seen = rig.reader(rig.fired_topic(1));
    assert_eq!(values(&seen.wait_for(1, BOUND, "what was committed")), ["kept"]);
    let seen = rig.reader(rig.fired_topic(2));
    assert_eq!(values(&seen.wait_for(1, BOUND, "what was committed to the new topic")), ["again"]);
}

#[test]
fn a_destination_without_topic_is_refused_and_new_producers_write_on() {
    let rig = Rig::new(Broker::shared(), "no-topic", 1);
    let mut settings = rig.settings("a");
    settings.topics.results = None;
    let mut member = Member::connect(&settings);
    member.hold(1);
    let outcome = member.commit(vec![state("lost"), emission(Destination::Results, "lost")]);
    let CommitOutcome::Aborted(aborted) = outcome else { panic!("{outcome:?}") };
    assert_eq!(aborted.refused.keys().collect::<Vec<_>>(), [&Destination::Results]);
    member.log.rebuild().unwrap();
    member.commit_surely(&[state("kept")]);
    let seen = rig.reader(&rig.topics.changelog).wait_for(1, BOUND, "the state");
    assert_eq!(values(&seen), ["kept"]);
}

#[test]
fn a_topic_without_rights_refuses_at_once_and_the_rest_commits_without_it() {
    // L6
    let mut broker = Broker::start("seam-rights");
    broker.reconfigure(
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\n\
         allow.everyone.if.no.acl.found=true\n",
    );
    let rig = Rig::new(&broker, "rights", 1);
    let mut member = rig.member("a", 1);
    member.commit_surely(&[state("before"), fired(2, "before")]);
    rig.allow_reading_only(rig.fired_topic(2));
    for emissions in [vec![state("lost"), fired(1, "lost"), fired(2, "lost")], vec![fired(2, "lost")]] {
        member.poll().unwrap();
        let (outcome, took) = timed(|| member.commit(emissions));
        let CommitOutcome::Aborted(aborted) = outcome else { panic!("{outcome:?}") };
        let reason = &aborted.refused[&Destination::Fired(KindNumber::new(2).unwrap())];
        assert!(aborted.refused.len() == 1 && reason.contains("no right to write"), "{aborted:?}");
        assert!(took < Duration::from_secs(4), "{took:?}");
    }
    member.commit_surely(&[fired(1, "kept")]);
    assert_eq!(values(&rig.reader(rig.fired_topic(1)).wait_for(1, BOUND, "what was committed")), ["kept"]);
}

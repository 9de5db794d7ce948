//! What holds while the broker is away.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use punctual::log::{CommitOutcome, Log};
use punctual::time::Clock;
use punctual::time::system::SystemClock;

use super::rig::{BOUND, Member, Rig, state, timed, values};
use crate::harness::broker::Broker;
use crate::harness::wait;

/// As many as a worker has.
const PRODUCERS: usize = 3;

#[test]
fn outcomes_are_the_truth_while_the_broker_is_killed_and_restarted() {
    // R15, R16
    let mut broker = Broker::start("seam-restarts");
    let rig = Rig::new(&broker, "restarts", 1);
    let mut member = rig.member("a", 1);
    let restarts = thread::spawn(move || {
        for _ in 0..2 {
            let until = SystemClock.boot() + Duration::from_secs(2);
            wait::until_true(BOUND, "some transactions are written", || SystemClock.boot() > until);
            broker.kill();
            broker.start_again();
        }
        broker
    });
    let mut outcomes = BTreeMap::new();
    let mut number = 0;
    while !restarts.is_finished() || number < 20 {
        // An error of a member is fatal; that of a broker is waited out inside.
        member.poll().unwrap();
        if member.held.is_empty() {
            continue;
        }
        let name = format!("{number:06}");
        number += 1;
        let outcome = member.commit(vec![state(&name)]);
        if let CommitOutcome::Unknown { detail } = &outcome {
            println!("unknown: {detail}");
            wait::until_true(BOUND, "new producers are ready", || member.log.rebuild().is_ok());
        }
        outcomes.insert(name, outcome);
    }
    let _broker = restarts.join().unwrap();
    member.hold(1);
    let recovery = timed(|| member.commit_surely(&[state("last")])).1;
    // A broker that is alone loses the markers of what it has decided when it dies (docs/operations.md). What stands behind is
    // read when the producer of that transaction commits here again, so each does.
    for _ in 1..PRODUCERS {
        member.commit_surely(&[state("last")]);
    }
    let changelog = rig.reader(&rig.topics.changelog);
    wait::until_true(BOUND, "the last is read", || values(&changelog.records()).contains(&"last"));
    let records = changelog.records();
    let mut tally = [0; 3];
    for (name, outcome) in &outcomes {
        let seen = records.iter().filter(|record| record.text() == name).count();
        match outcome {
            CommitOutcome::Committed(_) => assert_eq!(seen, 1, "{name} was committed"),
            CommitOutcome::Aborted(aborted) => assert_eq!(seen, 0, "{name} was aborted: {aborted:?}"),
            CommitOutcome::Unknown { .. } => assert!(seen <= 1, "{name} is not known: {seen}"),
        }
        tally[match outcome {
            CommitOutcome::Committed(_) => 0,
            CommitOutcome::Aborted(_) => 1,
            CommitOutcome::Unknown { .. } => 2,
        }] += 1;
    }
    println!("committed, aborted, unknown: {tally:?}; the last took {recovery:?}");
}

#[test]
fn a_broker_that_pauses_in_a_commit_costs_time_only() {
    // R15
    let broker = Broker::start("seam-pause");
    let rig = Rig::new(&broker, "pause", 1);
    let mut member = rig.member("a", 1);
    member.commit_surely(&[state("before")]);
    broker.freeze();
    let thaw = thread::spawn(move || {
        let until = SystemClock.boot() + Duration::from_secs(7);
        wait::until_true(BOUND, "the pause is over", || SystemClock.boot() > until);
        broker.thaw();
        broker
    });
    let outcome = member.commit(vec![state("within")]);
    println!("a commit in a pause of 7 s: {outcome:?}");
    let _broker = thaw.join().unwrap();
    if matches!(outcome, CommitOutcome::Unknown { .. }) {
        wait::until_true(BOUND, "new producers are ready", || member.log.rebuild().is_ok());
    }
    let committed = matches!(outcome, CommitOutcome::Committed(_));
    member.hold(1);
    member.commit_surely(&[state("after")]);
    let changelog = rig.reader(&rig.topics.changelog);
    let seen = changelog.wait_for(2, BOUND, "what was committed");
    let within = values(&seen).iter().filter(|value| **value == "within").count();
    match outcome {
        CommitOutcome::Unknown { .. } => assert!(within <= 1, "at most once"),
        CommitOutcome::Committed(_) | CommitOutcome::Aborted(_) => assert_eq!(within, usize::from(committed)),
    }
}

#[test]
fn a_static_member_outlives_an_outage_that_is_longer_than_its_session() {
    // R19: coming back, it may be fenced by its own delayed requests.
    let mut broker = Broker::start("seam-session");
    let rig = Rig::new(&broker, "session", 2);
    let mut settings = rig.settings("stays");
    settings.static_membership = true;
    let mut member = Member::connect(&settings);
    member.hold(2);
    for round in 0..3 {
        member.commit_surely(&[state(&format!("before {round}"))]);
        if round % 2 == 0 {
            broker.freeze();
        } else {
            broker.kill();
        }
        // A worker is stuck in a commit when the brokers go, and polls when it is out.
        let outcome = member.commit(vec![state("within")]);
        println!("in an outage: {outcome:?}");
        let until = SystemClock.boot() + Duration::from_secs(4);
        wait::until_true(BOUND, "the session is over", || {
            member.poll().unwrap();
            SystemClock.boot() > until
        });
        if round % 2 == 0 {
            broker.thaw();
        } else {
            broker.start_again();
        }
        let ((), took) = timed(|| {
            if matches!(outcome, CommitOutcome::Unknown { .. }) {
                wait::until_true(BOUND, "new producers are ready", || {
                    member.poll().unwrap();
                    member.log.rebuild().is_ok()
                });
            }
            member.hold(2);
            member.commit_surely(&[state(&format!("after {round}"))]);
        });
        println!("back after {took:?}");
    }
}

#[test]
fn a_producer_that_the_broker_has_forgotten_writes_again() {
    // R17
    let mut broker = Broker::start("seam-expired");
    broker.reconfigure(
        "transactional.id.expiration.ms=4000\n\
         transaction.remove.expired.transaction.cleanup.interval.ms=500\n\
         producer.id.expiration.ms=3000\n\
         producer.id.expiration.check.interval.ms=500\n",
    );
    let rig = Rig::new(&broker, "expired", 1);
    let mut member = rig.member("a", 1);
    for number in 0..4 {
        member.commit_surely(&[state(&format!("before {number}"))]);
    }
    let until = SystemClock.boot() + Duration::from_secs(9);
    wait::until_true(BOUND, "the broker forgets", || {
        member.poll().unwrap();
        SystemClock.boot() > until
    });
    for number in 0..4 {
        wait::until_true(BOUND, "it writes again", || {
            let outcome = member.commit(vec![state(&format!("after {number}"))]);
            println!("a forgotten producer: {outcome:?}");
            member.poll().unwrap();
            if matches!(outcome, CommitOutcome::Unknown { .. }) {
                member.log.rebuild().unwrap();
            }
            matches!(outcome, CommitOutcome::Committed(_))
        });
    }
    let seen = rig.reader(&rig.topics.changelog).wait_for(8, BOUND, "all states");
    assert_eq!(seen.len(), 8, "{:?}", values(&seen));
}

#[test]
fn closing_without_a_broker_has_an_end() {
    // O3
    let broker = Broker::start("seam-close");
    let rig = Rig::new(&broker, "close", 1);
    let mut member = rig.member("a", 1);
    member.commit_surely(&[state("before")]);
    broker.freeze();
    let ((), took) = timed(|| drop(member));
    println!("closing without a broker: {took:?}");
    broker.thaw();
    assert!(took < Duration::from_secs(8), "{took:?}");
}

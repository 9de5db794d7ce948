//! The loop at its edges: disarms that race with a fire, more work than a pass may do, records of other releases.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;

use super::fake_log::{Broker, End, Hands};
use super::settings::Settings;
use super::tests::{Bench, P, settings};
use crate::log::{ChangelogRecord, Destination, LogEvent};
use crate::position::{Offset, Partition};
use crate::time::{Clock, Timestamp};
use crate::timer::budget::Budget;
use crate::timer::identity::{Run, RunKey, Tenant, TimerId, TimerKey};
use crate::timer::kind::{Kind, KindNumber, Registry};
use crate::timer::model::{Generation, Timer};
use crate::wire::forward::{self, Origin};
use crate::wire::key::StateKey;
use crate::wire::state::{Meta, encode_timer};

/// Returns the outcome that the command with this correlation id was told.
fn told(bench: &Bench, correlation_id: &str) -> Vec<String> {
    let broker = bench.broker.borrow();
    let answers = broker.sent_to(Destination::Results).into_iter().map(|emission| {
        let answer = crate::wire::answer::decode(emission.value.as_ref().unwrap(), &emission.headers).unwrap();
        (answer.correlation_id, answer.outcome)
    });
    answers.filter(|(id, _)| id == correlation_id).map(|(_, outcome)| outcome).collect()
}

// N5: the disarm is read in the very pass in which the timer is due, or comes while the fire is being tried again.
#[test]
fn a_disarm_that_races_with_the_fire_wins_or_is_told_that_it_is_too_late() {
    for is_fire_aborted in [false, true] {
        let mut bench = Bench::new();
        bench.own();
        bench.arm("a", "email", "PT1S");
        bench.ticks(20);
        bench.clock.advance(Duration::from_secs(1));
        if is_fire_aborted {
            bench.broker.borrow_mut().ends.push_back(End::Abort);
            bench.ticks(1);
            assert!(bench.broker.borrow().ends.is_empty(), "the fire was tried, and aborted");
        }
        bench.send(r#"{"run":"r","correlation_id":"d","disarm":{"timer_id":"a"}}"#);
        bench.ticks(300);
        let (fired, outcome) = if is_fire_aborted { (vec!["a"], "not_found") } else { (vec![], "disarmed") };
        assert_eq!(
            (bench.fired(), told(&bench, "d")),
            (fired.iter().map(|id| (*id).to_owned()).collect(), vec![outcome.to_owned()])
        );
    }
}

// N14: more comes in each pass than a pass takes.
#[test]
fn the_gate_opens_though_commands_keep_coming_faster_than_they_are_applied() {
    let mut bench = Bench::new();
    bench.own();
    bench.arm("a", "email", "PT1S");
    bench.ticks(20);
    bench.events.borrow_mut().push_back(LogEvent::Revoked(vec![P]));
    bench.ticks(1);
    bench.clock.advance(Duration::from_secs(10));
    let flood = |bench: &mut Bench, commands: usize| {
        (0..commands).for_each(|_| bench.send(r#"{"run":"other","disarm":{"timer_id":"none"}}"#));
    };
    flood(&mut bench, 3_000);
    bench.events.borrow_mut().push_back(LogEvent::Assigned(vec![P]));
    for _ in 0..20 {
        flood(&mut bench, 2_500);
        bench.ticks(1);
    }
    let (sent, read) = (bench.broker.borrow().commands[&P].len(), bench.broker.borrow().reads);
    assert!(read < sent, "the flood is ahead of the worker: {read} of {sent} are read");
    assert_eq!(bench.fired(), ["a"]);
}

// L3: ten times as many timers are due as a pass fires, and arms keep coming.
#[test]
fn saturation_shows_and_starves_neither_arming_nor_firing() {
    let budget = Budget { fired_max: 10, fired_per_kind_max: 10, ..Budget::default() };
    let mut bench = Bench::with(Settings { budget, ..settings() }, &Rc::default(), &Hands::default());
    bench.own();
    (0..300).for_each(|number| bench.arm(&format!("old-{number}"), "email", "PT1S"));
    bench.ticks(20);
    assert_eq!(bench.heard.borrow().saturated, 0, "nothing is due");
    bench.clock.advance(Duration::from_secs(1));
    let mut answered = Vec::new();
    for number in 0..30 {
        (0..20).for_each(|n| bench.arm(&format!("new-{number}-{n}"), "sms", "PT1H"));
        bench.ticks(1);
        answered.push(bench.broker.borrow().sent_to(Destination::Results).len());
    }
    assert!(bench.heard.borrow().saturated >= 28, "{} passes left work", bench.heard.borrow().saturated);
    assert_eq!(bench.fired().len(), 300, "ten in each pass");
    let expected: Vec<usize> = (1..=30).map(|pass| 300 + 20 * pass).collect();
    assert_eq!(answered, expected, "arms are answered in the pass that reads them");
}

// L9: what was due long before it was armed is late from its arming only.
#[test]
fn lateness_counts_from_the_arming_of_what_was_due_before() {
    let mut bench = Bench::new();
    bench.own();
    bench.clock.advance(Duration::from_hours(2));
    let an_hour_ago = bench.clock.wall().as_millis() - 3_600_000;
    let due = Timestamp::from_millis(an_hour_ago);
    bench.send(&format!(r#"{{"run":"r","arm":{{"timer_id":"a","kind":"email","at":"{due}","payload":"a"}}}}"#));
    bench.clock.advance(Duration::from_millis(70));
    bench.ticks(5);
    assert_eq!(bench.fired(), ["a"]);
    assert_eq!(bench.heard.borrow().lateness, [Duration::from_millis(70)]);
}

/// Returns the settings of a release that knows one kind more.
fn newer() -> Settings {
    let mut settings = settings();
    let fax = Kind::new(KindNumber::new(9).unwrap(), "fax");
    settings.rules.registry = Registry::new(settings.rules.registry.iter().cloned().chain([fax])).unwrap();
    settings
}

/// Returns a timer's record that needs a reader version of a later release: its first field says so.
fn record_of_a_later_release(broker: &Broker) -> ChangelogRecord {
    let run = RunKey { tenant: Tenant::parse("").unwrap(), run: Run::parse("r").unwrap() };
    let key = TimerKey { run, id: TimerId::parse("later").unwrap() };
    let timer = Timer {
        key: key.clone(),
        kind: KindNumber::new(1).unwrap(),
        due: Timestamp::from_millis(1_796_083_200_000),
        wake: Timestamp::from_millis(1_796_083_200_000),
        generation: Generation(1_000),
        attempt: 0,
        armed: Timestamp::from_millis(1_796_083_200_000),
        payload: None,
        record_key: None,
        headers: Vec::new(),
        outbox: Vec::new(),
        claim: None,
        recurring: None,
        resolved_with: None,
        paused: None,
    };
    let mut value = encode_timer(&timer).to_vec();
    assert_eq!(value[..2], [0x08, 1], "the reader version comes first");
    value[1] = 9;
    let offset = Offset(i64::try_from(broker.changelog[&P].len()).unwrap());
    ChangelogRecord { offset, key: StateKey::Timer(key).encode(), value: Some(Bytes::from(value)) }
}

// T7: upgrade, downgrade, upgrade: what a release does not know waits for one that does, and holds up nobody.
#[test]
fn an_older_release_keeps_kinds_and_records_that_it_does_not_know() {
    let mut new = Bench::with(newer(), &Rc::default(), &Hands::default());
    new.own();
    new.arm("paper", "fax", "PT2S");
    new.arm("mail", "email", "PT3S");
    new.ticks(20);
    let record = record_of_a_later_release(&new.broker.borrow());
    new.broker.borrow_mut().changelog.get_mut(&P).unwrap().push(record.clone());

    let mut old = Bench::with(settings(), &new.broker, &new.clock);
    old.own();
    old.arm("more", "email", "PT0.1S");
    old.arm("named", "fax", "PT1S");
    old.ticks(500);
    assert_eq!(old.fired(), ["more", "mail"], "the kind that it does not know waits, and delays nobody");
    assert_eq!(
        old.broker.borrow().sent_to(Destination::DeadLetter).len(),
        1,
        "the name of a kind that it does not know"
    );

    let mut new = Bench::with(newer(), &new.broker, &new.clock);
    new.own();
    new.ticks(50);
    assert_eq!(new.fired(), ["more", "mail", "paper"], "a release that knows the kind fires it");
    let broker = new.broker.borrow();
    let last = broker.changelog[&P].iter().rfind(|other| other.key == record.key).unwrap();
    assert_eq!(
        (last.offset, &last.value),
        (record.offset, &record.value),
        "the record of a later release is as it was"
    );
    let keys: BTreeSet<_> =
        broker.output.iter().filter(|e| e.to == Destination::Changelog).map(|e| e.key.clone()).collect();
    assert!(!keys.contains(&Some(record.key)), "and was not written by anybody else");
}

/// Whoever may write commands may write that they were forwarded, from any partition that there could be.
#[test]
fn forged_marks_of_forwarding_do_not_grow_the_state_without_end() {
    let mut bench = Bench::new();
    bench.own();
    for number in 0..3_000_u32 {
        bench.send(r#"{"run":"r","disarm":{"timer_id":"none"}}"#);
        let origin = Origin { partition: Partition(1 + number * 1_000), offset: Offset(7) };
        let records = &mut bench.broker.borrow_mut().commands;
        records.get_mut(&P).unwrap().last_mut().unwrap().headers = vec![forward::header(origin)];
    }
    bench.arm("a", "email", "PT1S");
    bench.ticks(200);
    assert_eq!(bench.fired(), ["a"]);
    let broker = bench.broker.borrow();
    let meta = broker.changelog[&P].iter().rfind(|record| record.key == StateKey::Meta.encode()).unwrap();
    let meta = Meta::decode(meta.value.as_ref().unwrap()).unwrap();
    assert_eq!(meta.forwarders.len(), 1, "only a partition that the command topic may have: {:?}", meta.forwarders);
}

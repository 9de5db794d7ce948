//! The loop, and somebody else who writes to the changelog behind the barrier.

use std::time::Duration;

use bytes::Bytes;

use super::fake_log::End;
use super::tests::{Bench, P, settings};
use crate::log::{ChangelogRecord, LogEvent};
use crate::position::Offset;
use crate::timer::identity::{Run, RunKey, Tenant, TimerId, TimerKey};
use crate::wire::key::StateKey;

/// The log of these tests has no markers: as many records as there may be markers, and more.
const RECORDS: usize = 40;

fn overwrite(bench: &Bench, key: &Bytes, value: Option<&Bytes>) {
    let mut broker = bench.broker.borrow_mut();
    let changelog = broker.changelog.entry(P).or_default();
    for _ in 0..RECORDS {
        let offset = Offset(i64::try_from(changelog.len()).unwrap());
        changelog.push(ChangelogRecord { offset, key: key.clone(), value: value.cloned() });
    }
}

fn run() -> RunKey {
    RunKey { tenant: Tenant::parse("").unwrap(), run: Run::parse("r").unwrap() }
}

fn timer(id: &str) -> Bytes {
    StateKey::Timer(TimerKey { run: run(), id: TimerId::parse(id).unwrap() }).encode()
}

#[test]
fn a_record_of_somebody_else_is_overwritten_with_the_owners_state() {
    let mut bench = Bench::new();
    bench.broker.borrow_mut().restored_at_once = 1_000;
    bench.own();
    bench.arm("kept", "email", "PT1H");
    bench.arm("gone", "email", "PT1H");
    bench.ticks(20);
    let of_gone = {
        let broker = bench.broker.borrow();
        broker.changelog[&P].iter().find(|record| record.key == timer("gone")).unwrap().value.clone()
    };
    bench.send(r#"{"run":"r","disarm":{"timer_id":"gone"}}"#);
    bench.send(r#"{"run":"sealed","seal_run":{}}"#);
    bench.ticks(20);
    let meta = StateKey::Meta.encode();
    let sealed = RunKey { run: Run::parse("sealed").unwrap(), ..run() };
    overwrite(&bench, &timer("kept"), None);
    overwrite(&bench, &timer("gone"), of_gone.as_ref());
    overwrite(&bench, &StateKey::Run(sealed).encode(), None);
    overwrite(&bench, &meta, None);
    overwrite(&bench, &Bytes::from_static(b"no key"), Some(&Bytes::from_static(b"no value")));
    // Noticed with the next own record.
    bench.arm("later", "email", "PT1H");
    bench.ticks(40);

    // Nothing is left but the changelog.
    bench.broker.borrow_mut().committed.clear();
    let mut bench = Bench::with(settings(), &bench.broker, &bench.clock);
    bench.events.borrow_mut().push_back(LogEvent::Assigned(vec![P]));
    bench.send(r#"{"run":"sealed","arm":{"timer_id":"a","kind":"email","after":"PT1H","payload":"sealed"}}"#);
    bench.ticks(40);
    bench.clock.advance(Duration::from_hours(1));
    bench.ticks(40);
    assert_eq!(bench.fired(), ["kept", "later"]);
    let broker = bench.broker.borrow();
    let last = broker.changelog[&P].iter().rfind(|record| record.key.as_ref() == b"no key").unwrap();
    assert_eq!(last.value, None, "what has no meaning is removed");
}

/// The simulator found it: nobody knew where the record of the probe stands.
#[test]
fn a_probe_whose_outcome_is_not_known_is_nobody_elses() {
    let mut bench = Bench::new();
    bench.broker.borrow_mut().clock = Some(bench.clock.clone());
    bench.own();
    bench.arm("a", "email", "PT1H");
    bench.ticks(20);
    let before = bench.broker.borrow().changelog[&P].len();
    // The log of these tests has no markers: so many that they are more than markers could be.
    bench.broker.borrow_mut().ends.extend([End::UnknownButCommitted; 4]);
    bench.clock.step_seconds(3_601);
    bench.ticks(1_500);
    let records = bench.broker.borrow().changelog[&P].len() - before;
    assert!(records > 5, "probes and the fire, not {records}");
    assert_eq!((bench.fired(), bench.heard.borrow().foreign), (vec!["a".to_owned()], 0));
}

//! Many timers at once, and records as large as they may be.

use std::time::Duration;

use punctual::time::Timestamp;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use serde_json::json;

use crate::harness::broker::Broker;
use crate::harness::chaos::scaled;
use crate::harness::reader::Received;
use crate::harness::scene::{Scene, after, wait_for_instant};
use crate::harness::wait;

const BOUND: Duration = Duration::from_mins(2);
/// Longest delay of a timer beside a crowd.
const DISTURBANCE_MAX: Duration = Duration::from_secs(5);
const MIB: u64 = 1024 * 1024;
/// Most that a process may grow while it fires what fits into its caches.
const GROWTH_MAX: u64 = 64 * MIB;
/// As large as `limits.fired_bytes_max` lets a payload be, with room for the names.
const LARGE_PAYLOAD_BYTES: usize = 990_000;
/// What fills a command of that size up to what the broker takes.
const LARGE_HEADER_BYTES: usize = 58_290;

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// L12: a run of many timers is disarmed just before all of them are due. None fires, and nobody else is late.
#[test]
fn a_run_of_many_timers_is_disarmed_at_once_and_delays_nobody() {
    let mut scene = Scene::new(Broker::shared(), "crowd");
    let process = scene.serve("a");
    let count = scaled(20_000);
    let due = after(seconds(u64::from(scaled(20))));
    for number in 0..count {
        scene.commands.arm_in_protobuf("crowd", &format!("t-{number}"), due);
    }
    scene.commands.flush();
    let pending = || process.metric("punctual_pending_timers");
    wait::until_true(BOUND, "the crowd is armed", || pending() > f64::from(count) - 0.5);
    scene.arm_many("free", 200, seconds(1), seconds(8));
    wait_for_instant(Timestamp::from_millis(due.as_millis() - 3_000));
    scene.command("crowd", json!({"disarm_run": {}}));
    scene.wait_until_answered();
    let answers = scene.results.records();
    let swept = answers.iter().map(Received::json).find(|answer| answer["outcome"] == "run_disarmed");
    assert_eq!(swept.expect("the disarm-run is answered")["count"], count);
    wait_for_instant(due);
    scene.settle_all();
    let latest = scene.fired.records().iter().map(lateness).max();
    assert!(latest < Some(DISTURBANCE_MAX), "a timer beside the crowd was {latest:?} late");
}

/// L1: very many timers are due at one instant. They fire in slices, and commands that come meanwhile are answered between
/// those.
#[test]
fn commands_are_answered_in_the_midst_of_a_storm() {
    let mut scene = Scene::new(Broker::shared(), "storm");
    let process = scene.serve("a");
    let count = scaled(40_000);
    let due = after(seconds(u64::from(scaled(25))));
    for number in 0..count {
        let (run, timer_id) = (format!("r-{}", number % 40), format!("t-{number}"));
        scene.account.armed(&format!("default/{run}/{timer_id}"), due);
        scene.commands.arm_in_protobuf(&run, &timer_id, due);
    }
    scene.commands.flush();
    wait::until_true(BOUND, "the storm is armed", || {
        process.metric("punctual_pending_timers") > f64::from(count) - 0.5
    });
    assert!(after(Duration::ZERO) < due, "armed in time");
    wait::until_true(BOUND, "the storm begins", || scene.fired.count() > 0);
    scene.arm_many("free", 20, seconds(1), seconds(2));
    scene.wait_until_answered();
    let fired = scene.fired.count();
    println!("{fired} of {count} had fired when the commands were answered");
    assert!(fired < count as usize, "the commands waited for the storm to end");
    scene.settle_all();
}

/// O7: many timers fire and nobody looks at the metrics. The process keeps its size, and the histograms are such.
#[test]
fn firing_without_a_scrape_costs_no_memory() {
    let mut scene = Scene::new(Broker::shared(), "unwatched");
    let process = scene.serve("a");
    let count = scaled(24_000);
    let due = after(Duration::ZERO);
    for number in 0..count {
        let (run, timer_id) = (format!("r-{}", number % 40), format!("t-{number}"));
        scene.account.armed(&format!("default/{run}/{timer_id}"), due);
        scene.commands.arm_in_protobuf(&run, &timer_id, due);
    }
    scene.commands.flush();
    let fired = |count: u32| wait::until_true(BOUND, "they fire", || scene.fired.count() >= count as usize);
    fired(count / 3);
    let before = process.resident_bytes();
    fired(count);
    let grown = process.resident_bytes().saturating_sub(before);
    println!("{} MiB after a third, {} MiB more at the end", before / MIB, grown / MIB);
    assert!(grown < GROWTH_MAX, "it has grown by {} MiB", grown / MIB);
    scene.settle_all();
    let (_, metrics) = process.probe("/metrics");
    assert!(metrics.contains("punctual_lateness_seconds_bucket{"), "a histogram has buckets:\n{metrics}");
    let counted = process.metric("punctual_lateness_seconds_count");
    assert!((counted - f64::from(count)).abs() < 0.5, "{counted} of {count} are counted");
}

/// L13, D1: commands as large as may be, on a wrong partition. They are forwarded and fire, or do not fit with the header
/// that stops loops, and are dead letters: one of the two, once.
#[test]
fn large_strays_fire_or_become_dead_letters_once() {
    let mut scene = Scene::new(Broker::shared(), "large-strays");
    let letters = scene.deployment.reader(&["dead-letter"]);
    let process = scene.serve("a");
    let mut config = scene.deployment.client().clone();
    let producer: BaseProducer = config.set("message.max.bytes", "2000000").create().unwrap();
    let due = after(seconds(4));
    let topic = scene.deployment.topic("arm");
    let payload = "x".repeat(LARGE_PAYLOAD_BYTES);
    let header = vec![b'x'; LARGE_HEADER_BYTES];
    for number in 0..12 {
        let run = format!("r-{number}");
        let arm = json!({"timer_id": "t", "kind": "email", "at": due.to_string(), "payload": payload});
        let command = json!({"run": run, "arm": arm}).to_string();
        let mut headers = OwnedHeaders::new().insert(Header { key: "content-type", value: Some("application/json") });
        // Half of them have no room for another header.
        if number % 2 == 0 {
            headers = headers.insert(Header { key: "theirs", value: Some(&header) });
        }
        let record = BaseRecord::<str, str>::to(&topic).partition(0).payload(&command).headers(headers);
        producer.send(record).map_err(|(error, _)| error).unwrap();
        scene.account.armed(&format!("default/{run}/t"), due);
    }
    producer.flush(BOUND).unwrap();
    wait::until_true(BOUND, "all fire or are dead letters", || scene.fired.count() + letters.count() >= 12);
    for letter in letters.records() {
        let offset: i64 = letter.header("punctual-dead-letter-offset").unwrap().parse().unwrap();
        assert_eq!(
            offset % 2,
            0,
            "one that has room is no dead letter: {:?}",
            letter.header("punctual-dead-letter-detail")
        );
        scene.account.disarmed(&format!("default/r-{offset}/t"));
    }
    println!("{} fired, {} dead letters", scene.fired.count(), letters.count());
    scene.settle_all();
    let forwarded = process.metric("punctual_forwarded_total");
    assert!((1.0..12.5).contains(&forwarded), "{forwarded} of 12 were forwarded");
}

fn lateness(event: &Received) -> Duration {
    let instant = |name| Timestamp::parse(event.header(name).unwrap()).unwrap();
    instant("punctual-fired").since(instant("punctual-due"))
}

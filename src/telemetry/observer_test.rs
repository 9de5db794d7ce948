//! What `/metrics` shows of what a worker tells (O7, L8).

use std::collections::BTreeSet;

use super::*;
use crate::telemetry::metrics::{ALL, Shape};
use crate::telemetry::recorder::with_own;
use crate::time::Timestamp;
use crate::timer::kind::Kind;

/// A clock that stands still.
struct Still;

impl Clock for Still {
    fn wall(&self) -> Timestamp {
        Timestamp::EPOCH
    }

    fn boot(&self) -> Duration {
        Duration::from_secs(100)
    }
}

fn number(number: u32) -> KindNumber {
    KindNumber::new(number).unwrap()
}

fn observer() -> WorkerObserver<Still> {
    let kind = Kind::new(number(1), "email");
    let health = Arc::new(Health::new(1, Duration::from_secs(100)));
    WorkerObserver::new(0, &Registry::new([kind]).unwrap(), health, Still)
}

/// Returns what `/metrics` shows after `tell`.
fn told(tell: impl FnOnce(&mut WorkerObserver<Still>)) -> String {
    with_own(|metrics| {
        let mut observer = observer();
        tell(&mut observer);
        metrics.render()
    })
}

#[track_caller]
fn assert_shows(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.lines().any(|shown| shown == *line), "no line {line} in\n{text}");
    }
}

fn tally() -> Tally {
    Tally {
        armed: BTreeMap::from([(number(1), 3), (number(9), 2)]),
        disarmed: 4,
        unchanged: 5,
        late: 13,
        rejected: BTreeMap::from([(Reason::PastDue, 6)]),
        forwarded: 7,
        answered: 8,
        fired: vec![(number(1), Duration::from_millis(3)), (number(1), Duration::from_hours(2))],
        outbox: 9,
        failed: BTreeMap::from([(number(1), 10)]),
        expired: BTreeMap::from([(number(1), 11)]),
        raced: 12,
    }
}

/// Names, in the order of the lines, with the type of each.
fn types(text: &str) -> BTreeMap<&str, &str> {
    text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')).collect()
}

#[test]
fn every_metric_shows_with_help_type_and_labels() {
    let text = told(|observer| {
        observer.transaction(TransactionEnd::Committed, Duration::from_millis(4), &tally());
        observer.ticked(&TickReport::default());
        observer.task(Partition(3), TaskState::Restoring);
        observer.restore(Partition(3), 1, 2);
        observer.task(Partition(3), TaskState::Running);
    });
    let types = types(&text);
    for metric in ALL {
        let shape = match metric.shape {
            Shape::Counter => "counter",
            Shape::Gauge => "gauge",
            Shape::Histogram(_) => "histogram",
        };
        assert_eq!(types.get(metric.name), Some(&shape), "{} in\n{text}", metric.name);
        assert_shows(&text, &[&format!("# HELP {} {}", metric.name, metric.help)]);
        let samples = text.lines().filter(|line| line.starts_with(metric.name));
        for sample in samples {
            let names = sample.split_once('{').map_or("", |(_, rest)| rest.rsplit_once('}').map_or("", |(l, _)| l));
            let names: BTreeSet<_> = names.split("\",").filter_map(|label| Some(label.split_once('=')?.0)).collect();
            let expected: BTreeSet<_> = metric.labels.iter().copied().collect();
            assert_eq!(
                names.iter().filter(|name| **name != "le").copied().collect::<BTreeSet<_>>(),
                expected,
                "{sample}"
            );
        }
    }
    assert_eq!(types.len(), ALL.len(), "no metric without a constant: {types:?}");
}

#[test]
fn what_can_be_counted_is_there_from_the_start() {
    let text = told(|_| ());
    assert_shows(
        &text,
        &[
            "punctual_armed_total{kind=\"email\"} 0",
            "punctual_fired_total{kind=\"email\"} 0",
            "punctual_rejected_total{reason=\"unreadable\"} 0",
            "punctual_transactions_total{outcome=\"unknown\"} 0",
            "punctual_build_info{version=\"0.1.0\",zone_database=\"2026f\"} 1",
        ],
    );
}

#[test]
fn a_committed_transaction_counts_and_no_other() {
    let lines = [
        "punctual_armed_total{kind=\"email\"} 3",
        "punctual_armed_total{kind=\"unknown\"} 2",
        "punctual_disarmed_total 4",
        "punctual_unchanged_total 5",
        "punctual_rejected_total{reason=\"past_due\"} 6",
        "punctual_forwarded_total 7",
        "punctual_answers_total 8",
        "punctual_fired_total{kind=\"email\"} 2",
        "punctual_outbox_records_total 9",
    ];
    let text = told(|observer| {
        observer.transaction(TransactionEnd::Aborted, Duration::from_secs(1), &tally());
        observer.transaction(TransactionEnd::Unknown, Duration::from_secs(1), &tally());
        observer.transaction(TransactionEnd::Committed, Duration::from_millis(4), &tally());
    });
    assert_shows(&text, &lines);
    assert_shows(
        &text,
        &[
            "punctual_transactions_total{outcome=\"committed\"} 1",
            "punctual_transactions_total{outcome=\"aborted\"} 1",
            "punctual_transactions_total{outcome=\"unknown\"} 1",
            "punctual_commit_seconds_count 1",
        ],
    );
}

/// O7: histograms have buckets, and the same ones whatever was recorded.
#[test]
fn lateness_falls_into_buckets_from_a_millisecond_to_an_hour() {
    let text = told(|observer| observer.transaction(TransactionEnd::Committed, Duration::ZERO, &tally()));
    assert_shows(
        &text,
        &[
            "punctual_lateness_seconds_bucket{kind=\"email\",le=\"0.001\"} 0",
            "punctual_lateness_seconds_bucket{kind=\"email\",le=\"0.005\"} 1",
            "punctual_lateness_seconds_bucket{kind=\"email\",le=\"3600\"} 1",
            "punctual_lateness_seconds_bucket{kind=\"email\",le=\"+Inf\"} 2",
            "punctual_lateness_seconds_count{kind=\"email\"} 2",
        ],
    );
}

/// L8: gauges are sums of what is held now, and never negative.
#[test]
fn gauges_are_sums_over_the_tasks_that_are_here() {
    let held = |pending: u64, overdue: u64, oldest: u64| Holdings {
        pending: BTreeMap::from([(number(1), pending), (number(9), 1)]),
        paused: BTreeMap::from([(number(1), pending / 5)]),
        remembered: pending,
        overdue: BTreeMap::from([(number(1), overdue)]),
        oldest_overdue: Duration::from_secs(oldest),
    };
    let pending = |count: u64| format!("punctual_pending_timers{{kind=\"email\",worker=\"0\"}} {count}");
    with_own(|metrics| {
        let mut observer = observer();
        observer.task(Partition(0), TaskState::Running);
        observer.task(Partition(1), TaskState::CatchingUp);
        observer.holdings(Partition(0), &held(10, 2, 5));
        observer.holdings(Partition(1), &held(5, 1, 8));
        assert_shows(
            &metrics.render(),
            &[
                &pending(15),
                "punctual_paused_timers{kind=\"email\",worker=\"0\"} 3",
                "punctual_overdue_timers{kind=\"email\",worker=\"0\"} 3",
                "punctual_unknown_kind_timers{worker=\"0\"} 2",
                "punctual_pending_timers{kind=\"unknown\",worker=\"0\"} 2",
                "punctual_oldest_overdue_seconds{worker=\"0\"} 8",
                "punctual_tasks{state=\"running\",worker=\"0\"} 1",
                "punctual_tasks{state=\"catching_up\",worker=\"0\"} 1",
                "punctual_tasks{state=\"closed\",worker=\"0\"} 0",
            ],
        );
        observer.holdings(Partition(1), &held(0, 0, 0));
        assert_shows(&metrics.render(), &[&pending(10), "punctual_oldest_overdue_seconds{worker=\"0\"} 5"]);
        observer.task_gone(Partition(0));
        observer.task_gone(Partition(1));
        assert_shows(&metrics.render(), &[&pending(0), "punctual_tasks{state=\"running\",worker=\"0\"} 0"]);
    });
}

#[test]
fn a_restore_shows_its_progress_and_then_its_duration() {
    with_own(|metrics| {
        let mut observer = observer();
        observer.task(Partition(3), TaskState::Restoring);
        observer.restore(Partition(3), 450, 1000);
        let text = metrics.render();
        assert_shows(&text, &["punctual_restore_done_offsets{partition=\"3\"} 450"]);
        assert_shows(&text, &["punctual_restore_total_offsets{partition=\"3\"} 1000"]);
        observer.task(Partition(3), TaskState::CatchingUp);
        observer.task(Partition(3), TaskState::Running);
        let text = metrics.render();
        assert_shows(&text, &["punctual_restore_total_offsets{partition=\"3\"} 0", "punctual_restore_seconds_count 1"]);
    });
}

#[test]
fn holds_and_losses_show() {
    let text = told(|observer| {
        observer.clock_held(true);
        observer.kind_held(number(1), true);
        observer.input_lost(Partition(0), 12);
        observer.foreign_records(Partition(0), 3);
        observer.ticked(&TickReport { scanned: 7, undecodable: 1, saturated: true, ..TickReport::default() });
    });
    assert_shows(
        &text,
        &[
            "punctual_clock_held{worker=\"0\"} 1",
            "punctual_kind_held{kind=\"email\",worker=\"0\"} 1",
            "punctual_input_lost_records_total 12",
            "punctual_changelog_foreign_records_total 3",
            "punctual_scanned_rows_total{worker=\"0\"} 7",
            "punctual_undecodable_rows_total{worker=\"0\"} 1",
            "punctual_saturated_ticks_total{worker=\"0\"} 1",
        ],
    );
}

#[test]
fn health_hears_what_the_worker_does() {
    with_own(|_| {
        let mut observer = observer();
        let health = Arc::clone(&observer.health);
        observer.entered("commit", Duration::from_mins(1));
        assert!(health.live(Duration::from_secs(160)).is_good, "within the bound of the call");
        assert!(!health.live(Duration::from_secs(161)).is_good, "beyond it");
        observer.left();
        assert!(health.live(Duration::from_secs(101)).is_good, "back");
        observer.joined();
        assert!(health.ready().is_good, "joined, without a task");
    });
}

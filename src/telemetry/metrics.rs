//! The metrics: names, units, labels and sentences.
//!
//! Owns [`Metric`] and one constant for each. Never records anything. Keeps: base units (seconds, counts); each label is bounded by
//! the configuration (kind, worker), by the topic (partition) or by the code (reason, outcome, state).

/// How a metric behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Rises only, from 0 at the start of the process.
    Counter,
    /// Is what it is now.
    Gauge,
    /// Counts durations in these buckets, in seconds.
    Histogram(Buckets),
}

/// Upper bounds of buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buckets {
    /// From a millisecond to an hour: lateness, restores.
    Wide,
    /// From a tenth of a millisecond to ten seconds: calls and passes.
    Fine,
}

/// A metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// The name, with the unit as its last word but `_total`.
    pub name: &'static str,
    /// How it behaves.
    pub shape: Shape,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// What it says, in a sentence.
    pub help: &'static str,
}

impl Buckets {
    /// Returns the upper bounds in seconds, rising.
    pub const fn seconds(self) -> &'static [f64] {
        match self {
            Self::Wide => &[
                0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0,
                3600.0,
            ],
            Self::Fine => &[
                0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
                10.0,
            ],
        }
    }
}

const fn counter(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, shape: Shape::Counter, labels, help }
}

const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, shape: Shape::Gauge, labels, help }
}

const fn histogram(
    name: &'static str,
    buckets: Buckets,
    labels: &'static [&'static str],
    help: &'static str,
) -> Metric {
    Metric { name, shape: Shape::Histogram(buckets), labels, help }
}

/// Timers armed.
pub const ARMED: Metric =
    counter("punctual_armed_total", &["kind"], "Timers armed or replaced, in committed transactions.");
/// Timers cancelled.
pub const DISARMED: Metric = counter(
    "punctual_disarmed_total",
    &[],
    "Timers removed by a disarm, a disarm-run, a seal-run, or a resume that found no occurrence left.",
);
/// Commands without effect.
pub const UNCHANGED: Metric = counter(
    "punctual_unchanged_total",
    &[],
    "Commands that changed nothing: duplicates, commands about timers that are not there, arms of a sealed run.",
);
/// Commands that came too late.
pub const LATE: Metric = counter(
    "punctual_late_commands_total",
    &[],
    "Arms and disarms that came after their timer had ended and met its remembered id: duplicates and stragglers.",
);
/// Commands rejected.
pub const REJECTED: Metric = counter(
    "punctual_rejected_total",
    &["reason"],
    "Records rejected; each is on the dead-letter topic with this reason.",
);
/// Commands forwarded.
pub const FORWARDED: Metric = counter(
    "punctual_forwarded_total",
    &[],
    "Commands that arrived on another partition than that of their identity and were forwarded there.",
);
/// Answers sent.
pub const ANSWERS: Metric = counter("punctual_answers_total", &[], "Answers sent to the results topic.");
/// Timers fired.
pub const FIRED: Metric = counter("punctual_fired_total", &["kind"], "Timers fired, in committed transactions.");
/// Outbox records sent.
pub const OUTBOX: Metric = counter("punctual_outbox_records_total", &[], "Outbox records sent beside fired events.");
/// Attempts that failed.
pub const FAILED: Metric = counter(
    "punctual_handler_failures_total",
    &["kind"],
    "Attempts to fire that failed in the kind's handler; the timer rests and is tried again.",
);
/// Timers that are not to fire any more.
pub const EXPIRED: Metric = counter(
    "punctual_expired_total",
    &["kind"],
    "Timers that were later than expires_after, or delivered as often as max_attempts says; each is on the dead-letter topic.",
);
/// Timers that changed before their turn.
pub const RACED: Metric = counter(
    "punctual_raced_total",
    &[],
    "Timers that were due and did not fire, because a handler disarmed or replaced them in the same pass.",
);
/// Lateness.
pub const LATENESS: Metric = histogram(
    "punctual_lateness_seconds",
    Buckets::Wide,
    &["kind"],
    "Lateness of fired timers: time of firing minus the latest of due, time of arming and time of a resume.",
);

/// Timers waiting.
pub const PENDING: Metric =
    gauge("punctual_pending_timers", &["kind", "worker"], "Timers armed and not yet fired, paused ones too.");
/// Timers paused.
pub const PAUSED: Metric =
    gauge("punctual_paused_timers", &["kind", "worker"], "Timers that are paused: they fire once they are resumed.");
/// Timers waiting of kinds that nobody fires.
pub const UNKNOWN_KIND: Metric = gauge(
    "punctual_unknown_kind_timers",
    &["worker"],
    "Timers stored under a kind number that this process does not know; they fire once one that knows it runs.",
);
/// Ids remembered.
pub const REMEMBERED: Metric =
    gauge("punctual_remembered_ids", &["worker"], "Timer ids that have ended and are remembered for a while.");
/// Timers late.
pub const OVERDUE: Metric =
    gauge("punctual_overdue_timers", &["kind", "worker"], "Timers due and not yet fired, counted up to a bound.");
/// The latest of them.
pub const OLDEST_OVERDUE: Metric =
    gauge("punctual_oldest_overdue_seconds", &["worker"], "How long the oldest timer that is due has not been fired.");

/// Passes that left work.
pub const SATURATED: Metric = counter(
    "punctual_saturated_ticks_total",
    &["worker"],
    "Passes that used up their budget and left timers that are due for the next.",
);
/// Duration of passes.
pub const TICK: Metric = histogram(
    "punctual_tick_seconds",
    Buckets::Fine,
    &["worker"],
    "Time that one pass of a worker took, waiting for records left out.",
);
/// Rows looked at.
pub const SCANNED: Metric =
    counter("punctual_scanned_rows_total", &["worker"], "Rows of the due index that were looked at.");
/// Rows that cannot be decoded.
pub const UNDECODABLE: Metric = counter(
    "punctual_undecodable_rows_total",
    &["worker"],
    "Rows that were looked at and could not be decoded; they are kept, and counted each time.",
);
/// Transactions.
pub const TRANSACTIONS: Metric =
    counter("punctual_transactions_total", &["outcome"], "Kafka transactions by outcome: committed, aborted, unknown.");
/// Duration of commits.
pub const COMMIT: Metric = histogram(
    "punctual_commit_seconds",
    Buckets::Fine,
    &[],
    "Time that a committed transaction took, from its first record to the broker's answer.",
);

/// Tasks by state.
pub const TASKS: Metric = gauge(
    "punctual_tasks",
    &["state", "worker"],
    "Partitions that this process owns, by state: restoring, catching_up, running, closed.",
);
/// Restore progress.
pub const RESTORE_DONE: Metric = gauge(
    "punctual_restore_done_offsets",
    &["partition"],
    "Offsets of the changelog that the restore of this partition has read; 0 when none is under way.",
);
/// Restore goal.
pub const RESTORE_TOTAL: Metric = gauge(
    "punctual_restore_total_offsets",
    &["partition"],
    "Offsets of the changelog that the restore of this partition has to read; 0 when none is under way.",
);
/// Duration of restores.
pub const RESTORE: Metric = histogram(
    "punctual_restore_seconds",
    Buckets::Wide,
    &[],
    "Time from the assignment of a partition to its first firing, restore and catching up included.",
);
/// Clock held.
pub const CLOCK_HELD: Metric = gauge(
    "punctual_clock_held",
    &["worker"],
    "1 while firing waits for the brokers to confirm a forward step of the clock, else 0.",
);
/// Kinds held.
pub const KIND_HELD: Metric = gauge(
    "punctual_kind_held",
    &["kind", "worker"],
    "1 while the kind waits because its topic refuses records, else 0.",
);
/// Commands lost before they were read.
pub const INPUT_LOST: Metric = counter(
    "punctual_input_lost_records_total",
    &[],
    "Records of the arm topic that its retention removed before they were read.",
);
/// Records of the changelog that are not ours.
pub const FOREIGN_RECORDS: Metric = counter(
    "punctual_changelog_foreign_records_total",
    &[],
    "Records that somebody else wrote to the changelog while a partition was owned; the owner has overwritten them.",
);
/// The build.
pub const BUILD_INFO: Metric = gauge(
    "punctual_build_info",
    &["version", "zone_database"],
    "Always 1; the versions of punctual and of its time zone database are in the labels.",
);

/// All metrics, in the order of docs/operations.md.
pub const ALL: [Metric; 34] = [
    ARMED,
    DISARMED,
    UNCHANGED,
    LATE,
    REJECTED,
    FORWARDED,
    ANSWERS,
    FIRED,
    OUTBOX,
    FAILED,
    EXPIRED,
    RACED,
    LATENESS,
    PENDING,
    PAUSED,
    UNKNOWN_KIND,
    REMEMBERED,
    OVERDUE,
    OLDEST_OVERDUE,
    SATURATED,
    TICK,
    SCANNED,
    UNDECODABLE,
    TRANSACTIONS,
    COMMIT,
    TASKS,
    RESTORE_DONE,
    RESTORE_TOTAL,
    RESTORE,
    CLOCK_HELD,
    KIND_HELD,
    INPUT_LOST,
    FOREIGN_RECORDS,
    BUILD_INFO,
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_end_as_their_shape_asks() {
        let names: BTreeSet<_> = ALL.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), ALL.len());
        for metric in ALL {
            assert!(metric.name.starts_with("punctual_"), "{}", metric.name);
            assert!(metric.help.ends_with('.'), "{} is described by a sentence", metric.name);
            assert_eq!(metric.shape == Shape::Counter, metric.name.ends_with("_total"), "{}", metric.name);
            if let Shape::Histogram(buckets) = metric.shape {
                assert!(metric.name.ends_with("_seconds"), "{}", metric.name);
                assert!(buckets.seconds().is_sorted(), "{}", metric.name);
            }
        }
    }

    #[test]
    fn every_metric_is_in_the_handbook() {
        let handbook = include_str!("../../docs/operations.md");
        for metric in ALL {
            let row = format!("| `{}` |", metric.name);
            let line = handbook.lines().find(|line| line.starts_with(&row));
            let line = line.unwrap_or_else(|| panic!("docs/operations.md has no row {row}"));
            assert!(line.contains(metric.help), "{line} does not say: {}", metric.help);
            for label in metric.labels {
                assert!(line.contains(&format!("`{label}`")), "{line} does not name label {label}");
            }
        }
    }
}

//! The kinds, topics and settings that every run shares.
//!
//! Owns the table of kinds. Never depends on more than the plan.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use punctual::calendar;
use punctual::log::Destination;
use punctual::task::rules::Rules;
use punctual::timer::budget::Budget;
use punctual::timer::kind::{Kind, KindNumber, PastDue, Registry};
use punctual::timer::limits::Limits;
use punctual::worker::settings::Settings;

use crate::plan::Plan;
use crate::sim::Millis;

/// Largest forward step of a clock that is believed.
pub(crate) const STEP_MAX: Millis = 10_000;
/// How far the clocks of pods differ, where they do.
pub(crate) const SKEW: Millis = 3_000;
/// How far the timestamp of a command may be ahead.
pub(crate) const SKEW_MAX: Millis = 300_000;
pub(crate) const HORIZON_DAYS: u64 = 400;

/// A kind, as the oracle knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KindRow {
    pub(crate) number: u32,
    pub(crate) name: &'static str,
    pub(crate) past_due: PastDue,
    pub(crate) has_outbox: bool,
    /// Whether an older release knows it.
    pub(crate) is_of_old: bool,
}

pub(crate) const KINDS: [KindRow; 3] = [
    KindRow { number: 1, name: "email", past_due: PastDue::Fire, has_outbox: true, is_of_old: true },
    KindRow { number: 2, name: "sms", past_due: PastDue::Reject, has_outbox: false, is_of_old: true },
    KindRow { number: 7, name: "call", past_due: PastDue::Skip, has_outbox: true, is_of_old: false },
];

/// The kind whose topic refuses in calm times.
pub(crate) const REFUSED_KIND: u32 = 7;
/// A kind that no release knows: its timers are kept, and never fire.
pub(crate) const UNKNOWN_KIND: u32 = 99;

pub(crate) fn kind_number(number: u32) -> KindNumber {
    KindNumber::new(number).expect("the table has valid numbers")
}

/// Returns the kinds that a release knows.
pub(crate) fn kinds_of(is_old: bool) -> impl Iterator<Item = &'static KindRow> {
    KINDS.iter().filter(move |kind| !is_old || kind.is_of_old)
}

/// Returns the numbers of all kinds that timers may have.
pub(crate) fn all_kinds() -> Vec<KindNumber> {
    KINDS.iter().map(|kind| kind.number).chain([UNKNOWN_KIND]).map(kind_number).collect()
}

/// Returns the topics with their numbers of partitions.
pub(crate) fn topics(plan: &Plan) -> BTreeMap<Destination, u32> {
    let mut topics = BTreeMap::from([
        (Destination::Arm, plan.partitions),
        (Destination::Changelog, plan.partitions),
        (Destination::DeadLetter, 1),
        (Destination::Results, 2),
    ]);
    for kind in KINDS {
        topics.insert(Destination::Fired(kind_number(kind.number)), plan.partitions);
        if kind.has_outbox {
            topics.insert(Destination::Outbox(kind_number(kind.number)), 2);
        }
    }
    topics
}

/// Returns what a worker is told.
pub(crate) fn worker_settings(plan: &Plan, instance: &str, is_old: bool) -> Settings {
    let kinds = kinds_of(is_old).map(|kind| Kind {
        number: kind_number(kind.number),
        name: kind.name.to_owned(),
        past_due: kind.past_due,
        outbox: kind.has_outbox,
    });
    let millis = |millis: Millis| Duration::from_millis(millis.unsigned_abs());
    Settings {
        rules: Rules {
            registry: Registry::new(kinds).expect("the table is valid"),
            calendar: Arc::new(calendar::rules::Rules::default()),
            limits: Limits {
                horizon: Duration::from_hours(24 * HORIZON_DAYS),
                skew_max: millis(SKEW_MAX),
                ..Limits::default()
            },
            partitions: plan.partitions,
            arm_topic: "timers.arm".to_owned(),
            results: true,
            source: "punctual".to_owned(),
            owner: instance.to_owned(),
            arm_bytes_max: 1_000_000,
            dead_letter_bytes_max: 1_000_000,
        },
        budget: Budget {
            fired_max: plan.fired_max,
            fired_per_kind_max: plan.fired_max.div_ceil(2),
            scanned_max: plan.fired_max * 4,
            bytes_max: 1 << 20,
            elapsed_max: Duration::from_millis(50),
        },
        commit_linger: millis(plan.linger),
        flush_interval: millis(plan.flush_interval),
        restore_stall_timeout: Duration::from_mins(1),
        store_age_max: millis(plan.tombstones / 2),
        clock_step_max: millis(STEP_MAX),
    }
}

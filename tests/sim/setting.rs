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
use punctual::timer::model::Claim;
use punctual::worker::settings::Settings;

use crate::handlers::handlers;
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
    pub(crate) delivery: Delivery,
    /// How late a timer may fire.
    pub(crate) expires_after: Option<Millis>,
}

impl KindRow {
    /// Returns whether every world has the kind.
    pub(crate) fn is_plain(&self) -> bool {
        self.delivery == Delivery::Once && self.expires_after.is_none()
    }
}

/// How often the timers of a kind fire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    Once,
    Claim {
        lease: Millis,
        attempts_max: u32,
    },
    /// Once, by a handler that fails before.
    Flaky,
    /// Once, by a handler that dates the timer anew before.
    Dated,
    /// Once, by a handler that arms and disarms others.
    Chained,
}

pub(crate) const KINDS: [KindRow; 8] = [
    row(1, "email", PastDue::Fire, true, true),
    row(2, "sms", PastDue::Reject, false, true),
    row(7, "call", PastDue::Skip, true, false),
    KindRow { delivery: Delivery::Claim { lease: 700, attempts_max: 3 }, ..row(8, "job", PastDue::Fire, true, false) },
    KindRow { delivery: Delivery::Flaky, ..row(9, "flaky", PastDue::Fire, true, false) },
    KindRow { expires_after: Some(1_500), ..row(10, "brief", PastDue::Fire, true, false) },
    KindRow { delivery: Delivery::Dated, ..row(DATED_KIND, "dated", PastDue::Fire, true, false) },
    KindRow { delivery: Delivery::Chained, ..row(12, "chained", PastDue::Fire, true, false) },
];
/// The kind whose handler dates timers anew.
pub(crate) const DATED_KIND: u32 = 11;
/// How many kinds there are in every world.
pub(crate) const PLAIN_KINDS: usize = 3;

const fn row(number: u32, name: &'static str, past_due: PastDue, has_outbox: bool, is_of_old: bool) -> KindRow {
    KindRow { number, name, past_due, has_outbox, is_of_old, delivery: Delivery::Once, expires_after: None }
}

/// The kind whose topic refuses in calm times.
pub(crate) const REFUSED_KIND: u32 = 7;
/// A kind that no release knows: its timers are kept, and never fire.
pub(crate) const UNKNOWN_KIND: u32 = 99;

/// Returns how often the timers of a kind fire.
pub(crate) fn delivery_of(number: u32) -> Delivery {
    KINDS.iter().find(|kind| kind.number == number).map_or(Delivery::Once, |kind| kind.delivery)
}

/// Returns for how long the ids of a kind are remembered, where ids are.
pub(crate) fn remember_of(has_remember: bool, number: u32) -> Millis {
    match number {
        1 if has_remember => 1_500,
        2 if has_remember => 6_000,
        _ => 0,
    }
}

/// Returns how late a timer of a kind may fire.
pub(crate) fn expires_after(number: u32) -> Option<Millis> {
    KINDS.iter().find(|kind| kind.number == number).and_then(|kind| kind.expires_after)
}

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
    let kinds = kinds_of(is_old).filter(|kind| plan.has_specials || kind.is_plain()).map(|kind| Kind {
        past_due: kind.past_due,
        outbox: kind.has_outbox,
        claim: match kind.delivery {
            Delivery::Claim { lease, attempts_max } => {
                Some(Claim { lease: Duration::from_millis(lease.unsigned_abs()), attempts_max: Some(attempts_max) })
            }
            Delivery::Once | Delivery::Flaky | Delivery::Dated | Delivery::Chained => None,
        },
        expires_after: kind.expires_after.map(|millis| Duration::from_millis(millis.unsigned_abs())),
        remember: Duration::from_millis(remember_of(plan.has_remember, kind.number).unsigned_abs()),
        ..Kind::new(kind_number(kind.number), kind.name)
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
            handlers: handlers(),
        },
        budget: Budget {
            fired_max: plan.fired_max,
            fired_per_kind_max: plan.fired_max.div_ceil(2),
            fired_per_tenant_max: 1,
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

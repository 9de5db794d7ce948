//! Arbitrary values for property tests: valid by the rules of the core, and otherwise as odd as they come.
//!
//! Owns the generators only. Keeps: every value is one that the product could meet.

use std::num::NonZeroU64;
use std::time::Duration;

use bytes::Bytes;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;

use crate::calendar::cron::Cron;
use crate::calendar::digest::Digest;
use crate::calendar::every::Every;
use crate::calendar::interval::Interval;
use crate::calendar::local::LocalTime;
use crate::calendar::parameters::{Parameter, Parameters};
use crate::calendar::recurrence::{Recurrence, Rule};
use crate::calendar::zone::{Disambiguation, Zone};
use crate::time::Timestamp;
use crate::timer::command::{Action, Arm, Command, Encoding, OnConflict, RecurringWish, Reply, RuleWish, When};
use crate::timer::identity::{Run, RunKey, Tenant, TimerId, TimerKey};
use crate::timer::kind::{KindNumber, KindRef};
use crate::timer::model::{
    Claim, Ending, Generation, Header, OutboxRecord, Remembered, RunState, Seal, Sweep, SweepReply, Timer,
};
use crate::timer::recurring::Recurring;

/// Up to `len` bytes, text as often as not.
pub(crate) fn bytes(len: usize) -> impl Strategy<Value = Bytes> {
    prop_oneof![vec(any::<u8>(), 0..len).prop_map(Bytes::from), "[a-z{\"\\\\é\u{0}]{0,8}".prop_map(Bytes::from)]
}

pub(crate) fn timestamp() -> impl Strategy<Value = Timestamp> {
    (0..=Timestamp::MAX.as_millis()).prop_map(Timestamp::from_millis)
}

pub(crate) fn run_key() -> impl Strategy<Value = RunKey> {
    ("[A-Za-z0-9._~-]{1,12}", "[^\\p{Cc}]{1,24}")
        .prop_map(|(tenant, run)| RunKey { tenant: Tenant::parse(&tenant).unwrap(), run: Run::parse(&run).unwrap() })
}

pub(crate) fn timer_key() -> impl Strategy<Value = TimerKey> {
    (run_key(), "[^\\p{Cc}]{1,24}").prop_map(|(run, id)| TimerKey { run, id: TimerId::parse(&id).unwrap() })
}

pub(crate) fn kind_number() -> impl Strategy<Value = KindNumber> {
    (1_u32..=255).prop_map(|number| KindNumber::new(number).unwrap())
}

pub(crate) fn headers() -> impl Strategy<Value = Vec<Header>> {
    let header = (".{0,8}", option::of(bytes(16))).prop_map(|(key, value)| Header { key, value });
    vec(header, 0..4)
}

pub(crate) fn outbox() -> impl Strategy<Value = Vec<OutboxRecord>> {
    let record = (option::of(bytes(16)), option::of(bytes(16)), headers());
    vec(record.prop_map(|(key, value, headers)| OutboxRecord { key, value, headers }), 0..3)
}

pub(crate) fn encoding() -> impl Strategy<Value = Encoding> {
    prop_oneof![Just(Encoding::Protobuf), Just(Encoding::Json)]
}

pub(crate) fn reply() -> impl Strategy<Value = Reply> {
    (".{1,24}", encoding()).prop_map(|(correlation_id, encoding)| Reply { correlation_id, encoding })
}

fn zone() -> impl Strategy<Value = Zone> {
    prop::sample::select(vec!["UTC", "Europe/Berlin", "America/Havana", "Pacific/Apia"])
        .prop_map(|name| Zone::get(name).unwrap())
}

fn interval() -> impl Strategy<Value = Interval> {
    (0_i64..500, 0_i64..2_000, 1_000_i64..10_000_000_000)
        .prop_map(|(months, days, millis)| Interval::new(months, days, millis).unwrap())
}

fn cron() -> impl Strategy<Value = Cron> {
    let texts = prop::sample::select(vec!["0 9 * * MON-FRI", "*/5 * * * * *", "@daily", "30 2 29 2 *"]);
    (texts, zone()).prop_map(|(text, zone)| Cron::parse(text, zone).unwrap())
}

fn bounds() -> impl Strategy<Value = (Option<NonZeroU64>, Option<Timestamp>)> {
    (option::of(any::<u64>().prop_map(|count| NonZeroU64::new(count.max(1)).unwrap())), option::of(timestamp()))
}

fn parameter() -> impl Strategy<Value = Parameter> {
    prop_oneof![
        any::<i64>().prop_map(Parameter::Integer),
        ".{0,16}".prop_map(Parameter::Text),
        prop::sample::select(vec!["1.5", "true", "18446744073709551615"])
            .prop_map(|text| Parameter::Other(text.to_owned())),
    ]
}

fn when() -> impl Strategy<Value = When> {
    let every = (interval(), zone(), option::of(timestamp())).prop_map(|(interval, zone, anchor)| RuleWish::Every {
        interval,
        zone,
        anchor,
    });
    let rule = prop_oneof![cron().prop_map(RuleWish::Cron), every];
    let recurring = (rule, bounds(), option::of(timestamp()))
        .prop_map(|(rule, (count, until), from)| When::Recurring(Box::new(RecurringWish { rule, count, until, from })));
    let local = (timestamp(), zone(), prop::sample::select(Disambiguation::ALL.to_vec())).prop_map(
        |(at, zone, disambiguation)| {
            let civil = Zone::utc().civil(at).unwrap_or_default();
            When::Local(LocalTime { civil, zone, disambiguation })
        },
    );
    let parameters = btree_map(".{0,8}", parameter(), 0..4).prop_map(Parameters);
    let calendar = (".{0,16}", parameters).prop_map(|(rule, parameters)| When::Calendar { rule, parameters });
    prop_oneof![timestamp().prop_map(When::At), any::<i64>().prop_map(When::AfterMillis), recurring, local, calendar,]
}

fn recurring() -> impl Strategy<Value = Recurring> {
    let every = (interval(), zone(), timestamp()).prop_map(|(interval, zone, anchor)| Every { interval, anchor, zone });
    let rule = prop_oneof![cron().prop_map(|cron| Rule::Cron(Box::new(cron))), every.prop_map(Rule::Every)];
    (rule, bounds(), any::<u64>()).prop_map(|(rule, (count, until), fired)| {
        let fired = count.map_or(fired, |count| fired % count);
        Recurring { recurrence: Recurrence { rule, count, until }, fired }
    })
}

fn digest() -> impl Strategy<Value = Digest> {
    any::<[u8; 32]>().prop_map(Digest::from_bytes)
}

fn arm() -> impl Strategy<Value = Arm> {
    let kind = prop_oneof![kind_number().prop_map(KindRef::Number), "[A-Za-z0-9._-]{1,64}".prop_map(KindRef::Name)];
    let when = when();
    let on_conflict = prop_oneof![Just(OnConflict::Keep), Just(OnConflict::Replace)];
    let carried = (option::of(bytes(32)), option::of(bytes(16)), headers(), outbox());
    (timer_key(), kind, when, on_conflict, carried).prop_map(
        |(key, kind, when, on_conflict, (payload, record_key, headers, outbox))| Arm {
            key,
            kind,
            when,
            on_conflict,
            payload,
            record_key,
            headers,
            outbox,
        },
    )
}

fn action() -> impl Strategy<Value = Action> {
    let generation = option::of(any::<u64>().prop_map(Generation));
    let retention = option::of((0..=i64::MAX.unsigned_abs()).prop_map(Duration::from_millis));
    prop_oneof![
        4 => arm().prop_map(|arm| Action::Arm(Box::new(arm))),
        1 => (timer_key(), generation.clone()).prop_map(|(key, generation)| Action::Disarm { key, generation }),
        1 => (timer_key(), generation.clone()).prop_map(|(key, generation)| Action::Pause { key, generation }),
        1 => (timer_key(), generation).prop_map(|(key, generation)| Action::Resume { key, generation }),
        1 => run_key().prop_map(|run| Action::DisarmRun { run }),
        1 => (run_key(), retention).prop_map(|(run, retention)| Action::SealRun { run, retention }),
    ]
}

/// A command and its encoding, which is that of its reply too.
pub(crate) fn command() -> impl Strategy<Value = (Command, Encoding)> {
    (option::of(reply()), action(), encoding()).prop_map(|(reply, action, encoding)| {
        let reply = reply.map(|reply| Reply { encoding, ..reply });
        (Command { reply, action }, encoding)
    })
}

pub(crate) fn timer() -> impl Strategy<Value = Timer> {
    let times = (timestamp(), timestamp(), timestamp());
    let numbers = (kind_number(), 0..=Generation::MAX.0, any::<u32>());
    let carried = (option::of(bytes(32)), option::of(bytes(16)), headers(), outbox());
    let claim = (1..=i64::MAX.unsigned_abs(), option::of(1..=u32::MAX))
        .prop_map(|(lease, attempts_max)| Claim { lease: Duration::from_millis(lease), attempts_max });
    let repeated = (option::of(claim), option::of(recurring().prop_map(Box::new)), option::of(digest()));
    let repeated = (repeated, option::of(timestamp()));
    (timer_key(), times, numbers, carried, repeated).prop_map(
        |(
            key,
            (one, other, armed),
            (kind, generation, attempt),
            (payload, record_key, headers, outbox),
            ((claim, recurring, resolved_with), paused),
        )| {
            Timer {
                key,
                kind,
                due: one.min(other),
                wake: one.max(other),
                generation: Generation(generation),
                attempt: claim.and_then(|claim| claim.attempts_max).map_or(attempt, |max| attempt.min(max)),
                armed,
                payload,
                record_key,
                headers,
                outbox,
                claim,
                recurring,
                resolved_with,
                paused,
            }
        },
    )
}

pub(crate) fn run_state() -> impl Strategy<Value = RunState> {
    let seal = option::of(option::of(timestamp()).prop_map(|until| Seal { until }));
    let waiting = (reply(), any::<bool>()).prop_map(|(reply, sealed)| SweepReply { reply, sealed });
    let sweep = (any::<u64>(), any::<u64>(), vec(waiting, 0..4));
    let sweep = sweep.prop_map(|(below, removed, replies)| Sweep { below: Generation(below), removed, replies });
    (seal, option::of(sweep)).prop_map(|(seal, sweep)| RunState { seal, sweep })
}

pub(crate) fn remembered() -> impl Strategy<Value = Remembered> {
    let generation = || (0..=Generation::MAX.0).prop_map(Generation);
    let ending = prop_oneof![
        generation().prop_map(Ending::Fired),
        generation().prop_map(Ending::Disarmed),
        generation().prop_map(Ending::Expired),
        Just(Ending::NeverArmed),
    ];
    (ending, timestamp(), timestamp()).prop_map(|(ending, one, other)| Remembered {
        ending,
        ended: one.min(other),
        until: one.max(other),
    })
}

//! What other libraries say about the same questions: Python's zoneinfo, dateutil, croniter, numpy and `holidays`.
//!
//! Reads `tests/vectors/`, which `scripts/calendar_vectors.py` has written. Each first line says what wrote it.

use std::collections::BTreeSet;
use std::num::TryFromIntError;

use jiff::civil::{Date, Weekday};
use serde_json::Value;

use super::cron::Cron;
use super::every::Every;
use super::interval::Interval;
use super::local::{parse_civil, parse_date};
use super::roll::Roll;
use super::working_days::{Content, WorkingDays};
use super::zone::{Disambiguation, Zone, database_version};
use crate::time::Timestamp;

fn rows(text: &str) -> impl Iterator<Item = Value> {
    text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap())
}

fn at(seconds: &Value) -> Timestamp {
    Timestamp::from_millis(seconds.as_i64().unwrap() * 1000)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(text).collect()
}

const ZONES: &str = include_str!("../../tests/vectors/zones.jsonl");

/// T8: every zone, every change of the clock from 2020 to 2030, forward and backward.
#[test]
fn zones_change_as_zoneinfo_says() {
    let mut seen = BTreeSet::new();
    for row in rows(ZONES) {
        for name in texts(&row["zones"]) {
            let zone = Zone::get(name).unwrap();
            let mut last = Timestamp::parse("2020-01-01T00:00:00Z").unwrap();
            for change in row["changes"].as_array().unwrap() {
                let instant = at(&change[0]);
                assert_eq!(next_change_of_offset(&zone, last), Some(instant), "{name}");
                let civil = parse_civil(text(&change[3])).unwrap();
                let is_gap = change[2].as_i64() > change[1].as_i64();
                // Python's fold 0 is the offset before the change, fold 1 the one after it.
                let (before, after) = (at(&change[4]), at(&change[5]));
                let expected = if is_gap { [before, after, before] } else { [before, before, after] };
                let policies = [Disambiguation::Compatible, Disambiguation::Earlier, Disambiguation::Later];
                let resolved = policies.map(|policy| zone.resolve(civil, policy).unwrap());
                assert_eq!(resolved, expected, "{civil} in {name}");
                assert!(zone.resolve(civil, Disambiguation::Reject).is_err(), "{civil} in {name}");
                last = instant;
            }
            let end = Timestamp::parse("2031-01-01T00:00:00Z").unwrap();
            let next = next_change_of_offset(&zone, last);
            assert!(next.is_none_or(|next| next >= end), "{name} changes at {next:?} too");
            seen.insert(name.to_owned());
        }
    }
    let unseen: Vec<_> = Zone::names().into_iter().filter(|name| !seen.contains(*name)).collect();
    assert_eq!(unseen, Vec::<&str>::new(), "zones that zoneinfo does not have");
}

fn next_change_of_offset(zone: &Zone, from: Timestamp) -> Option<Timestamp> {
    let shown = |at: Timestamp| zone.civil(at).unwrap();
    let mut from = from;
    loop {
        let change = zone.next_change(from)?;
        let before = Timestamp::from_millis(change.as_millis() - 1);
        let passed = shown(change).duration_since(shown(before));
        if passed != jiff::SignedDuration::from_millis(1) {
            return Some(change);
        }
        // The name of the time changed, or whether it counts as summer, and no clock did.
        from = change;
    }
}

#[test]
fn the_vectors_are_of_the_bundled_database() {
    // tzdata 2026.6 is release f of 2026.
    let release = database_version().strip_prefix("2026").and_then(|letter| letter.chars().next()).unwrap();
    let number = u32::from(release) - u32::from('a') + 1;
    assert!(ZONES.starts_with(&format!("{{\"source\": \"tzdata 2026.{number}\"}}")), "run scripts/calendar_vectors.py");
}

#[test]
fn intervals_count_as_dateutil_does() {
    for row in rows(include_str!("../../tests/vectors/every.jsonl")) {
        let number = |at: usize| row[at].as_i64().unwrap();
        let interval = Interval::new(number(2), number(3), 0).unwrap();
        let every = Every { interval, anchor: at(&row[1]), zone: Zone::get(text(&row[0])).unwrap() };
        assert_eq!(every.nth(row[4].as_u64().unwrap()), Some(at(&row[5])), "{row}");
    }
}

#[test]
fn cron_expressions_mean_what_croniter_says() {
    for row in rows(include_str!("../../tests/vectors/cron.jsonl")) {
        let cron = Cron::parse(text(&row[0]), Zone::utc()).unwrap();
        let mut at = Timestamp::parse(&format!("{}Z", text(&row[1]))).unwrap();
        for expected in texts(&row[2]) {
            at = cron.after(at).unwrap();
            assert_eq!(at, Timestamp::parse(&format!("{expected}Z")).unwrap(), "{row}");
        }
    }
}

#[test]
fn working_days_are_those_of_numpy_and_holidays() {
    for row in rows(include_str!("../../tests/vectors/business.jsonl")) {
        let dates = |key: &str| texts(&row[key]).into_iter().map(|date| parse_date(date).unwrap());
        let weekend = row["weekend"].as_array().unwrap().iter().map(|day| {
            let day: Result<i8, TryFromIntError> = day.as_i64().unwrap().try_into();
            Weekday::from_monday_one_offset(day.unwrap()).unwrap()
        });
        let content = Content {
            id: "vectors".to_owned(),
            version: "1".to_owned(),
            first: Date::constant(2025, 1, 1),
            last: Date::constant(2028, 12, 31),
            weekend: weekend.collect(),
            holidays: dates("holidays").collect(),
            extra_working_days: dates("working").collect(),
        };
        let calendar = WorkingDays::new(content).unwrap();
        for count in row["counts"].as_array().unwrap() {
            let (start, roll) = (parse_date(text(&count[0])).unwrap(), Roll::parse(text(&count[2])).unwrap());
            let end = calendar.count(start, count[1].as_i64().unwrap(), roll);
            assert_eq!(end, Ok(parse_date(text(&count[3])).unwrap()), "{count} of {}", row["country"]);
        }
    }
}

//! Tests of cron expressions: the grammar, the table of docs/time.md at changes of the clock, and a search by brute force.

use std::collections::BTreeSet;

use jiff::ToSpan as _;
use jiff::civil::date;
use proptest::prelude::*;

use super::*;

fn cron(text: &str, zone: &str) -> Cron {
    Cron::parse(text, Zone::get(zone).unwrap()).unwrap()
}

/// Returns the occurrences from an instant on, as clocks in the zone show them, without the year.
fn shown(text: &str, zone: &str, from: &str, count: usize) -> Vec<String> {
    let cron = cron(text, zone);
    let mut at = Timestamp::parse(from).unwrap();
    let mut shown = Vec::new();
    for _ in 0..count {
        at = cron.after(at).unwrap();
        shown.push(cron.zone().civil(at).unwrap().strftime("%m-%d %H:%M").to_string());
    }
    shown
}

fn refusal(text: &str) -> String {
    Cron::parse(text, Zone::utc()).unwrap_err().to_string()
}

/// T10: Sunday is 0 and 7, names are as numbers, ranges over the end of the week are not.
#[test]
fn days_of_the_week_are_as_in_posix() {
    let at = "2026-12-01T00:00:00Z"; // a Tuesday
    for sunday in ["0 0 * * 0", "0 0 * * 7", "0 0 * * SUN", "0 0 * * sun", "@weekly"] {
        assert_eq!(shown(sunday, "UTC", at, 2), ["12-06 00:00", "12-13 00:00"], "{sunday}");
    }
    for weekdays in ["0 0 * * 1-5", "0 0 * * MON-FRI", "0 0 * * 1,2,3,4,5"] {
        assert_eq!(shown(weekdays, "UTC", at, 4), ["12-02 00:00", "12-03 00:00", "12-04 00:00", "12-07 00:00"]);
    }
    for weekend in ["0 0 * * 6-7", "0 0 * * SAT-SUN", "0 0 * * SAT,SUN", "0 0 * * 0,6"] {
        assert_eq!(shown(weekend, "UTC", at, 3), ["12-05 00:00", "12-06 00:00", "12-12 00:00"], "{weekend}");
    }
}

/// T10: if both day fields are restricted, either suffices.
#[test]
fn the_thirteenth_or_a_friday() {
    assert_eq!(
        shown("0 0 13 * FRI", "UTC", "2026-12-01T00:00:00Z", 4),
        ["12-04 00:00", "12-11 00:00", "12-13 00:00", "12-18 00:00"]
    );
    // A range of all days is a restriction too.
    assert_eq!(shown("0 0 1-31 * FRI", "UTC", "2026-12-01T00:00:00Z", 2), ["12-02 00:00", "12-03 00:00"]);
}

#[test]
fn a_sixth_field_in_front_is_seconds() {
    let cron = cron("*/20 30 8 * * *", "UTC");
    let next = cron.after(Timestamp::parse("2026-12-01T08:30:20.001Z").unwrap()).unwrap();
    assert_eq!(next.to_string(), "2026-12-01T08:30:40.000Z");
    assert_eq!(cron.after(next).unwrap().to_string(), "2026-12-02T08:30:00.000Z");
}

/// T10: dates that no year has.
#[test]
fn impossible_dates_are_refused() {
    for text in ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 30-31 FEB *"] {
        assert!(refusal(text).contains("no year has such a date"), "{text}");
    }
    assert_eq!(shown("0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", 1), ["02-29 00:00"], "eight years later");
    assert_eq!(shown("0 0 30 2 MON", "UTC", "2026-12-01T00:00:00Z", 1), ["02-01 00:00"], "Mondays of February exist");
}

#[test]
fn what_crons_disagree_about_is_refused() {
    for text in ["0 0 */2 * MON", "0 0 13 * */2", "0 0 */2 * */2"] {
        assert!(refusal(text).contains("crons disagree about day of month"), "{text}: {}", refusal(text));
    }
    assert_eq!(shown("0 0 */10 * *", "UTC", "2026-12-01T00:00:00Z", 2), ["12-11 00:00", "12-21 00:00"]);
}

#[test]
fn what_is_no_expression_is_refused_by_field() {
    for (text, problem) in [
        ("", "it has 0 fields instead of five"),
        ("* * * *", "it has 4 fields instead of five"),
        ("* * * * * * *", "it has 7 fields instead of five"),
        ("@reboot", "it has 1 fields instead of five"),
        ("0 9 * * MON-", "day of week `MON-` has ``; write numbers from 0 to 7, or one of SUN MON"),
        ("0 9 L * *", "day of month `L` has `L`; write numbers from 1 to 31, ranges"),
        ("0 9 15W * *", "day of month `15W` has `15W`"),
        ("0 9 * * 5#2", "day of week `5#2` has `5#2`"),
        ("0 9 ? * 1", "day of month `?` has `?`"),
        ("0 9 * * +1", "day of week `+1` has `+1`"),
        ("0,,5 9 * * *", "minute `0,,5` has ``"),
        ("0/5 9 * * *", "minute `0/5` has a step after `0` alone; write a range"),
        ("*,5 9 * * *", "minute `*,5` has `*`"),
        ("JAN 9 * * *", "minute `JAN` has `JAN`"),
        ("0 9 MON * *", "day of month `MON` has `MON`"),
        ("0 9 1MON * *", "day of month `1MON` has `1MON`"),
        ("0 9 * * JAN", "day of week `JAN` has `JAN`"),
        ("*/x 9 * * *", "minute `*/X` has the step `X`; write a whole number, 1 or more"),
        ("*/0 9 * * *", "minute `*/0` has the step `0`"),
        ("1-9/0 9 * * *", "minute `1-9/0` has the step `0`"),
        ("60 9 * * *", "minute `60` has `60`; write numbers from 0 to 59"),
        ("0 24 * * *", "hour `24` has `24`; write numbers from 0 to 23"),
        ("0 9 0 * *", "day of month `0` has `0`; write numbers from 1 to 31"),
        ("0 9 * 13 *", "month `13` has `13`; write numbers from 1 to 12, or one of JAN"),
        ("0 9 * * 8", "day of week `8` has `8`"),
        ("30-10 9 * * *", "minute `30-10` has the range `30-10`, which goes backward; split it"),
        ("0 9 * * 5-0", "day of week `5-0` has the range `5-0`, which goes backward"),
        ("0 9 * * FRI-MON", "day of week `FRI-MON` has the range `FRI-MON`, which goes backward"),
    ] {
        let refusal = refusal(text);
        assert!(refusal.contains(problem), "{text}: {refusal}");
        assert!(refusal.starts_with(&format!("`{text}` is not a usable cron expression")), "{refusal}");
    }
    let long = refusal(&format!("0{} 9 * * *", ",0".repeat(1000)));
    assert!(long.contains("it has more than 1024 bytes") && long.len() < 400, "{long}");
}

/// The table of docs/time.md. In Berlin the clock goes from 02:00 to 03:00 on 2027-03-28, and from 03:00 to 02:00 on
/// 2027-10-31.
#[test]
fn the_published_table_holds() {
    let berlin = |text: &str, from: &str, count: usize| shown(text, "Europe/Berlin", from, count);
    let (before_gap, before_overlap) = ("2027-03-28T00:00:00Z", "2027-10-30T23:59:00Z");
    // Times of their own: a skipped one moves forward by the gap, a repeated one is the earlier.
    assert_eq!(berlin("30 2 * * *", before_gap, 2), ["03-28 03:30", "03-29 02:30"]);
    assert_eq!(berlin("30 2,3 * * *", before_gap, 2), ["03-28 03:30", "03-29 02:30"], "two of them are one");
    assert_eq!(berlin("0,45 2,3 * * *", before_gap, 3), ["03-28 03:00", "03-28 03:45", "03-29 02:00"]);
    assert_eq!(berlin("30 2 * * *", before_overlap, 2), ["10-31 02:30", "11-01 02:30"]);
    assert_eq!(
        cron("30 2 * * *", "Europe/Berlin").after(instant("2027-10-31T00:30:00Z")),
        Some(instant("2027-11-01T01:30:00Z"))
    );
    // With a `*` in the time of day: as the clock shows.
    assert_eq!(berlin("30 * * * *", before_gap, 3), ["03-28 01:30", "03-28 03:30", "03-28 04:30"]);
    assert_eq!(berlin("*/30 2 * * *", before_gap, 1), ["03-29 02:00"]);
    assert_eq!(
        berlin("*/30 * * * *", "2027-10-30T23:45:00Z", 6),
        ["10-31 02:00", "10-31 02:30", "10-31 02:00", "10-31 02:30", "10-31 03:00", "10-31 03:30"]
    );
}

#[test]
fn the_day_that_samoa_skipped() {
    let apia = |text: &str, from: &str, count: usize| shown(text, "Pacific/Apia", from, count);
    let before = "2011-12-29T12:00:00Z";
    assert_eq!(apia("0 9 * * *", before, 3), ["12-29 09:00", "12-31 09:00", "01-01 09:00"]);
    assert_eq!(apia("0 9 30 12 *", before, 2), ["12-31 09:00", "12-30 09:00"]);
    assert_eq!(apia("0 */12 30 12 *", before, 1), ["12-30 00:00"], "of the next year: no clock showed it");
}

#[test]
fn what_cannot_be_computed_ends_it() {
    for text in ["* * * * *", "0 9 * * *"] {
        let cron = cron(text, "Europe/Berlin");
        assert_eq!(cron.after(Timestamp::MAX), None, "{text}");
        assert_eq!(cron.after(Timestamp::from_millis(i64::MAX)), None, "{text}");
        assert_eq!(cron.after(Timestamp::from_millis(i64::MIN)), None, "{text}");
    }
}

fn instant(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

/// An expression as sets, and how it was written.
#[derive(Clone, Debug)]
struct Sets {
    text: String,
    minutes: BTreeSet<i8>,
    hours: BTreeSet<i8>,
    follows_clock: bool,
}

fn any_sets() -> impl Strategy<Value = Sets> {
    let some = |below: i8| prop::collection::btree_set(0..below, 1..4);
    let list = |set: &BTreeSet<i8>| set.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    prop_oneof![
        (some(60), some(5)).prop_map(move |(minutes, hours)| Sets {
            text: format!("{} {} * * *", list(&minutes), list(&hours)),
            minutes,
            hours,
            follows_clock: false,
        }),
        (1_i8..40, some(5)).prop_map(move |(step, hours)| Sets {
            text: format!("*/{step} {} * * *", list(&hours)),
            minutes: (0..60).step_by(usize::try_from(step).unwrap()).collect(),
            hours,
            follows_clock: true,
        }),
        some(60).prop_map(move |minutes| Sets {
            text: format!("{} * * * *", list(&minutes)),
            minutes,
            hours: (0..24).collect(),
            follows_clock: true,
        }),
    ]
}

impl Sets {
    fn matches(&self, civil: DateTime) -> bool {
        self.minutes.contains(&civil.minute()) && self.hours.contains(&civil.hour()) && civil.second() == 0
    }

    /// Looks at each minute of two days.
    fn next(&self, zone: &Zone, at: Timestamp) -> Timestamp {
        if self.follows_clock {
            let first_ms = (at.as_millis().div_euclid(60_000) + 1) * 60_000;
            let minutes = (0..4_000).map(|minute| Timestamp::from_millis(first_ms + minute * 60_000));
            return minutes.into_iter().find(|at| self.matches(zone.civil(*at).unwrap())).unwrap();
        }
        let start = zone.civil(at).unwrap().with().second(0).subsec_nanosecond(0).build().unwrap() - 26.hours();
        let civils = (0..5_000_i64).map(|minute| start + minute.minutes()).filter(|civil| self.matches(*civil));
        let resolved = civils.map(|civil| zone.resolve(civil, Disambiguation::Compatible).unwrap());
        resolved.filter(|found| *found > at).min().unwrap()
    }
}

proptest! {
    #[test]
    fn the_search_finds_what_brute_force_finds(
        sets in any_sets(),
        zone in prop::sample::select(vec!["Europe/Berlin", "Africa/Casablanca", "Australia/Lord_Howe", "America/Havana", "Pacific/Apia"]),
        skipped in 0_usize..20,
        around_ms in -20_000_000_i64..20_000_000,
    ) {
        let zone = Zone::get(zone).unwrap();
        let mut change = instant("2010-06-01T00:00:00Z");
        for _ in 0..=skipped {
            change = zone.next_change(change).unwrap_or(change);
        }
        let at = Timestamp::from_millis(change.as_millis() + around_ms);
        let cron = Cron::parse(&sets.text, zone.clone()).unwrap();
        let next = cron.after(at).unwrap();
        prop_assert!(next > at);
        prop_assert_eq!(next, sets.next(&zone, at), "{:?} after {} in {}", sets, at, zone);
        // And so does each later start up to it.
        let later = Timestamp::from_millis(next.as_millis() - 1);
        prop_assert_eq!(cron.after(later), Some(next));
    }

    #[test]
    fn no_text_panics(text in "[-*/,0-9A-Za-z@#?+ ]{0,40}|.{0,40}", at_ms: i64) {
        if let Ok(cron) = Cron::parse(&text, Zone::get("Europe/Berlin").unwrap()) {
            let at = Timestamp::from_millis(at_ms);
            prop_assert!(cron.after(at).is_none_or(|next| next > at));
        }
    }

    #[test]
    fn every_expression_of_the_grammar_is_taken_and_has_an_occurrence(
        minute in 0_u8..60, hour in 0_u8..24, day in 1_u8..=28, month in 1_u8..=12, weekday in 0_u8..=7, which in 0_u8..4
    ) {
        let text = match which {
            0 => format!("{minute} {hour} {day} {month} *"),
            1 => format!("{minute} {hour} {day} {month} {weekday}"),
            2 => format!("{minute}-59 {hour}-23/2 {day}-28 * *"),
            _ => format!("*/{} * * {month}-12 {weekday}-7", minute.max(1)),
        };
        let cron = Cron::parse(&text, Zone::utc()).unwrap();
        let from = Timestamp::from_millis(1_800_000_000_000);
        prop_assert!(cron.after(from).unwrap() > from);
    }
}

#[test]
fn the_civil_search_does_not_need_whole_seconds() {
    let minutely = cron("* * * * *", "UTC");
    assert_eq!(minutely.after(instant("2026-12-01T00:00:00.001Z")), Some(instant("2026-12-01T00:01:00Z")));
    assert_eq!(minutely.after(instant("2026-11-30T23:59:59.999Z")), Some(instant("2026-12-01T00:00:00Z")));
    assert_eq!(date(2026, 12, 1).at(0, 0, 0, 0), minutely.zone().civil(instant("2026-12-01T00:00:00Z")).unwrap());
}

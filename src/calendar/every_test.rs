//! Tests of intervals: no drift, the ends of months, changes of the clock, and laws.

use proptest::prelude::*;

use super::*;

fn every(interval: &str, anchor: &str, zone: &str) -> Every {
    Every {
        interval: Interval::parse(interval).unwrap(),
        anchor: Timestamp::parse(anchor).unwrap(),
        zone: Zone::get(zone).unwrap(),
    }
}

fn first(every: &Every, count: u64) -> Vec<String> {
    (0..count).map(|n| every.nth(n).unwrap().to_string().replace(":00.000Z", "")).collect()
}

/// T11: a month that is too short does not shorten those after it.
#[test]
fn monthly_from_the_31st_comes_back_to_the_31st() {
    let monthly = every("P1M", "2027-01-31T09:00:00Z", "UTC");
    assert_eq!(
        first(&monthly, 5),
        ["2027-01-31T09:00", "2027-02-28T09:00", "2027-03-31T09:00", "2027-04-30T09:00", "2027-05-31T09:00"]
    );
    let yearly = every("P1Y", "2028-02-29T00:00:00Z", "UTC");
    assert_eq!(yearly.nth(1).unwrap().to_string(), "2029-02-28T00:00:00.000Z");
    assert_eq!(yearly.nth(4).unwrap().to_string(), "2032-02-29T00:00:00.000Z");
}

/// T9: a day is a day of the zone, 24 hours are 24 hours.
#[test]
fn a_day_over_a_change_of_the_clock_is_not_24_hours() {
    let anchor = "2027-03-27T08:00:00Z"; // 09:00 in Berlin
    assert_eq!(
        first(&every("P1D", anchor, "Europe/Berlin"), 3),
        ["2027-03-27T08:00", "2027-03-28T07:00", "2027-03-29T07:00"]
    );
    assert_eq!(
        first(&every("PT24H", anchor, "Europe/Berlin"), 3),
        ["2027-03-27T08:00", "2027-03-28T08:00", "2027-03-29T08:00"]
    );
}

#[test]
fn a_skipped_time_moves_forward_and_the_next_day_is_itself_again() {
    let daily = every("P1D", "2027-03-27T01:30:00Z", "Europe/Berlin"); // 02:30 there
    assert_eq!(first(&daily, 3), ["2027-03-27T01:30", "2027-03-28T01:30", "2027-03-29T00:30"]);
}

#[test]
fn a_repeated_time_is_the_earlier_but_the_anchor_stays() {
    let daily = every("P1D", "2027-10-30T00:30:00Z", "Europe/Berlin"); // 02:30 there
    assert_eq!(first(&daily, 3), ["2027-10-30T00:30", "2027-10-31T00:30", "2027-11-01T01:30"]);
    let second_time = every("P1D", "2027-10-31T01:30:00Z", "Europe/Berlin"); // 02:30 there, for the second time
    assert_eq!(first(&second_time, 2), ["2027-10-31T01:30", "2027-11-01T01:30"]);
}

/// L7: after any absence the next occurrence is where it always was.
#[test]
fn occurrences_do_not_drift() {
    let often = every("PT15S", "2026-12-01T00:00:07Z", "UTC");
    let next = often.after(Timestamp::parse("2026-12-24T12:34:56.789Z").unwrap()).unwrap();
    assert_eq!(next.to_string(), "2026-12-24T12:35:07.000Z");
}

#[test]
fn the_anchor_is_an_occurrence_and_what_is_after_is_strictly_after() {
    let hourly = every("PT1H", "2026-12-01T00:00:00Z", "UTC");
    let before = Timestamp::from_millis(hourly.anchor.as_millis() - 1);
    assert_eq!(hourly.after(before), Some(hourly.anchor));
    assert_eq!(hourly.after(Timestamp::EPOCH), Some(hourly.anchor));
    assert_eq!(hourly.after(hourly.anchor), hourly.nth(1));
}

#[test]
fn the_day_that_samoa_skipped_is_its_neighbour() {
    let daily = every("P1D", "2011-12-29T19:00:00Z", "Pacific/Apia"); // 09:00 on the 29th there
    // The 30th does not exist: moved forward by the gap it is the 31st, which is an occurrence already.
    assert_eq!(first(&daily, 3), ["2011-12-29T19:00", "2011-12-30T19:00", "2011-12-30T19:00"]);
    assert_eq!(daily.after(daily.nth(1).unwrap()), daily.nth(3));
}

#[test]
fn what_cannot_be_computed_ends_it() {
    let monthly = every("P1M", "2027-01-31T09:00:00Z", "Europe/Berlin");
    for n in [u64::MAX, u64::MAX / 2, 1 << 40, 200_000] {
        assert_eq!(monthly.nth(n), None, "{n}");
    }
    assert_eq!(monthly.after(Timestamp::MAX), None);
    assert_eq!(monthly.after(Timestamp::from_millis(i64::MAX)), None);
    let seconds = every("PT1S", "1970-01-01T00:00:00Z", "UTC");
    assert_eq!(seconds.after(Timestamp::MAX), None);
    assert_eq!(seconds.after(Timestamp::from_millis(i64::MIN)), Some(Timestamp::EPOCH));
}

fn any_every() -> impl Strategy<Value = Every> {
    let zones = prop::sample::select(vec![
        "UTC",
        "Europe/Berlin",
        "Pacific/Apia",
        "Australia/Lord_Howe",
        "Africa/Casablanca",
        "America/Havana",
        "America/Nuuk",
    ]);
    let interval = (0_i64..30, 0_i64..60, 0_i64..10_000_000)
        .prop_filter_map("too short", |(months, days, seconds)| Interval::new(months, days, seconds * 1000).ok());
    (zones, interval, 1_200_000_000_000_i64..1_900_000_000_000).prop_map(|(zone, interval, anchor_ms)| Every {
        interval,
        anchor: Timestamp::from_millis(anchor_ms),
        zone: Zone::get(zone).unwrap(),
    })
}

proptest! {
    #[test]
    fn occurrences_come_in_order(every in any_every(), n in 0_u64..2_000) {
        prop_assert!(every.nth(n) <= every.nth(n + 1));
    }

    #[test]
    fn after_is_strict_the_first_and_the_inverse_of_nth(every in any_every(), n in 1_u64..2_000, off_ms in -100_000_000_i64..100_000_000) {
        let occurrence = every.nth(n).unwrap();
        let just_before = Timestamp::from_millis(occurrence.as_millis() - 1);
        prop_assert_eq!(every.after(just_before), Some(occurrence));
        let at = Timestamp::from_millis(occurrence.as_millis() + off_ms);
        let next = every.after(at).unwrap();
        prop_assert!(next > at);
        // Nothing between: all occurrences around are at or before `at`, or at or behind `next`.
        let around: Vec<_> = (0..n + 5).filter_map(|n| every.nth(n)).collect();
        prop_assert!(around.iter().all(|occurrence| *occurrence <= at || *occurrence >= next));
    }
}

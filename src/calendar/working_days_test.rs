//! Tests of calendars of working days: content, coverage, rolls and counts.

use super::super::local::parse_date;
use super::*;

fn day(text: &str) -> Date {
    parse_date(text).unwrap()
}

fn content() -> Content {
    Content {
        id: "de-by".to_owned(),
        version: "2026.1".to_owned(),
        first: day("2026-01-01"),
        last: day("2026-12-31"),
        weekend: vec![Weekday::Saturday, Weekday::Sunday],
        holidays: [day("2026-12-25"), day("2026-01-01")].into(),
        extra_working_days: [day("2026-12-19")].into(),
    }
}

fn counted(date: &str, n: i64, roll: Roll) -> Result<String, Uncounted> {
    WorkingDays::new(content()).unwrap().count(day(date), n, roll).map(|date| date.to_string())
}

/// T12: working Saturdays.
#[test]
fn an_extra_working_day_is_one() {
    let calendar = WorkingDays::new(content()).unwrap();
    assert_eq!(calendar.is_working(day("2026-12-19")), Some(true));
    assert_eq!(calendar.is_working(day("2026-12-12")), Some(false));
    assert_eq!(calendar.is_working(day("2026-12-25")), Some(false));
    assert_eq!(calendar.is_working(day("2027-01-04")), None);
    assert_eq!(counted("2026-12-18", 1, Roll::Following).unwrap(), "2026-12-19");
    assert_eq!(counted("2026-12-18", 2, Roll::Following).unwrap(), "2026-12-21");
}

/// T12: weekends on Friday and Saturday.
#[test]
fn a_weekend_is_what_the_calendar_says() {
    let gulf = Content {
        weekend: vec![Weekday::Friday, Weekday::Saturday],
        holidays: BTreeSet::new(),
        extra_working_days: BTreeSet::new(),
        ..content()
    };
    let calendar = WorkingDays::new(gulf).unwrap();
    assert_eq!(calendar.count(day("2026-12-03"), 1, Roll::Following).unwrap(), day("2026-12-06"), "Thursday to Sunday");
}

#[test]
fn a_day_off_rolls_before_days_are_counted() {
    let saturday = "2026-10-31";
    assert_eq!(counted(saturday, 1, Roll::Following).unwrap(), "2026-11-03", "Monday is day 0");
    assert_eq!(counted(saturday, 1, Roll::Preceding).unwrap(), "2026-11-02", "Friday is day 0");
    assert_eq!(counted(saturday, 1, Roll::ModifiedFollowing).unwrap(), "2026-11-02", "Monday is in another month");
    let sunday = "2026-11-01";
    assert_eq!(counted(sunday, 1, Roll::ModifiedPreceding).unwrap(), "2026-11-03", "Friday is in another month");
    assert_eq!(counted(saturday, 1, Roll::Reject), Err(Uncounted::DayOff));
    assert_eq!(counted("2026-10-30", 1, Roll::Reject).unwrap(), "2026-11-02");
}

/// T12: past the covered range.
#[test]
fn a_count_that_leaves_what_is_covered_is_none() {
    for (date, n) in
        [("2026-12-31", 1), ("2025-12-31", 1), ("2027-01-01", 1), ("2026-01-01", i64::MAX), ("2026-06-01", 300)]
    {
        for roll in Roll::ALL {
            let counted = counted(date, n, roll);
            let is_day_off = date == "2026-01-01" && roll == Roll::Reject && n < i64::from(COVERED_DAYS_MAX);
            assert_eq!(counted, Err(if is_day_off { Uncounted::DayOff } else { Uncounted::NotCovered }), "{date} {n}");
        }
    }
    let never = Content {
        weekend: (1..=7).filter_map(|day| Weekday::from_monday_one_offset(day).ok()).collect(),
        extra_working_days: BTreeSet::new(),
        ..content()
    };
    let calendar = WorkingDays::new(never).unwrap();
    for roll in [Roll::Following, Roll::ModifiedFollowing, Roll::Preceding, Roll::ModifiedPreceding] {
        assert_eq!(calendar.count(day("2026-06-01"), 1, roll), Err(Uncounted::NotCovered), "{roll:?}");
    }
}

#[test]
fn content_that_contradicts_itself_is_refused_with_all_problems() {
    let wrong = Content {
        id: "de by".to_owned(),
        version: String::new(),
        first: day("2026-12-31"),
        last: day("2026-01-01"),
        weekend: vec![Weekday::Sunday],
        holidays: [day("2026-12-25")].into(),
        extra_working_days: [day("2026-12-25")].into(),
    };
    assert_eq!(
        WorkingDays::new(wrong).unwrap_err(),
        [
            "id `de by` must be 1 to 64 characters of A-Z a-z 0-9 . _ -",
            "version `` must be 1 to 64 characters of A-Z a-z 0-9 . _ -",
            "valid from 2026-12-31 to 2026-01-01 is no range; the first date must not be behind the last",
            "2026-12-25 is not within 2026-12-31 to 2026-01-01, the dates that the calendar covers",
            "2026-12-25 is not within 2026-12-31 to 2026-01-01, the dates that the calendar covers",
            "2026-12-25 is both a holiday and an extra working day; remove one",
            "2026-12-25 is an extra working day, but no weekend; remove it",
        ]
    );
    let long = Content { first: day("1900-01-01"), ..content() };
    assert_eq!(
        WorkingDays::new(long).unwrap_err(),
        ["valid from 1900-01-01 to 2026-12-31 is more than a hundred years; cover less"]
    );
}

/// Stored with timers: it must not change from one release to the next.
#[test]
fn the_digest_is_of_the_content_and_not_of_its_order() {
    let calendar = WorkingDays::new(content()).unwrap();
    assert_eq!(calendar.digest().to_string(), "ee8ef7c452746b2086409af988e927c54896f9346848e1cce2b5cbf4d94257d8");
    let reordered = Content { weekend: vec![Weekday::Sunday, Weekday::Saturday, Weekday::Sunday], ..content() };
    assert_eq!(WorkingDays::new(reordered).unwrap().digest(), calendar.digest());
    let others = [
        Content { id: "de-be".to_owned(), ..content() },
        Content { version: "2026.2".to_owned(), ..content() },
        Content { last: day("2026-12-30"), ..content() },
        Content { holidays: [day("2026-12-25")].into(), ..content() },
        Content { extra_working_days: BTreeSet::new(), ..content() },
        Content { weekend: vec![Weekday::Saturday], ..content() },
    ];
    for other in others {
        assert_ne!(WorkingDays::new(other.clone()).unwrap().digest(), calendar.digest(), "{other:?}");
    }
}

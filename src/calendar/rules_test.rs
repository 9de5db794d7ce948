//! Tests of rules: the three errors, the arithmetic at its ends, and what `business` makes of its parameters.

use jiff::civil::Weekday;
use proptest::prelude::*;

use super::super::local::parse_date;
use super::super::parameters::Parameter;
use super::super::working_days::Content;
use super::*;

fn rules() -> Rules {
    let day = |text: &str| parse_date(text).unwrap();
    let content = Content {
        id: "de-by".to_owned(),
        version: "2026.1".to_owned(),
        first: day("2026-01-01"),
        last: day("2027-12-31"),
        weekend: vec![Weekday::Saturday, Weekday::Sunday],
        holidays: [day("2026-12-25"), day("2027-01-01"), day("2027-01-06")].into(),
        extra_working_days: [].into(),
    };
    Rules::new([WorkingDays::new(content).unwrap()]).unwrap()
}

fn with(values: &[(&str, Parameter)]) -> Parameters {
    Parameters(values.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
}

fn instant(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

/// Resolves `business` with n, calendar and zone of Berlin, and more parameters.
fn business(from: &str, n: i64, more: &[(&str, &str)]) -> Result<String, CalendarError> {
    let mut parameters = with(&[("n", n.into()), ("calendar", "de-by".into()), ("zone", "Europe/Berlin".into())]);
    parameters.0.extend(more.iter().map(|(name, value)| ((*name).to_owned(), Parameter::from(*value))));
    rules().resolve(instant(from), "business", &parameters).map(|due| due.to_string())
}

#[test]
fn fixed_rules_have_exact_lengths() {
    let from = instant("2027-03-27T12:00:00.123Z");
    for (rule, length_ms) in [("minutes", 60_000), ("hours", 3_600_000), ("days", 86_400_000)] {
        for n in [1, 2, 1000] {
            let due = rules().resolve(from, rule, &Parameters::of([("n", n)])).unwrap();
            assert_eq!(due.as_millis() - from.as_millis(), n * length_ms, "{rule}");
            assert_eq!(FixedRules.resolve(from, rule, &Parameters::of([("n", n)])), Ok(due), "{rule}");
        }
    }
}

#[test]
fn an_unknown_rule_is_told_apart_and_the_known_ones_are_named() {
    let error = rules().resolve(Timestamp::EPOCH, "weeks", &Parameters::default()).unwrap_err();
    assert_eq!(error.to_string(), "rule `weeks` is not known; use one of minutes, hours, days, business");
    let error = FixedRules.resolve(Timestamp::EPOCH, "business", &Parameters::default()).unwrap_err();
    assert_eq!(error.to_string(), "rule `business` is not known; use one of minutes, hours, days");
    let long = rules().resolve(Timestamp::EPOCH, &"x\n".repeat(1000), &Parameters::default()).unwrap_err().to_string();
    assert!(long.len() < 300 && !long.contains('\n'), "{long}");
}

#[test]
fn a_bad_parameter_says_what_it_is_and_what_it_must_be() {
    let refusal = |value: Option<Parameter>| {
        let parameters = value.map_or_else(Parameters::default, |value| with(&[("n", value)]));
        FixedRules.resolve(Timestamp::EPOCH, "minutes", &parameters).unwrap_err().to_string()
    };
    assert_eq!(refusal(None), "parameter `n` is missing; give a whole number, 1 or more");
    assert_eq!(refusal(Some(0.into())), "parameter `n` is 0, but must be 1 or more");
    assert_eq!(refusal(Some((-1).into())), "parameter `n` is -1, but must be 1 or more");
    assert_eq!(refusal(Some(i64::MIN.into())), "parameter `n` is -9223372036854775808, but must be 1 or more");
    assert_eq!(refusal(Some("5".into())), "parameter `n` is the text `5`, but must be a whole number");
    let other = Parameter::Other("1.5".to_owned());
    assert_eq!(refusal(Some(other)), "parameter `n` is 1.5, but must be a whole number of 64 bits");
}

#[test]
fn all_bad_parameters_are_told_at_once() {
    let parameters = with(&[
        ("n", 0.into()),
        ("calendar", "de-xx".into()),
        ("cut_off", 17.into()),
        ("at", "25:00".into()),
        ("roll", "sideways".into()),
        ("hours", 3.into()),
    ]);
    let error = rules().resolve(Timestamp::EPOCH, "business", &parameters).unwrap_err();
    let CalendarError::BadParameters(problems) = error else { panic!("{error}") };
    assert_eq!(
        problems,
        [
            "parameter `at` is not usable: `25:00` is not a time of day such as 17:00 or 17:00:30",
            "parameter `calendar` is not usable: no calendar is named `de-xx`; loaded are de-by",
            "parameter `cut_off` is the number 17, but must be a text",
            "parameter `hours` is none of the rule's parameters, which are n, calendar, zone, cut_off, at, roll",
            "parameter `n` is 0, but must be 1 or more",
            "parameter `roll` is not usable: `sideways` is no roll; use one of following, preceding, modified_following, \
             modified_preceding, reject",
            "parameter `zone` is missing; give a text",
        ]
    );
}

/// T1: no wrap at the ends of the numbers.
#[test]
fn out_of_range_is_told_apart() {
    let ends = [i64::MIN, i64::MIN + 1, -1, 0, 1, Timestamp::MAX.as_millis(), i64::MAX - 1, i64::MAX];
    for rule in ["minutes", "hours", "days"] {
        for n in [1, i64::MAX / 86_400_000, i64::MAX / 60_000, i64::MAX / 60_000 + 1, i64::MAX - 1, i64::MAX] {
            for from_ms in ends {
                let from = Timestamp::from_millis(from_ms);
                match FixedRules.resolve(from, rule, &Parameters::of([("n", n)])) {
                    Ok(due) => assert!(due > from && due <= Timestamp::MAX, "{n} {rule} from {from_ms}"),
                    Err(error) => assert!(matches!(error, CalendarError::OutOfRange(_)), "{n} {rule} from {from_ms}"),
                }
            }
        }
    }
    let parameters = with(&[("n", 1.into()), ("calendar", "de-by".into()), ("zone", "Europe/Berlin".into())]);
    for from_ms in ends {
        let error = rules().resolve(Timestamp::from_millis(from_ms), "business", &parameters).unwrap_err();
        assert!(matches!(error, CalendarError::OutOfRange(_)), "{from_ms}: {error}");
    }
}

/// T12: past the covered range, by name.
#[test]
fn a_calendar_that_ends_too_early_is_named() {
    assert_eq!(
        business("2027-12-30T09:00:00Z", 5, &[]).unwrap_err().to_string(),
        "5 working days from 2027-12-30 leave calendar `de-by`, version 2026.1, which covers 2026-01-01 to 2027-12-31; load \
         a longer one"
    );
}

#[test]
fn five_business_days_keep_the_time_of_day() {
    // Thursday 10:00 in Berlin; Friday is a holiday.
    assert_eq!(business("2026-12-24T09:00:00Z", 5, &[]).unwrap(), "2027-01-04T09:00:00.000Z");
    assert_eq!(business("2026-12-24T09:00:00Z", 5, &[("at", "08:30")]).unwrap(), "2027-01-04T07:30:00.000Z");
}

/// T12: before the opening hour, at the cut-off, behind it.
#[test]
fn from_the_cut_off_on_it_is_the_next_day() {
    let due = |from: &str| business(from, 1, &[("cut_off", "17:00"), ("at", "09:00")]).unwrap();
    assert_eq!(due("2026-12-03T04:00:00Z"), "2026-12-04T08:00:00.000Z", "05:00 on Thursday");
    assert_eq!(due("2026-12-03T15:59:59.999Z"), "2026-12-04T08:00:00.000Z", "16:59 on Thursday");
    assert_eq!(due("2026-12-03T16:00:00Z"), "2026-12-07T08:00:00.000Z", "17:00 on Thursday counts as Friday");
    assert_eq!(due("2026-12-04T16:00:00Z"), "2026-12-08T08:00:00.000Z", "17:00 on Friday counts as Monday");
    assert_eq!(due("2026-12-05T09:00:00Z"), "2026-12-08T08:00:00.000Z", "Saturday counts as Monday");
}

#[test]
fn a_roll_that_refuses_is_a_bad_parameter() {
    let error = business("2026-12-05T09:00:00Z", 1, &[("roll", "reject")]).unwrap_err();
    assert_eq!(
        error,
        CalendarError::BadParameters(vec![
            "parameter `roll` is reject, and 2026-12-05 is no working day in calendar `de-by`".to_owned()
        ])
    );
}

#[test]
fn a_time_of_day_that_is_skipped_moves_forward() {
    // Sundays are working days nowhere in this calendar, so the change is met in a zone that changes on a Friday.
    let parameters = with(&[
        ("n", 1.into()),
        ("calendar", "de-by".into()),
        ("zone", "Asia/Jerusalem".into()),
        ("at", "02:30".into()),
    ]);
    let due = rules().resolve(instant("2027-03-25T09:00:00Z"), "business", &parameters).unwrap();
    assert_eq!(due.to_string(), "2027-03-26T00:30:00.000Z", "03:30 there");
}

#[test]
fn two_calendars_of_one_id_are_refused() {
    let calendar = rules().calendars().next().unwrap().clone();
    let error = Rules::new([calendar.clone(), calendar]).unwrap_err();
    assert_eq!(error, "two calendars are named `de-by`, one of version 2026.1");
}

#[test]
fn the_digest_is_of_all_calendars_and_the_zone_database() {
    assert_ne!(rules().digest(), Rules::default().digest());
    assert_ne!(Rules::default().digest(), FixedRules.digest());
    assert_eq!(rules().digest(), rules().digest());
}

proptest! {
    #[test]
    fn business_is_strictly_after_and_monotone(
        from_ms in 1_768_000_000_000_i64..1_820_000_000_000,
        n in 1_i64..20,
        step_ms in 0_i64..400_000_000,
        cut_off in prop::option::of(0..24),
        at in prop::option::of(0..24),
        roll in prop::sample::select(&super::super::roll::Roll::ALL[..4]),
    ) {
        let mut parameters = with(&[("calendar", "de-by".into()), ("zone", "America/Havana".into()), ("roll", roll.name().into())]);
        for (name, hour) in [("cut_off", cut_off), ("at", at)] {
            parameters.0.extend(hour.map(|hour| (name.to_owned(), Parameter::Text(format!("{hour:02}:00")))));
        }
        let mut resolve = |from_ms: i64, n: i64| {
            parameters.0.insert("n".to_owned(), n.into());
            rules().resolve(Timestamp::from_millis(from_ms), "business", &parameters).unwrap()
        };
        let due = resolve(from_ms, n);
        prop_assert!(due.as_millis() > from_ms);
        prop_assert!(resolve(from_ms, n + 1) > due);
        if at.is_some() {
            prop_assert!(resolve(from_ms + step_ms, n) >= due, "a later start is not due earlier");
        }
    }
}

//! ISO 8601 durations of JSON commands.
//!
//! Owns the rule of what a duration may be written in: weeks, days, hours, minutes and seconds. A day is exactly 24 hours
//! and a week 7 of those, whatever a calendar says; years and months have no length and are refused.
//! Keeps: a duration finer than a millisecond is rounded **up**, so that nothing fires early.

use jiff::fmt::temporal::SpanParser;
use jiff::{SignedDuration, SpanRelativeTo};

use crate::text::shown;
use crate::timer::outcome::{Reason, Rejection};

const NANOS_PER_MILLI: i128 = 1_000_000;
/// Longest problem that a rejection tells, in characters.
const PROBLEM_CHARACTERS_MAX: usize = 160;

/// Parses a duration such as `PT30M` or `P7D` into milliseconds; a leading `-` makes it negative.
///
/// # Errors
/// A rejection when the text is not a duration, has years or months, or overflows.
pub fn parse_millis(field: &str, text: &str) -> Result<i64, Rejection> {
    let nanos = parse(text).map_err(|problem| refuse(field, text, &problem))?.as_nanos();
    let floor = nanos.div_euclid(NANOS_PER_MILLI);
    let millis = if nanos.rem_euclid(NANOS_PER_MILLI) > 0 { floor + 1 } else { floor };
    i64::try_from(millis).map_err(|_| refuse(field, text, "it has more milliseconds than 64 bits hold"))
}

/// Writes milliseconds as a duration that [`parse_millis`] reads back.
pub fn write_millis(millis: i64) -> String {
    SignedDuration::from_millis(millis).to_string()
}

fn parse(text: &str) -> Result<SignedDuration, String> {
    // Only ISO 8601: the other parser of jiff takes `1m`, which is a minute to some and a month to others.
    let parser = SpanParser::new();
    // Hours and finer units have the full range; weeks and days come with the smaller range of a span.
    if let Ok(duration) = parser.parse_duration(text) {
        return Ok(duration);
    }
    let span = parser.parse_span(text).map_err(|error| error.to_string())?;
    if span.get_years() != 0 || span.get_months() != 0 {
        return Err("years and months have no fixed length".to_owned());
    }
    span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|error| error.to_string())
}

fn refuse(field: &str, text: &str, problem: &str) -> Rejection {
    let text = shown(text);
    // The parser's text repeats what it could not parse, to the end of the input.
    let problem: String = problem.chars().take(PROBLEM_CHARACTERS_MAX).collect();
    Rejection::new(
        Reason::InvalidDuration,
        format!("{field} `{text}` is not a usable duration: {problem}; write ISO 8601 such as PT30M, PT1.5S or P7D"),
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn millis(text: &str) -> i64 {
        parse_millis("after", text).unwrap()
    }

    #[test]
    fn fixed_units_are_read() {
        assert_eq!(millis("PT30M"), 1_800_000);
        assert_eq!(millis("PT1M"), 60_000);
        assert_eq!(millis("P1D"), 24 * 3_600_000);
        assert_eq!(millis("P1D"), millis("PT24H"));
        assert_eq!(millis("P2W"), 14 * 24 * 3_600_000);
        assert_eq!(millis("P1DT2H3M4.005S"), ((26 * 60 + 3) * 60 + 4) * 1000 + 5);
        assert_eq!(millis("P400D"), 400 * 24 * 3_600_000);
        assert_eq!(millis("PT0S"), 0);
        assert_eq!(millis("-PT5S"), -5000);
    }

    #[test]
    fn finer_than_a_millisecond_rounds_up() {
        assert_eq!(millis("PT0.0000001S"), 1);
        assert_eq!(millis("PT1.2500001S"), 1251);
        assert_eq!(millis("PT1.250S"), 1250);
        assert_eq!(millis("-PT1.2505S"), -1250);
    }

    #[test]
    fn ambiguous_forms_are_refused() {
        for text in ["P1M", "P1Y", "P1Y2M", "1m", "1 month", "30m", "30", "", "PT", "P", "P1DT", "PT1X", "1:30"] {
            let rejection = parse_millis("after", text).unwrap_err();
            assert_eq!(rejection.reason, Reason::InvalidDuration, "{text}");
            assert!(rejection.detail.contains(&format!("after `{text}`")), "{}", rejection.detail);
        }
    }

    #[test]
    fn overflow_is_refused() {
        for text in ["PT9223372036854775807S", "PT99999999999999999999S", "P99999999999D", "PT9223372036854775.808S"] {
            assert_eq!(parse_millis("after", text).unwrap_err().reason, Reason::InvalidDuration, "{text}");
        }
        assert_eq!(millis("PT9223372036854775.807S"), i64::MAX);
    }

    proptest! {
        #[test]
        fn written_durations_are_read_back(millis: i64) {
            prop_assert_eq!(parse_millis("after", &write_millis(millis)).unwrap(), millis);
        }

        #[test]
        fn no_text_panics(text in "[-+PTYMWDHS0-9.,]{0,24}|.{0,40}") {
            let _ = parse_millis("after", &text);
        }
    }
}

//! Times as they are typed.
//!
//! Owns what `--at`, `--after` and `--retention` take. Keeps: a form that two people could read differently is refused, with
//! the form that was probably meant.

use std::time::Duration;

use super::args::WhenArgs;
use super::failure::Failure;
use crate::time::Timestamp;
use crate::timer::command::When;
use crate::wire::duration::{parse_millis, write_millis};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Reads `--at` or `--after`.
///
/// # Errors
/// When it is no instant with an offset, or no positive duration.
pub(super) fn when(args: &WhenArgs) -> Result<When, Failure> {
    match (&args.at, &args.after) {
        (Some(text), _) => instant(text).map(When::At),
        (None, Some(text)) => positive_millis("--after", text).map(When::AfterMillis),
        // The parser of the command line asks for one of them.
        (None, None) => Err(Failure::usage("neither --at nor --after is given")),
    }
}

/// Reads `--retention`.
///
/// # Errors
/// When it is no positive duration.
pub(super) fn retention(text: &str) -> Result<Duration, Failure> {
    positive_millis("--retention", text).map(|millis| Duration::from_millis(millis.unsigned_abs()))
}

fn instant(text: &str) -> Result<Timestamp, Failure> {
    Timestamp::parse(text).map_err(|error| {
        let failure = Failure::usage(format!("--at {error}"));
        let utc = format!("{text}Z");
        if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
            failure.with_remedy("write the instant, not its number of seconds or milliseconds")
        } else if Timestamp::parse(&utc).is_ok() {
            failure.with_remedy(format!("it has no offset: write {utc} if UTC is meant"))
        } else {
            failure.with_remedy("for a time from now, use --after PT30M")
        }
    })
}

fn positive_millis(flag: &str, text: &str) -> Result<i64, Failure> {
    match parse_millis(flag, text) {
        Ok(millis) if millis > 0 => Ok(millis),
        Ok(_) => Err(Failure::usage(format!("{flag} `{text}` is not longer than nothing"))
            .with_remedy("write a positive duration such as PT30M")),
        Err(rejection) => {
            let failure = Failure::usage(rejection.detail);
            Err(match meant(text) {
                Some(meant) => failure.with_remedy(format!("did you mean {meant}?")),
                None => failure,
            })
        }
    }
}

/// Returns what a duration of the settings (`30m`) is in ISO 8601, unless it has units that vary in length.
fn meant(text: &str) -> Option<String> {
    let has_vague_unit = text.contains('M') || text.contains("mo") || text.contains('y');
    if has_vague_unit {
        return None;
    }
    let duration = humantime::parse_duration(text).ok()?;
    let millis = i64::try_from(duration.as_millis()).ok()?;
    // What was said in days is best answered in days.
    if millis > 0 && millis % DAY_MS == 0 { Some(format!("P{}D", millis / DAY_MS)) } else { Some(write_millis(millis)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(at: Option<&str>, after: Option<&str>) -> String {
        let args = WhenArgs { at: at.map(str::to_owned), after: after.map(str::to_owned) };
        let mut told = Vec::new();
        let _ = when(&args).unwrap_err().report(&mut told);
        String::from_utf8(told).unwrap()
    }

    #[test]
    fn an_instant_and_a_duration_are_read() {
        let at = WhenArgs { at: Some("2026-12-01T10:00:00+01:00".to_owned()), after: None };
        assert_eq!(when(&at), Ok(When::At(Timestamp::parse("2026-12-01T09:00:00Z").unwrap())));
        let after = WhenArgs { at: None, after: Some("PT1.5S".to_owned()) };
        assert_eq!(when(&after), Ok(When::AfterMillis(1500)));
        assert_eq!(retention("P7D"), Ok(Duration::from_hours(7 * 24)));
    }

    #[test]
    fn t9_ambiguous_durations_are_refused_with_what_was_meant() {
        assert!(refusal(None, Some("30m")).ends_with("\n  did you mean PT30M?\n"), "{}", refusal(None, Some("30m")));
        assert!(refusal(None, Some("7d")).ends_with("\n  did you mean P7D?\n"), "{}", refusal(None, Some("7d")));
        assert!(refusal(None, Some("36h")).ends_with("\n  did you mean PT36H?\n"), "{}", refusal(None, Some("36h")));
        assert!(!refusal(None, Some("1M")).contains("did you mean"), "a minute or a month");
        assert!(!refusal(None, Some("P1M")).contains("did you mean"), "a month has no length");
        assert!(refusal(None, Some("PT0S")).contains("--after `PT0S` is not longer than nothing"), "zero");
        assert!(refusal(None, Some("-PT5S")).contains("is not longer than nothing"), "negative");
    }

    #[test]
    fn instants_that_are_none_are_refused_with_what_was_meant() {
        assert!(
            refusal(Some("2026-12-01T09:00:00"), None).contains("write 2026-12-01T09:00:00Z if UTC is meant"),
            "no offset"
        );
        assert!(refusal(Some("1796115600"), None).contains("not its number of seconds"), "a number");
        assert!(refusal(Some("tomorrow"), None).contains("use --after PT30M"), "a word");
    }
}

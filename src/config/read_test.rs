//! Texts to values: what is read, and what is refused with a remedy.

use super::*;

const DAY: Duration = Duration::from_hours(24);

fn text(text: &str) -> Written<'_> {
    Written { key: "section.key", text, origin: &Origin::Flag }
}

fn duration(written: &str) -> Result<Duration, String> {
    text(written).duration(Duration::from_millis(1)..=400 * DAY).map_err(|e| e.to_string())
}

fn size(written: &str) -> Result<u64, String> {
    text(written).size(1..=1 << 40).map_err(|e| e.to_string())
}

#[test]
fn durations_have_units() {
    assert_eq!(duration("100ms"), Ok(Duration::from_millis(100)));
    assert_eq!(duration("1h 30m"), Ok(Duration::from_mins(90)));
    assert_eq!(duration("400d"), Ok(400 * DAY));
    for wrong in ["", "5", "-5s", "s", "1e3s", "5 parsecs", "NaN", "inf"] {
        assert_eq!(
            duration(wrong),
            Err(format!(
                "section.key: `{wrong}` is not a duration; write a number with a unit: 100ms, 5s, 2m, 6h, 400d \
                 (from flag --set)"
            ))
        );
    }
}

#[test]
fn months_and_years_are_refused() {
    for ambiguous in ["1M", "1month", "2 months", "1y", "1year"] {
        assert_eq!(
            duration(ambiguous),
            Err(format!(
                "section.key: `{ambiguous}` has a month or a year, which have no fixed length; write days, 30d, or \
                 minutes, 1m (from flag --set)"
            ))
        );
    }
}

#[test]
fn ranges_are_named() {
    assert_eq!(
        duration("401d").unwrap_err(),
        "section.key: `401d` is out of range; it may be 1ms to 400d (from flag --set)"
    );
    assert!(duration("99999999999999999999d").is_err(), "overflow");
    assert_eq!(
        duration("1ms 1us").unwrap_err(),
        "section.key: `1ms 1us` is finer than a millisecond (from flag --set)"
    );
    assert_eq!(
        text("0").count::<u32>(1..=64).unwrap_err().to_string(),
        "section.key: `0` is not a whole number from 1 to 64 (from flag --set)"
    );
    assert!(text("300").count::<u8>(1..=1000).is_err(), "a range wider than the type");
    assert_eq!(text("16").count::<usize>(1..=64), Ok(16));
}

#[test]
fn sizes_have_units() {
    assert_eq!(size("1048576"), Ok(1 << 20));
    assert_eq!(size("64MiB"), Ok(64 << 20));
    assert_eq!(size("1MB"), Ok(1_000_000));
    for wrong in ["", "-1", "64 parsecs", "1e6", "NaN"] {
        assert!(size(wrong).unwrap_err().contains("is not a size; write bytes"), "{wrong}");
    }
    assert_eq!(
        text("1GiB").size(1..=1 << 20).unwrap_err().to_string(),
        "section.key: `1GiB` is out of range; it may be 1 B to 1.0 MiB (from flag --set)"
    );
}

#[test]
fn choices_and_addresses_name_what_is_right() {
    assert_eq!(
        text("yes").boolean().unwrap_err().to_string(),
        "section.key: `yes` is none of: true, false (from flag --set)"
    );
    assert_eq!(
        text("localhost:9464").address().unwrap_err().to_string(),
        "section.key: `localhost:9464` is not an IP address with a port; write 127.0.0.1:9464, 0.0.0.0:9464 or \
         [::]:9464 (from flag --set)"
    );
    assert_eq!(text("[::]:9464").address().unwrap().port(), 9464);
}

//! Tests of zones: the table of gaps and overlaps, at the edges of each.

use jiff::SignedDuration;
use jiff::civil::date;

use super::*;

fn instant(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

/// The table of docs/time.md.
#[test]
fn the_published_table_holds() {
    let berlin = Zone::get("Europe/Berlin").unwrap();
    let resolved = |civil, policy| berlin.resolve(civil, policy).map(|at| at.to_string()).map_err(|e| e.to_string());
    let skipped = date(2027, 3, 28).at(2, 30, 0, 0);
    assert_eq!(resolved(skipped, Disambiguation::Compatible).unwrap(), "2027-03-28T01:30:00.000Z");
    assert_eq!(resolved(skipped, Disambiguation::Earlier).unwrap(), "2027-03-28T00:30:00.000Z");
    assert_eq!(resolved(skipped, Disambiguation::Later).unwrap(), "2027-03-28T01:30:00.000Z");
    assert_eq!(
        resolved(skipped, Disambiguation::Reject).unwrap_err(),
        "2027-03-28T02:30:00 does not exist in Europe/Berlin, where the clock changes; choose another time, or another \
         disambiguation"
    );
    let repeated = date(2027, 10, 31).at(2, 30, 0, 0);
    assert_eq!(resolved(repeated, Disambiguation::Compatible).unwrap(), "2027-10-31T00:30:00.000Z");
    assert_eq!(resolved(repeated, Disambiguation::Earlier).unwrap(), "2027-10-31T00:30:00.000Z");
    assert_eq!(resolved(repeated, Disambiguation::Later).unwrap(), "2027-10-31T01:30:00.000Z");
    assert!(resolved(repeated, Disambiguation::Reject).unwrap_err().contains("exists twice in Europe/Berlin"));
}

/// T8: the edges of each gap and overlap from 2020 to 2030, in every zone, against the offsets around the change.
#[test]
fn gaps_and_overlaps_of_every_zone_have_exact_edges() {
    let second = SignedDuration::from_secs(1);
    let mut changes = 0;
    for name in Zone::names() {
        let zone = Zone::get(name).unwrap();
        let mut at = instant("2020-01-01T00:00:00Z");
        while let Some(change) = zone.next_change(at).filter(|change| *change < instant("2031-01-01T00:00:00Z")) {
            at = change;
            let before = zone.civil(Timestamp::from_millis(change.as_millis() - 1000)).unwrap() + second;
            let after = zone.civil(change).unwrap();
            let (low, high) = (before.min(after), before.max(after));
            let length_ms = i64::try_from(high.duration_since(low).as_millis()).unwrap();
            let offsets = |civil: DateTime| {
                let ms = |from: DateTime| i64::try_from(civil.duration_since(from).as_millis()).unwrap();
                [before, after].map(|shown| Timestamp::from_millis(change.as_millis() + ms(shown)))
            };
            let resolved = |civil, policy| zone.resolve(civil, policy);
            if length_ms > 0 {
                changes += 1;
                for civil in [low, high - second] {
                    let [by_before, by_after] = offsets(civil);
                    let (early, late) = (by_before.min(by_after), by_before.max(by_after));
                    let compatible = if before < after { late } else { early };
                    assert_eq!(resolved(civil, Disambiguation::Compatible), Ok(compatible), "{civil} in {name}");
                    assert_eq!(resolved(civil, Disambiguation::Earlier), Ok(early), "{civil} in {name}");
                    assert_eq!(resolved(civil, Disambiguation::Later), Ok(late), "{civil} in {name}");
                    assert!(resolved(civil, Disambiguation::Reject).is_err(), "{civil} in {name}");
                    assert_eq!(late.as_millis() - early.as_millis(), length_ms, "{civil} in {name}");
                }
            }
            for (civil, expected) in [(low - second, change.as_millis() - 1000), (high, change.as_millis())] {
                let expected = match (civil < low, before <= after) {
                    // Before a gap the old offset holds, and behind it the new one; around an overlap alike.
                    (true | false, true) => expected,
                    (true, false) => change.as_millis() - length_ms - 1000,
                    (false, false) => change.as_millis() + length_ms,
                };
                for policy in Disambiguation::ALL {
                    assert_eq!(resolved(civil, policy), Ok(Timestamp::from_millis(expected)), "{civil} in {name}");
                }
            }
        }
    }
    assert!(changes > 3_000, "{changes} changes are fewer than there were when this was written");
}

#[test]
fn an_unknown_zone_is_refused_by_name() {
    for name in ["", "Berlin", "Europe/Berlim", "+02:00", "Etc/Unknown", "local", "Europe/Berlin\n", "../etc/passwd"] {
        let error = Zone::get(name).unwrap_err().to_string();
        assert!(error.contains("is not in the time zone database 2026f; use an IANA name"), "{error}");
    }
    assert_eq!(Zone::get("utc").unwrap().name(), "UTC");
    assert_eq!(Zone::get("UTC").unwrap(), Zone::utc());
}

#[test]
fn what_cannot_be_computed_is_nothing() {
    let apia = Zone::get("Pacific/Apia").unwrap();
    assert_eq!(apia.civil(Timestamp::from_millis(i64::MAX)), None);
    assert_eq!(apia.civil(Timestamp::from_millis(i64::MIN)), None);
    assert!(apia.civil(Timestamp::EPOCH).is_some(), "the epoch");
    assert!(apia.resolve(DateTime::MAX, Disambiguation::Compatible).is_err(), "the end of years");
    assert!(apia.resolve(DateTime::MIN, Disambiguation::Compatible).is_err(), "the beginning of years");
    assert_eq!(apia.next_change(Timestamp::from_millis(i64::MAX)), None);
    assert_eq!(apia.last_gap(Timestamp::from_millis(i64::MAX)), None);
}

#[test]
fn a_gap_is_found_until_the_next_change() {
    let apia = Zone::get("Pacific/Apia").unwrap();
    let gap = apia.last_gap(instant("2011-12-30T10:00:00Z")).unwrap();
    assert_eq!(gap.start, date(2011, 12, 30).at(0, 0, 0, 0), "the day that Samoa skipped");
    assert_eq!(gap.length_s, 86_400);
    assert_eq!(apia.last_gap(instant("2011-12-30T09:59:59Z")), apia.last_gap(instant("2011-10-01T00:00:00Z")));
    assert_eq!(Zone::utc().last_gap(Timestamp::EPOCH), None);
}

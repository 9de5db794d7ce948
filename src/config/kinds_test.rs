//! The list of kinds: what becomes of it, and what is refused in it.

use std::path::PathBuf;

use super::*;
use crate::config::sources::Sources;

fn load(file: &str) -> Result<Vec<KindSetting>, ConfigError> {
    let file = Some((PathBuf::from("p.yaml"), file.to_owned()));
    let kinds = read(&Layers::merge(&Sources { file, ..Sources::default() })?)?;
    registry(&kinds)?;
    Ok(kinds)
}

fn refusal(file: &str) -> String {
    load(file).unwrap_err().to_string()
}

#[test]
fn kinds_map_to_their_topics() {
    let kinds = load(
        "kinds:\n\
         - {number: 1, name: email}\n\
         - {number: 2, name: payment, past_due: reject, outbox: true, fired_topic: payments}\n\
         - {number: 3, name: audit, past_due: skip, outbox_topic: audit-log}\n",
    )
    .unwrap();
    let number = |n| KindNumber::new(n).unwrap();
    let topics = |pairs: &[(u32, &str)]| pairs.iter().map(|(n, t)| (number(*n), (*t).to_owned())).collect();
    let fired: BTreeMap<_, _> = topics(&[(1, "fired.email"), (2, "payments"), (3, "fired.audit")]);
    assert_eq!(fired_topics(&kinds, "fired.{kind}"), fired);
    let outbox: BTreeMap<_, _> = topics(&[(2, "outbox.payment"), (3, "audit-log")]);
    assert_eq!(outbox_topics(&kinds, "outbox.{kind}"), outbox);
    assert_eq!(kinds[1].kind.past_due, PastDue::Reject);
    assert!(!kinds[0].kind.outbox, "no outbox unless it is asked for");
}

#[test]
fn delivery_by_claim_has_a_lease() {
    let claim = |file: &str| load(file).unwrap()[0].kind.claim;
    assert_eq!(claim("kinds:\n- {number: 1, name: a, delivery: once}\n"), None);
    let given = Claim { lease: Duration::from_mins(5), attempts_max: Some(10) };
    assert_eq!(claim("kinds:\n- {number: 1, name: a, delivery: claim, lease: 5m, max_attempts: 10}\n"), Some(given));
    let default = Claim { lease: Duration::from_mins(1), attempts_max: None };
    assert_eq!(claim("kinds:\n- {number: 1, name: a, delivery: claim}\n"), Some(default));
    assert_eq!(
        refusal("kinds:\n- {number: 1, name: a, lease: 5m}\n"),
        "kinds[0].lease: `5m` is for `delivery: claim`; add that, or remove it (from p.yaml line 2)"
    );
    assert_eq!(
        refusal("kinds:\n- {number: 1, name: a, delivery: claim, max_attempts: 0}\n"),
        "kinds[0].max_attempts: `0` is not a whole number from 1 to 4294967295 (from p.yaml line 2)"
    );
}

#[test]
fn events_are_in_an_envelope_only_where_it_is_asked_for() {
    let mode = |file: &str| load(file).map(|kinds| kinds[0].kind.content_mode);
    assert_eq!(mode("kinds:\n- {number: 1, name: a}\n").unwrap(), ContentMode::Binary);
    assert_eq!(mode("kinds:\n- {number: 1, name: a, content_mode: structured}\n").unwrap(), ContentMode::Structured);
    assert_eq!(
        refusal("kinds:\n- {number: 1, name: a, content_mode: json}\n"),
        "kinds[0].content_mode: `json` is none of: binary, structured (from p.yaml line 2)"
    );
}

#[test]
fn ids_are_remembered_only_where_it_is_asked_for() {
    let remember = |file: &str| load(file).unwrap()[0].kind.remember;
    assert_eq!(remember("kinds:\n- {number: 1, name: a}\n"), Duration::ZERO);
    assert_eq!(remember("kinds:\n- {number: 1, name: a, remember: 10m}\n"), Duration::from_mins(10));
    assert_eq!(remember("kinds:\n- {number: 1, name: a, remember: 0s}\n"), Duration::ZERO);
    assert_eq!(
        refusal("kinds:\n- {number: 1, name: a, remember: 367d}\n"),
        "kinds[0].remember: `367d` is out of range; it may be 0s to 366d (from p.yaml line 2)"
    );
    assert_eq!(
        refusal("kinds:\n- {number: 1, name: a, remember: -1s}\n"),
        "kinds[0].remember: `-1s` is not a duration; write a number with a unit: 100ms, 5s, 2m, 6h, 400d (from p.yaml line 2)"
    );
}

#[test]
fn zero_duplicate_and_reserved_numbers_are_refused() {
    assert_eq!(
        refusal("kinds:\n- {number: 0, name: a}\n"),
        "kinds[0]: kind `a` has number 0; use 1 to 239 (240 to 255 are reserved for tests) (from p.yaml line 2)"
    );
    assert_eq!(
        refusal("kinds:\n- {number: 240, name: a}\n"),
        "kinds[0]: kind `a` has number 240; use 1 to 239 (240 to 255 are reserved for tests) (from p.yaml line 2)"
    );
    assert_eq!(
        refusal("kinds:\n- {number: 1, name: a}\n- {number: 1, name: b}\n"),
        "kinds[1]: kinds `a` and `b` both have number 1; a number belongs to one kind for ever (from p.yaml line 3)"
    );
    assert_eq!(
        refusal("kinds:\n- {number: 1, name: a}\n- {number: 2, name: a}\n"),
        "kinds[1]: two kinds are named `a`; names are unique (from p.yaml line 3)"
    );
    assert_eq!(
        refusal("kinds:\n- {number: 1, name: a b}\n"),
        "kinds[0]: kind number 1 is named `a b`; use 1 to 64 characters of A-Z a-z 0-9 . _ - (from p.yaml line 2)"
    );
}

#[test]
fn entries_are_checked_field_by_field() {
    assert_eq!(
        refusal("kinds:\n- number: 1\n  name: a\n  past_do: fire\n"),
        "kinds[0].past_do: is no setting of a kind; there are number, name, past_due, outbox, fired_topic, outbox_topic, delivery, lease, max_attempts, expires_after, \
         remember, content_mode (from p.yaml line 4)"
    );
    assert_eq!(
        refusal("kinds:\n- number: 1\n  name: a\n  past_due: later\n"),
        "kinds[0].past_due: `later` is none of: fire, reject, skip (from p.yaml line 4)"
    );
    assert_eq!(
        refusal("kinds:\n- {name: a}\n"),
        "kinds[0]: has no number; write {number: 1, name: email} (from p.yaml line 2)"
    );
    assert_eq!(
        refusal("kinds: [email]"),
        "kinds[0]: is not a kind; write {number: 1, name: email} (from p.yaml line 1)"
    );
    assert_eq!(
        refusal("kinds:\n- {number: 1, name: a, outbox: false, outbox_topic: t}\n"),
        "kinds[0].outbox: `false` contradicts outbox_topic; remove one of them (from p.yaml line 2)"
    );
    assert_eq!(
        refusal("kinds:\n- {number: 1, name: a, name: b}\n"),
        "kinds[0].name: is given twice; keep one of them (from p.yaml line 2)"
    );
}

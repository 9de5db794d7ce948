//! Envelopes: byte for byte, and back.

use expect_test::expect;
use proptest::prelude::*;

use super::*;
use crate::timer::outcome::{Effect, FiredEvent};
use crate::wire::strategy;

fn header(key: &str, value: &'static [u8]) -> Header {
    Header { key: key.to_owned(), value: Some(Bytes::from_static(value)) }
}

/// Returns the envelope of a payload with a few of our headers.
fn wrapped(payload: Option<&'static [u8]>, arms: &[Header]) -> (String, Vec<Header>) {
    let own = vec![header("ce_specversion", b"1.0"), header("ce_id", b"a/\"r\"/t/7"), header("punctual-run", b"\"r\"")];
    let (value, headers) = wrap(payload.map(Bytes::from_static).as_ref(), own, arms);
    (String::from_utf8(value.to_vec()).unwrap(), headers)
}

fn data_of(payload: &'static [u8], content_type: Option<&'static [u8]>) -> String {
    let arms: Vec<Header> = content_type.map(|value| header("Content-Type", value)).into_iter().collect();
    let (text, _) = wrapped(Some(payload), &arms);
    let (_, data) = text.split_once("\"punctualrun\":\"\\\"r\\\"\",").unwrap();
    data.strip_suffix('}').unwrap().to_owned()
}

#[test]
fn golden_envelope() {
    let arms = [header("x", b"1"), header("content-type", b"application/json"), header("x", b"\xff")];
    let (text, headers) = wrapped(Some(br#"{"total": 1.50}"#), &arms);
    expect![[r#"{"specversion":"1.0","id":"a/\"r\"/t/7","punctualrun":"\"r\"","datacontenttype":"application/json","data":{"total": 1.50}}"#]]
        .assert_eq(&text);
    let names: Vec<&str> = headers.iter().map(|header| header.key.as_str()).collect();
    assert_eq!(names, ["ce_specversion", "ce_id", "punctual-run", "content-type", "x", "x"]);
    assert_eq!(headers[3], header("content-type", b"application/cloudevents+json; charset=utf-8"));
    assert_eq!(wrapped(None, &[]).0, r#"{"specversion":"1.0","id":"a/\"r\"/t/7","punctualrun":"\"r\""}"#);
}

#[test]
fn a_payload_stands_as_its_content_type_says() {
    let check = |payload, content_type, expected: &str| assert_eq!(data_of(payload, content_type), expected);
    check(b"[1, 2]", None, r#""data":[1, 2]"#);
    check(b"text", None, r#""data_base64":"dGV4dA==""#);
    check(b"", None, r#""data_base64":"""#);
    check(b"{", Some(b"application/json"), r#""datacontenttype":"application/json","data_base64":"ew==""#);
    check(b"{}", Some(b"application/vnd.a+JSON; v=1"), r#""datacontenttype":"application/vnd.a+JSON; v=1","data":{}"#);
    check(
        b"say \"hi\" to all of them",
        Some(b"text/plain"),
        r#""datacontenttype":"text/plain","data":"say \"hi\" to all of them""#,
    );
    check(
        b"\x01\x02\x03\x04\x05\x06\x07\x08",
        Some(b"text/plain"),
        r#""datacontenttype":"text/plain","data_base64":"AQIDBAUGBwg=""#,
    );
    check(b"\xff", Some(b"image/png"), r#""datacontenttype":"image/png","data_base64":"/w==""#);
    check(b"{}", Some(b"bad\ntype"), r#""data_base64":"e30=""#);
}

/// Returns the payload that an envelope has, as one who knows the specification finds it.
fn payload_of(envelope: &Value) -> Option<Vec<u8>> {
    if let Some(encoded) = envelope.get("data_base64") {
        return Some(STANDARD.decode(encoded.as_str().unwrap()).unwrap());
    }
    let data = envelope.get("data")?;
    let content_type = envelope.get("datacontenttype").and_then(Value::as_str);
    let is_text = content_type.is_some_and(|name| !is_json(name));
    Some(if is_text { data.as_str().unwrap().as_bytes().to_vec() } else { data.to_string().into_bytes() })
}

proptest! {
    #[test]
    fn the_payload_comes_back(
        timer in strategy::timer(),
        content_type in prop::sample::select(vec!["application/json", "text/plain", "image/png", ""]),
    ) {
        let event = FiredEvent { fired: timer.wake, attempt: 1, effect: Effect::Published, timer };
        let timer = &event.timer;
        let mut arms = timer.headers.clone();
        arms.retain(|header| !is_content_type(header));
        let others = arms.clone();
        if !content_type.is_empty() {
            arms.push(Header { key: CONTENT_TYPE.to_owned(), value: Some(Bytes::from(content_type)) });
        }
        let own = fired::own_headers(&event, "email", "/punctual");
        let count = own.len();
        let (value, headers) = wrap(timer.payload.as_ref(), own, &arms);
        let envelope: Value = serde_json::from_slice(&value).unwrap();
        let payload = payload_of(&envelope);
        let is_as_it_is = payload.as_deref() == timer.payload.as_deref();
        // JSON is the same value; this reader writes it without its spaces.
        let as_json = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).ok();
        let is_same_json = || payload.as_deref().and_then(as_json) == timer.payload.as_deref().and_then(as_json);
        prop_assert!(is_as_it_is || is_same_json(), "{envelope}");
        prop_assert_eq!(envelope["id"].as_str().unwrap(), format!("{}/{}", timer.key, timer.generation.0));
        prop_assert_eq!(&headers[count + 1..], others.as_slice(), "the arm's own headers stay");
        let identity = timer.key.run.tenant.as_str().len() + timer.key.run.run.as_str().len() + timer.key.id.as_str().len();
        let room = 1024 + 6 * identity + timer.payload.as_ref().map_or(0, |payload| payload.len() + payload.len().div_ceil(3));
        prop_assert!(value.len() <= room, "{} bytes, and there is room for {room}", value.len());
    }
}

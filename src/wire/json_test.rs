//! What the tree keeps of a text, and what is not JSON.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn refusal(text: &str) -> String {
    Json::parse(text.as_bytes()).unwrap_err().detail
}

#[test]
fn numbers_are_whole_or_not() {
    let numbers = "[0, 18446744073709551615, -1, -0, 1.0, 1e18, 18446744073709551616, -9223372036854775808]";
    let Json::List(numbers) = Json::parse(numbers.as_bytes()).unwrap() else { panic!("a list") };
    assert_eq!(numbers[..3], [Json::Whole(0), Json::Whole(u64::MAX), Json::Negative(-1)]);
    assert_eq!(numbers[7], Json::Negative(i64::MIN));
    for other in &numbers[3..7] {
        assert!(matches!(other, Json::Other(_)), "{other}");
    }
}

#[test]
fn a_member_that_stands_twice_is_nobodys() {
    let tree = Json::parse(br#"{"run":"a","run":"b","tenant":"t"}"#).unwrap();
    assert_eq!(tree.member("run"), None);
    assert_eq!(tree.member("tenant").and_then(Json::as_text), Some("t"));
    let refusal = Members::open(tree, "", &["run", "tenant"]).err().map(|rejection| rejection.detail);
    assert_eq!(refusal.as_deref(), Some("`run` stands twice; give it once"));
}

#[test]
fn what_is_not_json_is_refused_with_its_place() {
    assert_eq!(refusal(r#"{"arm":{"after":NaN}}"#), "arm.after is not JSON: expected value at line 1 column 17");
    assert_eq!(refusal("{"), "the command is not JSON: EOF while parsing an object at line 1 column 1");
    assert_eq!(refusal("{} {}"), "behind the command stands more: trailing characters at line 1 column 4");
    assert!(refusal("{\"run\":\"\\ud800\"}").contains("run is not JSON"), "half of a surrogate pair");
    assert!(Json::parse(b"{\"run\":\"\xff\"}").is_err(), "not UTF-8");
}

#[test]
fn depth_is_bounded() {
    assert!(refusal(&"[".repeat(1_000_000)).contains("recursion limit exceeded"), "lists");
    assert!(refusal(&"{\"a\":".repeat(100_000)).contains("recursion limit exceeded"), "objects");
}

/// Two bytes of text are a value of dozens in memory: a crowd of them is refused before it is a tree.
#[test]
fn the_number_of_values_is_bounded() {
    let list = |values: usize| format!("[{}0]", "0,".repeat(values - 2));
    assert!(Json::parse(list(VALUES_MAX).as_bytes()).is_ok(), "the list and what is in it");
    let refused = Json::parse(list(VALUES_MAX + 1).as_bytes()).unwrap_err();
    assert_eq!(refused, too_many());
}

#[test]
fn base64_is_read_with_and_without_padding() {
    let read = |text: &str| {
        let tree = Json::Object(vec![("value_base64".to_owned(), Json::Text(text.to_owned()))]);
        Members::open(tree, "", &["value_base64"]).unwrap().bytes("value")
    };
    assert_eq!(read("/w==").unwrap(), Some(Bytes::from_static(b"\xff")));
    assert_eq!(read("/w").unwrap(), Some(Bytes::from_static(b"\xff")));
    assert_eq!(read("").unwrap(), Some(Bytes::new()));
    assert!(read("_w==").unwrap_err().detail.starts_with("`value_base64` is \"_w==\"; give base64"), "URL");
    assert!(read("/x").is_err(), "bits that say nothing");
    assert!(read("/w= =").is_err(), "a space");
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in vec(any::<u8>(), 0..64), text in "[\\[\\]{}\",:0-9a-ez.\\\\-]{0,40}") {
        let _ = (Json::parse(&bytes), Json::parse(text.as_bytes()));
    }
}

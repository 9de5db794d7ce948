//! The mistakes that can be planted, as src/planted.rs lists them.
//!
//! Owns the reading of that list, for the test that plants them and for the one that checks their page. Keeps the order.

const LIST: &str = include_str!("../../src/planted.rs");

/// Returns the names and the sentences of the mistakes.
pub(crate) fn listed() -> Vec<(&'static str, &'static str)> {
    let mut listed = Vec::new();
    let mut sentence = None;
    for line in LIST.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("/// ") {
            sentence = Some(text);
        } else if let Some(name) = line.strip_suffix(',').filter(|name| name.chars().all(char::is_alphanumeric)) {
            listed.push((name, sentence.take().expect("each mistake has one sentence on one line")));
        }
    }
    listed
}

/// Returns what the page says of a mistake, as far as it does not depend on who caught it.
pub(crate) fn row((name, sentence): (&str, &str)) -> String {
    format!("| `{name}` | {sentence} | ")
}

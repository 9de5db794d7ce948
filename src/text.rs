//! How errors repeat what somebody wrote.
//!
//! Owns [`shown`]. Keeps: one line, and not a long one, for errors end up in headers and in logs.

/// Longest part of a text that an error repeats, in characters.
const SHOWN_CHARACTERS_MAX: usize = 64;

/// Returns a text as errors show it: shortened, with control characters escaped.
pub(crate) fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN_CHARACTERS_MAX).flat_map(char::escape_debug).collect();
    if text.chars().nth(SHOWN_CHARACTERS_MAX).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_shown_on_one_line_and_cut() {
        assert_eq!(shown("a\nb\u{7}"), "a\\nb\\u{7}");
        assert_eq!(shown(&"é".repeat(64)), "é".repeat(64));
        assert_eq!(shown(&"é".repeat(65)), format!("{}…", "é".repeat(64)));
    }
}

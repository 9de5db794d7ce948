//! The text of the crate's files, and the little that must be known of Rust to read it.
//!
//! Owns [`Source`], the walk over the files and the blanking of comments and literals. Knows no rule.
//! Keeps: blanked code has the offsets and the lines of the text.

use std::fs;
use std::path::Path;

/// A file of the crate.
pub(crate) struct Source {
    /// Its path from the root of the repository.
    pub(crate) path: String,
    /// Its text.
    pub(crate) text: String,
    /// The text with comments and literals blanked; line numbers are the same.
    pub(crate) code: String,
}

/// Blanks comments and literals, so that what is left is code, at the same offsets.
fn code_of(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(char) = rest.chars().next() {
        let behind_word = code.ends_with(is_word_char);
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            block_comment_len(rest)
        } else if rest.starts_with('"') {
            quoted_len(rest, '"')
        } else if !behind_word && (rest.starts_with("r\"") || rest.starts_with("r#")) {
            raw_string_len(rest)
        } else if rest.starts_with("'\\") || (rest.starts_with('\'') && rest.chars().nth(2) == Some('\'')) {
            quoted_len(rest, '\'')
        } else {
            0
        };
        let (blanked, len) = (skipped > 0, skipped.max(char.len_utf8()));
        for byte in rest.as_bytes().iter().take(len).filter(|_| blanked) {
            code.push(if *byte == b'\n' { '\n' } else { ' ' });
        }
        if !blanked {
            code.push(char);
        }
        rest = &rest[len..];
    }
    code
}

fn block_comment_len(text: &str) -> usize {
    let mut depth = 0_usize;
    for (at, pair) in text.as_bytes().windows(2).enumerate() {
        match pair {
            b"/*" => depth += 1,
            b"*/" if depth == 1 => return at + 2,
            b"*/" => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

fn quoted_len(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, char) in text.char_indices().skip(1) {
        match char {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if char == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns the length of the raw string at the start, or 0 if it is a raw identifier.
fn raw_string_len(text: &str) -> usize {
    let hashes = text.chars().skip(1).take_while(|char| *char == '#').count();
    if text.as_bytes().get(1 + hashes) != Some(&b'"') {
        return 0;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    let body = 2 + hashes;
    text[body..].find(&end).map_or(text.len(), |at| body + at + end.len())
}

pub(crate) fn source(path: &str, text: &str) -> Source {
    Source { path: path.to_owned(), text: text.to_owned(), code: code_of(text) }
}

pub(crate) fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut folders: Vec<String> = ["src", "tests", "benches"].map(String::from).to_vec();
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(root.join(&folder)).expect("a folder of sources can be read");
        for entry in entries {
            let entry = entry.expect("a folder of sources can be read");
            let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                folders.push(path);
            } else if entry.path().extension().is_some_and(|extension| extension == "rs") {
                found.push(source(&path, &fs::read_to_string(entry.path()).expect("a source is text")));
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Returns the braces behind a signature with what is in them; nothing if there is no body.
pub(crate) fn body_of(signature: &str) -> &str {
    let mut brackets = 0_usize;
    let is_end = |char: char| {
        match char {
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets = brackets.saturating_sub(1),
            _ => {}
        }
        brackets == 0 && (char == '{' || char == ';')
    };
    let Some(open) = signature.find(is_end) else { return "" };
    let body = &signature[open..];
    let mut depth = 0_usize;
    for (at, char) in body.char_indices() {
        match char {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return &body[..at];
        }
    }
    body
}

pub(crate) fn find_words(source: &Source, word: &str, why: &str) -> Vec<String> {
    let whole = |at: &usize| {
        let behind = &source.code[at + word.len()..];
        !source.code[..*at].ends_with(is_word_char) && !behind.starts_with(is_word_char)
    };
    let places = source.code.match_indices(word).map(|(at, _)| at).filter(whole);
    places.map(|at| at_line(source, at, &format!("`{word}` {why}"))).collect()
}

pub(crate) fn at_line(source: &Source, at: usize, what: &str) -> String {
    format!(":{}: {what}", source.code[..at].matches('\n').count() + 1)
}

pub(crate) fn is_word_char(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

pub(crate) fn leading_word(text: &str) -> Option<&str> {
    let end = text.find(|char| !is_word_char(char)).unwrap_or(text.len());
    text.get(..end).filter(|word| !word.is_empty())
}

#[test]
fn comments_and_literals_are_no_code() {
    let code = code_of("a /* b /* c */ d */ \"e\\\"\" r#\"f\"g\"# 'h' '\\'' &'i j // k");
    assert_eq!(code.split_whitespace().collect::<Vec<_>>(), ["a", "&'i", "j"]);
}

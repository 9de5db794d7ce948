//! The pages of the documentation: what they name exists.
//!
//! Owns the search for links and ids of invariants in them. Never looks outside of the repository. Keeps: it finds its own bad example.

#![expect(clippy::unwrap_used, reason = "a page that cannot be read fails where it stands")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const INVARIANTS: &str = "ARCHITECTURE.md";

/// Returns every page: those of the root and of `docs/`.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["", "docs", "docs/adr", "helm/punctual"].map(|folder| root.join(folder));
    let entries = folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap());
    let files = entries.map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|ending| ending == "md")).collect()
}

/// Returns the targets of the links of a text.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|behind| behind.split_once(')')).map(|(target, _)| target)
}

/// Returns the anchors of the headings of a page, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let is_kept = |character: &char| character.is_alphanumeric() || matches!(character, ' ' | '-' | '_');
    let headings =
        text.lines().filter_map(|line| line.strip_prefix('#')).map(|line| line.trim_start_matches('#').trim());
    headings.map(|line| line.to_lowercase().chars().filter(is_kept).collect::<String>().replace(' ', "-")).collect()
}

/// Returns what is wrong with the links of a page.
fn broken_links(path: &Path, text: &str) -> Vec<String> {
    let mut broken = Vec::new();
    for target in links(text).filter(|target| !target.contains("://") && !target.contains(' ')) {
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        let named = if file.is_empty() { path.to_owned() } else { path.parent().unwrap().join(file) };
        let has_anchor = || {
            if file.is_empty() { anchors(text) } else { anchors(&fs::read_to_string(&named).unwrap()) }.contains(anchor)
        };
        if !named.exists() || (!anchor.is_empty() && !has_anchor()) {
            broken.push(format!("{}: `{target}` leads nowhere", path.display()));
        }
    }
    broken
}

/// Returns the ids of invariants that a text names.
fn invariants(text: &str) -> BTreeSet<&str> {
    let is_part = |character: char| character.is_ascii_uppercase() || character.is_ascii_digit() || character == '-';
    let words = text.split(|character| !is_part(character));
    words.filter(|word| word.starts_with("INV-") && word.ends_with(|last: char| last.is_ascii_digit())).collect()
}

#[test]
fn every_link_leads_somewhere() {
    let broken: Vec<String> =
        pages().iter().flat_map(|path| broken_links(path, &fs::read_to_string(path).unwrap())).collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_invariant_that_a_page_names_is_one() {
    let known = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(INVARIANTS)).unwrap();
    let known: BTreeSet<&str> = known.lines().filter_map(|line| line.strip_prefix("| INV-")).collect();
    let is_known = |id: &str| known.iter().any(|row| row.starts_with(&format!("{} ", id.trim_start_matches("INV-"))));
    for path in pages() {
        let text = fs::read_to_string(&path).unwrap();
        let unknown: Vec<&str> = invariants(&text).into_iter().filter(|id| !is_known(id)).collect();
        assert!(unknown.is_empty(), "{} names {unknown:?}, which {INVARIANTS} does not have", path.display());
    }
}

#[test]
fn what_leads_nowhere_is_found() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let text = "# A heading, here\n[a](#a-heading-here) [b](docs/none.md) [c](docs/time.md#none) [d](docs/time.md) INV-ONCE-1 (INV-X-2).";
    let broken = broken_links(&here, text);
    assert!(broken.len() == 2 && broken.iter().all(|line| line.contains("none")), "{broken:?}");
    assert_eq!(invariants(text), BTreeSet::from(["INV-ONCE-1", "INV-X-2"]), "ids are found");
}

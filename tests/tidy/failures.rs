//! The failures that punctual is built against, and the tests that carry their ids.
//!
//! Owns the reading of `failures.txt`, the search for ids in the comments and names of tests, and the page made of both,
//! `docs/failures.md`. Never judges a test: that a test names a row is a claim of whoever wrote it.
//! Keeps: each row has a test, a reason why it cannot happen, or says what it waits for; the page is what this file makes.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "writing to a text cannot fail, and lines are counted"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::source::{Source, is_word_char, leading_word, source, sources};

const ROWS: &str = include_str!("failures.txt");
const PAGE: &str = "docs/failures.md";
/// With it, the test writes the page: `make docs`.
const WRITE: &str = "PUNCTUAL_WRITE_DOCS";

const HEAD: &str = "\
<!-- Made by `make docs` of tests/tidy/failures.txt and of the tests that name the ids. Do not edit. -->

# Failures, and the tests that exclude them

Each row is a way in which a timer service, a stream engine or a client of Kafka can fail, and has failed somebody. The ids
stand in the names and comments of the tests that carry them, and in comments of the code that keeps them out. A row without a
test says why it cannot happen, or what it waits for.

| letter | about |
|---|---|
| N | never fires |
| D | fires twice, early, or after a cancel |
| R | restore, state, rebalance |
| L | late, blocked, poisoned |
| T | time, size, input |
| O | operations |
";

/// A failure.
#[derive(Debug, Default, PartialEq, Eq)]
struct Row {
    id: String,
    scenario: String,
    must: String,
    excluded: String,
    pending: String,
    waits: String,
    long: String,
}

/// A heading and its rows.
type Section = (String, Vec<Row>);

/// For each id the tests that name it.
type Citations = BTreeMap<String, Vec<Test>>;

/// A test, or a file of tests.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Test {
    path: String,
    name: Option<String>,
    /// How its long form is run; empty if it has none.
    long: &'static str,
}

/// Where tests have a long form: below this path, if their body has this word, by this command.
const LONG_FORMS: [(&str, &str, &str); 3] =
    [("tests/kafka/", "scaled(", "make chaos"), ("tests/sim/", "", "make soak"), ("tests/fuzz/", "", "make fuzz")];

#[test]
fn the_page_of_failures_is_what_rows_and_tests_say() {
    let sections = read(ROWS);
    let citations = citations(&all_sources());
    let complaints = complaints(&sections, &citations);
    assert!(complaints.is_empty(), "tests/tidy/failures.txt and the tests contradict each other:\n{complaints}");
    let (page, path) = (page(&sections, &citations), Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE));
    if std::env::var_os(WRITE).is_some() {
        fs::write(&path, &page).unwrap();
    }
    let found = fs::read_to_string(path).unwrap_or_default();
    assert!(found == page, "{PAGE} is not what rows and tests say: run `make docs`");
}

/// The sources of the crate but these, whose examples name rows too, and the tests of the chart.
fn all_sources() -> Vec<Source> {
    let chart = "helm/chart_test.py";
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(chart)).expect("the chart has tests");
    let crates = sources().into_iter().filter(|source| !source.path.starts_with("tests/tidy"));
    crates.chain([source(chart, &text)]).collect()
}

fn read(text: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    let joined = text.replace("\n  ", " ");
    for line in joined.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if word == "=" {
            sections.push((rest.to_owned(), Vec::new()));
            continue;
        }
        let rows = &mut sections.last_mut().expect("a heading stands before the rows").1;
        if is_id(word) {
            rows.push(Row { id: word.to_owned(), scenario: rest.to_owned(), ..Row::default() });
            continue;
        }
        let row = rows.last_mut().expect("a row stands before what is said of it");
        let field = match word {
            "must" => &mut row.must,
            "excluded" => &mut row.excluded,
            "pending" => &mut row.pending,
            "waits" => &mut row.waits,
            "long" => &mut row.long,
            other => panic!("`{other}` in the row {} is nothing that is said of a row", row.id),
        };
        assert!(field.is_empty() && !rest.is_empty(), "{word} of the row {} stands twice, or says nothing", row.id);
        rest.clone_into(field);
    }
    sections
}

fn is_id(word: &str) -> bool {
    let Some((letter, number)) = word.split_at_checked(1) else { return false };
    "NDRLTO".contains(letter) && (1..=2).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Finds the ids in comments, and in names such as `r12_one_partition_restores`.
fn citations(sources: &[Source]) -> Citations {
    let mut citations = Citations::new();
    for source in sources {
        let lines: Vec<&str> = source.text.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            let ids = ids_in_comment(line).into_iter().chain(ids_in_name(line));
            for id in ids {
                let Some(test) = test_at(source, &lines, number) else { continue };
                let tests = citations.entry(id).or_default();
                if !tests.contains(&test) {
                    tests.push(test);
                }
            }
        }
    }
    citations
}

fn ids_in_comment(line: &str) -> Vec<String> {
    let start = ["//", "# "].iter().find_map(|mark| {
        let at = line.find(mark)?;
        line[..at].chars().all(char::is_whitespace).then_some(at)
    });
    let Some(at) = start.or_else(|| line.find(" // ")) else { return Vec::new() };
    line[at..].split(|char| !is_word_char(char)).filter(|word| is_id(word)).map(str::to_owned).collect()
}

fn ids_in_name(line: &str) -> Vec<String> {
    let Some(name) = function_name(line) else { return Vec::new() };
    name.split('_').map(str::to_ascii_uppercase).take_while(|part| is_id(part)).collect()
}

fn function_name(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = line.strip_prefix("pub(crate) ").unwrap_or(line);
    line.strip_prefix("fn ").or_else(|| line.strip_prefix("def ")).and_then(leading_word)
}

/// Returns the test that a line belongs to: the function that it stands before or in. `None` outside of tests.
fn test_at(source: &Source, lines: &[&str], number: usize) -> Option<Test> {
    let path = &source.path;
    let is_comment = |line: &&str| ["//", "#", "@"].iter().any(|mark| line.trim_start().starts_with(mark));
    let is_function = |line: &str| function_name(line).is_some();
    let behind = lines[number..].iter().position(|line| !is_comment(line)).map(|at| number + at);
    let follows = behind.filter(|at| is_function(lines[*at]));
    let encloses = || lines[..number].iter().rposition(|line| is_function(line));
    let start = if lines[number].starts_with("//!") { None } else { follows.or_else(encloses) };
    let first_test = lines.iter().position(|line| line.contains("#[test]"));
    let is_among_tests = path.ends_with("_test.rs")
        || !path.starts_with("src/")
        || lines[..number].iter().any(|line| line.starts_with("mod tests {"))
        || (first_test.is_some() && !source.text.contains("mod tests {") && !source.text.contains("mod tests;"));
    if !is_among_tests {
        return None;
    }
    let name = start.and_then(|at| function_name(lines[at])).map(str::to_owned);
    let body: String =
        start.map_or_else(String::new, |at| lines[at..].iter().take_while(|line| **line != "}").copied().collect());
    let long = LONG_FORMS.iter().find(|(place, word, _)| path.starts_with(place) && body.contains(word));
    Some(Test { path: path.clone(), name, long: long.map_or("", |(_, _, command)| command) })
}

fn complaints(sections: &[Section], citations: &Citations) -> String {
    let mut complaints = String::new();
    let rows: Vec<&Row> = sections.iter().flat_map(|(_, rows)| rows).collect();
    for row in &rows {
        let Row { id, scenario, must, excluded, pending, waits, .. } = row;
        if scenario.is_empty() || must.is_empty() {
            writeln!(complaints, "{id} has no scenario, or says not what must hold").unwrap();
        }
        if rows.iter().filter(|other| other.id == *id).count() > 1 {
            writeln!(complaints, "{id} stands twice").unwrap();
        }
        if !citations.contains_key(id) && [excluded, pending, waits].iter().all(|reason| reason.is_empty()) {
            writeln!(complaints, "{id} has no test, and no reason why").unwrap();
        }
    }
    for (id, tests) in citations.iter().filter(|(id, _)| !rows.iter().any(|row| row.id == **id)) {
        let paths: Vec<&str> = tests.iter().map(|test| test.path.as_str()).collect();
        writeln!(complaints, "{id} is no row, and {} names it", paths.join(", ")).unwrap();
    }
    complaints
}

fn page(sections: &[Section], citations: &Citations) -> String {
    let mut page = HEAD.to_owned();
    for (heading, rows) in sections {
        write!(page, "\n## {heading}\n\n| id | scenario | must hold | tests |\n|---|---|---|---|\n").unwrap();
        for row in rows {
            let tests = citations.get(&row.id).map(Vec::as_slice).unwrap_or_default();
            writeln!(page, "| {} | {} | {} | {} |", row.id, row.scenario, row.must, carried_by(row, tests)).unwrap();
        }
    }
    let total: usize = sections.iter().map(|(_, rows)| rows.len()).sum();
    let rows = sections.iter().flat_map(|(_, rows)| rows);
    let carried = rows.filter(|row| citations.contains_key(&row.id)).count();
    write!(page, "\n{total} rows, {carried} with a test.\n").unwrap();
    page
}

fn carried_by(row: &Row, tests: &[Test]) -> String {
    let mut said: Vec<String> = tests.iter().map(shown).collect();
    let pending = if tests.is_empty() { row.pending.as_str() } else { "" };
    let mut long: Vec<&str> = tests.iter().map(|test| test.long).chain([row.long.as_str()]).collect();
    long.retain(|command| !command.is_empty());
    long.sort_unstable();
    long.dedup();
    let long = long.join(", ");
    let remarks = [
        ("long form: ", long.as_str()),
        ("cannot happen: ", &row.excluded),
        ("waits for ", &row.waits),
        ("waits for ", pending),
    ];
    said.extend(remarks.iter().filter(|(_, text)| !text.is_empty()).map(|(intro, text)| format!("*{intro}{text}*")));
    said.join("<br>")
}

fn shown(test: &Test) -> String {
    let link = format!("[{}](../{})", short(&test.path), test.path);
    test.name.as_ref().map_or_else(|| link.clone(), |name| format!("`{name}` ({link})"))
}

fn short(path: &str) -> &str {
    path.strip_prefix("src/").or_else(|| path.strip_prefix("tests/")).unwrap_or(path)
}

#[test]
fn ids_are_found_in_comments_and_names_of_tests() {
    let text =
        "//! N1.\n// D2, D3: two.\n#[test]\nfn a() {\n    // R1\n    let t1 = \"T1\";\n}\n#[test]\nfn l4_l5_b() {}\n";
    let found = citations(&[source("tests/x.rs", text)]);
    let of = |test: &Test| format!("{}: {}", test.path, test.name.as_deref().unwrap_or_default());
    let found: Vec<(String, String)> = found.iter().map(|(id, tests)| (id.clone(), of(&tests[0]))).collect();
    let expected = [
        ("D2", "tests/x.rs: a"),
        ("D3", "tests/x.rs: a"),
        ("L4", "tests/x.rs: l4_l5_b"),
        ("L5", "tests/x.rs: l4_l5_b"),
        ("N1", "tests/x.rs: "),
        ("R1", "tests/x.rs: a"),
    ];
    assert_eq!(found, expected.map(|(id, test)| (id.to_owned(), test.to_owned())));
    assert_eq!(citations(&[source("src/x.rs", "/// N1\nfn a() {}\n")]), Citations::new(), "code is no test");
}

#[test]
fn a_row_without_test_or_reason_is_found() {
    let found = |rows: &str, cited: &str| {
        let test = Test { path: "t".to_owned(), name: None, long: "" };
        complaints(&read(&format!("= Heading\n{rows}")), &Citations::from([(cited.to_owned(), vec![test])]))
    };
    assert_eq!(found("N1 Scenario.\nmust Holds.\n", "N1"), "");
    assert_eq!(found("N1 A.\nmust B.\nN2 C.\nmust D.\n", "N1"), "N2 has no test, and no reason why\n");
    assert_eq!(found("N1 A.\nmust B.\nN2 C.\nmust D,\n  and E.\nwaits time\n", "N1"), "");
    assert_eq!(found("N1 A.\nmust B.\n", "N3"), "N1 has no test, and no reason why\nN3 is no row, and t names it\n");
}

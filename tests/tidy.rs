//! What the compiler and clippy cannot say about this crate's text: layers, confined crates, banned words, heads, sizes.
//!
//! Owns the table of layers and the [`RULES`]. Never needs more than the text of the files: it reads no types.
//! Keeps: each rule finds its own bad example and passes its good one, so that no rule is one that cannot fail.

#[path = "tidy/failures.rs"]
mod failures;
#[path = "tidy/pages.rs"]
mod pages;
#[path = "tidy/planted.rs"]
mod planted;
#[path = "tidy/source.rs"]
mod source;

use std::fmt::Write as _;
use std::fs;

use source::{Source, at_line, body_of, find_words, is_word_char, leading_word, source, sources};

/// The modules of the crate, lowest layer first. A module names its own layer and lower ones only.
const LAYERS: &[&[&str]] = &[
    &["planted", "position", "text", "time"],
    &["calendar", "timer"],
    &["wire"],
    &["log", "store"],
    &["engine", "task"],
    &["testing", "worker"],
    &["config", "telemetry"],
    &["admin", "cli", "service"],
];

/// Modules of one layer that do not know each other.
const STRANGERS: &[(&str, &str)] = &[("log", "store")];

/// Words that may stand in these places only; a place is a prefix of a path.
const CONFINED: &[(&str, &[&str])] = &[
    ("rdkafka", &["src/log/kafka/", "tests/kafka/"]),
    ("rdkafka_sys", &["src/log/kafka/"]),
    ("prost", &["src/wire/", "tests/kafka/"]),
    ("rocksdb", &["src/store/rocks/"]),
    ("axum", &["src/admin/", "src/service/"]),
    ("croner", &["src/calendar/"]),
    ("sha2", &["src/calendar/digest.rs"]),
    ("anyhow", &["src/main.rs", "src/cli/", "src/service/", "src/admin/"]),
    ("unsafe", &["src/log/kafka/native.rs"]),
];

/// Where outcomes depend on the arguments alone; what the simulator runs may log, count, and draw from a seed it is given.
const CORE: &[&str] =
    &["src/calendar/", "src/timer/", "src/position.rs", "src/text.rs", "src/time/mod.rs", "src/time/guard.rs"];
const SIMULATED: &[&str] = &[
    "src/log/mod.rs",
    "src/log/transaction/",
    "src/engine/",
    "src/task/",
    "src/testing/",
    "src/worker/",
    "src/store/overlay.rs",
    "src/store/memory.rs",
];
const CORE_BANS: &[&str] = &["tracing", "metrics", "fastrand"];
const ALL_BANS: &[&str] = &["Instant", "SystemTime", "HashMap", "HashSet", "tokio", "rand"];

/// Code that must not reach `main`.
const UNFINISHED: &[&str] = &["todo!", "unimplemented!", "#[ignore", "#[should_panic", "#[allow(", "#![allow("];
const MARKS: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

/// Names that say nothing of what is in the file.
const VAGUE_NAMES: &[&str] = &["utils", "util", "common", "helpers", "helper", "manager", "misc"];

const FILE_LINES_MAX: usize = 400;
const FUNCTION_LINES_MAX: usize = 70;

struct Rule {
    name: &'static str,
    check: fn(&Source) -> Vec<String>,
    bad: (&'static str, &'static str),
    good: (&'static str, &'static str),
}

const RULES: &[Rule] = &[
    Rule {
        name: "a module names its own layer and lower ones only",
        check: upward_paths,
        bad: ("src/timer/apply.rs", "use crate::{time::Timestamp, wire::decode};"),
        good: ("src/wire/mod.rs", "use crate::timer::model; // crate::worker\nuse crate::time;"),
    },
    Rule {
        name: "log and store do not know each other",
        check: upward_paths,
        bad: ("src/store/rocks/open.rs", "fn f(to: crate::log::Destination) {}"),
        good: ("src/store/rocks/open.rs", "use crate::store::key;"),
    },
    Rule {
        name: "a layer is named from the crate's root",
        check: climbing_paths,
        bad: ("src/timer/fire.rs", "use super::super::worker;"),
        good: ("src/timer/fire_test.rs", "use super::super::model;"),
    },
    Rule {
        name: "a crate is used where it is confined",
        check: confined_words,
        bad: ("src/task/mod.rs", "use rdkafka::Message;"),
        good: ("src/log/kafka/mod.rs", "use rdkafka::Message;"),
    },
    Rule {
        name: "the core has no clock, chance, hash order, thread, log or metric",
        check: impure_words,
        bad: ("src/timer/apply.rs", "use std::collections::HashMap;"),
        good: ("src/timer/apply.rs", "/// Unlike a HashMap.\nlet m = BTreeMap::new();"),
    },
    Rule {
        name: "each file opens with a head",
        check: missing_head,
        bad: ("src/timer/apply.rs", "use std::fmt;"),
        good: ("src/timer/apply.rs", "//! Judges a command."),
    },
    Rule {
        name: "a file is named by its subject",
        check: vague_name,
        bad: ("src/timer/utils.rs", "//! Things."),
        good: ("src/timer/apply.rs", "//! Judges a command."),
    },
    Rule {
        name: "nothing unfinished, ignored or silenced",
        check: unfinished_code,
        bad: ("tests/cli.rs", "#[test]\n#[ignore]\nfn f() {}"),
        good: ("tests/cli.rs", "let s = \"#[ignore]\";"),
    },
    Rule {
        name: "no note to oneself",
        check: marked_text,
        bad: ("src/timer/apply.rs", concat!("// TO", "DO: later")),
        good: ("src/timer/apply.rs", "// Later arms are refused."),
    },
    Rule {
        name: "tests wait for a condition",
        check: blind_waits,
        bad: ("tests/kafka/journey.rs", "std::thread::sleep(SECOND);"),
        good: ("tests/kafka/journey.rs", "wait::until(BOUND, \"it fires\", || fired());"),
    },
];

#[test]
fn the_crate_is_tidy() {
    let sources = sources();
    let mut report = String::new();
    for source in &sources {
        for finding in RULES.iter().flat_map(|rule| (rule.check)(source)).chain(too_long(source)) {
            writeln!(report, "{}{finding}", source.path).unwrap();
        }
    }
    assert!(report.is_empty(), "the crate is not tidy:\n{report}");
}

#[test]
fn each_rule_finds_its_bad_example_and_passes_its_good_one() {
    for Rule { name, check, bad, good } in RULES {
        assert!(!check(&source(bad.0, bad.1)).is_empty(), "missed: {name}");
        assert_eq!(check(&source(good.0, good.1)), Vec::<String>::new(), "false alarm: {name}");
    }
}

#[test]
fn long_files_and_functions_are_found() {
    let file = |lines: usize| source("src/a.rs", &"let a = 1;\n".repeat(lines));
    assert_eq!(too_long(&file(FILE_LINES_MAX)).len(), 0, "at the limit");
    assert_eq!(too_long(&file(FILE_LINES_MAX + 1)).len(), 1, "one line more");
    let function = |lines: usize| source("src/a.rs", &format!("fn f() {{\n{}}}\n", "g({});\n\n".repeat(lines)));
    assert_eq!(too_long(&function(FUNCTION_LINES_MAX)).len(), 0, "at the limit; blank lines are free");
    assert_eq!(too_long(&function(FUNCTION_LINES_MAX + 1)).len(), 1, "one line more");
}

#[test]
fn the_page_of_planted_mistakes_has_all_of_them() {
    let page =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/mutations.md")).expect("the page is there");
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
    let listed: Vec<String> = planted::listed().into_iter().map(planted::row).collect();
    let differs = rows.len() != listed.len() || listed.iter().zip(&rows).any(|(listed, row)| !row.starts_with(listed));
    assert!(!differs, "docs/mutations.md is out of date, `make mutants` writes it; src/planted.rs lists {listed:#?}");
}

#[test]
fn every_module_of_the_library_has_a_layer() {
    let library = sources().into_iter().find(|source| source.path == "src/lib.rs").expect("the walk finds the library");
    let modules: Vec<&str> = library.code.lines().filter_map(declared_module).collect();
    let layers: Vec<_> =
        modules.iter().map(|module| layer_of(module).unwrap_or_else(|| panic!("no layer for {module}"))).collect();
    assert!(layers.is_sorted(), "src/lib.rs names modules out of the order of their layers: {modules:?}");
    assert_eq!(modules.len(), LAYERS.iter().map(|layer| layer.len()).sum::<usize>(), "a layer names a missing module");
}

fn declared_module(line: &str) -> Option<&str> {
    line.strip_prefix("pub ").unwrap_or(line).strip_prefix("mod ")?.strip_suffix(';')
}

fn upward_paths(source: &Source) -> Vec<String> {
    let Some(own) = module_of(&source.path) else { return Vec::new() };
    let own_layer = layer_of(own).unwrap_or(usize::MAX);
    let mut findings = Vec::new();
    for (at, _) in source.code.match_indices("crate::") {
        let is_root = !source.code[..at].ends_with(is_word_char);
        for named in first_segments(&source.code[at + "crate::".len()..]).into_iter().filter(|_| is_root) {
            let is_above = layer_of(named).is_some_and(|layer| layer > own_layer);
            let is_strange = STRANGERS.iter().any(|pair| *pair == (own, named) || *pair == (named, own));
            if is_above || is_strange {
                findings.push(at_line(source, at, &format!("`{own}` names `crate::{named}`, which it must not know")));
            }
        }
    }
    findings
}

/// Returns the first segment of each path behind `crate::`, which is one path or a group in braces.
fn first_segments(rest: &str) -> Vec<&str> {
    let Some(group) = rest.strip_prefix('{') else { return leading_word(rest).into_iter().collect() };
    let mut segments = Vec::new();
    let (mut depth, mut expects_segment) = (1, true);
    for (at, char) in group.char_indices() {
        match char {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => expects_segment = true,
            _ if expects_segment && is_word_char(char) => {
                segments.extend(leading_word(&group[at..]));
                expects_segment = false;
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    segments
}

/// Finds chains of `super` that reach the crate's root, where other layers are.
fn climbing_paths(source: &Source) -> Vec<String> {
    let Some(path) = source.path.strip_prefix("src/") else { return Vec::new() };
    let folders = path.matches('/').count();
    // `x_test.rs` is the module `tests` inside of `x`; `mod.rs` is its folder.
    let file_depth = if path.ends_with("_test.rs") { 2 } else { usize::from(!path.ends_with("mod.rs")) };
    let mut findings = Vec::new();
    for (at, _) in source.code.match_indices("super::").filter(|(at, _)| !source.code[..*at].ends_with("::")) {
        let inline_depth = usize::from(source.code[..at].contains("mod tests {"));
        let climbed = source.code[at..].split("::").take_while(|segment| *segment == "super").count();
        if climbed >= folders + file_depth + inline_depth {
            findings.push(at_line(source, at, "`super` climbs to the crate's root: write the path from `crate::`"));
        }
    }
    findings
}

fn confined_words(source: &Source) -> Vec<String> {
    let strays = CONFINED.iter().filter(|(_, places)| !places.iter().any(|place| source.path.starts_with(place)));
    strays.flat_map(|(word, places)| find_words(source, word, &format!("belongs to {}", places.join(", ")))).collect()
}

fn impure_words(source: &Source) -> Vec<String> {
    let is_in = |places: &[&str]| places.iter().any(|place| source.path.starts_with(place));
    let core = CORE_BANS.iter().filter(|_| is_in(CORE));
    let all = ALL_BANS.iter().filter(|_| is_in(CORE) || is_in(SIMULATED));
    core.chain(all).flat_map(|word| find_words(source, word, "makes the outcome depend on more")).collect()
}

fn missing_head(source: &Source) -> Vec<String> {
    if source.text.starts_with("//! ") { Vec::new() } else { vec![":1: opens without a `//!` head".to_owned()] }
}

fn vague_name(source: &Source) -> Vec<String> {
    let parts = source.path.split(['/', '.']);
    parts.filter(|part| VAGUE_NAMES.contains(part)).map(|part| format!(": `{part}` names no subject")).collect()
}

fn unfinished_code(source: &Source) -> Vec<String> {
    let marks = UNFINISHED.iter().flat_map(|mark| source.code.match_indices(mark));
    marks.map(|(at, mark)| at_line(source, at, &format!("`{mark}` is not for main"))).collect()
}

fn marked_text(source: &Source) -> Vec<String> {
    let marks = MARKS.iter().flat_map(|mark| source.text.match_indices(mark));
    marks.map(|(at, mark)| at_line(source, at, &format!("`{mark}`: do it, or file an issue"))).collect()
}

fn blind_waits(source: &Source) -> Vec<String> {
    let may_wait = !source.path.starts_with("tests/") || source.path == "tests/kafka/harness/wait.rs";
    if may_wait { Vec::new() } else { find_words(source, "sleep", "waits blindly; use the harness's `wait::until`") }
}

fn too_long(source: &Source) -> Vec<String> {
    let lines = source.text.lines().count();
    let mut findings = Vec::new();
    if lines > FILE_LINES_MAX {
        findings.push(format!(": {lines} lines, at most {FILE_LINES_MAX}: split it by subject"));
    }
    for (at, _) in source.code.match_indices("fn ") {
        let rest = &source.code[at + "fn ".len()..];
        let Some(name) = leading_word(rest).filter(|_| !source.code[..at].ends_with(is_word_char)) else { continue };
        let lines = body_of(rest).lines().filter(|line| !line.trim().is_empty()).count().saturating_sub(1);
        if lines > FUNCTION_LINES_MAX {
            findings.push(at_line(source, at, &format!("`{name}` has {lines} lines, at most {FUNCTION_LINES_MAX}")));
        }
    }
    findings
}

fn layer_of(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// Returns the module of the library that a path lies in; `None` for its root, the binary and what is outside of `src`.
fn module_of(path: &str) -> Option<&str> {
    let module = path.strip_prefix("src/")?.split(['/', '.']).next()?;
    layer_of(module).map(|_| module)
}

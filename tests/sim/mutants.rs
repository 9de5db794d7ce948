//! Plants each mistake of `punctual::planted` in turn: the simulator has to find it.
//!
//! Owns the search, and the table of what caught which in docs/mutations.md. Never plants two at once.
//! Keeps: seeds are tried in order, so that the same one finds the same mistake each time, and it passes with nothing
//! planted; a mistake that survives its seeds fails the test.

#[path = "../tidy/planted.rs"]
mod list;

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::panic;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use punctual::planted::{Bug, plant};

use crate::plan::Plan;
use crate::sim::Violation;
use crate::trace::Trace;
use crate::world::{Report, run};

/// How many seeds a mistake has to survive to count as one that the simulator cannot find.
const SEEDS_MAX: u64 = 3_000;
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/mutations.md");
const HEAD: &str = "\
# Planted mistakes

Each row is a mistake that somebody could make in the code, and the invariant of the simulator that caught it when it was
planted. `make mutants` plants them again and writes this page; CI fails if one survives, or if the page is out of date. The
mistakes and the places where they are made are found by their names, beginning with `src/planted.rs`. An id after *assert*
is that of an assert in the code itself, which ended the process. The invariants are told in [ARCHITECTURE.md](../ARCHITECTURE.md#invariants).

| planted | the mistake | caught by |
|---|---|---|
";

/// How a mistake was found.
struct Finding {
    violation: Violation,
    seed: u64,
    steps: u64,
    /// What the same seed finds with nothing planted: nothing.
    sound: Option<Violation>,
}

#[test]
fn every_planted_mistake_is_found() {
    // What an assert says when it ends a simulated process is told by the violation.
    panic::set_hook(Box::new(|_| {}));
    let findings = in_parallel(&Bug::ALL, |bug| search(*bug));
    drop(panic::take_hook());
    let mut survivors = Vec::new();
    let mut page = HEAD.to_owned();
    for (listed, found) in list::listed().into_iter().zip(findings) {
        let bug = listed.0;
        let Some(Finding { violation, seed, steps, sound }) = found else {
            survivors.push(bug);
            continue;
        };
        assert_eq!(sound, None, "seed {seed} fails with nothing planted");
        println!("{bug}: seed {seed}, {steps} steps, {}: {}", violation.id, violation.detail);
        writeln!(page, "{}{} |", list::row(listed), caught_by(&violation)).expect("a text takes any line");
    }
    assert!(survivors.is_empty(), "survived {SEEDS_MAX} seeds: {survivors:?}");
    if env::var_os("PUNCTUAL_WRITE_DOCS").is_some() {
        fs::write(PAGE, &page).expect("the page can be written");
    }
    let is_up_to_date = fs::read_to_string(PAGE).is_ok_and(|written| written == page);
    assert!(is_up_to_date, "docs/mutations.md is out of date, `make mutants` writes it:\n{page}");
}

/// One mistake as the environment says, by its name.
#[test]
fn one_mistake() {
    let Some(wanted) = env::var("PUNCTUAL_BUG").ok() else { return };
    panic::set_hook(Box::new(|_| {}));
    let bug = Bug::ALL.into_iter().find(|bug| format!("{bug:?}") == wanted);
    let found = bug.and_then(search);
    drop(panic::take_hook());
    let found = found.unwrap_or_else(|| panic!("{wanted} survived {SEEDS_MAX} seeds"));
    println!("{wanted}: seed {}, {} steps, {:?}", found.seed, found.steps, found.violation);
}

#[test]
fn the_list_of_mistakes_has_all_of_them() {
    let names: Vec<String> = Bug::ALL.iter().map(|bug| format!("{bug:?}")).collect();
    assert_eq!(list::listed().into_iter().map(|(name, _)| name).collect::<Vec<_>>(), names);
}

/// Returns the first seed that finds the mistake.
fn search(bug: Bug) -> Option<Finding> {
    (1..=SEEDS_MAX).find_map(|seed| {
        let report = run_with(Some(bug), seed);
        let violation = report.violation?;
        let sound = run_with(None, seed).violation;
        Some(Finding { violation, seed, steps: report.steps, sound })
    })
}

fn run_with(bug: Option<Bug>, seed: u64) -> Report {
    plant(bug);
    run(&Plan::of(seed), Trace::off())
}

/// Does the work for each item on all cores; returns the results in the order of the items.
fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let worked_off = || {
        let mut done = Vec::new();
        while let Some((index, item)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, items.get(i)?)))
        {
            done.push((index, work(item)));
        }
        done
    };
    let mut results: Vec<_> = thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(worked_off)).collect();
        running.into_iter().flat_map(|thread| thread.join().expect("the search ends")).collect()
    });
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Returns the id of the invariant; that of an assert if the code itself found the mistake.
fn caught_by(violation: &Violation) -> String {
    if violation.id != "INV-PANIC-1" {
        return violation.id.to_owned();
    }
    let id = violation
        .detail
        .split(|char: char| !(char.is_ascii_alphanumeric() || char == '-'))
        .find(|word| word.starts_with("INV-"));
    id.map_or("an assert".to_owned(), |id| format!("assert {id}"))
}

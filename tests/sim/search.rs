//! Runs of many seeds, and what is done with one that fails.
//!
//! Owns the tests. Keeps: a failure prints its seed, the smallest run that still fails, its trace, and the command that
//! shows it again; each seed stays on one thread, whatever the number of threads.

use std::env;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::oracle::Counts;
use crate::plan::Plan;
use crate::shrink::{command, shrink};
use crate::trace::{LINES_SHOWN, Trace};
use crate::world::{Report, run};

/// Seeds that once found something; they are run first, for ever.
const REGRESSIONS: &[u64] = &[
    49, 267, 735, 2_500, 3_442, 10_088, 12_832, 5_635, 5_009_650, 9_004_699, 9_009_903, 9_010_455, 9_500_317, 972,
    8_762,
];
/// The first seed of many, and for how long they are run.
const BASE: u64 = 1;
const SECONDS: u64 = 60;
/// So many seeds are run however slow the machine is.
const SEEDS_MIN: u64 = 100;

fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok().filter(|text| !text.is_empty())?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is `{text}`, which is no number")))
}

fn list(name: &str) -> Vec<String> {
    let text = env::var(name).unwrap_or_default();
    text.split(',').filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

/// One seed as the environment says, with its trace if it fails.
#[test]
fn one_seed() {
    let mut plan = Plan::of(number("PUNCTUAL_SEED").unwrap_or(BASE));
    let without = list("PUNCTUAL_WITHOUT");
    plan.faults.retain(|fault| !without.contains(&fault.to_string()));
    let limit = |name, whole: u32| number(name).map_or(whole, |number| u32::try_from(number).unwrap_or(whole));
    plan.commands = limit("PUNCTUAL_COMMANDS", plan.commands);
    plan.troubles = limit("PUNCTUAL_TROUBLES", plan.troubles);
    plan.skipped = list("PUNCTUAL_SKIP").iter().filter_map(|item| item.parse().ok()).collect();
    let report = run(&plan, Trace::last(usize::MAX));
    let is_traced = number("PUNCTUAL_TRACE").is_some();
    println!("{}", if is_traced { report.trace.clone() } else { last_lines(&report) });
    println!("{plan:?}\n{:?}, {} steps, {} ms", report.counts, report.steps, report.lasted);
    assert_eq!(report.violation, None);
}

#[test]
fn one_seed_gives_one_trace() {
    for seed in BASE..=BASE + 20 {
        let trace = || run(&Plan::of(seed), Trace::last(usize::MAX)).trace;
        let (one, other) = (trace(), trace());
        let differs = one.lines().zip(other.lines()).find(|(one, other)| one != other);
        assert!(one == other, "seed {seed} gives two traces, first {differs:?}");
        assert!(one.lines().count() > 100, "seed {seed}: something happens");
    }
}

#[test]
fn seeds_that_found_something_hold() {
    for seed in REGRESSIONS {
        let report = run(&Plan::of(*seed), Trace::off());
        assert!(report.violation.is_none(), "{}", explain(&report));
    }
}

/// As many seeds as fit the time.
#[test]
fn many_seeds_hold() {
    let base = number("PUNCTUAL_SEED").unwrap_or(BASE);
    let seconds = Duration::from_secs(number("PUNCTUAL_SECONDS").unwrap_or(SECONDS));
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicU64::new(base);
    let failed: Mutex<Option<Report>> = Mutex::new(None);
    let sums = Mutex::new((0_u64, Counts::default()));
    #[expect(
        clippy::disallowed_methods,
        reason = "how many seeds are run depends on the time; what a seed does never does"
    )]
    let began = Instant::now();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let is_over = began.elapsed() >= seconds && seed >= base + SEEDS_MIN;
                    if is_over || failed.lock().expect("no thread panics").is_some() {
                        return;
                    }
                    let report = run(&Plan::of(seed), Trace::off());
                    let mut sums = sums.lock().expect("no thread panics");
                    sums.0 += report.steps;
                    sums.1.add(&report.counts);
                    if report.violation.is_some() {
                        failed.lock().expect("no thread panics").get_or_insert(report);
                    }
                }
            });
        }
    });
    let (steps, counts) = *sums.lock().expect("no thread panics");
    let seeds = next.load(Ordering::Relaxed) - base - threads as u64;
    let took = began.elapsed();
    let rate = u128::from(steps) * 1_000 / took.as_millis().max(1);
    println!("{seeds} seeds from {base}, {steps} steps in {took:.1?}: {rate} steps/s; {counts:?}");
    if let Some(report) = failed.into_inner().expect("no thread panics") {
        panic!("{}", explain(&report));
    }
    let looked_at = [counts.fired, counts.answers, counts.letters, counts.forwards];
    assert!(looked_at.iter().all(|count| *count > seeds), "much of everything was looked at: {counts:?}");
}

fn last_lines(report: &Report) -> String {
    let lines: Vec<&str> = report.trace.lines().collect();
    lines.get(lines.len().saturating_sub(LINES_SHOWN)..).unwrap_or_default().join("\n")
}

/// Returns what a person needs to know of a failure: the smallest run that fails, and how to see it.
fn explain(report: &Report) -> String {
    let small = shrink(report);
    let small = run(&small.plan, Trace::last(LINES_SHOWN * 4));
    let mut text = String::new();
    writeln!(text, "seed {} fails: {:?}", report.plan.seed, report.violation).expect("a text takes any text");
    writeln!(text, "the smallest run that fails so: {:?}", small.plan).expect("a text takes any text");
    writeln!(text, "{}", last_lines(&small)).expect("a text takes any text");
    writeln!(text, "{:?}", small.violation).expect("a text takes any text");
    write!(text, "again: {}", command(&small.plan)).expect("a text takes any text");
    text
}

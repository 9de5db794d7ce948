//! What `Ok` promises: what is on disk after a drop, after a kill, and after damage.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use punctual::engine::{ArmAnswer, Budget, Engine, EngineError};
use punctual::store::rocks::{Resources, RocksStore};
use punctual::store::{Batch, Store};
use tempfile::TempDir;

use crate::rig::{LEASE, at, claim, claim_names, options, pending, tick, wish};

/// Tells the copy of this program that is to be killed where to work.
const CHILD_DIRECTORY: &str = "PUNCTUAL_TEST_ENGINE_DIRECTORY";

fn open(directory: &Path) -> Engine {
    Engine::open(directory, options().kind(1, "one").unwrap()).unwrap()
}

fn refusal(directory: &Path) -> EngineError {
    Engine::open(directory, options()).unwrap_err()
}

#[test]
fn an_engine_that_is_dropped_and_opened_is_as_it_was() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    for (id, due) in [("held", 5), ("far", 900_000), ("gone", 7)] {
        engine.arm(wish("r", id, due), at(1)).unwrap();
    }
    engine.disarm(String::new(), "r".to_owned(), "gone".to_owned(), None).unwrap();
    engine.seal_run(String::new(), "sealed".to_owned(), None, at(1)).unwrap();
    let held = claim(&engine, 10, 1).remove(0);
    drop(engine);
    let engine = open(directory.path());
    assert_eq!((pending(&engine), engine.next_wake().unwrap()), (2, Some(at(10 + LEASE))));
    assert_eq!(engine.arm(wish("sealed", "t", 5), at(11)).unwrap(), ArmAnswer::Sealed);
    assert_eq!(claim_names(&engine, 10 + LEASE - 1, 9), Vec::<String>::new(), "still held");
    let again = claim(&engine, 10 + LEASE, 1).remove(0);
    assert_eq!((again.attempt, again.generation), (2, held.generation));
    let ArmAnswer::Armed { generation } = engine.arm(wish("r", "gone", 7), at(12)).unwrap() else {
        panic!("it is gone")
    };
    assert!(generation.0 > 3, "generations go on: {generation:?}");
}

/// The part that is killed: says on its output what was answered with `Ok`, after it was.
#[test]
fn a_child_works_until_it_is_killed() {
    let Some(directory) = std::env::var_os(CHILD_DIRECTORY) else { return };
    let engine = open(Path::new(&directory));
    for number in 0_u32.. {
        let id = format!("{number}");
        let say = |what: &str| {
            let mut output = std::io::stdout().lock();
            writeln!(output, "\n{what} {number}").unwrap();
            output.flush().unwrap();
        };
        engine.arm(wish("r", &id, i64::from(number) + 1), at(1)).unwrap();
        say("armed");
        if number % 3 == 1 {
            engine.disarm(String::new(), "r".to_owned(), id, None).unwrap();
            say("disarmed");
        } else if number % 3 == 2 {
            tick(&engine, i64::from(number) + 1, Budget { fired_max: 1_000, ..Budget::default() });
            say("fired");
        }
    }
}

/// N7.
#[test]
fn a_killed_engine_has_all_that_was_answered() {
    for lines in [1, 40, 150] {
        let directory = TempDir::new().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "durability::a_child_works_until_it_is_killed", "--nocapture"])
            .env(CHILD_DIRECTORY, directory.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut said: BTreeMap<u32, String> = BTreeMap::new();
        let told = output.lines().map_while(Result::ok).filter_map(|line| {
            let (what, number) = line.split_once(' ')?;
            let is_told = ["armed", "disarmed", "fired"].contains(&what);
            is_told.then(|| Some((number.parse().ok()?, what.to_owned())))?
        });
        said.extend(told.take(lines));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!said.is_empty(), "it has said something");

        let engine = open(directory.path());
        let fired: Vec<String> = engine
            .read_outbox(0, usize::MAX)
            .unwrap()
            .into_iter()
            .map(|entry| entry.emitted.unwrap().key.id.as_str().to_owned())
            .collect();
        let last_fired = said.iter().filter(|(_, what)| *what == "fired").map(|(number, _)| *number).max();
        let last = *said.last_key_value().unwrap().0;
        for (number, what) in &said {
            let id = number.to_string();
            let times = fired.iter().filter(|fired| **fired == id).count();
            let is_pending = engine.arm(wish("r", &id, 1), at(1)).unwrap();
            let is_pending = matches!(is_pending, ArmAnswer::AlreadyArmed { .. });
            match what.as_str() {
                "disarmed" => assert!(!is_pending && times == 0, "{number} was disarmed"),
                "fired" => assert!(!is_pending && times == 1, "{number} has fired once"),
                _ if last_fired > Some(*number) => assert!(!is_pending && times == 1, "{number} has fired before"),
                // What the child did behind its last words may be there or not.
                _ if *number == last => assert!(times <= 1, "{number} has not fired twice"),
                _ => assert!(is_pending && times == 0 || times == 1 && !is_pending, "{number} is armed, or has fired"),
            }
        }
    }
}

#[test]
fn a_directory_belongs_to_one_engine() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    let clone = engine.clone();
    drop(engine);
    let error = refusal(directory.path());
    assert!(matches!(&error, EngineError::Locked { path } if path == directory.path()), "{error:?}");
    drop(clone);
    open(directory.path());
}

#[test]
fn a_directory_of_a_partition_is_refused_and_left_alone() {
    let directory = TempDir::new().unwrap();
    let mut store = RocksStore::open(directory.path(), &Resources::new(16 << 20)).unwrap();
    store.write(Batch::default()).unwrap();
    store.flush().unwrap();
    drop(store);
    let error = refusal(directory.path());
    assert!(matches!(error, EngineError::UnsupportedFormat { found: 0, supported: 1, .. }), "{error:?}");
    RocksStore::open(directory.path(), &Resources::new(16 << 20)).unwrap();
}

#[test]
fn damage_is_an_error_and_nothing_is_discarded() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    for number in 0..50 {
        engine.arm(wish("r", &format!("{number}"), 5), at(1)).unwrap();
    }
    drop(engine);
    let current = directory.path().join("CURRENT");
    let kept = fs::read(&current).unwrap();
    fs::remove_file(&current).unwrap();
    let error = refusal(directory.path());
    assert!(matches!(error, EngineError::Corrupt { .. }), "{error:?}");
    fs::write(&current, kept).unwrap();
    assert_eq!(pending(&open(directory.path())), 50, "nothing was discarded");
}

#[test]
fn a_damaged_row_of_the_log_is_an_error_and_a_torn_end_is_not() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path());
    for number in 0..50 {
        engine.arm(wish("r", &format!("{number}"), 5), at(1)).unwrap();
    }
    let logs = || {
        let entries = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.extension().is_some_and(|it| it == "log"))
    };
    let log = logs().max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
    // A copy, as a kill at this moment would leave it.
    let copy = |change: &dyn Fn(&mut Vec<u8>)| {
        let killed = TempDir::new().unwrap();
        for entry in fs::read_dir(directory.path()).unwrap() {
            let path = entry.unwrap().path();
            let mut bytes = fs::read(&path).unwrap();
            if path == log {
                change(&mut bytes);
            }
            fs::write(killed.path().join(path.file_name().unwrap()), bytes).unwrap();
        }
        killed
    };
    assert_eq!(pending(&open(copy(&|_| ()).path())), 50);
    let torn = copy(&|bytes| bytes.truncate(bytes.len() - 10));
    assert_eq!(pending(&open(torn.path())), 49, "the last row is not whole");
    let damaged = copy(&|bytes| {
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0xFF;
    });
    let error = refusal(damaged.path());
    assert!(matches!(error, EngineError::Corrupt { .. }), "{error:?}");
}

#[test]
fn a_directory_that_cannot_be_made_is_told_apart() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let error = refusal(&file.join("below"));
    assert!(matches!(error, EngineError::Io { .. }), "{error:?}");
}

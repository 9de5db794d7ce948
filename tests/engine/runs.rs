//! Runs as a whole: disarmed and sealed.

use std::time::Duration;

use punctual::engine::{Arm, ArmAnswer, Engine, OnConflict};
use punctual::time::Timestamp;

use crate::rig::{at, claim, claim_names, on_both, options, pending, wish};

fn disarm_run(engine: &Engine, run: &str) -> u64 {
    engine.disarm_run(String::new(), run.to_owned()).unwrap()
}

fn seal(engine: &Engine, run: &str, retention: Option<i64>, now: i64) -> u64 {
    let retention = retention.map(|millis| Duration::from_millis(millis.unsigned_abs()));
    engine.seal_run(String::new(), run.to_owned(), retention, at(now)).unwrap()
}

#[test]
fn disarm_run_counts_what_it_removed_and_the_run_can_be_armed_again() {
    on_both(&options(), |engine| {
        assert_eq!(disarm_run(engine, "r"), 0);
        for (run, id, due) in [("r", "held", 5), ("r", "due", 6), ("r", "far", 9_000), ("r2", "other", 7)] {
            engine.arm(wish(run, id, due), at(1)).unwrap();
        }
        assert_eq!(claim_names(engine, 5, 1), ["r/held"]);
        assert_eq!(disarm_run(engine, "r"), 3);
        assert_eq!(disarm_run(engine, "r"), 0);
        assert_eq!((pending(engine), engine.next_wake().unwrap()), (1, Some(at(7))));
        assert!(matches!(engine.arm(wish("r", "due", 6), at(8)).unwrap(), ArmAnswer::Armed { .. }));
        assert_eq!(claim_names(engine, 8, 10), ["r/due", "r2/other"]);
    });
}

#[test]
fn a_large_run_is_removed_at_once_and_counted_exactly() {
    on_both(&options(), |engine| {
        for number in 0..1_000 {
            engine.arm(wish("large", &format!("{number}"), 10), at(1)).unwrap();
        }
        assert_eq!(disarm_run(engine, "large"), 1_000);
        assert_eq!((pending(engine), engine.next_wake().unwrap()), (0, None));
        assert_eq!(claim(engine, 10, 1).len(), 0);
        engine.arm(wish("large", "1", 10), at(11)).unwrap();
        assert_eq!(pending(engine), 1);
        for number in 0..600 {
            engine.arm(wish("large", &format!("{number}"), 10), at(11)).unwrap();
        }
        assert_eq!(seal(engine, "large", None, 12), 600);
        assert_eq!(pending(engine), 0);
    });
}

#[test]
fn a_seal_refuses_arms_until_it_ends() {
    on_both(&options(), |engine| {
        assert_eq!(seal(engine, "r", Some(100), 10), 0, "before any arm");
        let replacing = Arm { on_conflict: OnConflict::Replace, ..wish("r", "t", 50) };
        assert_eq!(engine.arm(wish("r", "t", 50), at(10)).unwrap(), ArmAnswer::Sealed);
        assert_eq!(engine.arm(replacing, at(109)).unwrap(), ArmAnswer::Sealed);
        assert_eq!((pending(engine), engine.next_wake().unwrap()), (0, None));
        let theirs = Arm { tenant: "other".to_owned(), ..wish("r", "t", 50) };
        assert!(matches!(engine.arm(theirs, at(20)).unwrap(), ArmAnswer::Armed { .. }), "another tenant's run");
        assert!(matches!(engine.arm(wish("r2", "t", 50), at(20)).unwrap(), ArmAnswer::Armed { .. }), "another run");
        assert!(matches!(engine.arm(wish("r", "t", 50), at(110)).unwrap(), ArmAnswer::Armed { .. }), "it has ended");
        assert_eq!(seal(engine, "r", Some(100), 111), 1, "a seal removes what is armed");
    });
}

#[test]
fn a_seal_is_idempotent_and_never_shortened() {
    on_both(&options(), |engine| {
        seal(engine, "r", Some(100), 10);
        seal(engine, "r", Some(10), 11);
        assert_eq!(engine.arm(wish("r", "t", 50), at(109)).unwrap(), ArmAnswer::Sealed);
        seal(engine, "r", None, 12);
        seal(engine, "r", Some(1), 13);
        assert_eq!(disarm_run(engine, "r"), 0, "a disarm-run does not unseal");
        assert_eq!(engine.arm(wish("r", "t", 50), Timestamp::MAX).unwrap(), ArmAnswer::Sealed, "for ever");
        claim(engine, 1_000_000, 1);
        assert_eq!(engine.arm(wish("r", "t", 50), at(1_000_000)).unwrap(), ArmAnswer::Sealed);
    });
}

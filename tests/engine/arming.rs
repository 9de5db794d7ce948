//! Arms and disarms, and what is refused.

use std::time::Duration;

use punctual::engine::{Arm, ArmAnswer, DisarmAnswer, Engine, EngineError, Generation, OnConflict, Options};
use punctual::time::Timestamp;
use punctual::timer::handler::Publish;
use punctual::timer::kind::{Kind, KindNumber};

use crate::rig::{at, claim, claim_names, generation, on_both, options, pending, wish};

fn disarm(engine: &Engine, run: &str, timer_id: &str, generation: Option<Generation>) -> DisarmAnswer {
    engine.disarm(String::new(), run.to_owned(), timer_id.to_owned(), generation).unwrap()
}

fn armed(answer: ArmAnswer) -> Generation {
    match answer {
        ArmAnswer::Armed { generation } | ArmAnswer::Replaced { generation } => generation,
        ArmAnswer::AlreadyArmed { .. } | ArmAnswer::Sealed | ArmAnswer::Skipped => panic!("not armed: {answer:?}"),
    }
}

#[test]
fn an_engine_can_be_shared_by_threads() {
    fn check<T: Clone + Send + Sync + std::fmt::Debug + 'static>(_: &T) {}
    let engine = Engine::in_memory(options()).unwrap();
    check(&engine);
    check(&options());
    let threads: Vec<_> = (0..4)
        .map(|number| {
            let engine = engine.clone();
            std::thread::spawn(move || {
                for timer in 0..50 {
                    engine.arm(wish(&format!("r{number}"), &format!("t{timer}"), 10), at(1)).unwrap();
                }
                claim(&engine, 10, 30)
            })
        })
        .collect();
    let claimed: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    let mut names: Vec<_> = claimed.iter().map(|claimed| (&claimed.run, &claimed.timer_id)).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), claimed.len(), "no timer was claimed twice");
    assert_eq!(pending(&engine), 200);
}

#[test]
fn the_first_arming_wins_and_a_duplicate_changes_nothing() {
    on_both(&options(), |engine| {
        let first = armed(engine.arm(wish("r", "t", 100), at(1)).unwrap());
        let other = Arm { kind: 2, due: at(50), payload: None, ..wish("r", "t", 0) };
        assert_eq!(engine.arm(other, at(2)).unwrap(), ArmAnswer::AlreadyArmed { generation: first });
        assert_eq!(engine.next_wake().unwrap(), Some(at(100)));
        assert_eq!(pending(engine), 1);
        let claimed = claim(engine, 100, 10);
        assert_eq!((claimed[0].kind, claimed[0].due, claimed[0].payload.as_deref()), (1, at(100), Some(&b"r/t"[..])));
        // Neither does one of a timer that is held.
        let again = wish("r", "t", 1);
        assert_eq!(engine.arm(again, at(101)).unwrap(), ArmAnswer::AlreadyArmed { generation: first });
        assert_eq!(claim_names(engine, 100 + 59_999, 10), Vec::<String>::new());
        assert_eq!(claim(engine, 100 + 60_000, 10)[0].attempt, 2);
    });
}

#[test]
fn a_replacing_arm_moves_the_timer_and_drops_the_lease() {
    on_both(&options(), |engine| {
        let replacing = |due| Arm { on_conflict: OnConflict::Replace, ..wish("r", "t", due) };
        let first = armed(engine.arm(replacing(100), at(1)).unwrap());
        assert_eq!(claim(engine, 100, 10).len(), 1);
        let answer = engine.arm(replacing(200), at(101)).unwrap();
        let ArmAnswer::Replaced { generation: second } = answer else { panic!("{answer:?}") };
        assert!(second > first, "{second:?} after {first:?}");
        assert_eq!(claim_names(engine, 199, 10), Vec::<String>::new());
        let claimed = claim(engine, 200, 10);
        assert_eq!((claimed[0].attempt, claimed[0].due, claimed[0].generation), (1, at(200), second));
    });
}

#[test]
fn an_arm_after_a_disarm_is_new_and_has_a_higher_generation() {
    on_both(&options(), |engine| {
        let first = armed(engine.arm(wish("r", "t", 100), at(1)).unwrap());
        assert_eq!(claim(engine, 100, 1)[0].attempt, 1);
        assert_eq!(disarm(engine, "r", "t", None), DisarmAnswer::Disarmed { generation: first });
        assert_eq!((pending(engine), engine.next_wake().unwrap()), (0, None));
        let second = armed(engine.arm(wish("r", "t", 100), at(101)).unwrap());
        assert!(second > first, "{second:?} after {first:?}");
        assert_eq!(claim(engine, 101, 1)[0].attempt, 1, "attempts begin anew");
    });
}

#[test]
fn a_disarm_is_told_apart() {
    on_both(&options(), |engine| {
        assert_eq!(disarm(engine, "r", "t", None), DisarmAnswer::NotFound);
        assert_eq!(disarm(engine, "r", "t", Some(Generation(7))), DisarmAnswer::NotFound);
        let first = armed(engine.arm(wish("r", "t", 100), at(1)).unwrap());
        let other = Generation(first.0 + 1);
        assert_eq!(disarm(engine, "r", "t", Some(other)), DisarmAnswer::Changed { generation: first });
        assert_eq!(generation(engine, "r", "t"), Some(first), "it stays");
        assert_eq!(disarm(engine, "r", "t", Some(first)), DisarmAnswer::Disarmed { generation: first });
        assert_eq!(disarm(engine, "r", "t", Some(first)), DisarmAnswer::NotFound);
    });
}

#[test]
fn a_clock_may_begin_at_one_millisecond_and_a_due_be_as_far_as_there_is_time() {
    on_both(&options(), |engine| {
        engine.arm(wish("r", "past", 0), at(1)).unwrap();
        engine.arm(wish("r", "soon", 2), at(1)).unwrap();
        engine.arm(wish("r", "last", Timestamp::MAX.as_millis()), at(1)).unwrap();
        assert_eq!(claim_names(engine, 1, 10), ["r/past"]);
        assert_eq!(claim_names(engine, 2, 10), ["r/soon"]);
        assert_eq!(claim_names(engine, Timestamp::MAX.as_millis(), 10), ["r/past", "r/soon", "r/last"]);
    });
}

#[test]
fn an_argument_that_is_none_is_named_with_its_value_and_the_remedy() {
    let engine = Engine::in_memory(options().payload_bytes_max(2_000)).unwrap();
    let refusal = |arm: Arm, now: i64| {
        let error = engine.arm(arm, at(now)).unwrap_err();
        assert!(matches!(error, EngineError::InvalidArgument { .. }), "{error:?}");
        error.to_string()
    };
    let good = || wish("r", "t", 5);
    assert_eq!(refusal(Arm { run: String::new(), ..good() }, 1), "run `` is empty; give it 1 to 512 bytes");
    assert_eq!(refusal(Arm { timer_id: "a\nb".to_owned(), ..good() }, 1), "timer_id `a\\nb` has a control character");
    let long = refusal(Arm { tenant: "x".repeat(129), ..good() }, 1);
    assert_eq!(long, format!("tenant `{}…` is longer than 128 bytes", "x".repeat(64)));
    let kind = "is no kind number; use 1 to 239 (240 to 255 are reserved for tests)";
    assert_eq!(refusal(Arm { kind: 0, ..good() }, 1), format!("kind `0` {kind}"));
    assert_eq!(refusal(Arm { kind: 256, ..good() }, 1), format!("kind `256` {kind}"));
    let instant = "is outside the years 1970 to 9999; give milliseconds since 1970-01-01T00:00:00Z";
    assert_eq!(refusal(Arm { due: at(-1), ..good() }, 1), format!("due `-1` {instant}"));
    assert_eq!(refusal(Arm { due: at(i64::MAX), ..good() }, 1), format!("due `{}` {instant}", i64::MAX));
    assert_eq!(refusal(good(), -1), format!("now `-1` {instant}"));
    let large = refusal(Arm { payload: Some(vec![0; 2_000].into()), ..good() }, 1);
    assert!(large.starts_with("payload `default/r/t` is refused: the fired record"), "{large}");
    let claim = engine.claim_due("a b".to_owned(), at(1), 1).unwrap_err().to_string();
    assert_eq!(claim, "tenant `a b` has a character outside A-Z a-z 0-9 . _ ~ -");
    let seal = engine.seal_run(String::new(), "r".to_owned(), Some(Duration::ZERO), at(1)).unwrap_err().to_string();
    assert_eq!(seal, "retention `0 s` is no duration; give one above zero");
    let seal = engine.seal_run(String::new(), "r".to_owned(), Some(Duration::MAX), at(1)).unwrap_err().to_string();
    assert!(seal.starts_with("retention `default/r` is refused: "), "{seal}");
    assert_eq!(pending(&engine), 0, "nothing was armed");
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let refusal = |options: Result<Options, EngineError>| options.unwrap_err().to_string();
    let kind = "is no kind number; use 1 to 239 (240 to 255 are reserved for tests)";
    assert_eq!(refusal(options().kind(0, "a")), format!("kind `0` {kind}"));
    let twice = options().kind(1, "a").unwrap().kind(1, "b");
    assert!(refusal(twice).starts_with("kind `1` is refused: kinds `a` and `b` both have number 1"));
    let named = options().kind(1, "a").unwrap().kind(2, "a");
    assert!(refusal(named).starts_with("name `a` is refused: "));
    assert!(refusal(options().handler(0, Publish)).starts_with("kind `0` is refused: "));
    let twice = options().kind(1, "a").unwrap().handler(1, Publish).unwrap().handler(1, Publish);
    assert!(refusal(twice).starts_with("kind `1` is refused: kind number 1 has two handlers"));
    assert_eq!(refusal(options().external(1)), "kind `1` was not added; add it with `kind` first");
    assert_eq!(refusal(options().lease(Duration::ZERO)), "lease `0 s` is no duration; give one above zero");
    let lonely = options().handler(9, Publish).unwrap();
    let error = Engine::in_memory(lonely).unwrap_err().to_string();
    assert_eq!(error, "kind `9` has a handler and was not added; add it with `kind`");
}

/// It answers each call itself: ids are for duplicates on a topic.
#[test]
fn a_kind_that_remembers_ids_is_refused() {
    let kind = Kind { outbox: true, remember: Duration::from_secs(1), ..Kind::new(KindNumber::new(1).unwrap(), "k") };
    let refused = options().kind_with(kind).unwrap_err().to_string();
    assert!(refused.contains("remember") && refused.contains("1 s") && refused.contains("use 0"), "{refused}");
}

#[test]
fn arms_of_kinds_that_skip_or_reject_past_dues_say_so() {
    use punctual::timer::kind::{Kind, KindNumber, PastDue};
    let kind = |number, past_due| Kind {
        past_due,
        outbox: true,
        ..Kind::new(KindNumber::new(number).unwrap(), format!("k{number}"))
    };
    let options = options().kind_with(kind(1, PastDue::Skip)).unwrap().kind_with(kind(2, PastDue::Reject)).unwrap();
    on_both(&options, |engine| {
        assert_eq!(engine.arm(wish("r", "t", 5), at(5)).unwrap(), ArmAnswer::Skipped);
        let error = engine.arm(Arm { kind: 2, ..wish("r", "t", 5) }, at(5)).unwrap_err().to_string();
        assert!(error.starts_with("due `default/r/t` is refused: "), "{error}");
        assert_eq!(pending(engine), 0);
    });
}

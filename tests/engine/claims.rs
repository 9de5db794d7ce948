//! Claims and leases.

use std::time::Duration;

use punctual::engine::{Arm, Budget, Engine, OnConflict};

use crate::rig::{LEASE, at, claim, claim_names, on_both, options, pending, wish};

#[test]
fn what_is_due_is_claimed_in_order_across_kinds() {
    on_both(&options(), |engine| {
        let arms = [("b", "2", 20, 1), ("b", "1", 20, 9), ("a", "9", 20, 250), ("c", "1", 10, 3), ("d", "1", 21, 1)];
        for (run, id, due, kind) in arms {
            engine.arm(Arm { kind, ..wish(run, id, due) }, at(1)).unwrap();
        }
        assert_eq!(claim_names(engine, 9, 10), Vec::<String>::new(), "never early");
        assert_eq!(claim_names(engine, 20, 2), ["c/1", "a/9"], "the due is included; ties by run, then by id");
        assert_eq!(claim_names(engine, 20, 10), ["b/1", "b/2"]);
        assert_eq!(claim_names(engine, 21, 10), ["d/1"]);
    });
}

#[test]
fn a_claim_carries_what_was_armed() {
    on_both(&options(), |engine| {
        engine.arm(Arm { kind: 7, ..wish("r", "t", 20) }, at(1)).unwrap();
        let claimed = claim(engine, 25, 1).remove(0);
        assert_eq!((claimed.run.as_str(), claimed.timer_id.as_str(), claimed.kind), ("r", "t", 7));
        assert_eq!((claimed.due, claimed.attempt, claimed.payload.as_deref()), (at(20), 1, Some(&b"r/t"[..])));
        let again = claim(engine, 25 + LEASE, 1).remove(0);
        assert_eq!((again.due, again.attempt, again.generation), (at(20), 2, claimed.generation));
        assert_eq!(again.payload, claimed.payload);
    });
}

#[test]
fn a_lease_is_half_open() {
    on_both(&options(), |engine| {
        engine.arm(wish("r", "t", 20), at(1)).unwrap();
        assert_eq!(claim(engine, 30, 1).len(), 1);
        for held in [30, 20, 1, 30 + LEASE - 1] {
            assert_eq!(claim_names(engine, held, 1), Vec::<String>::new(), "held at {held}");
        }
        assert_eq!(engine.next_wake().unwrap(), Some(at(30 + LEASE)));
        assert_eq!(pending(engine), 1, "a held timer is pending");
        assert_eq!(claim(engine, 30 + LEASE, 1)[0].attempt, 2);
        assert_eq!(claim_names(engine, 30 + LEASE, 1), Vec::<String>::new());
    });
}

#[test]
fn a_lease_of_ones_own_rounds_up() {
    let engine = Engine::in_memory(options().lease(Duration::from_micros(1_001)).unwrap()).unwrap();
    engine.arm(wish("r", "t", 20), at(1)).unwrap();
    assert_eq!(claim(&engine, 20, 1).len(), 1);
    assert_eq!(claim(&engine, 21, 1).len(), 0);
    assert_eq!(claim(&engine, 22, 1).len(), 1);
}

#[test]
fn a_limit_bounds_what_is_returned_and_not_what_is_looked_at() {
    on_both(&options(), |engine| {
        for number in 0..1_100 {
            engine.arm(wish("held", &format!("{number:04}"), 10), at(1)).unwrap();
        }
        engine.arm(wish("free", "t", 11), at(1)).unwrap();
        assert_eq!(claim(engine, 10, 0).len(), 0);
        assert_eq!(claim(engine, 10, usize::MAX).len(), 1_100, "a limit without end takes no room");
        assert_eq!(claim_names(engine, 11, 1), ["free/t"], "held timers hide nothing (L5)");
    });
}

#[test]
fn other_tenants_are_not_touched() {
    on_both(&options(), |engine| {
        for number in 0..600 {
            let theirs = Arm { tenant: "b".to_owned(), ..wish("r", &format!("{number}"), 10) };
            engine.arm(theirs, at(1)).unwrap();
        }
        engine.arm(Arm { tenant: "a".to_owned(), ..wish("r", "t", 11) }, at(1)).unwrap();
        let claim = |tenant: &str, limit| engine.claim_due(tenant.to_owned(), at(11), limit).unwrap();
        assert_eq!(claim("a", 1).len(), 1);
        assert_eq!(claim("a", 1).len(), 0);
        assert_eq!(engine.pending_count("a".to_owned()).unwrap(), 1);
        assert_eq!(engine.pending_count("b".to_owned()).unwrap(), 600);
        let theirs = claim("b", usize::MAX);
        assert!(theirs.len() == 600 && theirs.iter().all(|claimed| claimed.attempt == 1), "{}", theirs.len());
    });
}

#[test]
fn claims_drain_a_backlog_in_order() {
    on_both(&options(), |engine| {
        for number in 0..300_i64 {
            engine.arm(wish("r", &format!("{number:03}"), 1_000 - number % 7), at(1)).unwrap();
        }
        let mut drained = Vec::new();
        loop {
            let claimed = claim(engine, 1_000, 16);
            if claimed.is_empty() {
                break;
            }
            for one in claimed {
                drained.push((one.due, one.timer_id.clone()));
                engine.disarm(String::new(), one.run, one.timer_id, Some(one.generation)).unwrap();
            }
        }
        assert_eq!(drained.len(), 300);
        assert!(drained.is_sorted(), "{drained:?}");
        assert_eq!((pending(engine), engine.next_wake().unwrap()), (0, None));
    });
}

#[test]
fn a_claim_sees_what_others_have_done_since_the_one_before() {
    on_both(&options().kind(1, "one").unwrap(), |engine| {
        for id in ["a", "b", "c", "d"] {
            engine.arm(wish("r", id, 10), at(1)).unwrap();
        }
        assert_eq!(claim_names(engine, 10, 1), ["r/a"]);
        assert_eq!(crate::rig::tick(engine, 10, Budget { fired_max: 1, ..Budget::default() }).fired, 1);
        engine.disarm(String::new(), "r", "c", None).unwrap();
        engine.arm(wish("r", "old", 2), at(10)).unwrap();
        engine.arm(Arm { on_conflict: OnConflict::Replace, ..wish("r", "d", 3) }, at(10)).unwrap();
        engine.arm(wish("r", "new", 11), at(10)).unwrap();
        assert_eq!(claim_names(engine, 10, 9), ["r/old", "r/d"], "in the order of their dues");
        assert_eq!(claim_names(engine, 11, 9), ["r/new"]);
        assert_eq!(claim_names(engine, 10 + LEASE, 9), ["r/old", "r/d", "r/a"]);
        engine.disarm_run(String::new(), "r").unwrap();
        assert_eq!(claim_names(engine, 900_000, 9), Vec::<String>::new());
    });
}

#[test]
fn leases_and_limits_of_a_kind_hold_for_claims() {
    use punctual::engine::Entry;
    use punctual::timer::emitted::What;
    use punctual::timer::kind::{Kind, KindNumber};
    use punctual::timer::model::Claim;
    use punctual::timer::outcome::ExpiryReason;
    let job = Kind {
        outbox: true,
        claim: Some(Claim { lease: Duration::from_secs(1), attempts_max: Some(2) }),
        expires_after: Some(Duration::from_secs(5)),
        ..Kind::new(KindNumber::new(1).unwrap(), "job")
    };
    on_both(&options().kind_with(job).unwrap(), |engine| {
        engine.arm(wish("r", "worn", 10), at(1)).unwrap();
        engine.arm(wish("r", "late", 11), at(1)).unwrap();
        assert_eq!(claim_names(engine, 10, 10), ["r/worn"]);
        assert_eq!(claim_names(engine, 1_009, 1), ["r/late"]);
        assert_eq!(claim(engine, 1_010, 1)[0].attempt, 2);
        let late = wish("r", "later", 20);
        engine.arm(late, at(1)).unwrap();
        assert_eq!(claim_names(engine, 7_000, 10), ["r/late"], "one is worn out, one is too late, both for ever");
        assert_eq!(pending(engine), 1);
        let entries = engine.read_outbox(0, 10).unwrap();
        let reasons = entries.into_iter().map(|Entry { emitted, .. }| emitted.unwrap()).map(|emitted| {
            let What::Expired { reason, .. } = emitted.what else { panic!("{emitted:?}") };
            (emitted.key.id.as_str().to_owned(), emitted.attempt, reason)
        });
        let expected = [("later", 0, ExpiryReason::TooLate), ("worn", 2, ExpiryReason::AttemptsExhausted)];
        let mut reasons: Vec<_> = reasons.collect();
        reasons.sort_by_key(|(id, ..)| id.clone());
        assert_eq!(reasons, expected.map(|(id, attempt, reason)| (id.to_owned(), attempt, reason)));
        let report = crate::rig::tick(engine, 7_000, Budget::default());
        assert_eq!(report.fired, 0, "the other is held");
    });
}

//! Handlers and claims in a whole worker: across transactions, take-overs and panics.

use std::rc::Rc;
use std::time::Duration;

use super::fake_log::{End, Hands};
use super::settings::Settings;
use super::tests::{Bench, settings};
use crate::log::Destination;
use crate::timer::command::{Arm, OnConflict, When};
use crate::timer::handler::{Done, FireContext, Fired, Handler, HandlerError, TimerCommand};
use crate::timer::identity::{TimerId, TimerKey};
use crate::timer::kind::{Kind, KindNumber, KindRef, Registry};
use crate::timer::model::{Claim, Timer};
use crate::wire;

/// Arms another timer for this very instant, once.
struct Chain;

impl Handler for Chain {
    fn fire(&self, ctx: &FireContext, timer: &Timer) -> Result<Fired, HandlerError> {
        if timer.key.id.as_str() != "first" {
            return Ok(Fired::Done(Done::publish(timer)));
        }
        let arm = |id: &str, kind| -> Result<TimerCommand, HandlerError> {
            Ok(TimerCommand::Arm(Box::new(Arm {
                key: TimerKey { run: timer.key.run.clone(), id: TimerId::parse(id)? },
                kind: KindRef::Name(kind),
                when: When::At(ctx.now),
                on_conflict: OnConflict::Keep,
                payload: Some(id.to_owned().into()),
                record_key: None,
                headers: Vec::new(),
                outbox: Vec::new(),
            })))
        };
        let commands = vec![arm("same", "sms".to_owned())?, arm("other", "email".to_owned())?];
        Ok(Fired::Done(Done { commands, ..Done::publish(timer) }))
    }
}

// N1, N6
#[test]
fn what_a_handler_arms_for_now_fires_in_the_next_tick() {
    let mut settings = settings();
    settings.rules.handlers.register(2, Chain).unwrap();
    let mut bench = Bench::with(settings, &Rc::default(), &Hands::default());
    bench.own();
    bench.arm("early", "email", "PT1S");
    bench.arm("first", "sms", "PT1S");
    bench.ticks(110);
    let mut fired = bench.fired();
    fired.sort();
    assert_eq!(fired, ["early", "first", "other", "same"]);
    assert_eq!(bench.broker.borrow().sent_to(Destination::DeadLetter).len(), 0);
}

/// Panics at the first attempt, fails at the second.
struct Clumsy;

impl Handler for Clumsy {
    fn fire(&self, ctx: &FireContext, timer: &Timer) -> Result<Fired, HandlerError> {
        match ctx.attempt {
            1 => panic!("it stumbled"),
            2 => Err("not yet".into()),
            _ => Ok(Fired::Done(Done::publish(timer))),
        }
    }
}

fn clumsy() -> Settings {
    let mut settings = settings();
    settings.rules.handlers.register(2, Clumsy).unwrap();
    settings
}

fn claiming(attempts_max: Option<u32>) -> Settings {
    let mut settings = settings();
    let claim = Some(Claim { lease: Duration::from_secs(2), attempts_max });
    let kinds = settings.rules.registry.iter().cloned();
    let kinds = kinds.map(|kind| Kind { claim: claim.filter(|_| kind.number == KindNumber::new(2).unwrap()), ..kind });
    settings.rules.registry = Registry::new(kinds).unwrap();
    settings
}

fn attempts(bench: &Bench) -> Vec<String> {
    let broker = bench.broker.borrow();
    let fired = broker.output.iter().filter(|emission| matches!(emission.to, Destination::Fired(_)));
    let attempt = |name: &str| name == wire::fired::ATTEMPT || name == wire::fired::CE_ID;
    let text = |value: &bytes::Bytes| String::from_utf8(value.to_vec()).unwrap();
    fired
        .map(|emission| {
            let headers = emission.headers.iter().filter(|header| attempt(&header.key));
            headers.map(|header| text(header.value.as_ref().unwrap())).collect::<Vec<_>>().join(" ")
        })
        .collect()
}

#[test]
fn a_panic_fails_its_own_timer_and_nothing_else() {
    let mut bench = Bench::with(clumsy(), &Rc::default(), &Hands::default());
    bench.own();
    bench.arm("bad", "sms", "PT1S");
    bench.arm("good", "email", "PT1S");
    bench.ticks(200);
    assert_eq!(bench.fired(), ["good"], "the other one is not held up");
    // 5 s after the first attempt the second fails, and 10 s after that the third does not.
    bench.ticks(1_300);
    assert_eq!(bench.fired(), ["good"]);
    bench.ticks(200);
    assert_eq!(bench.fired(), ["good", "bad"]);
    assert_eq!(attempts(&bench).last().unwrap(), "default/r/bad/1 3");
}

#[test]
fn a_timer_that_rests_rests_on_after_a_take_over() {
    let mut bench = Bench::with(clumsy(), &Rc::default(), &Hands::default());
    bench.own();
    bench.arm("bad", "sms", "PT1S");
    bench.ticks(150);
    let mut next = Bench::with(clumsy(), &bench.broker, &bench.clock);
    next.own();
    next.ticks(1_400);
    assert_eq!(next.fired(), Vec::<String>::new(), "attempt 2 has failed, and the next one is not due");
    next.ticks(200);
    assert_eq!(next.fired(), ["bad"], "the third attempt, counted over both owners");
}

// D13
#[test]
fn a_claim_is_kept_across_aborts_and_take_overs() {
    let mut bench = Bench::with(claiming(None), &Rc::default(), &Hands::default());
    bench.own();
    bench.arm("a", "sms", "PT1S");
    bench.ticks(50);
    bench.broker.borrow_mut().ends.push_back(End::Abort);
    bench.ticks(100);
    assert_eq!(attempts(&bench), ["default/r/a/1 1"], "what was aborted does not count");
    let mut next = Bench::with(claiming(None), &bench.broker, &bench.clock);
    next.own();
    next.ticks(220);
    assert_eq!(attempts(&next), ["default/r/a/1 1", "default/r/a/1 2"], "the same event, another attempt");
    next.send(r#"{"run":"r","disarm":{"timer_id":"a","generation":1}}"#);
    next.ticks(500);
    assert_eq!(attempts(&next).len(), 2);
}

#[test]
fn a_claimed_timer_that_nobody_takes_ends_as_a_dead_letter() {
    let mut bench = Bench::with(claiming(Some(2)), &Rc::default(), &Hands::default());
    bench.own();
    bench.arm("a", "sms", "PT1S");
    bench.ticks(1_000);
    assert_eq!(attempts(&bench), ["default/r/a/1 1", "default/r/a/1 2"]);
    let broker = bench.broker.borrow();
    let [letter] = broker.sent_to(Destination::DeadLetter)[..] else { panic!("one letter") };
    let header = |name: &str| letter.headers.iter().find(|header| header.key == name).and_then(|h| h.value.clone());
    assert_eq!(header(wire::dead_letter::REASON).unwrap(), "attempts_exhausted");
    assert_eq!(header(wire::fired::ATTEMPT).unwrap(), "2");
    assert_eq!(letter.value.as_ref().unwrap(), "a");
}

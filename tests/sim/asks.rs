//! What clients ask for.
//!
//! Owns the mix of commands. Keeps: identities come from a small space, so that commands meet each other.

use bytes::Bytes;
use punctual::timer::model::{Header, OutboxRecord};

use crate::client::{ArmAsk, Ask, KindAsk, Spec, WhenAsk};
use crate::handlers::{CHAINED_KIND, chained};
use crate::pauses;
use crate::plan::Fault;
use crate::setting::{HORIZON_DAYS, UNKNOWN_KIND};
use crate::sim::{EPOCH, Millis, Sim};

pub(crate) const TENANTS: [&str; 2] = ["default", "acme"];
/// The run of the many.
const CROWD: &str = "crowd";
/// Most timers of it: more than one slice of a sweep.
const CROWD_MAX: u32 = 400;
const DAY: Millis = 86_400_000;

/// Returns the next commands.
pub(crate) fn draw(sim: &Sim, first: u64) -> Vec<Spec> {
    let tenant = TENANTS[sim.draw("asks", |rng| rng.usize(0..TENANTS.len()))];
    let run = format!("r{}", sim.draw("asks", |rng| rng.u32(0..sim.plan.runs)));
    let spec = |number, run: &str, ask| {
        // What concerns a whole run is always answered: its count is what the oracle looks at.
        let is_of_run = matches!(ask, Ask::DisarmRun | Ask::SealRun { .. });
        // So is a resume: its answer says whether an attempt went before that nobody has seen.
        let is_answered =
            is_of_run || pauses::is_pause(&ask) || !sim.plan.has_silence || sim.draw("asks", |rng| rng.u32(0..3)) != 0;
        let correlation = is_answered.then(|| format!("c{number}"));
        Spec { number, tenant, run: run.to_owned(), correlation, ask }
    };
    if sim.strikes(Fault::Crowd, "crowd", 40) {
        return crowd(sim, first, &spec);
    }
    if sim.strikes(Fault::Garbage, "garbage", 6) {
        return vec![spec(first, &run, bad(sim))];
    }
    let good = spec(first, &run, good(sim));
    let pause = pauses::draw(sim).map(|ask| spec(first + 1, &run, ask));
    [good].into_iter().chain(pause).collect()
}

fn good(sim: &Sim) -> Ask {
    let id = id(sim);
    // A seal that never ends leaves little to do in its run.
    let rare_seal = !sim.plan.has_ending_seals && sim.draw("asks", |rng| rng.u32(0..10)) != 0;
    match sim.draw("asks", |rng| rng.u32(0..24)) {
        20 if rare_seal => Ask::DisarmRun,
        0..14 => arm(sim, id, when(sim)),
        14..17 => Ask::Disarm { id, generation: None },
        17 => Ask::Disarm { id, generation: Some(sim.draw("asks", |rng| rng.u64(1..40))) },
        18..20 => Ask::DisarmRun,
        20 => Ask::SealRun { retention: retention(sim) },
        // Already due: at once, rejected or skipped, by kind.
        21 => arm(sim, id, WhenAsk::At(EPOCH + sim.now() - 2 * DAY)),
        _ => arm(sim, id, WhenAsk::After(sim.draw("asks", |rng| rng.i64(1..50)))),
    }
}

fn retention(sim: &Sim) -> Option<Millis> {
    sim.plan.has_ending_seals.then(|| sim.draw("asks", |rng| rng.i64(1..2_000)))
}

fn id(sim: &Sim) -> String {
    format!("t{}", sim.draw("asks", |rng| rng.u32(0..sim.plan.ids)))
}

fn when(sim: &Sim) -> WhenAsk {
    if sim.draw("recurrence", |rng| rng.u32(0..8)) == 0 {
        if sim.plan.has_specials && sim.draw("cron", fastrand::Rng::bool) {
            return sim.draw("cron", |rng| WhenAsk::Cron { seconds: rng.i64(1..7), count: rng.u64(1..5) });
        }
        return sim.draw("recurrence", |rng| WhenAsk::Every { interval: rng.i64(1_000..4_000), count: rng.u64(1..5) });
    }
    // Far enough for a clock that is wrong to show.
    let far = if sim.plan.has(Fault::ClockStep) { 60_000 } else { sim.plan.reach };
    let after = sim.draw("asks", |rng| match rng.u32(0..10) {
        8 => far,
        0 => rng.i64(1..20),
        1..8 => rng.i64(1..sim.plan.reach),
        // Storms: many timers at one instant.
        _ => sim.plan.reach - sim.now() % sim.plan.reach,
    });
    if sim.draw("asks", fastrand::Rng::bool) { WhenAsk::At(EPOCH + sim.now() + after) } else { WhenAsk::After(after) }
}

fn arm(sim: &Sim, id: String, when: WhenAsk) -> Ask {
    let number = sim.draw("asks", |rng| rng.u64(..));
    let kind = match sim.draw("asks", |rng| rng.u32(0..20)) {
        0..6 => KindAsk::Name("email"),
        6..9 => KindAsk::Number(1),
        9..13 => KindAsk::Name("sms"),
        13..15 => KindAsk::Number(2),
        15..17 => KindAsk::Name("call"),
        17..19 => KindAsk::Number(7),
        _ => KindAsk::Number(UNKNOWN_KIND),
    };
    let is_special = sim.plan.has_specials && sim.draw("special", |rng| rng.u32(0..2)) == 0;
    let special = ["job", "flaky", "brief", "dated", "chained"].map(KindAsk::Name);
    let kind = if is_special { special[sim.draw("special", |rng| rng.usize(0..special.len()))] } else { kind };
    let is_for_handler = sim.plan.has_specials && sim.draw("chained", |rng| rng.u32(0..8)) == 0;
    let (id, kind, when) = if is_for_handler { for_handler(sim, &id) } else { (id, kind, when) };
    let has_outbox = !matches!(kind, KindAsk::Name("sms") | KindAsk::Number(2));
    let outbox = if has_outbox && sim.draw("asks", |rng| rng.u32(0..4)) == 0 { 2 } else { 0 };
    let record = |index| OutboxRecord {
        key: Some(Bytes::from(format!("o{number}"))),
        value: Some(Bytes::from(format!("{number}-{index}"))),
        headers: Vec::new(),
    };
    Ask::Arm(Box::new(ArmAsk {
        id,
        kind,
        when,
        is_replacing: sim.draw("asks", |rng| rng.u32(0..3)) == 0,
        payload: (!number.is_multiple_of(7)).then(|| Bytes::from(number.to_string())),
        key: number.is_multiple_of(5).then(|| Bytes::from(format!("k{}", number % 3))),
        headers: if number.is_multiple_of(4) {
            vec![Header { key: "x".to_owned(), value: Some(Bytes::from_static(b"\x00\xFF")) }; 2]
        } else {
            Vec::new()
        },
        outbox: (0..outbox).map(record).collect(),
    }))
}

/// Returns the id, kind and due of a timer that the handler of another disarms or replaces.
fn for_handler(sim: &Sim, id: &str) -> (String, KindAsk, WhenAsk) {
    let (next, stop) = chained(id);
    let id = sim.draw("chained", |rng| if rng.bool() { next } else { stop });
    (id, KindAsk::Name(CHAINED_KIND.1), WhenAsk::After(sim.draw("chained", |rng| rng.i64(1..sim.plan.reach))))
}

/// Returns a command with one defect.
fn bad(sim: &Sim) -> Ask {
    let id = id(sim);
    let seconds = (EPOCH + sim.now()) / 1_000;
    let plain = |sim: &Sim, change: fn(&mut ArmAsk)| match arm(sim, id.clone(), WhenAsk::After(500)) {
        Ask::Arm(mut arm) => {
            arm.kind = KindAsk::Name("email");
            change(&mut arm);
            Ask::Arm(arm)
        }
        other @ (Ask::Disarm { .. }
        | Ask::Pause { .. }
        | Ask::Resume { .. }
        | Ask::DisarmRun
        | Ask::SealRun { .. }
        | Ask::Garbage(_)) => other,
    };
    match sim.draw("garbage", |rng| rng.u32(0..9)) {
        0 => Ask::Garbage(Some(Bytes::from_static(b"\xFF\xFE no command"))),
        1 => Ask::Garbage(None),
        2 => Ask::Garbage(Some(Bytes::from_static(b"{\"run\":\"r0\",\"bogus\":1}"))),
        3 => arm(sim, id, WhenAsk::At(seconds)),
        4 => arm(sim, id, WhenAsk::After(-5)),
        5 => {
            let days = i64::try_from(HORIZON_DAYS).expect("few") + 2;
            arm(sim, id, WhenAsk::At(EPOCH + sim.now() + days * DAY))
        }
        6 => plain(sim, |arm| arm.kind = KindAsk::Name("fax")),
        7 => plain(sim, |arm| arm.headers = vec![Header { key: "ce_x".to_owned(), value: None }]),
        _ => plain(sim, |arm| {
            arm.kind = KindAsk::Name("sms");
            arm.outbox = vec![OutboxRecord { key: None, value: None, headers: Vec::new() }];
        }),
    }
}

/// Returns many timers of one run, and perhaps the end of all of them.
fn crowd(sim: &Sim, first: u64, spec: &dyn Fn(u64, &str, Ask) -> Spec) -> Vec<Spec> {
    let many = sim.draw("crowd", |rng| rng.u32(0..CROWD_MAX));
    let due = sim.now() + sim.draw("crowd", |rng| rng.i64(1..sim.plan.reach));
    let mut specs = Vec::new();
    for number in 0..many {
        let ask = arm(sim, format!("m{number}"), WhenAsk::At(EPOCH + due));
        specs.push(spec(first + u64::from(number), CROWD, ask));
    }
    if sim.draw("crowd", |rng| rng.u32(0..3)) != 0 {
        let is_seal = sim.draw("crowd", |rng| rng.u32(0..3)) == 0;
        let ask = if is_seal { Ask::SealRun { retention: retention(sim) } } else { Ask::DisarmRun };
        specs.push(spec(first + u64::from(many), CROWD, ask));
    }
    specs
}

/// Returns a timer of a storm in calm times.
pub(crate) fn storm(sim: &Sim, number: u64) -> Spec {
    let tenant = TENANTS[sim.draw("storm", |rng| rng.usize(0..TENANTS.len()))];
    let due = EPOCH + sim.now() + 1_000 + if sim.draw("storm", |rng| rng.u32(0..5)) == 0 { 7 } else { 0 };
    let ask = match arm(sim, format!("s{number}"), WhenAsk::At(due)) {
        Ask::Arm(mut arm) => {
            arm.kind = KindAsk::Name(sim.draw("storm", |rng| match rng.u32(0..10) {
                0 => "sms",
                1 => "call",
                _ => "email",
            }));
            arm.outbox.clear();
            Ask::Arm(arm)
        }
        other @ (Ask::Disarm { .. }
        | Ask::Pause { .. }
        | Ask::Resume { .. }
        | Ask::DisarmRun
        | Ask::SealRun { .. }
        | Ask::Garbage(_)) => other,
    };
    let run = format!("r{}", sim.draw("storm", |rng| rng.u32(0..sim.plan.runs)));
    Spec { number, tenant, run, correlation: Some(format!("c{number}")), ask }
}

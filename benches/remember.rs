//! What it costs to remember ids: arming and firing over the store on disk, with and without, in one run: `make bench`.
//!
//! Owns the method: rounds of the two variants take turns, so that whatever else the machine does hits both alike. Each round arms,
//! commits, fires and commits; the variant that remembers forgets in each as many ids as it adds. The transaction is left out: its
//! records are counted instead. Never judges: the ratio is for whoever reads it. Keeps: both variants fire the same.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use bytes::Bytes;
use punctual::calendar::rules::FixedRules;
use punctual::store::overlay::Overlay;
use punctual::store::rocks::{Resources, RocksStore};
use punctual::store::{Batch, Store};
use punctual::time::Timestamp;
use punctual::timer::apply::{Context, apply};
use punctual::timer::budget::{Budget, Tick};
use punctual::timer::command::{Action, Arm, Command, OnConflict, When};
use punctual::timer::fire::{FireRules, Looks, fire_due};
use punctual::timer::handler::Attempt;
use punctual::timer::identity::{Run, RunKey, Tenant, TimerId, TimerKey};
use punctual::timer::kind::{Kind, KindNumber, KindRef, Registry};
use punctual::timer::limits::Limits;
use punctual::timer::model::Generation;

/// Timers of a round, which is about a transaction of the service under load.
const TIMERS: u64 = 1_000;
/// How far apart rounds are, in the time of the timers.
const STEP: Duration = Duration::from_secs(10);
/// Rounds before the first measured one: more than what is remembered, so that as many ids are forgotten as are added.
const WARM_UP: u64 = 80;
/// Measured rounds, unless the command line says otherwise.
const ROUNDS: u64 = 400;
/// More than ever end in one round.
const FORGOTTEN_MAX: usize = 4_096;
const REMEMBER: Duration = Duration::from_mins(10);
const START: Timestamp = Timestamp::from_millis(1_796_000_000_000);

struct Variant {
    overlay: Overlay<RocksStore>,
    registry: Registry,
    generation: u64,
    arming: Duration,
    firing: Duration,
    records: usize,
}

fn main() -> ExitCode {
    // `cargo test --benches` and criterion's own flags mean nothing here.
    let rounds = std::env::args().skip(1).find_map(|text| text.parse().ok()).unwrap_or(ROUNDS);
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let resources = Resources::new(256 << 20);
    let mut variants = [("without", Duration::ZERO), ("with", REMEMBER)].map(|(name, remember)| {
        let store = RocksStore::open(&directory.path().join(name), &resources).expect("a new store opens");
        Variant::new(store, remember)
    });
    for round in 0..WARM_UP + rounds {
        for turn in 0..2 {
            let at = usize::from((round + turn) % 2 == 1);
            if let Some(variant) = variants.get_mut(at) {
                variant.round(round, WARM_UP <= round);
            }
        }
    }
    let [without, with] = &variants;
    print("firing", without.firing, with.firing);
    print("arming and firing", without.arming + without.firing, with.arming + with.firing);
    let line = format!(
        "records of the changelog for each timer: {} and {}",
        without.per_timer(rounds),
        with.per_timer(rounds)
    );
    show(&line);
    ExitCode::SUCCESS
}

fn print(what: &str, without: Duration, with: Duration) {
    let ratio = with.as_secs_f64() / without.as_secs_f64();
    show(&format!("{what}: {ratio:.2} times as long with remembered ids; rate {:.0} %", 100.0 / ratio));
}

#[expect(clippy::print_stdout, reason = "the figures are for whoever runs it")]
fn show(line: &str) {
    println!("{line}");
}

impl Variant {
    fn new(store: RocksStore, remember: Duration) -> Self {
        let kind = Kind { remember, ..Kind::new(kind(), "email") };
        Self {
            overlay: Overlay::new(store).expect("a new store can be read"),
            registry: Registry::new([kind]).expect("one kind is a registry"),
            generation: 1,
            arming: Duration::ZERO,
            firing: Duration::ZERO,
            records: 0,
        }
    }

    fn round(&mut self, round: u64, is_measured: bool) {
        let now =
            START.checked_add(STEP * u32::try_from(round).expect("few")).expect("within the years that there are");
        let commands: Vec<Command> = (0..TIMERS).map(|number| arm(round, number)).collect();
        let began = stopwatch();
        self.arm(&commands, now);
        let armed = self.commit();
        let arming = began.elapsed();
        let began = stopwatch();
        self.fire(now.checked_add(STEP / 2).expect("within the years that there are"));
        let fired = self.commit();
        let firing = began.elapsed();
        if is_measured {
            self.arming += arming;
            self.firing += firing;
            self.records += armed + fired;
        }
    }

    fn arm(&mut self, commands: &[Command], now: Timestamp) {
        let limits = Limits::default();
        for command in commands {
            let context = Context {
                registry: &self.registry,
                limits: &limits,
                calendar: &FixedRules,
                now,
                recorded: Some(now),
                next_generation: Generation(self.generation),
            };
            let outcome = apply(&self.overlay, command, &context).expect("the store can be read");
            self.generation += 1;
            for mutation in outcome.mutations {
                self.overlay.fold(mutation);
            }
        }
    }

    fn fire(&mut self, now: Timestamp) {
        let budget = Budget { fired_max: 4_000, fired_per_kind_max: 4_000, scanned_max: 16_000, ..Budget::default() };
        let rules = FireRules {
            kinds: &[kind()],
            registry: &self.registry,
            limits: &Limits::default(),
            calendar: &FixedRules,
            now,
            elapsed: &|| Duration::ZERO,
            attempt: &|_, _| Attempt::AsArmed,
            is_here: &|_| true,
            next_generation: Generation(self.generation),
        };
        let mut tick = Tick::new(budget);
        let (outcome, _) =
            fire_due(&self.overlay, &rules, &mut tick, &mut Looks::new()).expect("the store can be read");
        assert_eq!(outcome.fired.len() as u64, TIMERS, "all fire in one tick");
        for mutation in outcome.mutations {
            self.overlay.fold(mutation);
        }
        self.overlay.forget(now, FORGOTTEN_MAX).expect("the store can be read");
    }

    fn commit(&mut self) -> usize {
        let batch: Batch = self.overlay.batch();
        let records = batch.timers.len() + batch.remembered.len();
        self.overlay.commit(batch).expect("the store can be written");
        records
    }

    fn per_timer(&self, rounds: u64) -> usize {
        let header = self.overlay.store().header();
        assert!(header.pending.values().all(|pending| *pending == 0), "nothing is left to fire");
        self.records / usize::try_from(rounds * TIMERS).expect("few").max(1)
    }
}

#[expect(clippy::disallowed_methods, reason = "this measures how long something takes")]
fn stopwatch() -> Instant {
    Instant::now()
}

fn kind() -> KindNumber {
    KindNumber::new(1).expect("1 is a number of a kind")
}

fn arm(round: u64, number: u64) -> Command {
    let tenant = Tenant::parse("acme").expect("a valid tenant");
    let run = Run::parse(&format!("order-{round}-{number}")).expect("a valid run");
    let id = TimerId::parse("reminder").expect("a valid timer id");
    let arm = Arm {
        key: TimerKey { run: RunKey { tenant, run }, id },
        kind: KindRef::Number(kind()),
        when: When::AfterMillis(1 + i64::try_from(number).expect("few")),
        on_conflict: OnConflict::Keep,
        payload: Some(Bytes::from_static(b"pay now")),
        record_key: None,
        headers: Vec::new(),
        outbox: Vec::new(),
    };
    Command { reply: None, action: Action::Arm(Box::new(arm)) }
}

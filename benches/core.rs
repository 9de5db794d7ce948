//! Micro-benchmarks of the core over the store in memory, by criterion: `make bench`.
//!
//! Owns figures of single operations, in which a regression shows first. What a deployment reaches is measured elsewhere,
//! against a real broker: there the transactions cost most.

use std::hint::black_box;
use std::time::Duration;

use bytes::Bytes;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use punctual::calendar::rules::FixedRules;
use punctual::store::memory::MemoryStore;
use punctual::store::overlay::Overlay;
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

const TIMERS: u32 = 1_000;
const NOW: Timestamp = Timestamp::from_millis(1_796_000_000_000);

fn kind() -> KindNumber {
    KindNumber::new(1).expect("1 is a number of a kind")
}

fn registry() -> Registry {
    let email = Kind::new(kind(), "email");
    Registry::new([email]).expect("one kind is a registry")
}

fn commands() -> Vec<Command> {
    (0..TIMERS).map(arm).collect()
}

fn arm(number: u32) -> Command {
    let tenant = Tenant::parse("acme").expect("a valid tenant");
    let run = Run::parse(&format!("order-{number}")).expect("a valid run");
    let id = TimerId::parse("reminder").expect("a valid timer id");
    let arm = Arm {
        key: TimerKey { run: RunKey { tenant, run }, id },
        kind: KindRef::Number(kind()),
        when: When::AfterMillis(1 + i64::from(number)),
        on_conflict: OnConflict::Keep,
        payload: Some(Bytes::from_static(b"pay now")),
        record_key: None,
        headers: Vec::new(),
        outbox: Vec::new(),
    };
    Command { reply: None, action: Action::Arm(Box::new(arm)) }
}

fn empty() -> Overlay<MemoryStore> {
    Overlay::new(MemoryStore::default()).expect("memory can be read")
}

fn apply_all(overlay: &mut Overlay<MemoryStore>, registry: &Registry, commands: &[Command]) {
    let limits = Limits::default();
    for (generation, command) in (1_u64..).zip(commands) {
        let next_generation = Generation(generation);
        let calendar = FixedRules;
        let context =
            Context { registry, limits: &limits, calendar: &calendar, now: NOW, recorded: Some(NOW), next_generation };
        let outcome = apply(overlay, command, &context).expect("memory can be read");
        for mutation in outcome.mutations {
            overlay.fold(mutation);
        }
    }
}

fn arm_timers(criterion: &mut Criterion) {
    let (registry, commands) = (registry(), commands());
    let mut group = criterion.benchmark_group("core");
    group.throughput(Throughput::Elements(u64::from(TIMERS)));
    let arm_all = |mut overlay: Overlay<MemoryStore>| {
        apply_all(&mut overlay, &registry, black_box(&commands));
        overlay
    };
    group.bench_function("arm 1000 timers", |bencher| bencher.iter_batched(empty, arm_all, BatchSize::LargeInput));
    group.finish();
}

fn fire_timers(criterion: &mut Criterion) {
    let (registry, commands) = (registry(), commands());
    let committed = || {
        let mut overlay = empty();
        apply_all(&mut overlay, &registry, &commands);
        let batch = overlay.batch();
        overlay.commit(batch).expect("memory can be written");
        overlay
    };
    let later = NOW.checked_add(Duration::from_mins(1)).expect("within the years that can be written");
    let budget = Budget { fired_max: 4_000, fired_per_kind_max: 4_000, scanned_max: 16_000, ..Budget::default() };
    let fire_all = |overlay: Overlay<MemoryStore>| {
        let mut tick = Tick::new(budget);
        let rules = FireRules {
            kinds: &[kind()],
            registry: &registry,
            limits: &Limits::default(),
            calendar: &FixedRules,
            now: later,
            elapsed: &|| Duration::ZERO,
            attempt: &|_, _| Attempt::AsArmed,
            is_here: &|_| true,
            next_generation: Generation(1 + u64::from(TIMERS)),
        };
        let (outcome, _) = fire_due(&overlay, &rules, &mut tick, &mut Looks::new()).expect("memory can be read");
        assert_eq!(outcome.fired.len(), TIMERS as usize, "all fire in one tick");
        (outcome, overlay)
    };
    let mut group = criterion.benchmark_group("core");
    group.throughput(Throughput::Elements(u64::from(TIMERS)));
    group
        .bench_function("fire 1000 timers", |bencher| bencher.iter_batched(committed, fire_all, BatchSize::LargeInput));
    group.finish();
}

criterion_group!(benches, arm_timers, fire_timers);
criterion_main!(benches);

//! Micro-benchmarks of the core, by criterion: `make bench`.
//!
//! Owns figures of single operations; what a deployment reaches is measured elsewhere, against a real broker.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use punctual::time::Timestamp;

fn parse_instant(criterion: &mut Criterion) {
    criterion.bench_function("parse an instant", |bencher| {
        bencher.iter(|| Timestamp::parse(black_box("2026-12-01T09:00:00.250Z")));
    });
}

criterion_group!(benches, parse_instant);
criterion_main!(benches);

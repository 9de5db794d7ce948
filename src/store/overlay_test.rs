//! What the overlay promises, claim by claim, and against the model.

use std::cell::Cell;

use bytes::Bytes;
use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use crate::store::StoreHeader;
use crate::store::memory::MemoryStore;
use crate::store::model_check::{check_steps, kind, millis, put, remove, timer};
use crate::store::model_steps::steps;
use crate::timer::model::{Ending, Generation};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn what_is_read_is_what_was_folded(steps in steps()) {
        check_steps(MemoryStore::default(), &steps);
    }
}

/// Shows what is due of kind 1, where its scans start, and how many are pending.
fn check(overlay: &Overlay<MemoryStore>, expected: &Expect) {
    let rows = overlay.due(kind(1), None, Timestamp::MAX, 100).unwrap();
    let rows = rows.iter().map(|row| match row {
        DueRow::Timer(timer) => format!("{}@{}#{}", timer.key.id.as_str(), timer.wake.as_millis(), timer.generation.0),
        DueRow::Undecodable { at, .. } => format!("?@{}#{}", at.wake.as_millis(), at.generation.0),
    });
    let (rows, cursor) = (rows.collect::<Vec<_>>().join(" "), overlay.cursor(kind(1)));
    let pending = overlay.pending().get(&kind(1)).copied().unwrap_or_default();
    let changed = overlay.changed_rows();
    let (wake, generation) = (cursor.wake.as_millis(), cursor.generation.0);
    expected.assert_eq(&format!("{rows} | from {wake}#{generation} | {pending} pending | {changed} changed"));
}

fn overlay_of(timers: &[&Timer]) -> Overlay<MemoryStore> {
    let mut overlay = Overlay::new(MemoryStore::default()).unwrap();
    for timer in timers {
        overlay.fold(put(timer, None));
    }
    commit(&mut overlay);
    overlay
}

fn commit(overlay: &mut Overlay<MemoryStore>) {
    let batch = overlay.batch();
    overlay.commit(batch).unwrap();
}

fn advance(wake: i64) -> Mutation {
    Mutation::Advance { kind: kind(1), to: DueKey { wake: millis(wake), generation: Generation(0) } }
}

/// N1.
#[test]
fn an_arm_below_the_cursor_rewinds_it_and_an_abort_puts_it_back() {
    let mut overlay = overlay_of(&[]);
    overlay.fold(advance(1000));
    commit(&mut overlay);
    // A cursor alone is in the batch, if there is one.
    check(&overlay, &expect![" | from 1000#0 | 0 pending | 0 changed"]);
    overlay.fold(put(&timer("late", 999, 1), None));
    check(&overlay, &expect!["late@999#1 | from 999#1 | 1 pending | 1 changed"]);
    overlay.clear();
    check(&overlay, &expect![" | from 1000#0 | 0 pending | 0 changed"]);
    overlay.fold(put(&timer("late", 999, 1), None));
    overlay.fold(remove(&timer("late", 999, 1)));
    overlay.fold(advance(1001));
    overlay.fold(put(&timer("later", 998, 2), None));
    commit(&mut overlay);
    check(&overlay, &expect!["later@998#2 | from 998#2 | 1 pending | 0 changed"]);
}

#[test]
fn a_timer_that_is_armed_and_fires_in_one_transaction_is_no_change() {
    let mut overlay = overlay_of(&[]);
    overlay.fold(put(&timer("t", 5, 1), None));
    assert!(overlay.changed_bytes() > 0, "an arm counts");
    overlay.fold(remove(&timer("t", 5, 1)));
    check(&overlay, &expect![" | from 0#0 | 0 pending | 0 changed"]);
    assert!(overlay.is_empty(), "nothing is left of it");
    assert_eq!(overlay.changed_bytes(), 0, "nor of its size");
    assert_eq!(overlay.batch(), Batch { header: overlay.batch().header, ..Batch::default() });
}

/// N12.
#[test]
fn a_timer_that_is_armed_again_after_its_fire_survives_with_its_generation() {
    let first = timer("t", 5, 1);
    let mut overlay = overlay_of(&[&first]);
    overlay.fold(remove(&first));
    overlay.fold(advance(6));
    overlay.fold(put(&timer("t", 5, 2), None));
    check(&overlay, &expect!["t@5#2 | from 5#2 | 1 pending | 1 changed"]);
    let change = overlay.batch().timers.remove(0);
    assert_eq!(change.before, Some(first.located()), "the batch removes the committed row");
    commit(&mut overlay);
    check(&overlay, &expect!["t@5#2 | from 5#2 | 1 pending | 0 changed"]);
}

/// N3.
#[test]
fn pages_of_timers_with_one_due_are_walked_to_the_end() {
    let timers: Vec<Timer> = (1..=25).map(|n| timer(&format!("t{n}"), 5, n)).collect();
    let mut overlay = overlay_of(&timers[..13].iter().collect::<Vec<_>>());
    for timer in &timers[13..] {
        overlay.fold(put(timer, None));
    }
    let mut seen = 0;
    while let [first, .., last] = overlay.due(kind(1), None, millis(5), 5).unwrap().as_slice() {
        assert_eq!(first.at().generation.0, seen + 1, "no timer is left out");
        for timer in timers.iter().filter(|timer| (first.at()..=last.at()).contains(&timer.due_key())) {
            overlay.fold(remove(timer));
            seen += 1;
        }
        overlay.fold(Mutation::Advance { kind: kind(1), to: last.at().next() });
    }
    assert_eq!(seen, 25, "all were seen");
}

/// R25.
#[test]
fn a_timer_that_is_skipped_while_later_ones_fire_is_found_after_a_restart() {
    let timers = [timer("skipped", 1, 1), timer("t", 2, 2), timer("u", 3, 3)];
    let mut overlay = overlay_of(&timers.iter().collect::<Vec<_>>());
    overlay.fold(remove(&timers[1]));
    overlay.fold(remove(&timers[2]));
    overlay.fold(Mutation::Advance { kind: kind(1), to: timers[0].due_key() });
    commit(&mut overlay);
    let restarted = Overlay::new(overlay.store().clone()).unwrap();
    check(&restarted, &expect!["skipped@1#1 | from 1#1 | 1 pending | 0 changed"]);
}

/// N11.
#[test]
fn a_row_that_cannot_be_read_keeps_its_place_and_blocks_nobody() {
    let mut overlay = overlay_of(&[]);
    overlay.fold(put(&timer("damaged", 1, 1), None));
    overlay.fold(put(&timer("foreign", 2, 2), None));
    overlay.fold(put(&timer("t", 3, 3), None));
    let mut batch = overlay.batch();
    let of_another_place = batch.timers[2].after.as_ref().unwrap().1.clone();
    batch.timers[0].after.as_mut().unwrap().1 = Bytes::from_static(b"\xff\xff");
    batch.timers[1].after.as_mut().unwrap().1 = of_another_place;
    overlay.commit(batch).unwrap();
    check(&overlay, &expect!["?@1#1 ?@2#2 t@3#3 | from 0#0 | 3 pending | 0 changed"]);
    assert_eq!(overlay.store().timer(timer("damaged", 1, 1).located()).unwrap(), None, "it cannot be read");
    // It can still be removed, for its place is known.
    overlay.fold(remove(&timer("damaged", 1, 1)));
    check(&overlay, &expect!["?@2#2 t@3#3 | from 0#0 | 2 pending | 1 changed"]);
}

/// A store that counts how often its remembered ids are read.
#[derive(Default)]
struct Counting {
    rows: MemoryStore,
    scans: Cell<usize>,
    looks: Cell<usize>,
}

impl Store for Counting {
    fn remembered(&self, key: &TimerKey) -> Result<Option<Remembered>, StoreError> {
        self.looks.set(self.looks.get() + 1);
        self.rows.remembered(key)
    }

    fn ending(
        &self,
        from: Timestamp,
        until: Timestamp,
        rows_max: usize,
    ) -> Result<Vec<(TimerKey, Remembered)>, StoreError> {
        self.scans.set(self.scans.get() + 1);
        self.rows.ending(from, until, rows_max)
    }

    fn locate(&self, key: &TimerKey) -> Result<Option<Located>, StoreError> {
        self.rows.locate(key)
    }

    fn timer(&self, at: Located) -> Result<Option<Timer>, StoreError> {
        self.rows.timer(at)
    }

    fn run(&self, run: &RunKey) -> Result<RunState, StoreError> {
        self.rows.run(run)
    }

    fn timers_of(
        &self,
        run: &RunKey,
        after: Option<&TimerId>,
        rows_max: usize,
    ) -> Result<Vec<(TimerKey, Located)>, StoreError> {
        self.rows.timers_of(run, after, rows_max)
    }

    fn due(&self, kind: KindNumber, from: DueKey, until: Timestamp, rows: usize) -> Result<Vec<DueRow>, StoreError> {
        self.rows.due(kind, from, until, rows)
    }

    fn due_keys(
        &self,
        kind: KindNumber,
        from: DueKey,
        until: Timestamp,
        rows_max: usize,
    ) -> Result<Vec<DueKey>, StoreError> {
        self.rows.due_keys(kind, from, until, rows_max)
    }

    fn agenda(&self, until: Timestamp, rows_max: usize) -> Result<Vec<(Timestamp, RunKey)>, StoreError> {
        self.rows.agenda(until, rows_max)
    }

    fn pending_of(&self, tenant: &Tenant) -> Result<u64, StoreError> {
        self.rows.pending_of(tenant)
    }

    fn header(&self) -> &StoreHeader {
        self.rows.header()
    }

    fn write(&mut self, batch: Batch) -> Result<(), StoreError> {
        self.rows.write(batch)
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        self.rows.flush()
    }
}

#[test]
fn a_tick_in_which_no_remembered_id_ends_reads_nothing() {
    let mut overlay = Overlay::new(Counting::default()).unwrap();
    let id = |number: i64| timer(&format!("t{number}"), 1, 1).key;
    let known = |until: i64| Remembered { ending: Ending::NeverArmed, ended: Timestamp::EPOCH, until: millis(until) };
    assert_eq!(overlay.remembered(&id(1)).unwrap(), None);
    assert_eq!(overlay.store().looks.get(), 0, "where nothing is remembered nobody looks");
    for number in [10, 20, 20, 30] {
        let key = id(number);
        let previous = overlay.remembered(&key).unwrap();
        overlay.fold(Mutation::Remember { key, previous, state: Some(known(number)) });
    }
    let batch = overlay.batch();
    overlay.commit(batch).unwrap();
    let scans = |overlay: &Overlay<Counting>| overlay.store().scans.get();
    let before = scans(&overlay);
    assert_eq!(overlay.forget(millis(9), 10).unwrap(), 0);
    assert_eq!(scans(&overlay), before, "the first end is known");
    assert_eq!(overlay.forget(millis(25), 1).unwrap(), 1, "a slice has a limit");
    assert!(overlay.next_end().is_some_and(|next| next <= millis(25)), "there is more to do at once");
    assert_eq!(overlay.forget(millis(25), 10).unwrap(), 1);
    let before = scans(&overlay);
    assert_eq!(overlay.forget(millis(29), 10).unwrap(), 0);
    assert_eq!(scans(&overlay), before, "the scan that found the last has seen the next");
    overlay.clear();
    assert_eq!(overlay.remembered_count(), 3, "an abort forgets nothing");
    assert_eq!(overlay.forget(millis(30), 10).unwrap(), 3, "and nothing is left behind by it");
}

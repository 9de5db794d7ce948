//! Tests of the watch: places of own records in, what is read and found out.

use bytes::Bytes;

use super::*;
use crate::position::{Offset, Partition};

fn places(offsets: impl IntoIterator<Item = i64>) -> Places {
    let mut places = Places::default();
    offsets.into_iter().for_each(|offset| places.insert(Offset(offset)));
    places
}

/// Enters a transaction with records at these offsets, and returns from where the changelog is to be read.
fn commit(watch: &mut Watch, offsets: &[i64]) -> Option<i64> {
    watch.committed(Some(&places(offsets.iter().copied())), u64::try_from(offsets.len()).unwrap());
    watch.begin_reading().map(|from| from.0)
}

/// Returns a batch with records at all of these offsets, up to a position.
fn batch(offsets: impl IntoIterator<Item = i64>, position: i64) -> ChangelogBatch {
    let record = |offset| ChangelogRecord { offset: Offset(offset), key: Bytes::new(), value: None };
    let records = offsets.into_iter().map(record).collect();
    ChangelogBatch { partition: Partition(0), records, position: Position(position) }
}

/// Hands a batch to the watch; returns the offsets of foreign records, and whether enough was read.
fn read(watch: &mut Watch, at: impl IntoIterator<Item = i64>, position: i64) -> (Vec<i64>, bool) {
    let batch = batch(at, position);
    let (found, is_done) = watch.read(&batch);
    (found.iter().map(|record| record.offset.0).collect(), is_done)
}

#[test]
fn own_markers_on_time_or_late_are_no_reason_to_read() {
    // The barrier is at 10.
    let mut watch = Watch::starting(Position(11));
    assert_eq!(commit(&mut watch, &[12, 13]), None, "one marker");
    assert_eq!(commit(&mut watch, &[14, 15]), None, "the marker is late");
    assert_eq!(commit(&mut watch, &[18]), None, "both are there");
    assert_eq!(commit(&mut watch, &[20]), None, "one marker");
}

#[test]
fn a_record_of_somebody_else_is_found_wherever_it_stands() {
    for foreign in [11, 14, 15] {
        let mut watch = Watch::starting(Position(11));
        // Own records at 13 and 16, markers at what is left.
        assert_eq!(commit(&mut watch, &[13, 16]), Some(11), "more than one marker");
        let there = (11..17).filter(|at| [13, 16, foreign].contains(at));
        assert_eq!(read(&mut watch, there, 17), (vec![foreign], true));
        assert_eq!(commit(&mut watch, &[17]), None, "and not again");
        assert_eq!(commit(&mut watch, &[20]), None, "its marker was late, the next is there");
    }
}

#[test]
fn a_record_in_the_place_of_a_late_marker_is_found_when_the_marker_comes() {
    let mut watch = Watch::starting(Position(11));
    // 11 is foreign, and the barrier's marker at 13.
    assert_eq!(commit(&mut watch, &[12]), None, "as one marker would be");
    assert_eq!(commit(&mut watch, &[15]), Some(11), "13 and 14 are one more than the markers");
    assert_eq!(read(&mut watch, [11, 12], 13), (vec![11], false));
    assert_eq!(read(&mut watch, [15], 16), (vec![], true));
}

#[test]
fn what_comes_while_holes_are_read_has_its_own_turn() {
    let mut watch = Watch::starting(Position(11));
    assert_eq!(commit(&mut watch, &[15]), Some(11));
    assert_eq!(commit(&mut watch, &[20]), None, "one reading at a time");
    assert_eq!(read(&mut watch, [12, 15, 17, 20], 21), (vec![12], true));
    assert_eq!(watch.begin_reading(), Some(Position(16)));
    assert_eq!(read(&mut watch, [17, 20], 21), (vec![17], true));
}

#[test]
fn without_the_places_of_own_records_nobody_is_accused() {
    let mut watch = Watch::starting(Position(11));
    watch.committed(Some(&places([15])), 2);
    assert_eq!(watch.begin_reading(), None);
    assert_eq!(commit(&mut watch, &[30]), None, "a new start");
    assert_eq!(commit(&mut watch, &[40]), Some(31));
    let mut watch = Watch::starting(Position(11));
    watch.committed(None, 1);
    assert_eq!(commit(&mut watch, &[30]), None);
}

#[test]
fn a_transaction_without_records_of_the_changelog_changes_nothing() {
    let mut watch = Watch::starting(Position(11));
    watch.committed(None, 0);
    assert_eq!(watch, Watch::starting(Position(11)));
}

#[test]
fn old_holes_are_forgotten() {
    let mut watch = Watch::starting(Position(1));
    for number in 1..1_000 {
        assert_eq!(commit(&mut watch, &[number * 2]), None);
    }
    assert!(watch.holes.len() <= HOLES_MAX, "bounded");
    assert_eq!(commit(&mut watch, &[10_000_000]), Some(2_000 - 1), "only the new one is near enough");
}

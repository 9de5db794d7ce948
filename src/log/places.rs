//! The places that the records of one transaction got in a partition.
//!
//! Owns [`Places`]: ranges of offsets, since the records of a transaction stand side by side unless somebody else writes too.
//! Never knows what stands there. Keeps: the ranges are in order, do not touch and hold each offset once.

use crate::position::{Offset, Position};

/// Positions from the first to behind the last.
pub type Range = (Position, Position);

/// The places of some records in a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    ranges: Vec<Range>,
}

impl Places {
    /// Enters a record.
    pub fn insert(&mut self, offset: Offset) {
        let (from, to) = (Position(offset.0), offset.next());
        let behind = self.ranges.partition_point(|range| range.0 <= from);
        let (before, after) = self.ranges.split_at_mut(behind);
        match (before.last_mut(), after.first_mut()) {
            (Some((_, end)), _) if from < *end => {}
            (Some((_, end)), Some((start, after_end))) if *end == from && to == *start => {
                *end = *after_end;
                self.ranges.remove(behind);
            }
            (Some((_, end)), _) if *end == from => *end = to,
            (_, Some((start, _))) if to == *start => *start = from,
            (_, _) => self.ranges.insert(behind, (from, to)),
        }
    }

    /// Returns the position behind the last record, if there is one.
    pub fn end(&self) -> Option<Position> {
        self.ranges.last().map(|(_, end)| *end)
    }

    /// Returns how many records there are.
    pub fn records(&self) -> u64 {
        self.ranges.iter().map(|range| size(*range)).sum()
    }

    /// Returns the ranges from `start` up to the last record that hold none of the records.
    pub fn holes(&self, start: Position) -> Vec<Range> {
        let mut holes = Vec::new();
        let mut next = start;
        for (from, to) in &self.ranges {
            if next < *from {
                holes.push((next, *from));
            }
            next = next.max(*to);
        }
        holes
    }
}

/// Returns how many offsets a range has.
pub fn size((from, to): Range) -> u64 {
    to.0.abs_diff(from.0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn places(offsets: &[i64]) -> Places {
        let mut places = Places::default();
        for offset in offsets {
            places.insert(Offset(*offset));
        }
        places
    }

    #[test]
    fn holes_are_what_lies_between_and_before() {
        let places = places(&[12, 7, 8, 10]);
        assert_eq!(places.holes(Position(5)), [(5, 7), (9, 10), (11, 12)].map(|(a, b)| (Position(a), Position(b))));
        assert_eq!(places.holes(Position(9)), [(9, 10), (11, 12)].map(|(a, b)| (Position(a), Position(b))));
        assert_eq!((places.end(), places.records()), (Some(Position(13)), 4));
        assert_eq!(Places::default().holes(Position(5)), []);
    }

    proptest! {
        #[test]
        fn every_offset_is_in_a_range_or_in_a_hole(offsets in prop::collection::vec(0_i64..24, 0..24)) {
            let places = places(&offsets);
            let set: BTreeSet<i64> = offsets.iter().copied().collect();
            prop_assert_eq!(places.records(), u64::try_from(set.len()).unwrap());
            prop_assert_eq!(places.end(), set.last().map(|last| Position(last + 1)));
            let holes = places.holes(Position(0));
            for offset in 0..set.last().map_or(0, |last| last + 1) {
                let is_hole = holes.iter().any(|(from, to)| (from.0..to.0).contains(&offset));
                prop_assert_eq!(is_hole, !set.contains(&offset), "{}", offset);
            }
        }
    }
}

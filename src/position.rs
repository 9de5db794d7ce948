//! Places in a partitioned log.
//!
//! Owns [`Partition`], [`Offset`] (of a record that exists) and [`Position`] (the next one to read): two numbers that are
//! easily off by one, hence two types. Keeps: an [`Offset`] becomes a [`Position`] only by [`Offset::next`].

use std::fmt;

/// The number of a partition of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition(pub u32);

/// The offset of a record in its partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Offset(pub i64);

/// The offset of the next record to read; every record below it has been handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub i64);

impl Offset {
    /// Returns the position behind this record.
    pub const fn next(self) -> Position {
        Position(self.0 + 1)
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

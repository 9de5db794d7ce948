//! The outbox of an embedded engine: what fires have emitted and the application has not acknowledged.
//!
//! Owns the seam [`Outbox`], which both stores have beside [`Store`], and the part of a batch that changes it. Never
//! knows what an entry says. Keeps: entries have numbers without gaps, given once; what a fire emits is in the batch of the fire.

use std::fmt::Debug;

use bytes::Bytes;

use super::{Store, StoreError};

/// The numbers of the entries that are there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutboxBounds {
    /// The number of the oldest entry; all below are acknowledged.
    pub first: u64,
    /// The number of the next entry to be added.
    pub next: u64,
}

/// What a batch does to the outbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutboxChange {
    /// The bounds from now on. Entries below `first` are removed.
    pub bounds: OutboxBounds,
    /// Entries with their encoded bodies, numbered from the old `next` on.
    pub added: Vec<(u64, Bytes)>,
}

/// A store that has an outbox.
pub trait Outbox: Store + Debug {
    /// Returns the numbers of the entries that are there.
    fn bounds(&self) -> OutboxBounds;

    /// Returns up to `rows_max` entries from the number `from` on, in order.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn entries(&self, from: u64, rows_max: usize) -> Result<Vec<(u64, Bytes)>, StoreError>;
}

//! How a transaction is written, over any client.
//!
//! Owns the order of one transaction, the turns that producers take, and the seam [`Cluster`] below both: the calls of a
//! transactional client, whose failures say what follows. librdkafka implements it, and the simulator's broker does too.
//! Never names a client library, reads a clock or sleeps: waiting goes through the seam.
//! Keeps: INV-LOG-1 and INV-LOG-2 are kept here, once for every client.

pub mod order;
pub mod rotation;
#[cfg(test)]
mod script;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{Aborted, CommitOutcome, Committed, Destination, Emission, LogError};

/// What to do after a call of a transaction has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Abort. When that succeeds, nothing is in the log.
    Abort,
    /// Call again: nothing was decided yet.
    Again,
    /// The outcome is not known, and this client is not to be used again.
    GiveUp,
}

/// Why a call of a transaction failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallFailure {
    /// What to do.
    pub remedy: Remedy,
    /// Whether a topic may be the cause, which the error does not name.
    pub may_be_topic: bool,
    /// The cause.
    pub detail: String,
}

impl CallFailure {
    /// Returns a failure after which the transaction is aborted.
    pub fn abort(detail: String) -> Self {
        Self { remedy: Remedy::Abort, may_be_topic: false, detail }
    }
}

/// What an abort that succeeded found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbortFound {
    /// The transaction, which is over now.
    Transaction,
    /// None: the coordinator never heard of it, and the client is confused about that.
    Nothing,
}

/// A cluster, and the calls of the clients that write transactions to it. Each call has a bound of its own.
pub trait Cluster {
    /// A client with a transactional id.
    type Client;
    /// The positions of a transaction and who we are in the group, captured before the transaction begins.
    type Fence;

    /// Makes the client with the transactional id of this number.
    ///
    /// # Errors
    /// [`LogError::Fatal`] when a property is wrong.
    fn make(&self, number: usize) -> Result<Self::Client, LogError>;

    /// Lets the client fence whoever had its id and settle what they left open. Returns at once, whether that is done:
    /// until it is, call again.
    ///
    /// # Errors
    /// [`LogError::Fatal`] when it cannot succeed.
    fn init(&self, client: &Self::Client) -> Result<bool, LogError>;

    /// Drops a client, which may take its time elsewhere.
    fn retire(&self, client: Self::Client);

    /// Begins a transaction.
    ///
    /// # Errors
    /// A text. Nothing is open, and the client is not to be used again.
    fn begin(&self, client: &Self::Client) -> Result<(), String>;

    /// Hands a record to the client, which sends it when it likes.
    ///
    /// # Errors
    /// When the record cannot be sent.
    fn send(&self, client: &Self::Client, emission: &Emission) -> Result<(), CallFailure>;

    /// Waits until every record is delivered.
    ///
    /// # Errors
    /// When one is not.
    fn drain(&self, client: &Self::Client) -> Result<(), CallFailure>;

    /// Puts the positions into the transaction, which the broker checks against the group's generation.
    ///
    /// # Errors
    /// When the broker refuses them.
    fn send_positions(&self, client: &Self::Client, fence: &Self::Fence) -> Result<(), CallFailure>;

    /// Commits within `patience`, and returns what the broker said about the records of the changelog.
    ///
    /// # Errors
    /// When it is not known that the transaction is committed.
    fn commit(&self, client: &Self::Client, patience: Duration) -> Result<Committed, CallFailure>;

    /// Aborts.
    ///
    /// # Errors
    /// A text, when it is not known that the transaction is aborted.
    fn abort(&self, client: &Self::Client) -> Result<AbortFound, String>;

    /// Returns the destinations that refused a record of the client's transaction, with the reason.
    fn refused(&self, client: &Self::Client) -> BTreeMap<Destination, String>;

    /// Returns whether the client met an error of a broker since its transaction began.
    fn is_troubled(&self, client: &Self::Client) -> bool;

    /// Returns whether somebody else has taken the client's id over, or the broker has timed its transaction out.
    fn is_fenced(&self, client: &Self::Client) -> bool;

    /// Asks which of the destinations take no records, and why; `None` when there is no answer soon.
    fn refusals(&self, destinations: &BTreeSet<Destination>) -> Option<BTreeMap<Destination, String>>;

    /// Returns the time since some instant that stays the same.
    fn now(&self) -> Duration;

    /// Waits for a moment.
    fn pause(&self, moment: Duration);
}

fn aborted(refused: BTreeMap<Destination, String>, detail: impl Into<String>) -> CommitOutcome {
    CommitOutcome::Aborted(Aborted { refused, detail: detail.into() })
}

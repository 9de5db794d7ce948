//! The order that fences.
//!
//! ```text
//! begin → send every record → drain → send the positions → commit → committed
//!   │          │                │            │               └─────→ unknown
//!   └──────────┴────────────────┴────────────┴──→ abort ──→ aborted, or unknown when the abort fails
//! ```
//!
//! Owns the steps of one transaction, from its check to its ending. Never chooses the client, nor begins a second one.
//! Keeps: no record is under way when the positions are sent (INV-LOG-1). Only they are checked against the group's
//! generation; a record that lands behind them would not be fenced.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{AbortFound, CallFailure, Cluster, Remedy, aborted};
use crate::log::{CommitOutcome, Committed, Destination, Transaction};
use crate::planted::{Bug, is_on};

/// How long a commit may take before its outcome is called unknown: longer than the broker keeps a transaction open and
/// than a failed request takes to be sent again.
const COMMIT_PATIENCE: Duration = Duration::from_secs(25);
/// After this time without an answer a client sends a request again.
pub const RESEND_AFTER: Duration = Duration::from_secs(5);

/// How a transaction ended.
pub(super) struct Ending {
    /// For the worker.
    pub(super) outcome: CommitOutcome,
    /// Whether the client may write the next one.
    pub(super) is_sound: bool,
    /// Whether somebody else has taken the client's id over, or the broker has timed the transaction out.
    pub(super) is_fenced: bool,
}

/// Returns why a transaction would not be fenced.
pub(super) fn check(transaction: &Transaction) -> Result<(), &'static str> {
    if transaction.emissions.is_empty() {
        return Err("a transaction needs a record");
    }
    if transaction.positions.is_empty() {
        return Err("a transaction needs a position, or nothing fences it");
    }
    if transaction.positions.values().any(|position| position.0 < 0) && !is_on(Bug::InvalidPositionAtFirst) {
        return Err("a negative position is dropped by the client, and nothing fences the transaction");
    }
    Ok(())
}

/// Writes a transaction: all of it, or nothing, or it is not known.
pub(super) fn write<C: Cluster>(
    cluster: &C,
    client: &C::Client,
    transaction: &Transaction,
    fence: &C::Fence,
) -> Ending {
    if let Err(error) = cluster.begin(client) {
        let outcome = aborted(BTreeMap::new(), format!("beginning a transaction: {error}"));
        return Ending { outcome, is_sound: false, is_fenced: false };
    }
    match send_and_fence(cluster, client, transaction, fence) {
        Ok(()) => commit(cluster, client, transaction),
        Err(failure) => end_failed(cluster, client, transaction, failure),
    }
}

fn send_and_fence<C: Cluster>(
    cluster: &C,
    client: &C::Client,
    transaction: &Transaction,
    fence: &C::Fence,
) -> Result<(), CallFailure> {
    for emission in &transaction.emissions {
        cluster.send(client, emission)?;
    }
    if is_on(Bug::PositionsBeforeDrain) {
        cluster.send_positions(client, fence)?;
        return cluster.drain(client);
    }
    cluster.drain(client)?;
    if is_on(Bug::FiringUnfenced) && fires(transaction) || is_on(Bug::ArmingUnfenced) && !fires(transaction) {
        return Ok(());
    }
    cluster.send_positions(client, fence)
}

fn commit<C: Cluster>(cluster: &C, client: &C::Client, transaction: &Transaction) -> Ending {
    let began = cluster.now();
    loop {
        let patience = COMMIT_PATIENCE.saturating_sub(cluster.now().saturating_sub(began));
        let failure = match cluster.commit(client, patience) {
            Ok(committed) => {
                let outcome = CommitOutcome::Committed(committed);
                return Ending { outcome, is_sound: is_sound(cluster, client, began), is_fenced: false };
            }
            Err(failure) => failure,
        };
        match failure.remedy {
            Remedy::Again if !patience.is_zero() => {}
            Remedy::Abort => return end_failed(cluster, client, transaction, failure),
            Remedy::Again | Remedy::GiveUp => {
                return unknown(cluster, client, format!("committing: {}", failure.detail));
            }
        }
    }
}

/// Ends a transaction that cannot commit.
fn end_failed<C: Cluster>(cluster: &C, client: &C::Client, transaction: &Transaction, failure: CallFailure) -> Ending {
    let CallFailure { remedy, may_be_topic, detail } = failure;
    if remedy == Remedy::GiveUp {
        return unknown(cluster, client, detail);
    }
    let began = cluster.now();
    let is_sound = match cluster.abort(client) {
        Ok(AbortFound::Transaction) => is_sound(cluster, client, began),
        Ok(AbortFound::Nothing) => false,
        Err(error) => return unknown(cluster, client, format!("{detail}; and aborting failed: {error}")),
    };
    let mut refused = cluster.refused(client);
    if refused.is_empty() && may_be_topic {
        let destinations = transaction.emissions.iter().map(|emission| emission.to).collect();
        refused = cluster.refusals(&destinations).unwrap_or_default();
    }
    Ending { outcome: aborted(refused, detail), is_sound, is_fenced: false }
}

fn unknown<C: Cluster>(cluster: &C, client: &C::Client, detail: String) -> Ending {
    let outcome = if is_on(Bug::UnknownTakenForAborted) {
        aborted(BTreeMap::new(), detail)
    } else if is_on(Bug::UnknownTakenForCommitted) {
        CommitOutcome::Committed(Committed::default())
    } else {
        CommitOutcome::Unknown { detail }
    };
    Ending { outcome, is_sound: false, is_fenced: cluster.is_fenced(client) }
}

/// Returns whether the client may be used again after a call to end a transaction that began then. The request is sent
/// again when no answer came; a delayed duplicate of it could end the next transaction.
fn is_sound<C: Cluster>(cluster: &C, client: &C::Client, began: Duration) -> bool {
    is_on(Bug::UnsoundProducerReused)
        || cluster.now().saturating_sub(began) < RESEND_AFTER && !cluster.is_troubled(client)
}

fn fires(transaction: &Transaction) -> bool {
    transaction.emissions.iter().any(|emission| matches!(emission.to, Destination::Fired(_)))
}

#[cfg(test)]
#[path = "order_test.rs"]
mod tests;

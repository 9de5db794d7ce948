//! What is due, per tenant, in the order in which it is claimed.
//!
//! ```text
//!   due order of the store, by wake:  │ in the index │ not yet looked at ...
//!                                     first claim    until: the latest claim
//! ```
//!
//! Owns an index in memory over the rows with a wake up to the latest instant at which anything was claimed, so that a claim reads
//! what it returns and not the whole backlog. It begins with the first claim and is dropped with an error. Never is the truth: the
//! rows are. Keeps: every row up to `until` that can be decoded is in it, and no other.

use std::collections::BTreeMap;

use super::state::Above;
use super::views::Poisoned;
use crate::store::StoreError;
use crate::time::Timestamp;
use crate::timer::identity::{Run, Tenant, TimerId, TimerKey};
use crate::timer::kind::KindNumber;
use crate::timer::model::{DueKey, Generation, Located, Timer};
use crate::timer::outcome::Mutation;
use crate::timer::view::{DueRow, View};

/// Most rows read at once.
const PAGE_ROWS: usize = 512;

/// The order of claims: by due, then by run and timer id.
type Rank = (Timestamp, Run, TimerId);

#[derive(Debug, Default)]
pub(super) struct Ready {
    /// Up to which wake rows are in the index; `None` before the first claim.
    until: Option<Timestamp>,
    tenants: BTreeMap<Tenant, BTreeMap<Rank, Located>>,
    /// The dues of the timers that are in the index, by which they are found there.
    dues: BTreeMap<TimerKey, Timestamp>,
}

impl Ready {
    /// Reads the rows that have come due since the latest claim. Returns the places of those that cannot be decoded.
    pub(super) fn read_up_to(
        &mut self,
        now: Timestamp,
        above: &Above,
        kinds: &[KindNumber],
    ) -> Result<Poisoned, StoreError> {
        let mut poisoned = Poisoned::new();
        if self.until.is_some_and(|until| now <= until) {
            return Ok(poisoned);
        }
        for kind in kinds {
            let mut after = self.until.map(|until| DueKey { wake: until, generation: Generation(u64::MAX) });
            loop {
                let page = above.due(*kind, after, now, PAGE_ROWS)?;
                let is_last = page.len() < PAGE_ROWS;
                for row in page {
                    after = Some(row.at());
                    match row {
                        DueRow::Timer(timer) => self.insert(&timer),
                        DueRow::Undecodable { at, .. } => {
                            poisoned.insert((*kind, at));
                        }
                    }
                }
                if is_last {
                    break;
                }
            }
        }
        self.until = Some(now);
        Ok(poisoned)
    }

    /// Follows a change of the rows.
    pub(super) fn follow(&mut self, mutation: &Mutation) {
        match mutation {
            Mutation::Put { timer, .. } => {
                self.remove(&timer.key);
                if self.until.is_some_and(|until| timer.due_key().wake <= until) {
                    self.insert(timer);
                }
            }
            Mutation::Remove { key, .. } => self.remove(key),
            Mutation::Run { .. } | Mutation::Remember { .. } | Mutation::Advance { .. } => {}
        }
    }

    /// Returns what a tenant has due at `now`, in the order of claims.
    pub(super) fn of<'a>(
        &'a self,
        tenant: &Tenant,
        now: Timestamp,
    ) -> impl Iterator<Item = (&'a Run, &'a TimerId, Located)> {
        let due = self.tenants.get(tenant).into_iter().flatten();
        // The clock may have gone back behind the latest claim.
        due.filter(move |(_, at)| at.at.wake <= now).map(|((_, run, id), at)| (run, id, *at))
    }

    fn insert(&mut self, timer: &Timer) {
        let TimerKey { run, id } = &timer.key;
        let rank = (timer.due, run.run.clone(), id.clone());
        self.tenants.entry(run.tenant.clone()).or_default().insert(rank, timer.located());
        self.dues.insert(timer.key.clone(), timer.due);
    }

    fn remove(&mut self, key: &TimerKey) {
        let Some(due) = self.dues.remove(key) else {
            return;
        };
        let tenant = &key.run.tenant;
        let of_tenant = self.tenants.get_mut(tenant).expect("what has a due here has a rank");
        of_tenant.remove(&(due, key.run.run.clone(), key.id.clone()));
        if of_tenant.is_empty() {
            self.tenants.remove(tenant);
        }
    }
}

//! A cluster that follows a script, for the tests of the order and of the turns.
//!
//! Owns the calls that were made and the answers to give. Never is a broker: the simulator's is one.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::{AbortFound, CallFailure, Cluster, Remedy};
use crate::log::{Committed, Destination, Emission, LogError, Transaction};
use crate::position::{Partition, Position};

/// The cluster.
#[derive(Default)]
pub(super) struct Script {
    /// The calls, in order.
    pub(super) calls: RefCell<Vec<String>>,
    /// What ends these calls badly, once each.
    pub(super) failures: RefCell<VecDeque<(&'static str, CallFailure)>>,
    /// The destinations that refuse, as a client finds them, and as the cluster tells when it is asked.
    pub(super) found: BTreeMap<Destination, String>,
    pub(super) told: BTreeMap<Destination, String>,
    pub(super) finds_nothing: bool,
    pub(super) is_troubled: bool,
    pub(super) is_fenced: bool,
    /// How many looks a client needs to take its id over.
    pub(super) looks: Cell<u32>,
    pub(super) now: Cell<Duration>,
    /// How long a commit takes.
    pub(super) commit_takes: Duration,
}

impl Script {
    /// Returns a cluster on which this call fails once.
    pub(super) fn failing(call: &'static str, remedy: Remedy) -> Self {
        let failure = CallFailure { remedy, ..CallFailure::abort(format!("{call} failed")) };
        Self { failures: RefCell::new(VecDeque::from([(call, failure)])), ..Self::default() }
    }

    /// Returns the calls since the last look.
    pub(super) fn take_calls(&self) -> String {
        self.calls.take().join(" ")
    }

    fn call(&self, call: &'static str, client: &str) -> Result<(), CallFailure> {
        self.calls.borrow_mut().push(format!("{call}{client}"));
        let mut failures = self.failures.borrow_mut();
        match failures.front() {
            Some((failing, _)) if *failing == call => Err(failures.pop_front().expect("it is there").1),
            Some(_) | None => Ok(()),
        }
    }
}

impl Cluster for Script {
    type Client = String;
    type Fence = ();

    fn make(&self, number: usize) -> Result<String, LogError> {
        self.call("make", &number.to_string()).expect("making does not fail");
        Ok(number.to_string())
    }

    fn init(&self, client: &String) -> Result<bool, LogError> {
        self.call("init", client).expect("taking over does not fail");
        let looks = self.looks.get();
        self.looks.set(looks.saturating_sub(1));
        Ok(looks == 0)
    }

    fn retire(&self, client: String) {
        self.call("retire", &client).expect("retiring does not fail");
    }

    fn begin(&self, client: &String) -> Result<(), String> {
        self.call("begin", client).map_err(|failure| failure.detail)
    }

    fn send(&self, client: &String, _emission: &Emission) -> Result<(), CallFailure> {
        self.call("send", client)
    }

    fn drain(&self, client: &String) -> Result<(), CallFailure> {
        self.call("drain", client)
    }

    fn send_positions(&self, client: &String, (): &()) -> Result<(), CallFailure> {
        self.call("positions", client)
    }

    fn commit(&self, client: &String, _patience: Duration) -> Result<Committed, CallFailure> {
        self.now.set(self.now.get() + self.commit_takes);
        self.call("commit", client).map(|()| Committed::default())
    }

    fn abort(&self, client: &String) -> Result<AbortFound, String> {
        let found = if self.finds_nothing { AbortFound::Nothing } else { AbortFound::Transaction };
        self.call("abort", client).map(|()| found).map_err(|failure| failure.detail)
    }

    fn refused(&self, _client: &String) -> BTreeMap<Destination, String> {
        self.found.clone()
    }

    fn is_troubled(&self, _client: &String) -> bool {
        self.is_troubled
    }

    fn is_fenced(&self, _client: &String) -> bool {
        self.is_fenced
    }

    fn refusals(&self, destinations: &BTreeSet<Destination>) -> Option<BTreeMap<Destination, String>> {
        self.call("ask", "").expect("asking does not fail");
        Some(self.told.clone().into_iter().filter(|(to, _)| destinations.contains(to)).collect())
    }

    fn now(&self) -> Duration {
        self.now.get()
    }

    fn pause(&self, moment: Duration) {
        self.now.set(self.now.get() + moment);
    }
}

/// Returns a transaction of two records.
pub(super) fn transaction() -> Transaction {
    let emission = Emission {
        to: Destination::Changelog,
        partition: Some(Partition(0)),
        key: None,
        value: None,
        headers: Vec::new(),
        timestamp: None,
    };
    let positions = BTreeMap::from([(Partition(0), Position(5))]);
    Transaction { emissions: vec![emission.clone(), Emission { to: Destination::Results, ..emission }], positions }
}

//! The disk of a pod: stores that lose what was not flushed.
//!
//! ```text
//!   write ──▶ live ──flush, or a memtable that was full──▶ durable          crash: live = durable
//! ```
//!
//! Owns a live and a durable copy of each partition's store, and what can go wrong with a disk. Keeps: what is durable is
//! the state after some batch, never half of one, as RocksDB does with `atomic_flush`; a store that is open is locked.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;

use bytes::Bytes;
use punctual::position::Partition;
use punctual::store::memory::MemoryStore;
use punctual::store::{Batch, Store, StoreError, StoreHeader, Stores, TimerChange};
use punctual::time::Timestamp;
use punctual::timer::identity::{RunKey, Tenant, TimerId, TimerKey};
use punctual::timer::kind::KindNumber;
use punctual::timer::model::{DueKey, Located, Remembered, RunState, Timer};
use punctual::timer::view::DueRow;

use crate::invariants;
use crate::plan::Fault;
use crate::sim::Sim;

/// One call in so many may fail, where a class of trouble hits the disk.
const CALLS_BETWEEN: u32 = 300;

/// What a partition has on a disk.
#[derive(Default)]
pub(crate) struct Files {
    pub(crate) live: Rc<RefCell<MemoryStore>>,
    durable: MemoryStore,
    is_open: bool,
    is_corrupt: bool,
    /// Whether a row was damaged, so that the store is not what it should be.
    pub(crate) is_marred: bool,
}

#[derive(Default)]
pub(crate) struct Disk {
    pub(crate) files: BTreeMap<Partition, Files>,
    pub(crate) is_full: bool,
}

impl Disk {
    /// The process is gone: what was not durable is lost.
    pub(crate) fn crash(&mut self) {
        for files in self.files.values_mut() {
            files.live = Rc::new(RefCell::new(files.durable.clone()));
            files.is_open = false;
        }
    }

    /// The process ended in good order: the stores were closed, and RocksDB wrote what it had in memory.
    pub(crate) fn close(&mut self) {
        for files in self.files.values_mut() {
            files.durable = files.live.borrow().clone();
            files.is_open = false;
        }
    }

    /// The volume is gone.
    pub(crate) fn lose(&mut self) {
        self.files.clear();
    }

    /// Damages a whole store. Returns whether there was one.
    pub(crate) fn corrupt_store(&mut self, partition: Partition) -> bool {
        self.files.get_mut(&partition).map(|files| files.is_corrupt = true).is_some()
    }

    /// Damages one row of a store. Returns the timer.
    pub(crate) fn corrupt_row(&mut self, partition: Partition, kinds: &[KindNumber]) -> Option<TimerKey> {
        let files = self.files.get_mut(&partition)?;
        let mut live = files.live.borrow_mut();
        let rows = kinds.iter().flat_map(|kind| live.due(*kind, DueKey::MIN, Timestamp::MAX, 1).unwrap_or_default());
        let DueRow::Timer(timer) = rows.into_iter().next()? else { return None };
        let at = timer.located();
        let change =
            TimerChange { key: timer.key.clone(), before: Some(at), after: Some((at, Bytes::from_static(b"\xFFrot"))) };
        let header = live.header().clone();
        live.write(Batch { timers: vec![change], header, ..Batch::default() }).expect("memory takes any batch");
        files.durable = live.clone();
        files.is_marred = true;
        Some(timer.key)
    }
}

/// The stores of a pod.
pub(crate) struct SimStores {
    pub(crate) sim: Rc<Sim>,
    pub(crate) pod: usize,
    pub(crate) disk: Rc<RefCell<Disk>>,
}

fn path(partition: Partition) -> PathBuf {
    PathBuf::from(format!("partition-{partition}"))
}

impl Stores for SimStores {
    type Store = SimStore;

    fn open(&mut self, partition: Partition) -> Result<SimStore, StoreError> {
        self.sim.gate(self.pod, "open store");
        let mut disk = self.disk.borrow_mut();
        if disk.is_full {
            return Err(StoreError::Full { path: path(partition), detail: "simulated".to_owned() });
        }
        let files = disk.files.entry(partition).or_default();
        if files.is_open {
            return Err(StoreError::Locked { path: path(partition) });
        }
        if files.is_corrupt {
            return Err(StoreError::Corrupt { path: path(partition), detail: "simulated".to_owned() });
        }
        files.is_open = true;
        let rows = Rc::clone(&files.live);
        let header = rows.borrow().header().clone();
        let (sim, disk) = (Rc::clone(&self.sim), Rc::clone(&self.disk));
        Ok(SimStore { sim, pod: self.pod, disk, partition, rows, header })
    }

    fn discard(&mut self, partition: Partition) -> Result<(), StoreError> {
        self.sim.gate(self.pod, "discard store");
        let mut disk = self.disk.borrow_mut();
        if disk.files.get(&partition).is_some_and(|files| files.is_open) {
            return Err(StoreError::Locked { path: path(partition) });
        }
        disk.files.remove(&partition);
        Ok(())
    }
}

/// An open store.
pub(crate) struct SimStore {
    sim: Rc<Sim>,
    pod: usize,
    disk: Rc<RefCell<Disk>>,
    partition: Partition,
    rows: Rc<RefCell<MemoryStore>>,
    header: StoreHeader,
}

impl SimStore {
    fn enter(&self, call: &'static str) -> Result<(), StoreError> {
        self.sim.gate(self.pod, call);
        let disk = self.disk.borrow();
        let is_corrupt = disk.files.get(&self.partition).is_some_and(|files| files.is_corrupt);
        if is_corrupt {
            return Err(StoreError::Corrupt { path: path(self.partition), detail: "simulated".to_owned() });
        }
        if self.sim.strikes(Fault::DiskError, "disk error", CALLS_BETWEEN) {
            self.sim.note(|| format!("pod {}: DISK ERROR in {call}", self.pod));
            return Err(StoreError::Io { path: path(self.partition), doing: call, detail: "simulated".to_owned() });
        }
        Ok(())
    }

    fn enter_write(&self, call: &'static str) -> Result<(), StoreError> {
        self.enter(call)?;
        if self.disk.borrow().is_full {
            return Err(StoreError::Full { path: path(self.partition), detail: "simulated".to_owned() });
        }
        Ok(())
    }

    fn is_marred(&self) -> bool {
        self.disk.borrow().files.get(&self.partition).is_some_and(|files| files.is_marred)
    }

    fn make_durable(&self) {
        let mut disk = self.disk.borrow_mut();
        if let Some(files) = disk.files.get_mut(&self.partition).filter(|files| Rc::ptr_eq(&files.live, &self.rows)) {
            files.durable = self.rows.borrow().clone();
        }
    }
}

impl Drop for SimStore {
    fn drop(&mut self) {
        // A file that was lost or replaced meanwhile is not ours.
        if let Ok(mut disk) = self.disk.try_borrow_mut()
            && let Some(files) = disk.files.get_mut(&self.partition)
            && Rc::ptr_eq(&files.live, &self.rows)
        {
            files.is_open = false;
        }
    }
}

impl Store for SimStore {
    fn locate(&self, key: &TimerKey) -> Result<Option<Located>, StoreError> {
        self.enter("locate")?;
        self.rows.borrow().locate(key)
    }

    fn timer(&self, at: Located) -> Result<Option<Timer>, StoreError> {
        self.enter("read timer")?;
        self.rows.borrow().timer(at)
    }

    fn remembered(&self, key: &TimerKey) -> Result<Option<Remembered>, StoreError> {
        self.enter("read remembered")?;
        self.rows.borrow().remembered(key)
    }

    fn ending(
        &self,
        from: Timestamp,
        until: Timestamp,
        rows_max: usize,
    ) -> Result<Vec<(TimerKey, Remembered)>, StoreError> {
        self.enter("read ending")?;
        self.rows.borrow().ending(from, until, rows_max)
    }

    fn run(&self, run: &RunKey) -> Result<RunState, StoreError> {
        self.enter("read run")?;
        self.rows.borrow().run(run)
    }

    fn timers_of(
        &self,
        run: &RunKey,
        after: Option<&TimerId>,
        rows_max: usize,
    ) -> Result<Vec<(TimerKey, Located)>, StoreError> {
        self.enter("read timers of run")?;
        self.rows.borrow().timers_of(run, after, rows_max)
    }

    fn due(
        &self,
        kind: KindNumber,
        from: DueKey,
        until: Timestamp,
        rows_max: usize,
    ) -> Result<Vec<DueRow>, StoreError> {
        self.enter("read due")?;
        self.rows.borrow().due(kind, from, until, rows_max)
    }

    fn due_keys(
        &self,
        kind: KindNumber,
        from: DueKey,
        until: Timestamp,
        rows_max: usize,
    ) -> Result<Vec<DueKey>, StoreError> {
        self.enter("read due keys")?;
        self.rows.borrow().due_keys(kind, from, until, rows_max)
    }

    fn agenda(&self, until: Timestamp, rows_max: usize) -> Result<Vec<(Timestamp, RunKey)>, StoreError> {
        self.enter("read agenda")?;
        self.rows.borrow().agenda(until, rows_max)
    }

    fn pending_of(&self, tenant: &Tenant) -> Result<u64, StoreError> {
        self.enter("read pending")?;
        self.rows.borrow().pending_of(tenant)
    }

    fn header(&self) -> &StoreHeader {
        &self.header
    }

    fn write(&mut self, batch: Batch) -> Result<(), StoreError> {
        self.enter_write("write store")?;
        if !self.is_marred()
            && let Err(violation) =
                invariants::store_follows_log::check_batch(&self.sim, self.pod, self.partition, &batch)
        {
            self.sim.fail(violation);
        }
        self.header = batch.header.clone();
        self.rows.borrow_mut().write(batch)?;
        if let Err(violation) = invariants::cursor::check(self.partition, &self.rows.borrow()) {
            self.sim.fail(violation);
        }
        // A memtable that is full is written by itself, whenever that is.
        if self.sim.draw("memtable", |rng| rng.u32(0..20)) == 0 {
            self.make_durable();
        }
        self.sim.gate(self.pod, "write store");
        Ok(())
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        self.enter_write("flush store")?;
        self.make_durable();
        self.sim.gate(self.pod, "flush store");
        Ok(())
    }
}

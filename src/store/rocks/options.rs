//! How RocksDB is set: families, memory, background work.
//!
//! Owns the figures and their reasons. Never opens anything. Keeps: all stores of a process share one cache and one
//! budget of unflushed rows, so that memory follows the budget and not the number of partitions (R22).

use rocksdb::{BlockBasedOptions, Cache, DB, DBCompressionType, LogLevel, Options, WriteBufferManager};

/// Smallest budget that keeps RocksDB from flushing all the time.
const BUDGET_BYTES_MIN: usize = 16 << 20;
/// Unflushed rows of one family at most. The budget usually flushes earlier.
const MEMTABLE_BYTES_MAX: usize = 64 << 20;
/// The step in which a family takes memory. The default of 1 MiB would let 64 partitions of 8 families, each with one row,
/// take 512 MiB and flush without end.
const ARENA_BLOCK_BYTES: usize = 64 << 10;
/// Open files of one store: index and filters of each are in memory, and a process may have many stores.
const OPEN_FILES_MAX: i32 = 128;
/// Threads for flushes and compactions, shared by the stores of a process; machines of two cores are usual.
const BACKGROUND_JOBS_MAX: i32 = 2;
/// Size of RocksDB's own log, of which the last two are kept.
const INFO_LOG_BYTES_MAX: usize = 1 << 20;
/// A file with so many tombstones in a window of rows is compacted: fired timers leave a field of them.
const TOMBSTONE_WINDOW_ROWS: usize = 1024;
const TOMBSTONES_IN_WINDOW_MAX: usize = 512;
/// A single step of a scan that meets more tombstones in memory has them flushed.
const TOMBSTONES_STEPPED_OVER_MAX: &str = "1000";
/// Bits of a bloom filter for each key: one false answer in a hundred.
const BLOOM_BITS: f64 = 10.0;

/// A group of rows with its own order and files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Due,
    Id,
    Run,
    Agenda,
    Ended,
    Forget,
    Meta,
}

pub(super) const FAMILIES: [Family; 7] =
    [Family::Due, Family::Id, Family::Run, Family::Agenda, Family::Ended, Family::Forget, Family::Meta];

impl Family {
    /// Returns the name on disk, which never changes.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Due => "due",
            Self::Id => "id",
            Self::Run => "run",
            Self::Agenda => "agenda",
            Self::Ended => "ended",
            Self::Forget => "forget",
            Self::Meta => "meta",
        }
    }
}

/// The memory that all stores of a process share.
#[derive(Clone)]
pub struct Resources {
    cache: Cache,
    memtables: WriteBufferManager,
}

impl Resources {
    /// Divides a budget, of at least 16 MiB, in equal parts between cached blocks and unflushed rows.
    ///
    /// Index and filter blocks of open files are beside it: in a small shared cache they would cost five times.
    pub fn new(budget_bytes: usize) -> Self {
        let half = budget_bytes.max(BUDGET_BYTES_MIN) / 2;
        // Without stalls: a worker has one thread, and a stall in one store would hold up the firing of all.
        let memtables = WriteBufferManager::new_write_buffer_manager(half, false);
        Self { cache: Cache::new_lru_cache(half), memtables }
    }

    /// Returns how many bytes of blocks are cached.
    pub fn cached_bytes(&self) -> usize {
        self.cache.get_usage()
    }

    /// Returns how many bytes of rows are not flushed yet, in all stores.
    pub fn memtable_bytes(&self) -> usize {
        self.memtables.get_usage()
    }
}

impl std::fmt::Debug for Resources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resources").finish_non_exhaustive()
    }
}

/// Returns the options of a store.
pub(super) fn of_db(resources: &Resources) -> Options {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.create_missing_column_families(true);
    options.set_atomic_flush(true);
    options.set_write_buffer_manager(&resources.memtables);
    options.set_max_open_files(OPEN_FILES_MAX);
    options.set_max_background_jobs(BACKGROUND_JOBS_MAX);
    options.set_log_level(LogLevel::Warn);
    options.set_keep_log_file_num(2);
    options.set_max_log_file_size(INFO_LOG_BYTES_MAX);
    options.set_stats_dump_period_sec(0);
    options.set_stats_persist_period_sec(0);
    options
}

/// Returns the options of a family.
pub(super) fn of_family(family: Family, resources: &Resources) -> Options {
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_cache(&resources.cache);
    blocks.set_cache_index_and_filter_blocks(false);
    let mut options = Options::default();
    match family {
        // Rows come and go at the head of these orders, and tombstones would pile up there.
        Family::Due | Family::Agenda | Family::Forget => {
            options.add_compact_on_deletion_collector_factory(TOMBSTONE_WINDOW_ROWS, TOMBSTONES_IN_WINDOW_MAX, 0.0);
        }
        // Most arms ask for an identity that is not there.
        Family::Id | Family::Run | Family::Ended => blocks.set_bloom_filter(BLOOM_BITS, false),
        Family::Meta => {}
    }
    options.set_block_based_table_factory(&blocks);
    options.set_compression_type(DBCompressionType::Lz4);
    options.set_write_buffer_size(MEMTABLE_BYTES_MAX);
    options.set_arena_block_size(ARENA_BLOCK_BYTES);
    options
}

/// Sets what the crate has no function for. Each call writes and syncs a file, so it is done where it matters most.
pub(super) fn flush_when_scans_meet_tombstones(db: &DB) -> Result<(), rocksdb::Error> {
    let due = db.cf_handle(Family::Due.name()).expect("the store was opened with all families");
    db.set_options_cf(due, &[("memtable_op_scan_flush_trigger", TOMBSTONES_STEPPED_OVER_MAX)])
}

//! `punctual inspect`: what a state directory holds.
//!
//! Owns the reading of stores from outside. Never writes, and takes no lock: the owner may be running, or have been killed.
//! Keeps: work and memory are bounded by `--rows` per kind, whatever the directory holds. Beside a running owner it shows what
//! was made durable last, which is older than what the owner has in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::args::InspectArgs;
use super::failure::Failure;
use super::output::{Cell, Format, Output, Tone};
use crate::position::Position;
use crate::store::rocks::RocksStore;
use crate::store::{Store, StoreError, StoreHeader};
use crate::time::Timestamp;
use crate::timer::kind::KindNumber;
use crate::timer::model::DueKey;
use crate::timer::view::DueRow;

/// The file that every RocksDB directory has.
const STORE_MARK: &str = "CURRENT";
/// How deep stores lie below a state directory, at most.
const DEPTH_MAX: usize = 3;
/// Rows read at a time, so that memory is bounded whatever the payloads.
const PAGE_ROWS: usize = 64;

/// Shows the stores of the directory.
///
/// # Errors
/// When there is none, or one cannot be read.
pub(super) fn run(args: &InspectArgs, now: Timestamp, out: &mut Output<'_>) -> Result<(), Failure> {
    let stores = find_stores(&args.directory)?;
    let mut first_failure = None;
    for path in stores {
        match inspect(&path, args.rows, now) {
            Ok(partition) => partition.show(out)?,
            // One damaged store does not hide the others.
            Err(error) => {
                let failure = Failure::from(error);
                first_failure.get_or_insert(failure);
            }
        }
    }
    first_failure.map_or(Ok(()), Err)
}

fn find_stores(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    if !directory.is_dir() {
        return Err(Failure::failed(format!("DIRECTORY `{}` is not a directory", directory.display()))
            .with_remedy("name the state_dir of the configuration, or one partition's directory in it"));
    }
    let mut stores = BTreeSet::new();
    let mut level = vec![directory.to_owned()];
    for _ in 0..=DEPTH_MAX {
        let mut below = Vec::new();
        for path in level {
            if path.join(STORE_MARK).is_file() {
                stores.insert(path);
            } else {
                below.extend(directories_in(&path)?);
            }
        }
        level = below;
    }
    if stores.is_empty() {
        return Err(Failure::failed(format!("DIRECTORY `{}` holds no store", directory.display()))
            .with_remedy("name the state_dir of the configuration; a process that never had a partition has none"));
    }
    Ok(stores.into_iter().collect())
}

fn directories_in(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let error = |e: std::io::Error| Failure::failed(format!("cannot read directory `{}`: {e}", path.display()));
    let mut directories = Vec::new();
    for entry in std::fs::read_dir(path).map_err(error)? {
        let path = entry.map_err(error)?.path();
        if path.is_dir() {
            directories.push(path);
        }
    }
    Ok(directories)
}

/// What one store holds.
struct Partition {
    path: PathBuf,
    header: StoreHeader,
    kinds: Vec<KindFacts>,
}

/// What one store holds of one kind.
struct KindFacts {
    kind: KindNumber,
    pending: u64,
    paused: u64,
    next: Option<Timestamp>,
    overdue: Counted,
    undecodable: Counted,
    cursor: Option<DueKey>,
}

/// A count that may have stopped at a bound.
struct Counted {
    count: usize,
    is_complete: bool,
}

impl Counted {
    fn text(&self) -> String {
        if self.is_complete { self.count.to_string() } else { format!("{}+", self.count) }
    }
}

fn inspect(path: &Path, rows_max: usize, now: Timestamp) -> Result<Partition, StoreError> {
    let store = RocksStore::open_read_only(path)?;
    let header = store.header().clone();
    let kinds: BTreeSet<KindNumber> = header.pending.keys().chain(header.cursors.keys()).copied().collect();
    let kinds = kinds.into_iter().map(|kind| inspect_kind(&store, kind, rows_max, now)).collect::<Result<_, _>>()?;
    Ok(Partition { path: path.to_owned(), header, kinds })
}

fn inspect_kind(
    store: &RocksStore,
    kind: KindNumber,
    rows_max: usize,
    now: Timestamp,
) -> Result<KindFacts, StoreError> {
    let header = store.header();
    let cursor = header.cursors.get(&kind).copied();
    let from = cursor.unwrap_or(DueKey::MIN);
    let next = store.due_keys(kind, from, Timestamp::MAX, 1)?.first().map(|at| at.wake);
    let overdue = store.due_keys(kind, from, now, rows_max)?.len();
    let overdue = Counted { count: overdue, is_complete: overdue < rows_max };
    let undecodable = count_undecodable(store, kind, from, rows_max)?;
    let count = |counts: &BTreeMap<KindNumber, u64>| counts.get(&kind).copied().unwrap_or(0);
    let (pending, paused) = (count(&header.pending), count(&header.paused));
    Ok(KindFacts { kind, pending, paused, next, overdue, undecodable, cursor })
}

fn count_undecodable(
    store: &RocksStore,
    kind: KindNumber,
    mut from: DueKey,
    rows_max: usize,
) -> Result<Counted, StoreError> {
    let (mut count, mut seen) = (0, 0);
    while seen < rows_max {
        let page = store.due(kind, from, Timestamp::MAX, PAGE_ROWS.min(rows_max - seen))?;
        let Some(last) = page.last() else {
            return Ok(Counted { count, is_complete: true });
        };
        from = last.at().next();
        seen += page.len();
        count += page.iter().filter(|row| matches!(row, DueRow::Undecodable { .. })).count();
    }
    Ok(Counted { count, is_complete: false })
}

impl Partition {
    fn show(&self, out: &mut Output<'_>) -> Result<(), Failure> {
        match out.format {
            Format::Json => out.json(&self.to_json())?,
            Format::Table => self.show_table(out)?,
        }
        Ok(())
    }

    fn show_table(&self, out: &mut Output<'_>) -> Result<(), Failure> {
        let header = &self.header;
        let position = |position: Option<Position>| position.map_or("none".to_owned(), |p| p.to_string());
        out.line(&self.path.display().to_string())?;
        if *header == StoreHeader::default() {
            out.line("  nothing durable yet; a running owner makes it so within store.flush_interval")?;
            return Ok(());
        }
        out.line(&format!("  input position      {}", position(header.input_position)))?;
        out.line(&format!("  changelog position  {}", position(header.changelog_position)))?;
        out.line(&format!("  next generation     {}", header.next_generation.0))?;
        out.line(&format!("  remembered ids      {}", header.remembered))?;
        out.line(&format!("  level with log at   {}", instant(header.level_at)))?;
        if self.kinds.is_empty() {
            out.line("  no timers")?;
            return Ok(());
        }
        let rows: Vec<_> = self.kinds.iter().map(KindFacts::row).collect();
        out.table(["  KIND", "PENDING", "PAUSED", "OVERDUE", "NEXT", "UNDECODABLE", "CURSOR"], &rows)?;
        Ok(())
    }

    fn to_json(&self) -> Value {
        let header = &self.header;
        json!({
            "directory": self.path.display().to_string(),
            "input_position": header.input_position.map(|p| p.0),
            "changelog_position": header.changelog_position.map(|p| p.0),
            "next_generation": header.next_generation.0,
            "remembered": header.remembered,
            "level_at": header.level_at.map(|at| at.to_string()),
            "kinds": self.kinds.iter().map(KindFacts::to_json).collect::<Vec<_>>(),
        })
    }
}

impl KindFacts {
    fn row(&self) -> [Cell; 7] {
        let tone = |count: &Counted, bad: Tone| if count.count > 0 { bad } else { Tone::Plain };
        [
            format!("  {}", self.kind).into(),
            self.pending.to_string().into(),
            self.paused.to_string().into(),
            Cell::toned(self.overdue.text(), tone(&self.overdue, Tone::Warning)),
            instant(self.next).into(),
            Cell::toned(self.undecodable.text(), tone(&self.undecodable, Tone::Bad)),
            self.cursor.map_or("none".to_owned(), |at| format!("{} #{}", at.wake, at.generation.0)).into(),
        ]
    }

    fn to_json(&self) -> Value {
        json!({
            "kind": self.kind.get(),
            "pending": self.pending,
            "paused": self.paused,
            "next": self.next.map(|at| at.to_string()),
            "overdue": self.overdue.count,
            "overdue_is_complete": self.overdue.is_complete,
            "undecodable": self.undecodable.count,
            "undecodable_is_complete": self.undecodable.is_complete,
            "cursor": self.cursor.map(|at| json!({"wake": at.wake.to_string(), "generation": at.generation.0})),
        })
    }
}

fn instant(at: Option<Timestamp>) -> String {
    at.map_or("none".to_owned(), |at| at.to_string())
}

#[cfg(test)]
#[path = "inspect_test.rs"]
mod tests;

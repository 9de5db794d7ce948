//! The header as it is stored: one row of JSON, so that a person can read it.
//!
//! Owns the format number. Never reads another format: the store is a copy of the changelog and is built anew from it.
//! Keeps: what is encoded is decoded to the same value; the number rises with every change of any row's format.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{StoreError, StoreHeader};
use crate::position::{Partition, Position};
use crate::time::Timestamp;
use crate::timer::kind::KindNumber;
use crate::timer::model::{DueKey, Generation};

/// The format of all rows of a store.
const FORMAT: u32 = 4;

/// What every format has.
#[derive(Deserialize)]
struct AnyFormat {
    format: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    format: u32,
    partition: Option<u32>,
    changelog_topic_id: Option<[u8; 16]>,
    arm_topic_id: Option<[u8; 16]>,
    changelog_position: Option<i64>,
    input_position: Option<i64>,
    next_generation: u64,
    level_at: Option<i64>,
    undecodable: u64,
    forwarders: Vec<Forwarder>,
    cursors: Vec<Cursor>,
    pending: Vec<Count>,
    paused: Vec<Count>,
    remembered: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Forwarder {
    partition: u32,
    position: i64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cursor {
    kind: u8,
    wake: i64,
    generation: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Count {
    kind: u8,
    count: u64,
}

/// Returns the row.
pub(super) fn encode(header: &StoreHeader) -> Vec<u8> {
    let cursor = |(kind, at): (&KindNumber, &DueKey)| Cursor {
        kind: kind.get(),
        wake: at.wake.as_millis(),
        generation: at.generation.0,
    };
    let count = |(kind, count): (&KindNumber, &u64)| Count { kind: kind.get(), count: *count };
    let row = Row {
        format: FORMAT,
        partition: header.partition.map(|partition| partition.0),
        changelog_topic_id: header.changelog_topic_id,
        arm_topic_id: header.arm_topic_id,
        changelog_position: header.changelog_position.map(|position| position.0),
        input_position: header.input_position.map(|position| position.0),
        next_generation: header.next_generation.0,
        level_at: header.level_at.map(Timestamp::as_millis),
        undecodable: header.undecodable,
        forwarders: header
            .forwarders
            .iter()
            .map(|(partition, position)| Forwarder { partition: partition.0, position: position.0 })
            .collect(),
        cursors: header.cursors.iter().map(cursor).collect(),
        pending: header.pending.iter().map(count).collect(),
        paused: header.paused.iter().map(count).collect(),
        remembered: header.remembered,
    };
    serde_json::to_vec(&row).expect("numbers and lists are always JSON")
}

/// Reads the row.
///
/// # Errors
/// When it is of another format, or damaged.
pub(super) fn decode(path: &Path, bytes: &[u8]) -> Result<StoreHeader, StoreError> {
    let corrupt = |detail: String| StoreError::Corrupt { path: path.to_owned(), detail: format!("header: {detail}") };
    let AnyFormat { format } = serde_json::from_slice(bytes).map_err(|error| corrupt(error.to_string()))?;
    if format != FORMAT {
        return Err(StoreError::UnsupportedFormat { path: path.to_owned(), found: format, supported: FORMAT });
    }
    let row: Row = serde_json::from_slice(bytes).map_err(|error| corrupt(error.to_string()))?;
    let kind = |number: u8| KindNumber::new(u32::from(number)).ok_or_else(|| corrupt("kind 0".to_owned()));
    let mut header = StoreHeader {
        partition: row.partition.map(Partition),
        changelog_topic_id: row.changelog_topic_id,
        arm_topic_id: row.arm_topic_id,
        changelog_position: row.changelog_position.map(Position),
        input_position: row.input_position.map(Position),
        next_generation: Generation(row.next_generation),
        level_at: row.level_at.map(Timestamp::from_millis),
        undecodable: row.undecodable,
        remembered: row.remembered,
        forwarders: row.forwarders.iter().map(|from| (Partition(from.partition), Position(from.position))).collect(),
        ..StoreHeader::default()
    };
    for Cursor { kind: number, wake, generation } in row.cursors {
        let at = DueKey { wake: Timestamp::from_millis(wake), generation: Generation(generation) };
        header.cursors.insert(kind(number)?, at);
    }
    for Count { kind: number, count } in row.pending {
        header.pending.insert(kind(number)?, count);
    }
    for Count { kind: number, count } in row.paused {
        header.paused.insert(kind(number)?, count);
    }
    Ok(header)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn header() -> StoreHeader {
        let kind = |number| KindNumber::new(number).unwrap();
        let at = DueKey { wake: Timestamp::from_millis(1_700_000_000_000), generation: Generation(u64::MAX) };
        StoreHeader {
            partition: Some(Partition(3)),
            changelog_topic_id: Some([255; 16]),
            arm_topic_id: Some([0; 16]),
            changelog_position: Some(Position(i64::MAX)),
            input_position: Some(Position(0)),
            next_generation: Generation(7),
            cursors: [(kind(1), at), (kind(255), DueKey::MIN)].into(),
            pending: [(kind(1), 3), (kind(2), 0)].into(),
            paused: [(kind(1), 2)].into(),
            level_at: Some(Timestamp::EPOCH),
            undecodable: 1,
            remembered: 4,
            forwarders: [(Partition(9), Position(8))].into(),
        }
    }

    #[test]
    fn a_header_comes_back_as_it_was() {
        for header in [header(), StoreHeader::default()] {
            assert_eq!(decode(Path::new("dir"), &encode(&header)).unwrap(), header);
        }
    }

    #[test]
    fn the_row_is_the_one_of_format_4() {
        let row = String::from_utf8(encode(&header())).unwrap();
        expect![[r#"{"format":4,"partition":3,"changelog_topic_id":[255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255],"arm_topic_id":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],"changelog_position":9223372036854775807,"input_position":0,"next_generation":7,"level_at":0,"undecodable":1,"forwarders":[{"partition":9,"position":8}],"cursors":[{"kind":1,"wake":1700000000000,"generation":18446744073709551615},{"kind":255,"wake":0,"generation":0}],"pending":[{"kind":1,"count":3},{"kind":2,"count":0}],"paused":[{"kind":1,"count":2}],"remembered":4}"#]]
            .assert_eq(&row);
    }

    #[test]
    fn another_format_is_refused_by_its_number() {
        let refusal = |row: &str| decode(Path::new("dir"), row.as_bytes()).unwrap_err().to_string();
        expect!["state directory dir has format 5, this release reads 4"]
            .assert_eq(&refusal(r#"{"format":5,"new":0}"#));
        expect!["state directory dir is corrupt: header: missing field `format` at line 1 column 2"]
            .assert_eq(&refusal("{}"));
        expect!["state directory dir is corrupt: header: EOF while parsing a value at line 1 column 0"]
            .assert_eq(&refusal(""));
    }

    proptest! {
        #[test]
        fn no_damaged_row_panics_and_what_is_read_is_written_alike(
            changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            cut: prop::sample::Index,
        ) {
            let mut row = encode(&header());
            for (at, byte) in changes {
                let at = at.index(row.len());
                row[at] = byte;
            }
            row.truncate(cut.index(row.len()) + 1);
            if let Ok(read) = decode(Path::new("dir"), &row) {
                prop_assert_eq!(decode(Path::new("dir"), &encode(&read)).unwrap(), read);
            }
        }
    }
}

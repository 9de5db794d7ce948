//! What restoring and reading promise.

use std::collections::BTreeMap;

use punctual::log::{ChangelogBatch, Log, LogEvent};
use punctual::position::{Offset, Partition, Position};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::{Offset as NativeOffset, TopicPartitionList};

use super::rig::{BOUND, Member, Rig, block_on, state};
use crate::harness::broker::Broker;
use crate::harness::wait;

/// Restores partition 0 until `is_done`, and returns the keys in order and the last position.
fn restore(
    member: &mut Member,
    from: Position,
    mut is_done: impl FnMut(&ChangelogBatch) -> bool,
) -> (Vec<String>, Position) {
    member.log.restore(Partition(0), from).unwrap();
    let (mut keys, mut position) = (Vec::new(), from);
    member.find("the restore ends", |event| {
        let LogEvent::Changelog(batch) = event else { return None };
        assert!(batch.position >= position, "positions rise");
        position = batch.position;
        keys.extend(batch.records.iter().map(|record| String::from_utf8(record.key.to_vec()).unwrap()));
        is_done(&batch).then_some(())
    });
    member.log.stop_restore(Partition(0)).unwrap();
    (keys, position)
}

fn has(batch: &ChangelogBatch, key: &str) -> bool {
    batch.records.iter().any(|record| &*record.key == key.as_bytes())
}

#[test]
fn a_restore_over_markers_and_aborted_records_ends_at_the_nonce() {
    // R2
    let rig = Rig::new(Broker::shared(), "restore", 1);
    rig.open_transaction("x", &rig.topics.changelog, &["committed"]).commit_transaction(BOUND).unwrap();
    rig.open_transaction("y", &rig.topics.changelog, &["aborted"]).abort_transaction(BOUND).unwrap();
    let mut member = rig.member("a", 1);
    for number in 0..3 {
        member.commit_surely(&[state(&format!("{number}"))]);
    }
    let barrier = member.commit_surely(&[state("nonce")]).changelog[&Partition(0)].end().unwrap();
    let (keys, position) = restore(&mut member, Position(0), |batch| has(batch, "nonce"));
    assert_eq!(keys, ["committed", "0", "1", "2", "nonce"]);
    assert!(position >= barrier, "{position} is behind the barrier at {barrier}");

    // From behind the barrier's record there is only its marker: the restore ends with the position.
    let (keys, position) = restore(&mut member, barrier, |batch| batch.position > barrier);
    assert_eq!((keys.len(), position), (0, Position(barrier.0 + 1)));
    assert_eq!(member.log.changelog_extent(Partition(0)).unwrap().end, position);
}

#[test]
fn a_restore_waits_for_a_dead_writers_transaction_and_misses_nothing_above_it() {
    // R1
    let rig = Rig::new(Broker::shared(), "open", 1);
    let dead = rig.open_transaction("dead", &rig.topics.changelog, &["dead"]);
    let mut member = rig.member("a", 1);
    member.commit_surely(&[state("above")]);
    let barrier = member.commit_surely(&[state("nonce")]).changelog[&Partition(0)].end().unwrap();
    assert!(member.log.changelog_extent(Partition(0)).unwrap().end >= barrier, "the extent sees open transactions");
    let (keys, _) = restore(&mut member, Position(0), |batch| has(batch, "nonce"));
    assert_eq!(keys, ["above", "nonce"]);
    drop(dead);
}

#[test]
fn several_partitions_restore_side_by_side_while_commands_are_read() {
    // R12
    let rig = Rig::new(Broker::shared(), "side-by-side", 3);
    let mut member = rig.member("a", 3);
    let mut emissions = Vec::new();
    for number in 0..3_000_u32 {
        let mut record = state(&format!("key-{number}"));
        record.partition = Some(Partition(number % 2));
        emissions.push(record);
    }
    member.commit_surely(&emissions);
    member.log.restore(Partition(0), Position(0)).unwrap();
    member.log.restore(Partition(1), Position(500)).unwrap();
    member.log.consume(Partition(2), Position(0)).unwrap();
    produce(&rig, 2, &["while restoring"]);
    let mut restored = [0, 0];
    let mut commands = 0;
    wait::until_true(BOUND, "both are restored and the command is read", || {
        for event in member.poll().unwrap() {
            if let LogEvent::Changelog(batch) = event {
                restored[usize::try_from(batch.partition.0).unwrap()] += batch.records.len();
            } else {
                assert!(matches!(event, LogEvent::Record(_)), "{event:?}");
                commands += 1;
            }
        }
        restored == [1_500, 1_000] && commands == 1
    });
    // Nothing comes of a restore that was stopped.
    member.log.restore(Partition(0), Position(0)).unwrap();
    member.log.stop_restore(Partition(0)).unwrap();
    member.log.stop_restore(Partition(1)).unwrap();
    for _ in 0..5 {
        assert_eq!(member.poll().unwrap().len(), 0);
    }
}

#[test]
fn a_restore_that_starts_with_the_barrier_always_ends() {
    // R2: the marker of the barrier's own transaction may still be under way.
    let rig = Rig::new(Broker::shared(), "at-once", 4);
    let mut member = rig.member("a", 4);
    for round in 0..100 {
        let barriers = (0..4).map(|number| {
            let mut record = state(&format!("nonce-{round}"));
            record.partition = Some(Partition(number));
            record
        });
        let committed = member.commit_surely(&barriers.collect::<Vec<_>>());
        let mut waiting: BTreeMap<Partition, Position> =
            committed.changelog.into_iter().map(|(partition, places)| (partition, places.end().unwrap())).collect();
        for (partition, behind) in &waiting {
            member.log.restore(*partition, Position(behind.0 - 1)).unwrap();
        }
        wait::until_true(BOUND, &format!("every restore of round {round} ends"), || {
            for event in member.poll().unwrap() {
                let LogEvent::Changelog(batch) = event else { panic!("{event:?}") };
                if waiting.get(&batch.partition).is_some_and(|behind| *behind <= batch.position) {
                    waiting.remove(&batch.partition);
                    member.log.stop_restore(batch.partition).unwrap();
                }
            }
            waiting.is_empty()
        });
    }
}

#[test]
fn reading_steps_over_markers_and_rewinds() {
    let rig = Rig::new(Broker::shared(), "position", 1);
    produce(&rig, 0, &["0", "1"]);
    rig.open_transaction("x", &rig.topics.arm, &["2", "3"]).commit_transaction(BOUND).unwrap();
    rig.open_transaction("y", &rig.topics.arm, &["aborted"]).abort_transaction(BOUND).unwrap();
    let mut member = rig.member("a", 1);
    assert_eq!(member.log.position(Partition(0)), None, "nothing is read before it is asked for");
    let extent = member.log.input_extent(Partition(0)).unwrap();
    assert_eq!((extent.start, extent.end), (Position(0), Position(7)), "five records and two markers");
    member.log.consume(Partition(0), Position(0)).unwrap();
    assert_eq!(read(&mut member, 4), ["0", "1", "2", "3"]);
    wait::until_true(BOUND, "the position steps over markers", || {
        assert_eq!(member.poll().unwrap().len(), 0);
        member.log.position(Partition(0)) == Some(extent.end)
    });
    for from in [1, 3, 0] {
        member.log.consume(Partition(0), Position(from)).unwrap();
        assert_eq!(member.log.position(Partition(0)), Some(Position(from)), "the old position is forgotten");
        let expected: Vec<_> = (from..4).map(|number| number.to_string()).collect();
        assert_eq!(read(&mut member, expected.len()), expected);
    }
    produce(&rig, 0, &["new"]);
    assert_eq!(read(&mut member, 1), ["new"]);
}

#[test]
fn commands_behind_an_open_transaction_come_once_when_it_ends() {
    // R27; meanwhile the partition does not move, and is read on anew now and then.
    let rig = Rig::new(Broker::shared(), "pinned", 2);
    produce(&rig, 0, &["before"]);
    let open = rig.open_transaction("x", &rig.topics.arm, &["open"]);
    produce(&rig, 0, &["behind"]);
    let mut member = rig.member("a", 2);
    for partition in 0..2 {
        member.log.consume(Partition(partition), Position(0)).unwrap();
    }
    // The broker ends the transaction of a client that is silent, which takes a while.
    assert_eq!(read(&mut member, 2), ["before", "behind"]);
    let extent = member.log.input_extent(Partition(0)).unwrap();
    wait::until_true(BOUND, "the position steps over the marker", || {
        assert_eq!(member.poll().unwrap().len(), 0);
        member.log.position(Partition(0)) == Some(extent.end)
    });
    drop(open);
}

#[test]
fn a_position_outside_of_the_log_is_reported_and_reading_goes_on_where_it_is_told() {
    let rig = Rig::new(Broker::shared(), "out-of-range", 2);
    produce(&rig, 0, &["0", "1", "2", "3"]);
    produce(&rig, 1, &["other"]);
    let mut offsets = TopicPartitionList::new();
    offsets.add_partition_offset(&rig.topics.arm, 0, NativeOffset::Offset(2)).unwrap();
    block_on(rig.admin().delete_records(&offsets, &rdkafka::admin::AdminOptions::new())).unwrap();
    let mut member = rig.member("a", 2);
    for (partition, from) in [(0, 0), (1, 0)] {
        member.log.consume(Partition(partition), Position(from)).unwrap();
    }
    let mut others = 0;
    let fallen = member.find("the position is reported", |event| {
        if let LogEvent::OutOfRange(partition) = event {
            return Some(partition);
        }
        assert!(matches!(&event, LogEvent::Record(record) if record.partition == Partition(1)), "{event:?}");
        others += 1;
        None
    });
    assert_eq!(fallen, Partition(0));
    let start = member.log.input_extent(Partition(0)).unwrap().start;
    assert_eq!(start, Position(2));
    member.log.consume(Partition(0), start).unwrap();
    produce(&rig, 1, &["other again"]);
    let mut values = read(&mut member, 3 + 1 - others);
    values.sort();
    assert_eq!(values.last().map(String::as_str), Some("other again"));
    assert_eq!(values[..2], ["2", "3"]);
}

#[test]
fn headers_keys_and_timestamps_come_as_they_were_sent() {
    // T5
    let rig = Rig::new(Broker::shared(), "bytes", 1);
    let producer: BaseProducer = rig.client.create().unwrap();
    let header = |value| rdkafka::message::Header { key: "twice", value };
    let headers = rdkafka::message::OwnedHeaders::new()
        .insert(header(Some(&b"\xff\x00"[..])))
        .insert(header(None::<&[u8]>))
        .insert(rdkafka::message::Header { key: "", value: Some(&b""[..]) });
    let record = BaseRecord::<[u8], [u8]>::to(&rig.topics.arm).partition(0).key(&b"\x00k"[..]).headers(headers);
    producer.send(record.timestamp(1_234)).map_err(|(error, _)| error).unwrap();
    producer.flush(BOUND).unwrap();
    let mut member = rig.member("a", 1);
    member.log.consume(Partition(0), Position(0)).unwrap();
    let record =
        member.find("the record", |event| if let LogEvent::Record(record) = event { Some(record) } else { None });
    assert_eq!((record.offset, record.value.is_none()), (Offset(0), true));
    assert_eq!(record.key.as_deref(), Some(&b"\x00k"[..]));
    assert_eq!(record.timestamp.map(punctual::time::Timestamp::as_millis), Some(1_234));
    let headers: Vec<_> = record.headers.iter().map(|header| (header.key.as_str(), header.value.as_deref())).collect();
    assert_eq!(headers, [("twice", Some(&b"\xff\x00"[..])), ("twice", None), ("", Some(&b""[..]))]);
}

fn produce(rig: &Rig, partition: i32, values: &[&str]) {
    let producer: BaseProducer = rig.client.create().unwrap();
    for value in values {
        let record = BaseRecord::to(&rig.topics.arm).partition(partition).key(*value).payload(*value);
        producer.send(record).map_err(|(error, _)| error).unwrap();
    }
    producer.flush(BOUND).unwrap();
}

fn read(member: &mut Member, count: usize) -> Vec<String> {
    let mut values = Vec::new();
    wait::until_true(BOUND, &format!("{count} commands are read"), || {
        for event in member.poll().unwrap() {
            let LogEvent::Record(record) = event else { panic!("{event:?}") };
            values.push(String::from_utf8(record.value.unwrap().to_vec()).unwrap());
        }
        values.len() >= count
    });
    values
}

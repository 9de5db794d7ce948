//! Stored state: the records of the changelog, which are the rows of the store too, and their keys.

use std::fmt::Debug;

use bytes::Bytes;
use proptest::collection::btree_map;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use punctual::position::{Partition, Position};
use punctual::timer::model::Generation;
use punctual::wire::DecodeError;
use punctual::wire::key::StateKey;
use punctual::wire::remembered::{decode_remembered, encode_remembered};
use punctual::wire::state::{Barrier, Meta, decode_run, decode_timer, encode_run, encode_timer};

use crate::bounds::Ceiling;
use crate::mangled::{arbitrary, mangled};
use crate::strategy;
use crate::trial::fuzz;

/// An empty outbox record is two bytes here and over a hundred in memory. The service is the only writer of rows.
const CEILING: Ceiling = Ceiling { bytes_for_each: 192, bytes_beside: 16 * 1024 };
const PROBLEM_BYTES_MAX: usize = 2048;

/// Rows that failed once; each is read as every type.
const KEPT: &[&[u8]] = &[];

/// Checks that what is read is written as something that reads the same.
fn check<T: Debug + PartialEq>(
    bytes: &[u8],
    decode: impl Fn(&[u8]) -> Result<T, DecodeError>,
    encode: impl Fn(&T) -> Bytes,
) -> Result<(), TestCaseError> {
    match CEILING.check(bytes.len(), || decode(bytes)) {
        Ok(value) => prop_assert_eq!(decode(&encode(&value)), Ok(value), "INV-WIRE-2"),
        Err(error) => {
            let problem = error.to_string();
            prop_assert!(problem.len() <= PROBLEM_BYTES_MAX, "{} bytes of problem: {problem}", problem.len());
        }
    }
    Ok(())
}

fn check_all(bytes: &[u8]) -> Result<(), TestCaseError> {
    check(bytes, decode_timer, encode_timer)?;
    check(bytes, decode_run, encode_run)?;
    check(bytes, decode_remembered, encode_remembered)?;
    check(bytes, Meta::decode, Meta::encode)?;
    check(bytes, Barrier::decode, Barrier::encode)?;
    check_key(bytes)
}

/// A key has one form only: two byte strings that read as the same key would be two rows of one timer.
fn check_key(bytes: &[u8]) -> Result<(), TestCaseError> {
    if let Ok(key) = CEILING.check(bytes.len(), || StateKey::decode(bytes)) {
        prop_assert_eq!(key.encode(), bytes, "INV-KEY-1: {:?}", key);
    }
    Ok(())
}

fn key() -> impl Strategy<Value = StateKey> {
    prop_oneof![
        strategy::timer_key().prop_map(StateKey::Timer),
        strategy::timer_key().prop_map(StateKey::Remembered),
        strategy::run_key().prop_map(StateKey::Run),
        Just(StateKey::Meta),
        Just(StateKey::Barrier),
    ]
}

#[test]
fn what_failed_once_is_well() {
    for row in KEPT {
        check_all(row).unwrap();
    }
}

#[test]
fn rows_that_were_damaged() {
    let forwarders = btree_map(any::<u32>().prop_map(Partition), (0..=i64::MAX).prop_map(Position), 0..4);
    let meta = (0..=i64::MAX, 0..=Generation::MAX.0, forwarders).prop_map(|(position, generation, forwarders)| {
        Meta { input_position: Position(position), next_generation: Generation(generation), forwarders }.encode()
    });
    let barrier = (any::<u64>(), ".{0,24}").prop_map(|(nonce, owner)| Barrier { nonce, owner }.encode());
    let row = prop_oneof![
        5 => strategy::timer().prop_map(|timer| encode_timer(&timer)),
        3 => strategy::run_state().prop_map(|run| encode_run(&run)),
        2 => strategy::remembered().prop_map(|state| encode_remembered(&state)),
        1 => meta,
        1 => barrier,
        2 => key().prop_map(|key| key.encode()),
    ];
    fuzz(&mangled(row.prop_map(|row| row.to_vec()).boxed()), |row| check_all(&row));
}

#[test]
fn rows_of_any_bytes() {
    fuzz(&arbitrary(), |row| check_all(&row));
}

#[test]
fn rows_of_any_kind_come_back() {
    let rows = (strategy::timer(), strategy::run_state(), strategy::remembered(), key());
    fuzz(&rows, |(timer, run, remembered, key)| {
        prop_assert_eq!(decode_timer(&encode_timer(&timer)), Ok(timer));
        prop_assert_eq!(decode_run(&encode_run(&run)), Ok(run));
        prop_assert_eq!(decode_remembered(&encode_remembered(&remembered)), Ok(remembered));
        prop_assert_eq!(StateKey::decode(&key.encode()), Ok(key));
        Ok(())
    });
}

/// INV-KEY-1: the order of the keys is the order of what they stand for.
#[test]
fn keys_compare_as_what_they_stand_for() {
    fuzz(&(key(), key()), |(one, other)| {
        prop_assert_eq!(one.encode().cmp(&other.encode()), one.cmp(&other));
        Ok(())
    });
}

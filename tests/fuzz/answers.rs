//! What leaves the service and comes back to its clients: answers, and the headers of dead letters.

use bytes::Bytes;
use proptest::option;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use punctual::position::{Offset, Partition};
use punctual::timer::model::{Generation, Header};
use punctual::timer::outcome::{Answer, Reason, Rejection, Verdict};
use punctual::wire::answer::{decode, encode};
use punctual::wire::dead_letter::{self, Original};

use crate::bounds::Ceiling;
use crate::mangled::{arbitrary, mangled};
use crate::strategy;
use crate::trial::fuzz;

const CEILING: Ceiling = Ceiling { bytes_for_each: 16, bytes_beside: 16 * 1024 };

/// Answers that failed once.
const KEPT: &[&[u8]] = &[];

fn answer() -> impl Strategy<Value = Answer> {
    let count = any::<u64>();
    let generation = any::<u64>().prop_map(Generation);
    let verdict = prop_oneof![
        (generation.clone(), strategy::timestamp()).prop_map(|(generation, due)| Verdict::Armed { generation, due }),
        generation.clone().prop_map(|generation| Verdict::AlreadyArmed { generation }),
        (generation.clone(), strategy::timestamp()).prop_map(|(generation, due)| Verdict::Replaced { generation, due }),
        generation.clone().prop_map(|generation| Verdict::Disarmed { generation }),
        generation.clone().prop_map(|generation| Verdict::Changed { generation }),
        generation.clone().prop_map(|generation| Verdict::Paused { generation }),
        generation.clone().prop_map(|generation| Verdict::NotPaused { generation }),
        generation.clone().prop_map(|generation| Verdict::Ended { generation }),
        (generation, strategy::timestamp()).prop_map(|(generation, due)| Verdict::Resumed { generation, due }),
        count.prop_map(|count| Verdict::RunDisarmed { count }),
        count.prop_map(|count| Verdict::RunSealed { count }),
        Just(Verdict::NotFound),
        Just(Verdict::Sealed),
        Just(Verdict::Skipped),
        rejection().prop_map(Verdict::Rejected),
    ];
    let about = (strategy::timer_key(), any::<bool>());
    (strategy::reply(), about, verdict).prop_map(|(reply, (timer, is_about_timer), verdict)| {
        let run = timer.run.clone();
        Answer { reply, run, timer: is_about_timer.then_some(timer), verdict }
    })
}

fn rejection() -> impl Strategy<Value = Rejection> {
    let detail = prop_oneof![".{0,40}", ".{900,1500}"];
    (prop::sample::select(&Reason::ALL[..]), detail).prop_map(|(reason, detail)| Rejection::new(reason, detail))
}

fn check(value: &[u8]) -> Result<(), TestCaseError> {
    let value = Bytes::copy_from_slice(value);
    if let Ok(received) = CEILING.check(value.len(), || decode(&value, &[])) {
        // A client shows it, whatever it is.
        prop_assert!(!received.outcome.is_empty() || value.first() == Some(&b'{'), "{received:?}");
        prop_assert!(received.due.is_none_or(|due| !due.to_string().is_empty()), "{received:?}");
    }
    Ok(())
}

#[test]
fn what_failed_once_is_well() {
    for value in KEPT {
        check(value).unwrap();
    }
}

#[test]
fn answers_that_were_damaged() {
    let written = answer().prop_map(|answer| encode(&answer).0.to_vec()).boxed();
    fuzz(&mangled(written), |value| check(&value));
}

#[test]
fn answers_of_any_bytes() {
    fuzz(&arbitrary(), |value| check(&value));
}

#[test]
fn answers_of_any_kind_come_back() {
    fuzz(&answer(), |answer| {
        let (value, headers) = encode(&answer);
        let received = decode(&value, &headers).unwrap();
        let timer_id = answer.timer.as_ref().map(|timer| timer.id.as_str().to_owned());
        prop_assert_eq!(&received.correlation_id, &answer.reply.correlation_id);
        prop_assert_eq!(&received.tenant, answer.run.tenant.as_str());
        prop_assert_eq!(&received.run, answer.run.run.as_str());
        prop_assert_eq!(&received.timer_id, &timer_id);
        if let Verdict::Rejected(rejection) = &answer.verdict {
            prop_assert_eq!(received.reason.as_deref(), Some(rejection.reason.name()));
            prop_assert_eq!(received.detail.as_ref(), Some(&rejection.detail));
        }
        Ok(())
    });
}

/// L13: whatever a bad record holds, its letter fits, says why, and where it was.
#[test]
fn dead_letters_of_any_record_fit() {
    let header = ("(ce_|punctual-dead-letter-)?.{0,8}", option::of(arbitrary()));
    let headers = prop::collection::vec(header.prop_map(|(key, value)| Header { key, value }), 0..5);
    let place = (any::<u32>(), 0..=i64::MAX, option::of(strategy::timestamp()));
    let record = (option::of(arbitrary()), option::of(arbitrary()), headers);
    // The least room: seven headers of ours and a detail of its greatest length.
    fuzz(
        &(record, place, rejection(), 3_000..200_000_usize),
        |((key, value, original), place, rejection, bytes_max)| {
            let (partition, offset, timestamp) = (Partition(place.0), Offset(place.1), place.2);
            let about = Original { partition, offset, timestamp, headers: &original };
            let headers = dead_letter::headers(&about, &rejection, "timers.arm");
            let letter = dead_letter::truncate(key, value.clone(), headers, bytes_max);
            let own: usize = letter.headers.iter().map(|h| h.key.len() + h.value.as_ref().map_or(0, Bytes::len)).sum();
            let bytes = own
                + [&letter.key, &letter.value].map(|part| part.as_ref().map_or(0, Bytes::len)).iter().sum::<usize>();
            prop_assert!(bytes <= bytes_max, "{bytes} bytes");
            let is_cut = letter.headers.last().is_some_and(|header| header.key == dead_letter::TRUNCATED);
            let own = &letter.headers[letter.headers.len() - 6 - usize::from(is_cut)..];
            let said = [partition.to_string(), offset.to_string()];
            prop_assert_eq!(own[0].value.as_deref(), Some(rejection.reason.name().as_bytes()));
            prop_assert_eq!(own[3].value.as_deref(), Some(said[0].as_bytes()));
            prop_assert_eq!(own[4].value.as_deref(), Some(said[1].as_bytes()));
            prop_assert!(value.unwrap_or_default().starts_with(&letter.value.unwrap_or_default()), "another value");
            Ok(())
        },
    );
}

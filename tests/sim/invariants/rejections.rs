//! INV-REJECT-1: a rejected command changes nothing, and nothing is skipped: it is on the dead-letter topic once, whole, with
//! its reason and its place. That it changes nothing shows where the promise is compared with the changelog.

use punctual::position::Partition;
use punctual::wire::dead_letter as names;

use crate::broker::partition::Data;
use crate::oracle::Oracle;
use crate::oracle::parts::text;
use crate::oracle::settle::ExpectedLetter;
use crate::sim::Violation;

pub(crate) fn check(oracle: &mut Oracle, letters: &[Data], mut expected: Vec<ExpectedLetter>) -> Result<(), Violation> {
    for letter in letters {
        oracle.counts.letters += 1;
        let place = place_of(letter);
        let Some(at) = expected.iter().position(|expected| Some((expected.partition, expected.offset)) == place) else {
            return Err(violation(format!("a letter that nobody expects: {letter:?}")));
        };
        let wanted = expected.remove(at);
        let kept = letter.headers.get(..wanted.original.headers.len());
        let is_right = text(&letter.headers, names::REASON) == Some(wanted.reason)
            && letter.key == wanted.original.key
            && letter.value == wanted.original.value
            && kept == Some(&wanted.original.headers[..]);
        if !is_right {
            return Err(violation(format!("{letter:?}, expected was {wanted:?}")));
        }
    }
    match expected.first() {
        None => Ok(()),
        Some(missing) => Err(violation(format!("no letter for {missing:?}"))),
    }
}

/// Returns where the original of a letter stands.
pub(crate) fn place_of(letter: &Data) -> Option<(Partition, i64)> {
    let partition = text(&letter.headers, names::PARTITION)?.parse().ok()?;
    Some((Partition(partition), text(&letter.headers, names::OFFSET)?.parse().ok()?))
}

fn violation(detail: String) -> Violation {
    Violation { id: "INV-REJECT-1", detail }
}

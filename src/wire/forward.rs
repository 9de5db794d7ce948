//! The mark of a command that was forwarded: the header `punctual-forwarded: PARTITION@OFFSET`, its place before.
//!
//! Owns the header's name and form. Never judges: whether a command may be forwarded again, or came already, is the task's.
//! Keeps: what is written is read back as the same place (INV-WIRE-2).

use bytes::Bytes;

use crate::position::{Offset, Partition};
use crate::timer::model::Header;

/// The name of the header.
const NAME: &str = "punctual-forwarded";

/// The place of a command before it was forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Its partition of the command topic.
    pub partition: Partition,
    /// Its offset there.
    pub offset: Offset,
}

/// Returns the header.
pub fn header(origin: Origin) -> Header {
    Header { key: NAME.to_owned(), value: Some(Bytes::from(format!("{}@{}", origin.partition, origin.offset))) }
}

/// Returns whether a command was forwarded.
pub fn is_forwarded(headers: &[Header]) -> bool {
    headers.iter().any(|header| header.key == NAME)
}

/// Returns the place that a forwarded command had before, unless the header is not ours.
pub fn origin(headers: &[Header]) -> Option<Origin> {
    let header = headers.iter().find(|header| header.key == NAME)?;
    let text = std::str::from_utf8(header.value.as_deref()?).ok()?;
    let (partition, offset) = text.split_once('@')?;
    let offset: i64 = offset.parse().ok()?;
    let origin = Origin { partition: Partition(partition.parse().ok()?), offset: Offset(offset) };
    // One form only, and an offset with a next one.
    (self::header(origin) == *header && (0..i64::MAX).contains(&offset)).then_some(origin)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_header_names_partition_and_offset() {
        let origin = Origin { partition: Partition(7), offset: Offset(42) };
        let value = Some(Bytes::from_static(b"7@42"));
        assert_eq!(header(origin), Header { key: "punctual-forwarded".to_owned(), value });
    }

    #[test]
    fn what_is_not_such_a_place_is_none() {
        for value in
            ["1", "", "@", "1@", "@1", "1@-1", "-1@1", "+1@1", "1@01", "1@9223372036854775807", "1@1@1", "1@1 "]
        {
            let header = Header { key: NAME.to_owned(), value: Some(Bytes::from(value)) };
            assert!(is_forwarded(std::slice::from_ref(&header)), "{value}");
            assert_eq!(origin(&[header]), None, "{value}");
        }
    }

    proptest! {
        #[test]
        fn a_place_comes_back_as_it_was(partition in any::<u32>(), offset in 0..i64::MAX) {
            let origin = Origin { partition: Partition(partition), offset: Offset(offset) };
            prop_assert_eq!(super::origin(&[header(origin)]), Some(origin));
        }
    }
}

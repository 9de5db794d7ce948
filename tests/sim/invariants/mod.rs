//! The invariants, one file each, with the ids of ARCHITECTURE.md.
//!
//! Owns nothing but the list. Each check returns the first violation that it finds.

pub(crate) mod answers;
pub(crate) mod changelog_folds;
pub(crate) mod claims;
pub(crate) mod cursor;
pub(crate) mod exactly_once;
pub(crate) mod expiry;
pub(crate) mod fairness;
pub(crate) mod fences;
pub(crate) mod forwards;
pub(crate) mod gate;
pub(crate) mod handlers;
pub(crate) mod liveness;
pub(crate) mod never_early;
pub(crate) mod paused;
pub(crate) mod positions;
pub(crate) mod recurring;
pub(crate) mod rejections;
pub(crate) mod remembered;
pub(crate) mod store_follows_log;
pub(crate) mod store_is_fold;
pub(crate) mod zombies;

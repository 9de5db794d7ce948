//! Mistakes that can be planted, one at a time, to see whether the simulator finds them.
//!
//! Owns the list, and the switch that the simulator sets. The places where a mistake would be made ask [`is_on`]. Never is a
//! mistake made unless the crate is built with the feature `planted`, which only tests do: elsewhere `is_on` is a constant.
//! Keeps: each is a violation of an invariant that some schedule shows; `docs/mutations.md` says which invariant caught it.

#[cfg(feature = "planted")]
use std::cell::Cell;

/// A mistake that somebody could make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bug {
    // The order of a transaction.
    /// The positions are sent before the records are delivered, so that records land unfenced.
    PositionsBeforeDrain,
    /// A transaction that fires carries no positions.
    FiringUnfenced,
    /// A transaction that does not fire carries no positions, a barrier's too.
    ArmingUnfenced,
    /// The first transaction after an assignment has an invalid position, which a client drops without a word.
    InvalidPositionAtFirst,
    /// A commit whose outcome is not known is taken for aborted.
    UnknownTakenForAborted,
    /// A commit whose outcome is not known is taken for committed.
    UnknownTakenForCommitted,
    /// The next transaction begins before the outcome of the last is known.
    NextBegunBeforeOutcome,
    /// A producer is used again although a request to end its transaction may still be under way.
    UnsoundProducerReused,

    // The end of a transaction in a task.
    /// The store is written before the transaction commits.
    StoreBeforeCommit,
    /// A flush writes the changes of the open transaction into the store.
    FlushWritesOpenChanges,
    /// The changes of an aborted transaction stay in the overlay.
    OverlayKeptOnAbort,
    /// The changes of a transaction whose outcome is not known stay in the overlay.
    OverlayKeptOnUnknown,
    /// The records of an aborted transaction are sent with the next one.
    RecordsKeptOnAbort,
    /// The position of an aborted transaction is kept, so that its commands are skipped.
    PositionKeptOnAbort,
    /// The gate that a command opened stays open although the command was aborted.
    GateKeptOpenOnAbort,
    /// The commands of an aborted transaction are not read again.
    RewindForgottenOnAbort,
    /// What was noted about the next wake is kept although the transaction aborted.
    WakesKeptOnAbort,
    /// The cursors that an aborted transaction moved stay where they are.
    CursorsKeptOnAbort,
    /// Commands that follow one that was dropped are taken before it is read again.
    RewindDueIgnored,
    /// The position of the commands is not in the changelog.
    MetaLeftOut,
    /// The position of the commands is in the changelog only if the state changes as well.
    MetaOnlyWithRows,
    /// No tombstone is written for a timer that has fired or was disarmed.
    TombstoneLeftOut,

    // Taking a partition over, and giving it back.
    /// A restore ends where the changelog can be read to at first, its last stable offset, instead of at the nonce.
    RestoreEndsEarly,
    /// Any barrier ends a restore, whatever its nonce.
    AnyBarrierEndsRestore,
    /// Commands are read from the group's position instead of the changelog's.
    PositionFromGroup,
    /// The generation counter is not restored, only what the live timers show of it.
    GenerationNotRestored,
    /// What is known of forwarded commands, so that one that comes twice is taken once, is forgotten by a restore.
    ForwardersNotRestored,
    /// A seal is forgotten by a restore.
    SealNotRestored,
    /// A store is used however old it is, though tombstones may be gone from the changelog.
    AgeCheckLeftOut,
    /// A flush takes the store for level up to now, though nothing proves that nobody else has written the changelog.
    FlushMakesYoung,
    /// A restore begins one offset behind the position of the store.
    RestoreBeginsLate,
    /// A restore passes over the tombstones of timers.
    TimerTombstoneNotRestored,
    /// A restore passes over the tombstones of runs.
    RunTombstoneNotRestored,
    /// Commands are read again from one offset before the restored position.
    RestoredPositionShort,
    /// Commands are read again from one offset behind the restored position.
    RestoredPositionBeyond,
    /// Timers fire as soon as the restore has ended, before the commands that stood there are applied.
    GateOpenAtOnce,
    /// Timers fire once the commands up to the last stable offset are applied, though open transactions hide others.
    GateAtStableOffset,
    /// Timers fire when the last command that stood there is still to be applied.
    GateOneShort,
    /// A partition that was revoked keeps its task.
    RevokedTaskKept,

    // What is looked at, and when.
    /// The cursor stays where it is when an earlier timer is armed.
    CursorNotRewound,
    /// The cursor passes a row that cannot be decoded.
    CursorPassesUndecodable,
    /// The cursor moves up to now, although the budget ended before.
    CursorPassesBudget,
    /// A timer that is armed does not move the next wake forward.
    WakeForgetsEarlierArm,
    /// Now is rounded up by a millisecond.
    EarlyByOneMillisecond,
    /// The wall clock is believed whatever it says.
    ClockGuardOff,
    /// The events of a kind that is held are dropped instead of held.
    HeldKindDrops,
    /// A kind that was held once stays held.
    HoldNeverEnds,
    /// Results that were held once stay held, so that nobody is answered any more.
    ResultsHoldNeverEnds,

    // What a command does, and a fire.
    /// A timer that fires is not removed.
    FiredRowKept,
    /// The outbox records of a fire are sent twice.
    OutboxTwice,
    /// `after` counts from our clock instead of the record's timestamp.
    AfterFromOurClock,
    /// A command that is rejected leaves no dead letter.
    LetterLeftOut,
    /// Whether a due is past is judged by our clock instead of the record's timestamp.
    PastDueFromOurClock,
    /// An arm that keeps replaces the armed timer.
    KeepReplaces,
    /// A timer that is replaced leaves its old row behind.
    ReplacedRowKept,
    /// A change of a run says that the store knew nothing of it.
    RunBeforeForgotten,
    /// A disarm of one generation removes any.
    DisarmIgnoresGeneration,
    /// Generations are counted per timer and begin anew after a disarm.
    GenerationPerTimer,
    /// A sweep removes timers that were armed after its command too.
    SweepTakesNewer,
    /// A timer of a run that was disarmed fires until the sweep has reached it.
    SweptFires,
    /// A command that strayed to another partition is applied there.
    StrayApplied,
    /// A command that strayed to another partition is passed over.
    StrayLeftOut,
    /// A command is forwarded under the time of forwarding, with its `after` unresolved.
    ForwardedAfresh,
    /// A disarm that finds nothing is not remembered, so that its arm, which comes behind it, makes a timer.
    StragglerArms,
    /// An arm that replaces passes over a remembered id, so that a copy of it fires once more.
    ReplacePassesRemembered,
    /// Remembered ids are forgotten by a restore.
    RememberedNotRestored,
    /// A timer that is paused stays where it is in the due order.
    PausedNotParked,
    /// A restore takes paused timers for timers that are not.
    PauseNotRestored,
    /// A resume for an instant that scans have passed leaves the cursor behind it.
    ResumeNotRewound,
    /// A pause of one generation pauses any.
    PauseIgnoresGeneration,
    /// A timer that recurs and was to fire while it was paused fires as it is resumed.
    MissedFiresOnResume,
    /// A remembered id is forgotten before its end, when an earlier one ends.
    ForgottenEarly,
    /// A lease is a millisecond too short.
    LeaseOneShort,
    /// A claimed timer is delivered again under the number that it had.
    AttemptNotCounted,
    /// A claimed timer is delivered once more than it may be.
    AttemptTooMany,
    /// A claimed timer is given up before its last delivery.
    AttemptTooFew,
    /// A timer fires however late it is, though its kind says how late it may.
    TooLateFires,
    /// A timer that its handler dates anew keeps its payload.
    DatedPayloadKept,
    /// What a handler does to other timers is left out.
    HandlerCommandsLeftOut,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 79] = [
        Self::PositionsBeforeDrain,
        Self::FiringUnfenced,
        Self::ArmingUnfenced,
        Self::InvalidPositionAtFirst,
        Self::UnknownTakenForAborted,
        Self::UnknownTakenForCommitted,
        Self::NextBegunBeforeOutcome,
        Self::UnsoundProducerReused,
        Self::StoreBeforeCommit,
        Self::FlushWritesOpenChanges,
        Self::OverlayKeptOnAbort,
        Self::OverlayKeptOnUnknown,
        Self::RecordsKeptOnAbort,
        Self::PositionKeptOnAbort,
        Self::GateKeptOpenOnAbort,
        Self::RewindForgottenOnAbort,
        Self::WakesKeptOnAbort,
        Self::CursorsKeptOnAbort,
        Self::RewindDueIgnored,
        Self::MetaLeftOut,
        Self::MetaOnlyWithRows,
        Self::TombstoneLeftOut,
        Self::RestoreEndsEarly,
        Self::AnyBarrierEndsRestore,
        Self::PositionFromGroup,
        Self::GenerationNotRestored,
        Self::ForwardersNotRestored,
        Self::SealNotRestored,
        Self::AgeCheckLeftOut,
        Self::FlushMakesYoung,
        Self::RestoreBeginsLate,
        Self::TimerTombstoneNotRestored,
        Self::RunTombstoneNotRestored,
        Self::RestoredPositionShort,
        Self::RestoredPositionBeyond,
        Self::GateOpenAtOnce,
        Self::GateAtStableOffset,
        Self::GateOneShort,
        Self::RevokedTaskKept,
        Self::CursorNotRewound,
        Self::CursorPassesUndecodable,
        Self::CursorPassesBudget,
        Self::WakeForgetsEarlierArm,
        Self::EarlyByOneMillisecond,
        Self::ClockGuardOff,
        Self::HeldKindDrops,
        Self::HoldNeverEnds,
        Self::ResultsHoldNeverEnds,
        Self::FiredRowKept,
        Self::OutboxTwice,
        Self::AfterFromOurClock,
        Self::LetterLeftOut,
        Self::PastDueFromOurClock,
        Self::KeepReplaces,
        Self::ReplacedRowKept,
        Self::RunBeforeForgotten,
        Self::DisarmIgnoresGeneration,
        Self::GenerationPerTimer,
        Self::SweepTakesNewer,
        Self::SweptFires,
        Self::StrayApplied,
        Self::StrayLeftOut,
        Self::ForwardedAfresh,
        Self::StragglerArms,
        Self::ReplacePassesRemembered,
        Self::RememberedNotRestored,
        Self::PausedNotParked,
        Self::PauseNotRestored,
        Self::ResumeNotRewound,
        Self::PauseIgnoresGeneration,
        Self::MissedFiresOnResume,
        Self::ForgottenEarly,
        Self::LeaseOneShort,
        Self::AttemptNotCounted,
        Self::AttemptTooMany,
        Self::AttemptTooFew,
        Self::TooLateFires,
        Self::DatedPayloadKept,
        Self::HandlerCommandsLeftOut,
    ];
}

/// Returns whether the mistake is to be made.
#[cfg(not(feature = "planted"))]
pub const fn is_on(_bug: Bug) -> bool {
    false
}

/// Returns whether the mistake is to be made on this thread.
#[cfg(feature = "planted")]
pub fn is_on(bug: Bug) -> bool {
    PLANTED.get() == Some(bug)
}

/// Plants a mistake on this thread in place of the one before, or none.
#[cfg(feature = "planted")]
pub fn plant(bug: Option<Bug>) {
    PLANTED.set(bug);
}

#[cfg(feature = "planted")]
thread_local! {
    static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
}

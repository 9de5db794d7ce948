//! Unit tests of the verdicts: each code that was met has a row.

use super::*;

fn call_error(code: Code) -> CallError {
    CallError { code, is_fatal: false, requires_abort: false, is_flush: false, detail: String::new() }
}

#[test]
fn a_topic_that_is_gone_forbidden_or_too_small_refuses() {
    for code in [
        Code::UnknownTopic,
        Code::UnknownPartition,
        Code::UnknownTopicOrPartition,
        Code::TopicAuthorizationFailed,
        Code::MessageSizeTooLarge,
        Code::MessageBatchTooLarge,
        Code::InvalidRecord,
    ] {
        assert_eq!(delivery_failure(code), DeliveryFailure::Refused, "{code:?}");
    }
}

#[test]
fn a_slow_or_absent_broker_refuses_nothing() {
    assert_eq!(delivery_failure(Code::MessageTimedOut), DeliveryFailure::Late);
    for code in [Code::BrokerTransportFailure, Code::NotEnoughReplicas, Code::KafkaStorageError, Code::Fenced] {
        assert_eq!(delivery_failure(code), DeliveryFailure::Other, "{code:?}");
    }
}

#[test]
fn records_that_go_with_the_transaction_do_not_count() {
    for code in [Code::PurgeQueue, Code::PurgeInflight, Code::InvalidDifferentRecord] {
        assert_eq!(delivery_failure(code), DeliveryFailure::Collateral, "{code:?}");
    }
}

#[test]
fn before_the_commit_only_a_fatal_error_leaves_the_outcome_open() {
    for code in [Code::IllegalGeneration, Code::UnknownMemberId, Code::OperationTimedOut, Code::ConcurrentTransactions]
    {
        assert_eq!(before_commit(&call_error(code)), Remedy::Abort, "{code:?}");
    }
    let fenced = CallError { is_fatal: true, ..call_error(Code::Fenced) };
    assert_eq!(before_commit(&fenced), Remedy::GiveUp);
}

#[test]
fn at_the_commit_nothing_is_guessed() {
    for code in [
        Code::OperationTimedOut,
        Code::BrokerTransportFailure,
        Code::Fenced,
        Code::Unknown,
        Code::CoordinatorLoadInProgress,
        Code::InvalidProducerIdMapping,
        Code::State,
    ] {
        assert_eq!(at_commit(&call_error(code)), Remedy::GiveUp, "{code:?}");
        let abortable = CallError { requires_abort: true, ..call_error(code) };
        assert_eq!(at_commit(&abortable), Remedy::GiveUp, "{code:?}, abortable");
    }
}

#[test]
fn an_undelivered_record_is_known_before_the_commit_is_sent() {
    let undelivered = CallError { requires_abort: true, ..call_error(Code::Inconsistent) };
    assert_eq!(at_commit(&undelivered), Remedy::Abort);
    let fatal = CallError { is_fatal: true, ..undelivered };
    assert_eq!(at_commit(&fatal), Remedy::GiveUp);
}

#[test]
fn a_commit_that_could_not_flush_is_called_again() {
    let error = CallError::of(&KafkaError::Flush(Code::OperationTimedOut));
    assert_eq!(at_commit(&error), Remedy::Again);
}

#[test]
fn errors_of_a_former_member_are_known() {
    for code in [Code::IllegalGeneration, Code::UnknownMemberId, Code::FencedInstanceId, Code::RebalanceInProgress] {
        assert!(is_fenced_member(code), "{code:?}");
    }
    assert!(!is_fenced_member(Code::GroupAuthorizationFailed), "no rights is another matter");
}

#[test]
fn only_a_coordinator_without_a_transaction_has_nothing_to_abort() {
    assert!(nothing_was_open(&call_error(Code::InvalidTransactionalState)), "it says so");
    for code in [Code::Fenced, Code::InvalidProducerIdMapping, Code::OperationTimedOut, Code::State] {
        assert!(!nothing_was_open(&call_error(code)), "{code:?}");
    }
}

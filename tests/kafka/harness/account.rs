//! The account of a scenario: what was armed against what was fired.
//!
//! Owns the expectation, which is written down as commands are sent and never learned from the service. Keeps:
//! armed = fired + pending + disarmed; nothing fires twice, early, or unasked.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use punctual::time::Timestamp;

use super::reader::{Reader, Received};
use super::{now, wait};

/// How long to keep reading when everything has come: a second fire would come right behind.
const SETTLE: Duration = Duration::from_millis(1_500);
const EXAMPLES: usize = 10;

/// What was asked for, by identity (`tenant/run/timer_id`).
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    armed: BTreeMap<String, Timestamp>,
    disarmed: BTreeSet<String>,
}

/// What became of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    armed: usize,
    fired: usize,
    disarmed: usize,
    pending: usize,
    /// Due for long, and not fired.
    missing: Vec<String>,
    duplicated: Vec<String>,
    unasked: Vec<String>,
    early: Vec<String>,
}

impl Account {
    /// Notes that a timer was armed, or replaced by one with another due.
    pub(crate) fn armed(&mut self, identity: &str, due: Timestamp) {
        self.armed.insert(identity.to_owned(), due);
        self.disarmed.remove(identity);
    }

    /// Notes that a timer must not fire.
    pub(crate) fn disarmed(&mut self, identity: &str) {
        assert!(self.armed.contains_key(identity), "only an armed timer counts as disarmed: {identity}");
        self.disarmed.insert(identity.to_owned());
    }

    /// Returns how many timers are still to fire after `instant`.
    pub(crate) fn due_after(&self, instant: Timestamp) -> usize {
        self.armed.iter().filter(|(identity, due)| **due > instant && !self.disarmed.contains(*identity)).count()
    }

    /// Waits until every timer that is due at `until` has fired, reads on for a moment, and checks the account.
    pub(crate) fn settle(&self, fired: &Reader, until: Timestamp, bound: Duration) -> Report {
        let expected = self.armed.len() - self.disarmed.len() - self.due_after(until);
        let deadline = now().checked_add(bound).unwrap();
        // On a time-out the report says more than the wait could.
        wait::until_true(bound * 2, "the account is settled or out of time", || {
            fired.count() >= expected || now() > deadline
        });
        let end = now().checked_add(SETTLE).unwrap();
        wait::until_true(SETTLE * 2, "the time to settle passes", || now() > end);
        let report = self.judge(&fired.records(), until);
        assert!(report.is_exact(), "the account is wrong:\n{report}");
        report
    }

    /// Compares what was asked for with what was read; what is due after `until` is pending.
    pub(crate) fn judge(&self, records: &[Received], until: Timestamp) -> Report {
        let mut report = Report { armed: self.armed.len(), disarmed: self.disarmed.len(), ..Report::default() };
        let mut seen = BTreeSet::new();
        for record in records {
            let identity = record.header("ce_subject").unwrap_or("(no ce_subject)").to_owned();
            match self.armed.get(&identity) {
                _ if !seen.insert(identity.clone()) => report.duplicated.push(describe(record)),
                None => report.unasked.push(describe(record)),
                Some(_) if self.disarmed.contains(&identity) => report.unasked.push(describe(record)),
                Some(due) if is_early(record, *due) => report.early.push(describe(record)),
                Some(_) => report.fired += 1,
            }
        }
        let silent = self.armed.iter().filter(|(identity, _)| !seen.contains(*identity));
        for (identity, due) in silent.filter(|(identity, _)| !self.disarmed.contains(*identity)) {
            if *due > until {
                report.pending += 1;
            } else {
                report.missing.push(format!("{identity} due {due}"));
            }
        }
        report
    }
}

impl Report {
    /// Returns whether armed = fired + pending + disarmed, and nothing fired twice, early or unasked.
    pub(crate) fn is_exact(&self) -> bool {
        let faults = [&self.missing, &self.duplicated, &self.unasked, &self.early];
        faults.iter().all(|fault| fault.is_empty()) && self.armed == self.fired + self.pending + self.disarmed
    }

    /// Returns how many timers fired as they should.
    pub(crate) fn fired(&self) -> usize {
        self.fired
    }

    /// Returns how many timers are still to fire.
    pub(crate) fn pending(&self) -> usize {
        self.pending
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { armed, fired, disarmed, pending, .. } = self;
        write!(f, "armed {armed}, fired {fired}, pending {pending}, disarmed {disarmed}")?;
        let faults = [
            ("missing", &self.missing),
            ("duplicated", &self.duplicated),
            ("unasked", &self.unasked),
            ("early", &self.early),
        ];
        for (fault, examples) in faults {
            write!(f, ", {fault} {}", examples.len())?;
            examples.iter().take(EXAMPLES).try_for_each(|example| write!(f, "\n  {fault}: {example}"))?;
        }
        Ok(())
    }
}

/// Returns whether the event says that it fired before its due, says another due, or came before its due.
fn is_early(record: &Received, due: Timestamp) -> bool {
    let instant = |name| record.header(name).and_then(|text| Timestamp::parse(text).ok());
    let (said_due, said_fired) = (instant("punctual-due"), instant("punctual-fired"));
    said_due != Some(due) || said_fired.is_none_or(|fired| fired < due) || record.at < due
}

fn describe(record: &Received) -> String {
    let header = |name| record.header(name).unwrap_or("(absent)");
    format!(
        "{} due {} fired {} received {} at {}/{}@{}",
        header("ce_id"),
        header("punctual-due"),
        header("punctual-fired"),
        record.at,
        record.topic,
        record.partition,
        record.offset
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUE: Timestamp = Timestamp::from_millis(10_000);

    fn event(identity: &str, offset: i64, fired: i64) -> Received {
        let header = |name: &str, value: String| (name.to_owned(), Some(value.into_bytes()));
        let instant = |millis| Timestamp::from_millis(millis).to_string();
        Received {
            topic: "fired".to_owned(),
            partition: 0,
            offset,
            key: None,
            value: None,
            headers: vec![
                header("ce_subject", identity.to_owned()),
                header("punctual-due", DUE.to_string()),
                header("punctual-fired", instant(fired)),
            ],
            at: Timestamp::from_millis(fired + 5),
        }
    }

    fn account(identities: &[&str]) -> Account {
        let mut account = Account::default();
        for identity in identities {
            account.armed(identity, DUE);
        }
        account
    }

    #[test]
    fn an_exact_account_is_exact() {
        let mut account = account(&["a", "b", "c"]);
        account.disarmed("b");
        account.armed("d", Timestamp::from_millis(99_000));
        let report = account.judge(&[event("a", 0, 10_000), event("c", 1, 10_020)], Timestamp::from_millis(20_000));
        assert!(report.is_exact(), "{report}");
        assert_eq!((report.fired(), report.pending()), (2, 1));
    }

    #[test]
    fn each_fault_is_found() {
        let mut account = account(&["a", "b"]);
        account.disarmed("b");
        let until = Timestamp::from_millis(20_000);
        let faults = |records: &[Received]| account.judge(records, until).to_string();
        let exact = "armed 2, fired 1, pending 0, disarmed 1, missing 0, duplicated 0, unasked 0, early 0";
        assert_eq!(faults(&[event("a", 0, 10_000)]), exact);
        assert!(faults(&[]).contains("missing 1\n  missing: a due"), "{}", faults(&[]));
        let found = |records: &[Received], fault: &str| {
            let report = account.judge(records, until);
            assert!(!report.is_exact() && report.to_string().contains(fault), "{fault} is missing in {report}");
        };
        found(&[event("a", 0, 10_000), event("a", 1, 10_000)], "duplicated 1");
        found(&[event("a", 0, 9_999)], "early 1");
        found(&[event("a", 0, 10_000), event("b", 1, 10_000)], "unasked 1");
        found(&[event("a", 0, 10_000), event("x", 1, 10_000)], "unasked 1");
    }
}

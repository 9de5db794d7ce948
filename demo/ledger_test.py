"""Tests of the demo's account: a check that cannot fail would be a defect."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from ledger import Account, Event, Phases, event_of, percentile  # noqa: E402


def event(identity, due=100.0, fired=100.0, received=100.02, partition=0):
    return Event(identity, ("fired", partition), due, fired, received)


class Accounts(unittest.TestCase):
    def test_an_exact_account_has_no_faults(self):
        account = Account({"a": 100.0, "b": 100.0}, {"b"}, [event("a")])
        self.assertEqual(account.faults(), [])
        self.assertEqual((account.armed, account.fired, account.disarmed), (2, 1, 1))

    def test_each_fault_is_found(self):
        armed = {"a": 100.0, "b": 100.0}
        for word, events in (
            ("lost: 1", []),
            ("duplicated: 1", [event("a"), event("a")]),
            ("early: 1", [event("a", fired=99.999)]),
            ("early: 1", [event("a", received=99.999)]),
            ("early: 1", [event("a", due=99.0)]),
            ("unasked: 1, such as b", [event("a"), event("b")]),
            ("unasked: 1, such as c", [event("a"), event("c")]),
        ):
            with self.subTest(word):
                self.assertIn(word, " ".join(Account(armed, {"b"}, events).faults()))


class PhasesOfATakeOver(unittest.TestCase):
    def test_events_are_told_apart_by_their_due(self):
        events = [
            event("a", 90, 90, 90.01),
            event("b", 102, 107, 107.0),
            event("c", 103, 103, 103.01, partition=1),
            event("d", 108, 108, 108.02),
        ]
        phases = Phases(events, killed_at=100)
        identities = [[one.identity for one in phase] for phase in (phases.before, phases.during, phases.after)]
        self.assertEqual(identities, [["a"], ["b", "c"], ["d"]])
        self.assertEqual(phases.took_over_at, 107.0)

    def test_a_late_event_after_the_take_over_does_not_lengthen_it(self):
        events = [event("a", 102, 107, 107.0), event("b", 108, 108, 108.01), event("c", 110, 112, 112)]
        self.assertEqual(Phases(events, killed_at=100).took_over_at, 107.0)

    def test_without_a_partition_that_waits_there_was_no_take_over(self):
        self.assertEqual(Phases([event("a", 102, 102, 102.01)], killed_at=100).took_over_at, 100)

    def test_percentiles_are_of_the_values(self):
        self.assertEqual(percentile([3, 1, 2], 0.5), 2)
        self.assertEqual(percentile([1], 0.99), 1)


class Records(unittest.TestCase):
    def test_headers_are_read_as_kcat_prints_them(self):
        headers = ["ce_subject", "t/r/i", "ce_id", "t/r/i/1", "punctual-due", "2026-12-01T09:00:00.250Z"]
        headers += ["punctual-fired", "2026-12-01T09:00:00.251Z"]
        read = event_of({"topic": "fired", "partition": 3, "headers": headers}, 5.0)
        self.assertEqual((read.identity, read.place, round(read.fired - read.due, 3)), ("t/r/i", ("fired", 3), 0.001))


if __name__ == "__main__":
    unittest.main()

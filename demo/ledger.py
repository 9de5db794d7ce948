"""The account of the demo: what was armed against what a read_committed consumer saw.

Owns a plain Kafka client (kcat) that reads the fired events, and the sums. Knows nothing of punctual but the names of the
headers. Keeps: what was armed is written down by the caller, before the service has heard of it.
"""

import datetime
import itertools
import json
import subprocess
import threading
import time

# A partition whose events come later than this, from the kill on, waits for its new owner.
HELD_UP_SECONDS = 1.0


class Event:
    """A fired event and the time of its receipt, in seconds since the epoch."""

    def __init__(self, identity, place, due, fired, received):
        self.identity = identity
        # Topic and partition.
        self.place = place
        self.due = due
        self.fired = fired
        self.received = received

    @property
    def lateness(self):
        return self.received - self.due


class Reader:
    """Reads topics with kcat, as any consumer would that asks for committed records only."""

    def __init__(self, address, topics):
        self.events = []
        self._lock = threading.Lock()
        self._processes = [self._start(address, topic) for topic in topics]

    def _start(self, address, topic):
        command = ["kcat", "-C", "-b", address, "-t", topic, "-o", "beginning", "-J", "-u", "-q"]
        command += ["-X", "isolation.level=read_committed", "-X", "fetch.wait.max.ms=50"]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self._read, args=(process.stdout,), daemon=True).start()
        return process

    def _read(self, lines):
        for line in lines:
            received = time.time()
            with self._lock:
                self.events.append(event_of(json.loads(line), received))

    def count(self):
        with self._lock:
            return len(self.events)

    def snapshot(self):
        with self._lock:
            return list(self.events)

    def is_alive(self):
        return all(process.poll() is None for process in self._processes)

    def stop(self):
        for process in self._processes:
            process.kill()
            process.wait()


def event_of(record, received):
    """Reads a record as kcat prints it: headers are a flat list of names and values."""
    headers = dict(zip(record["headers"][::2], record["headers"][1::2]))
    due, fired = instant(headers["punctual-due"]), instant(headers["punctual-fired"])
    return Event(headers["ce_subject"], (record["topic"], record["partition"]), due, fired, received)


def instant(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class Account:
    """The sums. `armed` maps an identity to its due; `disarmed` holds those that must not fire."""

    def __init__(self, armed, disarmed, events):
        expected = set(armed) - set(disarmed)
        fired = {event.identity for event in events}
        self.armed = len(armed)
        self.disarmed = len(disarmed)
        self.fired = len(fired & expected)
        self.lost = sorted(expected - fired)
        self.unasked = sorted(fired - expected)
        self.duplicated = sorted(repeated(events))
        self.early = sorted(event.identity for event in events if is_early(event, armed.get(event.identity)))

    def faults(self):
        """Returns a sentence for each figure that is wrong."""
        found = []
        for name in ("lost", "duplicated", "early", "unasked"):
            examples = getattr(self, name)
            if examples:
                found.append(f"{name}: {len(examples)}, such as {', '.join(examples[:3])}")
        if self.armed != self.fired + self.disarmed:
            found.append(f"armed {self.armed} is not fired {self.fired} + disarmed {self.disarmed}")
        return found


def repeated(events):
    seen = set()
    for event in events:
        if event.identity in seen:
            yield event.identity
        seen.add(event.identity)


def is_early(event, due):
    """Returns whether it fired or came before its due, or says another due than it was armed with."""
    said_otherwise = due is not None and abs(event.due - due) > 0.0005
    return said_otherwise or event.fired < event.due or event.received < event.due


class Phases:
    """Events by their due: before the kill, during the take-over, after it."""

    def __init__(self, events, killed_at):
        self.took_over_at = max([killed_at, *held_up_until(events, killed_at)])
        self.before = [event for event in events if event.due < killed_at]
        self.during = [event for event in events if killed_at <= event.due < self.took_over_at]
        self.after = [event for event in events if event.due >= self.took_over_at]


def held_up_until(events, killed_at):
    """Yields, for each partition that lost its owner, when the last of the events came that waited for the new one."""
    by_place = {}
    for event in sorted(events, key=lambda event: event.due):
        # What was due close to the kill may have been under way already.
        if event.due >= killed_at + HELD_UP_SECONDS:
            by_place.setdefault(event.place, []).append(event)
    for of_place in by_place.values():
        waited = list(itertools.takewhile(lambda event: event.lateness > HELD_UP_SECONDS, of_place))
        if waited:
            yield max(event.received for event in waited)


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]

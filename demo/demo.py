"""The demo: some hundreds of timers on a real Kafka, one of two processes killed half-way, and the account.

Owns every process that it starts and stops them all, however it ends, unless KEEP=1 asks to leave them. Timers are armed
through the public topics: from punctual's command line and from kcat, which links nothing of punctual.
Fails, with the reason, when a figure is wrong.
"""

import concurrent.futures
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

from ledger import Account, Phases, Reader, percentile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PREFIX = "demo"
TIMERS_FROM_KCAT = 600
TIMERS_FROM_CLI = 24
DISARMED = 40
SESSION_SECONDS = 6
# Counted from the arms of kcat: when the first timer is due, when one process is killed, and when the last timer is due.
FIRST_DUE_SECONDS, KILL_SECONDS, LAST_DUE_SECONDS = 4, 14, 44
READY_SECONDS = 60
# What is wrong beyond doubt, on a slow machine too.
LATENESS_SECONDS_MAX = 1.0
# A process that dies inside a transaction leaves it open for at most transaction.timeout.ms, and what is behind it hidden.
TRANSACTION_SECONDS = 10
TAKE_OVER_SECONDS_MAX = SESSION_SECONDS + TRANSACTION_SECONDS + 8
# The broker ends it at once then, not up to ten seconds later. One that is ever restarted must not; see scripts/kafka.
QUICK_ABORT = "transaction.abort.timed.out.transaction.cleanup.interval.ms=1000\n"

BOLD, RED, GREEN, PLAIN = ("\033[1m", "\033[31m", "\033[32m", "\033[0m") if sys.stdout.isatty() else ("",) * 4
STARTED_AT = time.time()


class Wrong(Exception):
    """The demo cannot go on, or a figure is wrong."""


def say(text):
    print(f"{time.time() - STARTED_AT:6.1f} s  {text}", flush=True)


class Processes:
    """What the demo has running: the broker, and the instances by their names."""

    def __init__(self, directory):
        self.directory = directory
        self.instances = {}
        self.address = None

    def start_broker(self):
        script, directory = ROOT / "scripts/kafka", self.directory / "kafka"
        subprocess.run([script, "configure", directory], check=True)
        with open(directory / "server.properties", "a", encoding="utf-8") as properties:
            properties.write(QUICK_ABORT)
        result = subprocess.run([script, "start", directory], capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise Wrong(f"Kafka did not start:\n{result.stderr}")
        self.address = result.stdout.strip()

    def start_instance(self, name, port):
        log = open(self.directory / f"{name}.log", "ab")
        command = [self.directory / "punctual", "serve", "--config", self.directory / "punctual.yaml"]
        command += ["--set", f"instance={name}", "--set", f"state_dir={self.directory / name}"]
        command += ["--set", f"admin.listen=127.0.0.1:{port}"]
        # A session of its own: ctrl-c reaches the demo alone, which then stops everything in order.
        self.instances[name] = (
            subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True), port
        )
        self._write_pids()

    def wait_until_ready(self, name):
        process, port = self.instances[name]
        deadline = time.time() + READY_SECONDS
        while not is_ready(port):
            if process.poll() is not None or time.time() > deadline:
                log = (self.directory / f"{name}.log").read_text(errors="replace").splitlines()
                raise Wrong(f"{name} is not ready:\n" + "\n".join(log[-15:]))
            time.sleep(0.05)

    def kill_instance(self, name):
        process, _ = self.instances.pop(name)
        process.kill()
        process.wait()
        self._write_pids()

    def stop(self):
        stop_left_over(self.directory)

    def _write_pids(self):
        pids = [str(process.pid) for process, _ in self.instances.values()]
        (self.directory / "pids").write_text("\n".join(pids))


def is_ready(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=2) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


def stop_left_over(directory):
    """Stops what runs in the directory, by the ids that were written down when it was started."""
    pids_file = directory / "pids"
    pids = [int(pid) for pid in pids_file.read_text().split()] if pids_file.exists() else []
    pids = [pid for pid in pids if is_ours(pid, directory)]
    for pid in pids:
        os.kill(pid, signal.SIGTERM)
    deadline = time.time() + 20
    while any(is_ours(pid, directory) for pid in pids):
        if time.time() > deadline:
            for pid in filter(lambda pid: is_ours(pid, directory), pids):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    pids_file.unlink(missing_ok=True)
    if (directory / "kafka/pid").exists():
        subprocess.run([ROOT / "scripts/kafka", "stop", directory / "kafka"], check=False)


def is_ours(pid, directory):
    """Returns whether the process still runs and is the demo's: ids are used again."""
    try:
        waited, _ = os.waitpid(pid, os.WNOHANG)
        if waited == pid:
            return False
    except ChildProcessError:
        pass
    try:
        return os.fsencode(directory) in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def free_ports(count):
    """Returns free ports below those that Linux gives to outgoing connections."""
    found = []
    for port in random.sample(range(10000, 12000), 500):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise Wrong("no free ports")


def write_config(directory, address):
    config = {
        "kafka": {"bootstrap_servers": address, "group": PREFIX, "session_timeout": f"{SESSION_SECONDS}s"},
        "topics": {
            "arm": f"{PREFIX}.arm",
            "changelog": f"{PREFIX}.changelog",
            "dead_letter": f"{PREFIX}.dead-letter",
            "results": f"{PREFIX}.results",
            "fired": PREFIX + ".fired.{kind}",
            "outbox": PREFIX + ".outbox.{kind}",
            "partitions": 6,
            "replication_factor": 1,
        },
        "kinds": [{"number": 1, "name": "email"}, {"number": 2, "name": "payment"}],
        "store": {"memory_budget": "64MiB"},
    }
    # JSON is YAML too.
    (directory / "punctual.yaml").write_text(json.dumps(config, indent=2) + "\n")


def punctual(directory, *arguments):
    command = [directory / "punctual", *arguments, "--config", directory / "punctual.yaml"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise Wrong(f"punctual {' '.join(map(str, arguments))} failed:\n{result.stdout}{result.stderr}")
    return result.stdout


def rfc3339(seconds):
    whole, millis = divmod(round(seconds * 1000), 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole)) + f".{millis:03}Z"


class Timers:
    """What the demo arms, and when it is due: the side of the account that punctual has no part in."""

    def __init__(self):
        self.armed = {}
        self.disarmed = set()

    def arm(self, run, timer_id, due):
        due = round(due, 3)
        self.armed[f"default/{run}/{timer_id}"] = due
        return rfc3339(due)


def spread(count, since):
    """Returns dues all over the time of the demo."""
    window = LAST_DUE_SECONDS - FIRST_DUE_SECONDS
    return [since + FIRST_DUE_SECONDS + window * (number + random.random()) / count for number in range(count)]


def arm_with_kcat(address, timers, since):
    lines = []
    for number, due in enumerate(spread(TIMERS_FROM_KCAT, since)):
        run = f"order-{number}"
        kind = ("email", "payment")[number % 2]
        command = {"run": run, "arm": {"timer_id": "reminder", "kind": kind, "at": timers.arm(run, "reminder", due), "payload": "pay now"}}
        lines.append(f"default/{run}\t{json.dumps(command)}\n")
    # A timer that is to be disarmed has a due of its own, so that the account shows a disarm that came in vain.
    for number in range(DISARMED):
        run, due = f"paid-{number}", since + LAST_DUE_SECONDS
        command = {"run": run, "arm": {"timer_id": "reminder", "kind": "email", "at": timers.arm(run, "reminder", due)}}
        lines.append(f"default/{run}\t{json.dumps(command)}\n")
        lines.append(f"default/{run}\t{json.dumps({'run': run, 'disarm': {'timer_id': 'reminder'}})}\n")
        timers.disarmed.add(f"default/{run}/reminder")
    # The partitioner is Java's; librdkafka's own would make strays of the commands.
    command = ["kcat", "-P", "-b", address, "-t", f"{PREFIX}.arm", "-K", "\t", "-H", "content-type=application/json"]
    command += ["-X", "partitioner=murmur2_random", "-X", "enable.idempotence=true"]
    result = subprocess.run(command, input="".join(lines), capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise Wrong(f"kcat could not send the commands:\n{result.stderr}")


def arm_with_cli(directory, timers, since):
    def arm(number_and_due):
        number, due = number_and_due
        run = f"cart-{number}"
        at = timers.arm(run, "abandoned", due)
        punctual(directory, "arm", run, "abandoned", "--kind", "email", "--at", at, "--payload", "come back", "--wait")

    with concurrent.futures.ThreadPoolExecutor(max_workers=4) as pool:
        list(pool.map(arm, enumerate(spread(TIMERS_FROM_CLI, since))))


def wait_until(instant):
    time.sleep(max(0.0, instant - time.time()))


def wait_for_events(reader, count, until):
    while reader.count() < count and time.time() < until:
        if not reader.is_alive():
            raise Wrong("the consumer ended")
        time.sleep(0.05)
    # A second fire would come right behind.
    time.sleep(2)


def show(account, phases, killed_at):
    print(f"\n{BOLD}The account{PLAIN}, over a read_committed consumer")
    for name, value in (("armed", account.armed), ("fired", account.fired), ("disarmed", account.disarmed)):
        print(f"  {name:<11}{value:>6}")
    for name in ("lost", "duplicated", "early"):
        value = len(getattr(account, name))
        print(f"  {name:<11}{RED if value else GREEN}{value:>6}{PLAIN}")
    print(f"\n{BOLD}Lateness{PLAIN}, from the due to the consumer's receipt, in milliseconds")
    print(f"  {'':<34}{'timers':>7}{'p50':>8}{'p99':>8}")
    took = phases.took_over_at - killed_at
    rows = (
        ("before the kill", phases.before),
        (f"during the take-over ({took:.1f} s)", phases.during),
        ("after it", phases.after),
    )
    for name, events in rows:
        lateness = [event.lateness * 1000 for event in events]
        figures = [f"{percentile(lateness, share):.0f}" if lateness else "-" for share in (0.5, 0.99)]
        print(f"  {name:<34}{len(events):>7}{figures[0]:>8}{figures[1]:>8}")
    print(f"  A crashed process keeps its partitions for the session time-out, {SESSION_SECONDS} s; one that dies inside a")
    print(f"  transaction hides what is behind it for up to {TRANSACTION_SECONDS} s, counted from the crash too.\n", flush=True)


def faults_of(account, phases, killed_at):
    found = account.faults()
    for name, events in (("before the kill", phases.before), ("after the take-over", phases.after)):
        if not events:
            found.append(f"no timer was due {name}")
        elif percentile([event.lateness for event in events], 0.5) > LATENESS_SECONDS_MAX:
            found.append(f"half of the timers {name} came more than {LATENESS_SECONDS_MAX} s late")
    took = phases.took_over_at - killed_at
    if not 0 < took <= TAKE_OVER_SECONDS_MAX:
        found.append(f"the take-over lasted {took:.1f} s, which should be above 0 and at most {TAKE_OVER_SECONDS_MAX} s")
    return found


def prepare(directory):
    stop_left_over(directory)
    new = directory / "punctual.new"
    for entry in directory.iterdir():
        if entry != new:
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    new.rename(directory / "punctual")


def play(directory, processes):
    say("starting Kafka")
    processes.start_broker()
    address = processes.address
    write_config(directory, address)
    say(f"Kafka answers at {address}; creating the topics")
    punctual(directory, "topics", "create")
    ports = dict(zip(("punctual-0", "punctual-1"), free_ports(2)))
    for name, port in ports.items():
        processes.start_instance(name, port)
    for name in ports:
        processes.wait_until_ready(name)
    say("two processes share the partitions; arming timers")
    timers = Timers()
    reader = Reader(address, [f"{PREFIX}.fired.email", f"{PREFIX}.fired.payment"])
    try:
        # Each call of the command line waits for its answer, which takes a while; kcat sends all at once.
        arm_with_cli(directory, timers, since=time.time() + 4)
        since = time.time()
        arm_with_kcat(address, timers, since)
        say(f"{TIMERS_FROM_CLI} timers armed from the command line, {TIMERS_FROM_KCAT + DISARMED} with kcat, {DISARMED} of them disarmed")
        wait_until(since + KILL_SECONDS)
        killed_at = time.time()
        processes.kill_instance("punctual-0")
        say(f"{BOLD}killed punctual-0 with -9{PLAIN}; {reader.count()} timers have fired so far")
        wait_until(since + LAST_DUE_SECONDS)
        expected = len(timers.armed) - len(timers.disarmed)
        wait_for_events(reader, expected, until=since + LAST_DUE_SECONDS + TAKE_OVER_SECONDS_MAX)
        events = reader.snapshot()
    finally:
        reader.stop()
    account, phases = Account(timers.armed, timers.disarmed, events), Phases(events, killed_at)
    show(account, phases, killed_at)
    found = faults_of(account, phases, killed_at)
    if found:
        raise Wrong("a figure is wrong:\n  " + "\n  ".join(found))
    return ports


def keep(directory, processes, ports):
    processes.start_instance("punctual-0", ports["punctual-0"])
    processes.wait_until_ready("punctual-0")
    config = f"--config {directory / 'punctual.yaml'}"
    print(f"""{BOLD}Left running{PLAIN}: Kafka at {processes.address}, and two processes. In one shell:
  {directory}/punctual watch {config}
and in another:
  {directory}/punctual arm order-1 hello --kind email --after PT5S --payload hello --wait {config}
  echo 'default/order-2|{{"run":"order-2","arm":{{"timer_id":"t","kind":"email","after":"PT5S","payload":"hi"}}}}' |
    kcat -P -b {processes.address} -t {PREFIX}.arm -K '|' -X partitioner=murmur2_random
  curl localhost:{ports['punctual-0']}/metrics
Logs and state are in {directory}. To stop it all: demo/run stop""")


def run(directory):
    directory.mkdir(exist_ok=True)
    prepare(directory)
    processes = Processes(directory)
    keeps = False
    try:
        ports = play(directory, processes)
        if os.environ.get("KEEP", "0") not in ("", "0"):
            keep(directory, processes, ports)
            keeps = True
    except Wrong as wrong:
        print(f"{RED}FAILED{PLAIN}: {wrong}\nLogs are in {directory}.", file=sys.stderr)
        return 1
    finally:
        if not keeps:
            processes.stop()
    end = "everything is left running" if keeps else "everything is stopped"
    say(f"{GREEN}nothing lost, nothing twice, nothing early{PLAIN}; {end}")
    return 0


def main():
    # So that `finally` runs when the demo is asked to stop.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGHUP, lambda *_: sys.exit(129))
    verb, directory = sys.argv[1], pathlib.Path(sys.argv[2])
    if verb == "stop":
        stop_left_over(directory)
        return 0
    try:
        return run(directory)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())

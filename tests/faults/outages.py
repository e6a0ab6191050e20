"""Outages: a queue on a server of its own, to be harmed, and when each thread of its processes is back."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha1
from pathlib import Path
from typing import Any

from redis.exceptions import RedisError

from priqueue.clock import monotonic_s
from priqueue.coordinator.scripts import TURN, source
from tests.faults.checker import produce
from tests.faults.fleet import Process, children, start_workers
from tests.support.processes import Live
from tests.support.servers import Server
from tests.support.waiting import until

Report = Callable[..., None]
BACK_WITHIN_S = 2.0
#: of a worker, a ticker and a sweeper: what each of their threads does again and again
WORKER = {"claim", "beat", "listen"}
THREADS = WORKER | {"promote", "listen for due", "reclaim"}
#: a worker without a free slot does not listen
THREADS_UNDER_LOAD = THREADS - {"listen"}
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
#: what the options of ``Live`` make faster than what is shipped
SHIPPED = {"HEARTBEAT_S": 5, "SWEEP_S": 1, "TICK_S": 1, "SOCKET_TIMEOUT_S": 2, "PULL_TIMEOUT_S": 5}


@contextmanager
def harmed(folder: Path, config: dict[str, str] | None = None, **options: Any) -> Iterator[tuple[Server, Live]]:
    """Give a server of its own and a queue on it; all processes end with the block."""
    with Server(folder / "server", config) as server:
        live = Live(server.port, folder, **options)
        live.environment["DJANGO_SETTINGS_MODULE"] = "tests.faults.settings"
        try:
            yield server, live
        finally:
            live.close()


def start_all(live: Live, workers: int = 1, concurrency: int = 4) -> list[Process]:
    """Start workers, a ticker and a sweeper, and wait until all of them run."""
    others = [live.start("runticker"), live.start("runsweeper")]
    started = start_workers(live, workers, "--concurrency", str(concurrency))
    live.until(lambda: all("running" in live.log(process) for process in others))
    return [*started, *others]


@dataclass
class Ear:
    """Hears what a server is asked from a moment on, and when each thread was first heard."""

    server: Server
    since_s: float = 0
    #: what a thread does → seconds until it was heard
    heard: dict[str, float] = field(default_factory=dict)
    #: what a thread does → the addresses it came from
    addresses: dict[str, set[str]] = field(default_factory=dict)

    def back_after(self, live: Live, threads: set[str], then: Callable[[], None]) -> dict[str, float]:
        """Return after how many seconds from now each thread was heard, from a connection that is open still."""
        self.heard, self.addresses, self.since_s = {}, {}, monotonic_s()
        then()
        with self.server.client() as client:

            def are_back() -> bool:
                open_now = {each["addr"] for each in client.client_list()}
                return all(self.addresses.get(what, set()) & open_now for what in threads)

            live.until(are_back, 15)
        return {what: self.heard[what] for what in threads}

    def hear(self, at_s: float, command: str, address: str) -> None:
        """Note one command."""
        what = _what(command)
        if what:
            self.heard.setdefault(what, at_s - self.since_s)
            self.addresses.setdefault(what, set()).add(address)


def sha_of(script: str) -> str:
    """Return how a server is asked to run one of the scripts."""
    return sha1(source(script, True).encode()).hexdigest()


_SCRIPTS = {sha_of(script): script for script in ("claim", "beat", "promote", "reclaim")} | {sha_of(TURN): "claim"}


def _what(command: str) -> str:
    words = command.split(" ", 3)
    if words[0] == "EVALSHA":
        return _SCRIPTS.get(words[1], "")
    if words[0] == "BLPOP":
        return "listen for due" if "wake:ticker" in command else "listen"
    return ""


@contextmanager
def listening(server: Server) -> Iterator[Ear]:
    """Hear what a server is asked inside the block, in a thread of its own."""
    ear = Ear(server)
    with server.client(30) as client, client.monitor() as monitor:

        def hear() -> None:
            try:
                for line in monitor.listen():
                    ear.hear(monotonic_s(), line["command"], f"{line['client_address']}:{line['client_port']}")
            except (RedisError, ValueError, AttributeError, OSError):
                pass  # the server was killed, or this was closed

        thread = threading.Thread(target=hear, name="ear", daemon=True)
        thread.start()
        yield ear
        for each in client.client_list():
            if "O" in each["flags"]:  # the one that monitors, and no other
                client.client_kill_filter(_id=each["id"])
        thread.join(5)


def back_after(
    live: Live, server: Server, threads: set[str] = THREADS, *, then: Callable[[], None] = lambda: None
) -> dict[str, float]:
    """Return after how many seconds each thread was heard; ``then`` is called once the server is listened to."""
    with listening(server) as ear:
        return ear.back_after(live, threads, then)


def assert_back(figure: Report, row: str, back: dict[str, float], within_s: float = BACK_WITHIN_S) -> None:
    """Hold that all threads were back in time."""
    latest = max(back, key=lambda what: back[what])
    held = back[latest] <= within_s
    figure(row, f"latest thread back after, s ({latest})", back[latest], f"≤ {within_s}", held)


def let_outage_last(seconds: float) -> None:
    """Wait for so long."""
    end_s = monotonic_s() + seconds
    until(lambda: monotonic_s() > end_s, seconds + 5)


def cpu_s(process: Process) -> float:
    """Return the processor time that a process and its children have used so far."""
    return sum(_cpu_s(pid) for pid in (process.pid, *children(process)))


def _cpu_s(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / _TICKS_A_SECOND


@contextmanager
def calm(live: Live, process: Process, figure: Report, row: str) -> Iterator[None]:
    """Hold that a process neither spins nor floods its log inside the block, and that it lives afterwards."""
    since_s, used_s, lines = monotonic_s(), cpu_s(process), len(live.log(process).splitlines())
    yield
    assert process.poll() is None, live.log(process)
    lasted_s = monotonic_s() - since_s
    figure(
        row,
        "CPU of a waiting worker",
        (cpu_s(process) - used_s) / lasted_s,
        "< 0.05",
        cpu_s(process) - used_s < 0.05 * lasted_s,
    )
    more = (len(live.log(process).splitlines()) - lines) / lasted_s
    figure(row, "log lines a second of a waiting worker", more, "≤ 6", more <= 6)


def false_orphans(live: Live) -> int:
    """Return how many leases were taken from workers, all of whom were alive."""
    return sum(lane.reclaimed for lane in live.inspector.stats().lanes.values())


@contextmanager
def producing(live: Live, handler: str, **options: Any) -> Iterator[None]:
    """Let a producer enqueue jobs, a batch of ten at a time, for as long as the block lasts."""
    over = threading.Event()

    def work() -> None:
        while not over.wait(0.1):
            produce(live, handler, 10, **options)

    thread = threading.Thread(target=work, name="producer")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()

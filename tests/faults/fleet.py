"""Fleet: several workers of one queue, and what is done to them: killed, frozen, started anew."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.faults.checker import audit
from tests.support.processes import ROOT, Live

Process = subprocess.Popen[bytes]
SLOTS = 4
FOUR_SLOTS = ("--concurrency", str(SLOTS))
#: what a test allows for the machine, beside what the settings promise
EPSILON_S = 0.2


def start_workers(live: Live, number: int, *args: str) -> list[Process]:
    """Start workers beside each other and wait until all are registered."""
    processes = [live.start("runworker", *args) for _ in range(number)]
    live.until(lambda: all(worker_id(live, process) for process in processes), 60)
    return processes


def worker_id(live: Live, process: Process) -> str:
    """Return the id under which a process is registered; nothing while it is not."""
    return next((worker.id for worker in live.inspector.workers() if worker.about.get("pid") == process.pid), "")


def let_pass(live: Live, seconds: float) -> None:
    """Wait until so much time has passed on the server's clock."""
    until_ms = live.inspector.now_ms() + seconds * 1000
    live.until(lambda: live.inspector.now_ms() >= until_ms - 20, seconds + 30)
    while live.inspector.now_ms() < until_ms:  # some waits are of a few ms
        pass


def bound_s(live: Live) -> float:
    """Return within which time what a lost worker held is to be claimed again."""
    return live.settings.lease_s + live.settings.sweep_s + EPSILON_S


@dataclass(frozen=True)
class Kill:
    """The end of a worker: when, and which leases it left behind, with their deadlines."""

    at_ms: int
    deadlines_ms: dict[str, int]


def kill(live: Live, process: Process) -> Kill:
    """End a worker's own process, and no other, with no chance to tidy up."""
    worker = worker_id(live, process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return Kill(live.inspector.now_ms(), leases_of(live, worker))


def leases_of(live: Live, worker: str) -> dict[str, int]:
    """Return the jobs that a worker holds: id → deadline in server ms."""
    held = {job_id: lease.split(" ") for job_id, lease in live.raw.hgetall(live.coordinator.keys.inflight).items()}
    return {job_id: int(lease[2]) for job_id, lease in held.items() if lease[0] == worker}


def recoveries_s(live: Live, kills: Sequence[Kill]) -> list[float]:
    """Return how long each job that lost its worker waited for the next to claim it."""
    claims = audit(live, "claim")
    return [
        (min(at_ms for at_ms, event in claims if event["job"] == job_id and at_ms > kill.at_ms) - kill.at_ms) / 1000
        for kill in kills
        for job_id in kill.deadlines_ms
    ]


def taken_early(live: Live, kills: Sequence[Kill]) -> list[str]:
    """Return the jobs that were reclaimed before the lease of their lost worker was over."""
    reclaims = audit(live, "reclaim")
    return [
        job_id
        for kill in kills
        for job_id, deadline_ms in kill.deadlines_ms.items()
        if any(event["job"] == job_id and kill.at_ms < at_ms < deadline_ms for at_ms, event in reclaims)
    ]


@contextmanager
def frozen(process: Process) -> Iterator[None]:
    """Stop a worker and its children, as a machine without time for them does; then let them go on."""
    pids = [process.pid, *children(process)]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def children(process: Process) -> list[int]:
    """Return the pids of a process's children."""
    lists = [task.read_text().split() for task in Path(f"/proc/{process.pid}/task").glob("*/children")]
    return [int(pid) for pids in lists for pid in pids]


def is_alive(pid: int) -> bool:
    """Return whether a process runs still, and is not just waiting to be asked how it ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def claim_and_stop(live: Live, number: int, share_that_dies: float, chance: random.Random) -> int:
    """Start and stop workers, as tests.faults.claiming does; return how many claims died with their worker."""
    words = [str(number), str(share_that_dies), str(chance.randrange(10**6))]
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.claiming", *words], cwd=ROOT, env=live.environ(), capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()
    return int(done.stdout)

"""Arena: one server and the processes that work on it, all of which end with it.

Whatever is measured begins with an empty server and an empty record. Processes are started as users start them.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

from tests.benchmarks import probe
from tests.benchmarks.contenders import Contender, Worker
from tests.support.servers import Server

ROOT = Path(__file__).parents[2]
_STALLED_S = 30


class Arena:
    """A server of its own, on loopback, without persistence: the embedded one, or that of a program."""

    def __init__(self, folder: Path, program: str | None = None) -> None:
        self.server = Server(folder / "server", program=program)
        self.record = folder / "record"
        self._log = folder / "log"
        self._workers: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        self._log.touch()
        self.server.start()
        self.client = self.server.client()
        self.url = f"redis://127.0.0.1:{self.server.port}/0"
        return self

    def __exit__(self, *_: object) -> None:
        self.end_workers()
        self.client.close()
        self.server.kill()

    def clear(self) -> None:
        """Forget all jobs and all runs."""
        # Not behind the server's back, as is its default: what it still frees would count against the next measure.
        self.client.execute_command("FLUSHALL", "SYNC")
        self.record.write_bytes(b"")

    def environ(self, more: Mapping[str, str], worker: int = 0) -> dict[str, str]:
        """Return the environment of a process."""
        mine = {"BENCH_URL": self.url, "BENCH_RECORD": str(self.record), "BENCH_WORKER": str(worker)}
        return {**os.environ, "PYTHONPATH": str(ROOT), **mine, **more}

    def start(self, contender: Contender, *workers: Worker) -> None:
        """Start workers, numbered in their order."""
        for number, worker in enumerate(workers):
            with self._log.open("ab") as log:
                self._workers.append(
                    subprocess.Popen(
                        [word.format(url=self.url) for word in worker.command], cwd=ROOT, stdin=subprocess.DEVNULL,
                        stdout=log, stderr=log, env=self.environ(contender.environment, number), start_new_session=True,
                    )
                )  # fmt: skip

    def end_workers(self) -> None:
        """Kill all workers with all that they started."""
        for process in self._workers:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._workers.clear()

    def number_of_runs(self) -> int:
        """Return how many jobs ran since the arena was cleared."""
        return probe.number_of_runs(self.record)

    def wait_for(self, number: int, within_s: float | None = None) -> None:
        """Wait until so many jobs ran, or for ``within_s`` from the first run on. Raises when nothing goes on."""
        before, changed_s, first_s = 0, time.monotonic(), None
        while (ran := self.number_of_runs()) < number:
            now_s = time.monotonic()
            if ran != before:
                before, changed_s, first_s = ran, now_s, first_s or now_s
            if first_s and within_s and now_s > first_s + within_s:
                return
            if now_s > changed_s + _STALLED_S:
                raise RuntimeError(f"{ran} of {number} jobs ran, then nothing. {self._log.read_text()[-2000:]}")
            time.sleep(0.01)

    def round_trips(self) -> int:
        """Return how often the server was sent something so far, this question included."""
        return int(self.client.info("stats")["total_reads_processed"])

    def memory_of_workers(self) -> int:
        """Return the bytes that all processes of the workers hold: what they share is counted once among them."""
        pids = _descendants({process.pid for process in self._workers})
        return sum(_proportional_bytes(pid) for pid in pids)


class Producer:
    """A process that enqueues for one contender."""

    def __init__(self, arena: Arena, contender: Contender) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.benchmarks.producer", contender.module], cwd=ROOT, text=True,
            env=arena.environ(contender.environment), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self.knows_many = bool(self._answer())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def do(self, what: str, *numbers: float) -> float:
        """Enqueue as ordered (see ``producer``) and return the seconds that it took."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([what, *numbers]) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> float:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the producer ended")
        answer: float = json.loads(line)
        return answer


def _descendants(pids: set[int]) -> set[int]:
    """Return these processes and all that they started, directly or not."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    found: set[int] = set()
    while pids:
        found |= pids
        pids = {pid for pid, parent in parents.items() if parent in found} - found
    return found


def _proportional_bytes(pid: int) -> int:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0

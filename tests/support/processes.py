"""Real processes of the queue, as a user starts them, on a namespace of their own."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from redis import Redis

from priqueue.conf import Settings
from priqueue.coordinator import Coordinator, Inspector
from priqueue.jobs import Job
from tests.shop import history
from tests.support.queues import fresh_namespace
from tests.support.waiting import until

#: beats of half a second, so that a lease is one second
FAST = {"HEARTBEAT_S": 0.5, "SWEEP_S": 0.5, "TICK_S": 0.2, "SOCKET_TIMEOUT_S": 0.4, "PULL_TIMEOUT_S": 1}
ROOT = Path(__file__).parents[2]


class Live:
    """A queue on a real server and the processes that serve it; all of them end with the test."""

    def __init__(self, port: int, folder: Path, **options: Any) -> None:
        self.folder = folder
        self.history_path = folder / "history"
        self.options = {
            "URL": f"redis://127.0.0.1:{port}/0", "NAMESPACE": fresh_namespace(), "AUDIT": "all",
            "SIGNING_KEYS": ["only for tests, 32 bytes or more"], **FAST, **options,
        }  # fmt: skip
        self.settings = Settings.parse(self.options)
        self.client = Redis(port=port)
        self.coordinator = Coordinator(self.client, self.settings)
        self.inspector = Inspector(self.client, self.settings)
        self.raw = self.coordinator.client
        self.environment: dict[str, str] = {}
        self.processes: list[subprocess.Popen[bytes]] = []

    def keeps_audit_log(self, database: dict[str, Any]) -> None:
        """Let sweepers started from now on store audit events there. Else the stream is left for tests to read."""
        self.environment["TEST_AUDIT_DATABASE"] = json.dumps(database, default=str)

    def breaks_children(self) -> None:
        """Let the children of workers started from now on fail at import."""
        self.environment["TEST_BREAK_CHILDREN"] = "1"

    def environ(self) -> dict[str, str]:
        """Return the environment in which a process knows this queue."""
        return {
            **os.environ, "DJANGO_SETTINGS_MODULE": "tests.process_settings", "PYTHONPATH": str(ROOT),
            "PYTHONUNBUFFERED": "1", "TEST_PRIQUEUE": json.dumps(self.options),
            "TEST_DATABASE": str(self.folder / "db.sqlite3"), "TEST_HISTORY": str(self.history_path),
            **self.environment,
        }  # fmt: skip

    def start(self, command: str, *args: str, stdout: int | None = None) -> subprocess.Popen[bytes]:
        """Start a management command; its output goes to ``log(process)``."""
        if command in ("runsweeper", "runcoordinator") and "TEST_AUDIT_DATABASE" not in self.environment:
            args = (*args, "--no-audit")
        with (self.folder / f"log{len(self.processes)}").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "django", command, *args],
                cwd=ROOT,
                env=self.environ(),
                stdout=log if stdout is None else stdout,
                stderr=log,
            )
        self.processes.append(process)
        return process

    def start_worker(self, *args: str) -> subprocess.Popen[bytes]:
        """Start a worker and wait until it is registered."""
        before = len(self.inspector.workers())
        process = self.start("runworker", *args)
        until(lambda: len(self.inspector.workers()) > before or process.poll() is not None, 20)
        assert process.poll() is None, self.log(process)
        return process

    def log(self, process: subprocess.Popen[bytes]) -> str:
        """Return what a process has written so far."""
        return (self.folder / f"log{self.processes.index(process)}").read_text()

    def enqueue(self, name: str, number: int = 1, **options: Any) -> list[Job]:
        """Enqueue jobs of a handler in tests.shop.jobs."""
        payload = options.pop("payload", {})
        jobs = [Job(name=f"tests.shop.jobs.{name}", payload=payload, **options) for _ in range(number)]
        self.coordinator.enqueue_many(jobs)
        return jobs

    def history(self, what: str = "") -> list[dict[str, Any]]:
        """Return what the handlers wrote: all lines, or those of one kind."""
        return [line for line in history.read(self.history_path) if what in ("", line["what"])]

    def until(self, condition: Callable[[], Any], timeout_s: float = 20) -> Any:
        """Wait for a condition; show what the processes wrote when it does not come."""
        try:
            return until(condition, timeout_s)
        except AssertionError as error:
            logs = "\n".join(self.log(process)[-2000:] for process in self.processes)
            raise AssertionError(f"{error}\n{logs}") from error

    def close(self) -> None:
        """End all processes."""
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()
        self.client.close()

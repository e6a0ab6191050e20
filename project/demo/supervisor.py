"""The supervisor: starts services stage by stage, restarts what dies, stops all of it in the reverse order.

A service that keeps dying is restarted after a growing wait; one that has run for a while starts afresh.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from priqueue import clock
from project.demo.child import Child, Service
from project.demo.interruption import Interruption

FIRST_WAIT_S = 0.2
LONGEST_WAIT_S = 10.0
STEADY_S = 10.0  # having run so long, a death is a first one again
READY_WITHIN_S = 20.0


class NotReady(Exception):
    """A service did not come up."""


class Kept:
    """A service, its present process, and when the next one is due if it has died."""

    def __init__(self, service: Service, start: Callable[[Service], Child]) -> None:
        self._start = start
        self.service = service
        self.wait_s = 0.0
        self.due_s: float | None = None
        self.start()

    def start(self) -> None:
        """Start a process of the service."""
        self.child = self._start(self.service)
        self.started_s, self.due_s = clock.monotonic_s(), None

    def tend(self) -> str | None:
        """Note a death, or start anew when the wait is over; return what a person should know of it."""
        if self.due_s is None:
            return self._note_death() if self.child.exit_code is not None else None
        if clock.monotonic_s() >= self.due_s:
            self.start()
            return f"{self.service.name} runs again"
        return None

    def _note_death(self) -> str:
        now_s = clock.monotonic_s()
        steady = now_s - self.started_s >= STEADY_S
        self.wait_s = FIRST_WAIT_S if steady or not self.wait_s else min(self.wait_s * 2, LONGEST_WAIT_S)
        self.due_s = now_s + self.wait_s
        self.child.kill_group()
        return (
            f"{self.service.name} ended with {self.child.exit_code} ({self.child.last_words()}), "
            f"restart in {self.wait_s:.1f} s"
        )


class Supervisor:
    """Keeps the services of all stages running between ``start`` and ``stop``."""

    def __init__(self, stages: Sequence[Sequence[Service]], folder: Path, env: Mapping[str, str]) -> None:
        self._stages = stages
        self._folder = folder
        self._env = {**os.environ, **env}
        self._kept: list[list[Kept]] = []

    def start(self, interruption: Interruption) -> None:
        """Start stage after stage, each when the last one is ready. Raises NotReady; a signal ends it."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for left_over in self._folder.iterdir():
            left_over.unlink()
        for stage in self._stages:
            if interruption.requested:
                return
            self._kept.append([])
            for service in stage:
                self._kept[-1].append(Kept(service, self._spawn))
            for kept in self._kept[-1]:
                _await(kept, interruption)

    def tend(self) -> Iterator[str]:
        """Restart what has died; yield a line for each death and each restart."""
        for stage in self._kept:
            for kept in stage:
                if line := kept.tend():
                    yield line

    def stop(self) -> None:
        """Stop stage by stage, the last one first; those of one stage together."""
        while self._kept:
            stage = self._kept.pop()
            for kept in stage:
                kept.child.ask_to_stop()
            for kept in stage:
                kept.child.wait_or_kill()

    def _spawn(self, service: Service) -> Child:
        return Child(service, self._folder, self._env)


def _await(kept: Kept, interruption: Interruption) -> None:
    deadline_s = clock.monotonic_s() + READY_WITHIN_S
    while not kept.service.ready() and not interruption.wait(0.02):
        if kept.child.exit_code is not None or clock.monotonic_s() > deadline_s:
            raise NotReady(f"{kept.service.name} did not start: {kept.child.last_words()} (log: {kept.child.log})")

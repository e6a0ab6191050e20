"""Testing: a queue in memory for the tests of projects that enqueue. No server, no worker, no waiting.

1. ``memory_queue`` puts an empty queue in the place of the configured one; all else is the real thing
2. the code under test enqueues, and the test asserts what was enqueued
3. ``run_pending`` runs what is ready, in this thread and so inside the test's transaction: failures are retried
   and buried as a worker would, and what a handler enqueues runs, too
4. ``advance`` moves the queue's clock, for what waits for its time

A TestCase rolls its transaction back, so the commit for which jobs wait never comes. Here a job counts as enqueued
as soon as only the test's own transaction is left around it: one whose own block is still open waits, one whose
block was rolled back is gone.
"""

import json
import unittest
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from itertools import takewhile
from typing import Any, cast

from django.db import connections

from priqueue import client, clock, events, executor, handlers, jobs, wiring
from priqueue.coordinator import Coordinator, Inspector, Letters
from priqueue.coordinator.intake import Taken
from priqueue.coordinator.letters import Filter, OpenedLetter
from priqueue.exceptions import InvalidPayload
from priqueue.executor import Outcome, Verdict
from priqueue.handlers import AnyHandler
from priqueue.jobs import Claim, Job
from priqueue.ticker import Ticker

try:
    import lupa  # noqa: F401 (without it fakeredis runs no script)
    from fakeredis import FakeRedis, FakeServer
except ImportError as error:
    raise ImportError('priqueue.testing needs fakeredis with Lua: pip install "priqueue[testing]"') from error

Payload = Mapping[str, Any]
Delay = float | timedelta
Wanted = AnyHandler | str | None
_WORKER = "test"


class _Recorder(Coordinator):
    """Keeps what it took in, and takes nothing in twice: a commit hook may be run again when its job is done."""

    def __init__(self, *store: Any) -> None:
        super().__init__(*store)
        self.taken_in: dict[str, Job] = {}

    def enqueue(self, job: Job) -> bool:
        is_new = job.id not in self.taken_in
        self.enqueue_many([job])
        return is_new

    def enqueue_once(self, jobs: Sequence[Job], *options: Any) -> list[Any]:
        outcomes = super().enqueue_once(jobs, *options)
        ids = {outcome.job_id for outcome in outcomes if isinstance(outcome, Taken)}
        self.taken_in |= {job.id: job for job in jobs if job.id in ids}
        return outcomes

    def enqueue_many(self, jobs: Sequence[Job]) -> None:
        new = {job.id: job for job in jobs if job.id not in self.taken_in}
        super().enqueue_many(list(new.values()))
        self.taken_in |= new


class MemoryQueue:
    """A queue in memory; its clock goes on by itself and can be moved. ``memory_queue`` makes one."""

    def __init__(self) -> None:
        self._ahead_ms = 0
        self._settings = wiring.settings()
        store = (FakeRedis(server=FakeServer()), self._settings, self._now_ms)
        self.coordinator = _Recorder(*store)
        self._letters = Letters(*store)
        self._ticker = Ticker(self.coordinator, Inspector(*store))

    def _now_ms(self) -> int:
        return clock.wall_ms() + self._ahead_ms

    @property
    def enqueued(self) -> list[Job]:
        """All jobs that were enqueued so far, in their order; those that have run, too."""
        self._catch_up()
        return list(self.coordinator.taken_in.values())

    @property
    def dead_letters(self) -> list[OpenedLetter]:
        """The dead letters, newest first, each with its ``job``, its ``error`` and its ``trail``."""
        found = (self._letters.open(letter.id) for letter in self._letters.scan(Filter()))
        return [letter for letter in found if letter]

    def advance(self, seconds: Delay) -> None:
        """Move the queue's clock on; what gets due by that is ready. Raises InvalidDelay."""
        self._catch_up()
        self._ahead_ms += jobs.wait("seconds", seconds) // timedelta(milliseconds=1)
        self._catch_up()

    def run_pending(self, lane: str | None = None, *, limit: int = 1000) -> list[Outcome]:
        """Run what is ready, in one lane or in all by their weights, until nothing is; return what came of each run.

        An outcome has ``claim.job``, a ``verdict`` ("ack", "retry" or "bury") and the ``failure``, or None.
        ``limit`` is how many runs there are at most. Raises InvalidLane.
        """
        lanes = self._settings.lane_names if lane is None else (lane,)
        self.coordinator.register(_WORKER, lanes=lanes, concurrency=1)
        claims = takewhile(bool, (self._claim() for _ in range(limit)))
        outcomes = [self._run(claim) for claim in claims if claim]
        self.coordinator.leave(_WORKER)
        return outcomes

    def assert_enqueued(
        self, handler: Wanted = None, payload: Payload | None = None, *,
        lane: str | None = None, delay: Delay | None = None, times: int | None = None,
    ) -> list[Job]:  # fmt: skip
        """Fail unless such a job was enqueued, once or more, or exactly ``times`` times; return those that were.

        What is not given may be anything; a payload has to be equal as a whole. Raises UnknownHandler.
        """
        wanted = _fields(handler, payload, lane, delay)
        found = [job for job in self.enqueued if all(getattr(job, name) == value for name, value in wanted.items())]
        if not found if times is None else len(found) != times:
            often = "at least 1" if times is None else times
            asked = ", ".join(f"{name} {value}" for name, value in wanted.items()) or "any job"
            raise AssertionError(f"expected {often}, found {len(found)}: {asked}\n{self._report()}")
        return found

    def assert_not_enqueued(
        self, handler: Wanted = None, payload: Payload | None = None, *, lane: str | None = None
    ) -> None:
        """Fail if such a job was enqueued; without a handler, if anything was. Raises UnknownHandler."""
        self.assert_enqueued(handler, payload, lane=lane, times=0)

    def _report(self) -> str:
        lines = [_line(job) for job in self.enqueued]
        lines += [f"{_line(push.args[0])}, waits for the commit" for push in _pushes(held_back=False)]
        return "\n  ".join(("enqueued were:", *(lines or ["none"])))

    def _catch_up(self) -> None:
        """Push what only the test's own transaction holds back, and promote what is due."""
        for push in list(_pushes(held_back=True)):
            if push.args[0].id not in self.coordinator.taken_in:
                push()
        while self._ticker.run_once() == 0:
            pass

    def _claim(self) -> Claim | None:
        self._catch_up()
        return next(iter(self.coordinator.pull(_WORKER)), None)

    def _run(self, claim: Claim) -> Outcome:
        events.send(events.jobs_claimed, claims=[claim])
        outcome = executor.execute(claim, self._settings)
        claim.run_ms = round(outcome.run_s * 1000)
        failure, delay_s = outcome.failure, outcome.delay_s
        if failure is None:
            self.coordinator.ack(claim)
            events.send(events.jobs_acked, claims=[claim])
        elif outcome.verdict is Verdict.RETRY:
            self.coordinator.retry(claim, failure, delay_s=delay_s)
            events.send(events.job_retried, claim=claim, failure=failure, delay_s=delay_s, note=outcome.note)
        else:
            self.coordinator.bury(claim, failure)
            events.send(events.job_buried, claim=claim, failure=failure)
        return outcome


@contextmanager
def memory_queue() -> Iterator[MemoryQueue]:
    """Let every thread of this process use an empty queue in memory inside the block.

    Lanes, attempts and all else are those of the PRIQUEUE setting. Raises ConfigurationError.
    """
    queue = MemoryQueue()
    with wiring.override(queue.coordinator):
        yield queue


class QueueMixin(unittest.TestCase):
    """Gives each test of a TestCase an empty queue in memory, ``self.queue``."""

    queue: MemoryQueue

    def setUp(self) -> None:
        """Put the queue in place until the test has ended."""
        self.queue = self.enterContext(memory_queue())
        super().setUp()


def _fields(handler: Wanted, payload: Payload | None, lane: str | None, delay: Delay | None) -> dict[str, Any]:
    """Return the fields of a job that an assertion asks for, with their values."""
    found = handlers.registry.get(handler) if isinstance(handler, str) else handler
    fields = {
        "name": found and found.name,
        "payload": _arrived(found, payload) if found and payload is not None else payload,
        "lane": lane,
        "delay_ms": None if delay is None else jobs.wait("delay", delay) // timedelta(milliseconds=1),
    }
    return {name: value for name, value in fields.items() if value is not None}


def _arrived(handler: AnyHandler, payload: Payload) -> Payload:
    """Return a payload as it travels, so that a date equals its text; what cannot travel stays as it is."""
    try:
        return cast(Payload, json.loads(handler.accept(payload)))
    except InvalidPayload:
        return payload


def _line(job: Job) -> str:
    due = f"run_at {job.run_at}" if job.delay_ms is None else f"delay_ms {job.delay_ms}"
    return f"name {job.name}, payload {job.payload}, lane {job.lane}, {due}"


def _pushes(*, held_back: bool) -> Iterator[partial[None]]:
    """Give the pushes that only the test's own transaction holds back, or those that wait for another commit."""
    for connection in cast(Any, connections).all(initialized_only=True):
        depth = sum(block._from_testcase for block in connection.atomic_blocks)
        # The outermost block has no savepoint. Where a TestCase has two blocks, it is of the class: what waits for it
        # alone was enqueued before the test began.
        of_test = set(connection.savepoint_ids[: max(0, depth - 1)])
        still_open = set(connection.savepoint_ids) - of_test
        for savepoints, hook, _ in connection.run_on_commit:
            is_ours = depth > 0 and of_test <= savepoints and not savepoints & still_open
            if isinstance(hook, partial) and hook.func is client.push_after_commit and is_ours == held_back:
                yield hook

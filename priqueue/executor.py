"""Executor: runs one job. Handler → outcome; the worker settles it exactly once.

1. find the handler and its arguments
2. run it, in a context that knows the job, the caller and the correlation id
3. turn what happened into an outcome: ack, retry after a wait, or bury

Whatever a handler raises is a failure like any other: ``SystemExit`` and its like must not cost the worker a slot.
"""

import asyncio
import inspect
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from priqueue import callers, retry
from priqueue.clock import monotonic_s
from priqueue.conf import Settings
from priqueue.exceptions import Timeout
from priqueue.handlers import AnyHandler, registry
from priqueue.jobs import Claim, Failure


class Verdict(StrEnum):
    """How a run ended."""

    ACK = "ack"
    RETRY = "retry"
    BURY = "bury"
    RELEASE = "release"  # not run to its end, through no fault of its own
    CRASH = "crash"  # the process that ran it, and it alone, died


@dataclass(slots=True, kw_only=True)  # not frozen: see Claim
class Outcome:
    """What a run came to, and how its lease is to be settled."""

    claim: Claim
    verdict: Verdict
    run_s: float
    failure: Failure | None = None
    delay_s: float = 0
    note: str = ""
    #: deaths of a process that this job is guilty of, with verdict CRASH
    crashes: int = 0


class Run:
    """What a handler may know of the job it runs: ``priqueue.current_job()``."""

    def __init__(self, claim: Claim, lease_lost: Callable[[], bool]) -> None:
        self.id = claim.job.id
        self.lane = claim.lane
        self.attempt = claim.attempt
        self.crashes = claim.crashes
        self.caller = claim.job.caller
        self.correlation_id = claim.job.correlation_id or claim.job.id
        self.enqueued_at = claim.job.enqueued_at
        self._lease_lost = lease_lost
        self._claim = claim

    @property
    def log_fields(self) -> dict[str, Any]:
        """What a log record says of the job, under the names that all records of priqueue use."""
        return {
            "job_id": self.id, "handler": self._claim.job.name, "lane": self.lane, "attempt": self.attempt,
            "worker": self._claim.worker_id, "caller": self.caller, "correlation_id": self.correlation_id,
        }  # fmt: skip

    @property
    def lease_lost(self) -> bool:
        """Whether another worker may run this job by now, so that what is done here counts for nothing."""
        return self._lease_lost()


_current: ContextVar[Run | None] = ContextVar("priqueue_current_job", default=None)


def current_job() -> Run | None:
    """Return the job that is run here; None outside of a handler."""
    return _current.get()


def execute(claim: Claim, settings: Settings, lease_lost: Callable[[], bool] = lambda: False) -> Outcome:
    """Run one job and return its outcome. Never raises, but for a Timeout that comes when the run is over."""
    started_s = monotonic_s()
    try:
        handler, arguments = _prepared(claim)
        with _Inside(claim, lease_lost):
            result = asyncio.run(handler.function(**arguments)) if handler.is_async else handler.function(**arguments)
        _refuse_unrun(handler, result)
        return Outcome(claim=claim, verdict=Verdict.ACK, run_s=monotonic_s() - started_s)
    except BaseException as error:  # a SystemExit would end this thread silently and cost the worker a slot
        return failed(claim, error, settings, monotonic_s() - started_s)


async def execute_async(claim: Claim, settings: Settings, lease_lost: Callable[[], bool]) -> Outcome:
    """Run one job whose handler is a coroutine function, on the running loop. Raises nothing but CancelledError."""
    started_s = monotonic_s()
    try:
        handler, arguments = _prepared(claim)
        with _Inside(claim, lease_lost):
            result = await handler.function(**arguments)
        _refuse_unrun(handler, result)
        return Outcome(claim=claim, verdict=Verdict.ACK, run_s=monotonic_s() - started_s)
    except BaseException as error:
        return failed(claim, error, settings, monotonic_s() - started_s)


def is_async(claim: Claim) -> bool:
    """Return whether the claim's handler is a coroutine function."""
    handler = registry.find(claim.job.name)
    return handler is not None and handler.is_async


def failed(claim: Claim, error: BaseException, settings: Settings, run_s: float = 0) -> Outcome:
    """Return the outcome of a run that ended with an error: retry after a wait, or bury."""
    failure, handler = Failure.of(error), registry.find(claim.job.name)
    if isinstance(error, Timeout):
        failure = replace(failure, error="Timeout")
    decision = retry.decide(
        claim.attempt,
        error,
        max_attempts=claim.job.max_attempts,
        backoff=handler.backoff if handler else None,
        limits=settings,
    )
    if isinstance(decision, retry.GiveUp):
        return Outcome(claim=claim, verdict=Verdict.BURY, run_s=run_s, failure=failure)
    return Outcome(
        claim=claim, verdict=Verdict.RETRY, run_s=run_s, failure=failure, delay_s=decision.delay_s, note=decision.note
    )


def _prepared(claim: Claim) -> tuple[AnyHandler, dict[str, Any]]:
    handler = registry.get(claim.job.name)
    return handler, handler.arguments(claim.job.payload_text())


class _Inside(AbstractContextManager[None]):
    """Lets the handler know its job, and what it enqueues be known as this worker's."""

    __slots__ = ("_acting", "_pid", "_reset", "_run")

    def __init__(self, claim: Claim, lease_lost: Callable[[], bool]) -> None:
        self._run = Run(claim, lease_lost)
        self._acting = callers.acting_as(f"worker:{claim.worker_id}", correlation_id=self._run.correlation_id)
        self._pid = os.getpid()

    def __enter__(self) -> None:
        self._reset = _current.set(self._run)
        self._acting.__enter__()

    def __exit__(self, *raised: Any) -> None:
        if (
            os.getpid() != self._pid
        ):  # a process that the handler forked and that came back out of it: it speaks for nobody
            os._exit(0)
        self._acting.__exit__(*raised)
        _current.reset(self._reset)


def _refuse_unrun(handler: AnyHandler, result: Any) -> None:
    """Raise TypeError for a result in which the work still waits for somebody to run it: it must not count as done."""
    if inspect.iscoroutine(result) or inspect.isgenerator(result) or inspect.isasyncgen(result):
        kind = type(result).__name__
        if inspect.iscoroutine(result):
            result.close()
        raise TypeError(f"handler {handler.name} returned a {kind} that nobody ran: await it, or go through it")

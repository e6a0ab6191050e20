"""Executor: runs one job. Handler → outcome; the worker settles it exactly once.

1. find the handler and its arguments
2. run it, in a context that knows the job, the caller and the correlation id
3. turn what happened into an outcome: ack, retry after a wait, or bury

Whatever a handler raises is a failure like any other: ``SystemExit`` and its like must not cost the worker a slot.
"""

import asyncio
import inspect
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.db import close_old_connections

from priqueue import callers, retry
from priqueue.clock import monotonic_s
from priqueue.conf import Settings
from priqueue.handlers import AnyHandler, registry
from priqueue.jobs import Claim, Failure


class Verdict(StrEnum):
    """How a run ended."""

    ACK = "ack"
    RETRY = "retry"
    BURY = "bury"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run came to, and how its lease is to be settled."""

    claim: Claim
    verdict: Verdict
    run_s: float
    failure: Failure | None = None
    delay_s: float = 0
    note: str = ""


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

    @property
    def lease_lost(self) -> bool:
        """Whether another worker may run this job by now, so that what is done here counts for nothing."""
        return self._lease_lost()


_current: ContextVar[Run | None] = ContextVar("priqueue_current_job", default=None)


def current_job() -> Run | None:
    """Return the job that is run here; None outside of a handler."""
    return _current.get()


def execute(claim: Claim, settings: Settings, lease_lost: Callable[[], bool] = lambda: False) -> Outcome:
    """Run one job and return its outcome. Never raises."""
    started_s = monotonic_s()
    handler: AnyHandler | None = None
    reset = _current.set(Run(claim, lease_lost))
    try:
        handler = registry.get(claim.job.name)
        _call(handler, claim)
        return Outcome(claim=claim, verdict=Verdict.ACK, run_s=monotonic_s() - started_s)
    except BaseException as error:  # a SystemExit would end this thread silently and cost the worker a slot
        return _failed(claim, handler, error, settings, monotonic_s() - started_s)
    finally:
        _current.reset(reset)


def _call(handler: AnyHandler, claim: Claim) -> None:
    arguments = handler.arguments(claim.job.payload_text())
    close_old_connections()
    try:
        with callers.acting_as(f"worker:{claim.worker_id}", correlation_id=claim.job.correlation_id or claim.job.id):
            result = _run(handler, arguments)
        if inspect.iscoroutine(result):
            result.close()
            raise TypeError(f"handler {handler.name} returned a coroutine that nobody awaited: declare it async def")
    finally:
        close_old_connections()


def _run(handler: AnyHandler, arguments: Mapping[str, Any]) -> Any:
    if handler.is_async:
        return asyncio.run(handler.function(**arguments))
    return handler.function(**arguments)


def _failed(
    claim: Claim, handler: AnyHandler | None, error: BaseException, settings: Settings, run_s: float
) -> Outcome:
    failure = Failure.of(error)
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

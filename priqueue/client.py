"""Client: how jobs come in. Validate, wait for the commit, hand over.

Everything that can be wrong is refused at the call, before anything is written. The job has its id at once; by
default it reaches the queue when the surrounding transaction commits, and never when it rolls back.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from asgiref.sync import sync_to_async
from django.db import DEFAULT_DB_ALIAS, connections, transaction

from priqueue import callers, events, handlers, limits, payloads, wiring
from priqueue.coordinator.stats import Stats
from priqueue.exceptions import InvalidLane, NotHandedOver, PriqueueError, QueueFull, UnknownHandler
from priqueue.handlers import AnyHandler, Handler
from priqueue.jobs import Job, JobStatus, due, new_id, now

Payload = Mapping[str, Any]
Delay = float | timedelta


def enqueue(
    handler: AnyHandler | str,
    payload: Payload | None = None,
    *,
    lane: str | None = None,
    delay: Delay | None = None,
    run_at: datetime | None = None,
    caller: str | None = None,
    correlation_id: str | None = None,
    on_commit: bool | None = None,
    database: str | None = None,
) -> Job:
    """Accept a job, now or for later, and return it with its id.

    ``delay`` is in seconds or a timedelta; ``run_at`` is an aware datetime, one in the past means now. The job
    reaches the queue when the transaction on ``database`` commits; ``on_commit=False`` pushes it at once.

    Raises UnknownHandler, InvalidPayload, PayloadTooLarge, InvalidLane, InvalidDelay and InvalidCaller, before
    anything is written; RateLimited, and QueueFull for MAX_READY, where such limits are set; QueueFull for the memory
    limit and QueueUnavailable when it is pushed at once, or when a limit is set that cannot be asked about.
    """
    job = prepare(handler, {} if payload is None else payload, lane, (delay, run_at), (caller, correlation_id))
    admit([job])
    _hand_over([job], on_commit, database)
    return job


def enqueue_many(
    jobs: Iterable[tuple[AnyHandler | str, Payload]],
    *,
    lane: str | None = None,
    delay: Delay | None = None,
    run_at: datetime | None = None,
    caller: str | None = None,
    correlation_id: str | None = None,
    on_commit: bool | None = None,
    database: str | None = None,
) -> list[Job]:
    """Accept many jobs in their order, each a handler and a payload, and return them; options as for ``enqueue``.

    All are validated, and admitted by the limits or refused together, before the first is written. They travel in few
    round trips; one that breaks off says in ``job_id`` from which job on they may be missing.
    """
    when, who = (delay, run_at), (caller, correlation_id)
    made = [prepare(handler, payload, lane, when, who) for handler, payload in jobs]
    admit(made)
    _hand_over(made, on_commit, database)
    return made


aenqueue = sync_to_async(enqueue)
aenqueue.__doc__ = "Accept a job from asynchronous code; as ``enqueue``."


def get(job_id: str) -> JobStatus | None:
    """Return what is known of a job; None when it is done, cancelled, purged or was never there."""
    return wiring.inspector().job(job_id)


def cancel(job_id: str) -> bool:
    """Delete a job that is delayed or ready; return False when it is in flight, dead or not there."""
    status = wiring.inspector().job(job_id)
    if status is None:
        return False
    acting = callers.acting()
    done = wiring.coordinator().cancel(job_id, lane=status.lane, caller=acting.caller, reason=acting.reason)
    if done:
        events.send(events.job_cancelled, job_id=job_id)
    return done


def stats() -> Stats:
    """Return the figures of lanes, dead letters and workers."""
    return wiring.inspector().stats()


def prepare(
    handler: AnyHandler | str,
    payload: Payload,
    lane: str | None = None,
    when: tuple[Delay | None, datetime | None] = (None, None),
    who: tuple[str | None, str | None] = (None, None),
) -> Job:
    """Return the job that ``enqueue`` would hand over, fully validated.

    ``when`` is delay and run_at, ``who`` caller and correlation id. Raises what ``enqueue`` raises before it writes.
    """
    settings, acting, found = wiring.settings(), callers.acting(), _handler(handler)
    payload_json = found.accept(payload, max_bytes=settings.max_payload_bytes)
    enqueued_at = now()
    delay_ms, run_at = due(*when, enqueued_at)
    caller, correlation_id = who
    return Job.of(
        id=new_id(),
        name=found.name,
        payload=payloads.loads(payload_json),
        lane=_lane(found.lane if lane is None else lane, settings.lane_names),
        delay_ms=delay_ms,
        run_at=run_at,
        enqueued_at=enqueued_at,
        max_attempts=settings.max_attempts if found.max_attempts is None else found.max_attempts,
        timeout=settings.timeout_s if found.timeout is None else found.timeout,
        caller=acting.caller if caller is None else caller,
        correlation_id=acting.correlation_id if correlation_id is None else correlation_id,
        replaces="",
        payload_json=payload_json,
    ).check()


def admit(jobs: Sequence[Job]) -> None:
    """Check that jobs of one caller may come in. It costs a round trip where a limit is set, else nothing.

    Raises RateLimited, and QueueFull where MAX_READY is reached.
    """
    coordinator = wiring.coordinator()
    if jobs:
        coordinator.admit(jobs, limits.rule_for(jobs[0].caller, coordinator.settings.rate_limit))


def _handler(handler: object) -> AnyHandler:
    if isinstance(handler, Handler):
        return handler
    if isinstance(handler, str):
        return handlers.registry.get(handler)
    raise UnknownHandler(f"handler: {handler!r:.100} is no handler; declare the function with @priqueue.job")


def _lane(lane: str | None, known: Sequence[str]) -> str:
    lane = "default" if lane is None else lane
    if lane not in known:
        raise InvalidLane(f"lane: {lane!r:.60} is not one of {', '.join(known)}")
    return lane


def _hand_over(jobs: Sequence[Job], on_commit: bool | None, database: str | None) -> None:
    """Push the jobs now, or leave one hook for each to the commit."""
    alias = database or DEFAULT_DB_ALIAS
    wait = wiring.settings().enqueue_on_commit if on_commit is None else on_commit
    if wait and connections[alias].in_atomic_block:
        for job in jobs:
            transaction.on_commit(partial(push_after_commit, job), using=alias, robust=True)
    else:
        _push(jobs)


def _push(jobs: Sequence[Job]) -> None:
    coordinator = wiring.coordinator()
    if len(jobs) == 1:  # by far the most common, and nothing to be sorted by lane
        coordinator.enqueue(jobs[0])
    else:
        coordinator.enqueue_many(jobs)
    for job in jobs:
        events.send(events.job_enqueued, job=job)


def push_after_commit(job: Job) -> None:
    """Push a job whose transaction has committed. Nobody can be told any more, so a fault is an event, not an error."""
    try:
        _push([job])
    except PriqueueError as error:
        events.send(events.push_failed, job=job, error=error)
        if isinstance(error, NotHandedOver):
            # A queue that is full counts all the same; one that is away would only be waited for once more.
            wiring.coordinator().owe("failed_pushes", job.lane, at_once=isinstance(error, QueueFull))


handlers.bind(enqueue)

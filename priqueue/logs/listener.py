"""Listener: writes one record for each event.

The message is for people; the same facts stand beside it under names that never change, for machines: action, queue,
lane, job_id, handler, attempt, worker, caller, correlation_id, input (the beginning of the payload's SHA-256), outcome,
wait_ms, run_ms, reason. What a record knows nothing of, it leaves out.
"""

import hashlib
import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from django.dispatch import Signal

from priqueue import events, wiring
from priqueue.jobs import Claim, Failure, Job
from priqueue.logs.lines import escaped
from priqueue.logs.masking import masked

logger = logging.getLogger("priqueue")

_QUOTED_CHARS = 500


def connect() -> None:
    """Let the listeners hear every event."""
    for signal, listener in _LISTENERS.items():
        signal.connect(listener, dispatch_uid=f"priqueue.logs.{listener.__name__}")


def _wanted(level: int) -> bool:
    """Return whether anybody will do anything with a record. Most of what one costs is to make it."""
    if not logger.isEnabledFor(level):
        return False
    current: logging.Logger | None = logger
    while current is not None:
        for handler in current.handlers:
            if handler.level <= level and not isinstance(handler, logging.NullHandler):
                return True
        current = current.parent if current.propagate else None
    # Without any handler Python has one of last resort.
    return not logger.hasHandlers() and logging.lastResort is not None and level >= logging.lastResort.level


def _log(level: int, action: str, message: str, *args: object, **fields: Any) -> None:
    if not _wanted(level):
        return
    # Not by Logger.log, which looks for the line that called it: of all that one record costs, the dearest part.
    clean = tuple(escaped(arg) if isinstance(arg, str) else arg for arg in args)
    fields |= {"action": action, "queue": wiring.settings().namespace}
    logger.handle(logger.makeRecord(logger.name, level, __file__, 0, message, clean, None, action, fields))


def _about(job: Job, outcome: str, **more: Any) -> dict[str, Any]:
    return {
        "job_id": job.id, "handler": job.name, "caller": job.caller, "correlation_id": job.correlation_id or job.id,
        "input": hashlib.sha256(job.payload_text().encode()).hexdigest()[:16], "outcome": outcome, **more,
    }  # fmt: skip


def _claimed(claim: Claim, outcome: str, **more: Any) -> dict[str, Any]:
    if claim.run_ms is not None:
        more["run_ms"] = claim.run_ms
    return _about(claim.job, outcome, lane=claim.lane, attempt=claim.attempt, worker=claim.worker_id, **more)


def _quoted(text: str, job: Job | None = None) -> str:
    """Return a text from outside, cut and without secrets."""
    return masked(text[: 2 * _QUOTED_CHARS], wiring.settings(), job)[:_QUOTED_CHARS]


def _enqueued(job: Job, **_: Any) -> None:
    if _wanted(logging.INFO):
        delayed = job.run_at is not None and job.run_at > job.enqueued_at
        _log(
            logging.INFO, "enqueue", "enqueued %s %s on %s", job.name, job.id, job.lane,
            **_about(job, "delayed" if delayed else "ready", lane=job.lane),
        )  # fmt: skip


def _push_failed(job: Job, error: Exception, **_: Any) -> None:
    reason = _quoted(str(error), job)
    _log(
        logging.ERROR, "enqueue", "lost %s %s: the transaction has committed, but the queue did not take it: %s",
        job.name, job.id, reason, **_about(job, "lost", lane=job.lane, reason=reason),
    )  # fmt: skip


def _promoted(number: int, **_: Any) -> None:
    if _wanted(logging.DEBUG):
        _log(logging.DEBUG, "promote", "promoted %d", number, number=number)


def _claims(claims: Sequence[Claim], **_: Any) -> None:
    _each(claims, _claim)


def _acked(claims: Sequence[Claim], **_: Any) -> None:
    _each(claims, _ack)


def _each(claims: Sequence[Claim], write: Callable[[Claim], None]) -> None:
    """Write a record of each; a filter that raises for one keeps no other from being written."""
    with ExitStack() as all_of_them:
        for claim in reversed(claims) if _wanted(logging.INFO) else ():
            all_of_them.callback(write, claim)


def _claim(claim: Claim) -> None:
    # By the server's clock alone: it was claimed one lease before its deadline.
    wait_ms = max(0, claim.deadline_ms - round(wiring.settings().lease_s * 1000) - claim.ready_since_ms)
    job = claim.job
    _log(
        logging.INFO, "claim", "claimed %s %s from %s, attempt %d, after %d ms", job.name, job.id, claim.lane,
        claim.attempt, wait_ms, **_claimed(claim, "in flight", wait_ms=wait_ms),
    )  # fmt: skip


def _ack(claim: Claim) -> None:
    job, fields = claim.job, _claimed(claim, "done")
    _log(logging.INFO, "ack", "done %s %s in %d ms", job.name, job.id, claim.run_ms, **fields)


def _retried(claim: Claim, failure: Failure, delay_s: float, note: str, **_: Any) -> None:
    job = claim.job
    _log(
        logging.WARNING, "retry", "failed %s %s, attempt %d of %d, again in %.1f s: %s: %s%s", job.name, job.id,
        claim.attempt, job.max_attempts, delay_s, failure.error, _quoted(failure.message, job), note and f" ({note})",
        **_claimed(claim, "delayed", reason=failure.error, delay_s=delay_s),
    )  # fmt: skip


def _buried(claim: Claim, failure: Failure, **_: Any) -> None:
    job = claim.job
    _log(
        logging.ERROR, "bury", "buried %s %s after attempt %d of %d: %s: %s", job.name, job.id, claim.attempt,
        job.max_attempts, failure.error, _quoted(failure.message, job), **_claimed(claim, "dead", reason=failure.error),
    )  # fmt: skip


def _crashed(claim: Claim, failure: Failure, deaths: int, **_: Any) -> None:
    job, crashes, reason = claim.job, claim.crashes + deaths, _quoted(failure.message, claim.job)
    outcome = "dead" if crashes >= wiring.settings().max_crashes else "ready"
    _log(
        logging.ERROR, "crash", "%s %s ended its process, %d times so far: %s", job.name, job.id, crashes, reason,
        **_claimed(claim, outcome, reason=reason),
    )  # fmt: skip


def _released(claim: Claim, reason: str, **_: Any) -> None:
    job, fields = claim.job, _claimed(claim, "ready", reason=reason)
    _log(logging.INFO, "release", "released %s %s: %s", job.name, job.id, reason, **fields)


def _lease_lost(claim: Claim, **_: Any) -> None:
    _log(
        logging.WARNING, "lease_lost", "lost the lease of %s %s: what this run does counts for nothing",
        claim.job.name, claim.job.id, **_claimed(claim, "lost"),
    )  # fmt: skip


def _reclaimed(number: int, **_: Any) -> None:
    _log(logging.WARNING, "reclaim", "reclaimed %d whose worker was lost", number, number=number)


def _cancelled(job_id: str, **_: Any) -> None:
    _log(logging.INFO, "cancel", "cancelled %s", job_id, job_id=job_id, outcome="gone")


def _letters(action: str, outcome: str) -> Callable[..., None]:
    def listener(job_ids: list[str], reason: str, **_: Any) -> None:
        _log(
            logging.INFO, action, f"{action}d %d dead letters: %s", len(job_ids), reason, reason=reason,
            number=len(job_ids), outcome=outcome,
        )  # fmt: skip

    listener.__name__ = f"_{action}d"
    return listener


def _replaced(job_id: str, copy: Job, reason: str, **_: Any) -> None:
    _log(
        logging.INFO, "replace", "replaced %s by %s %s on %s: %s", job_id, copy.name, copy.id, copy.lane, reason,
        **_about(copy, "replaced", lane=copy.lane, reason=reason),
    )  # fmt: skip


def _lane_told(action: str, outcome: str) -> Callable[..., None]:
    def listener(lane: str, caller: str, reason: str, **_: Any) -> None:
        _log(
            logging.WARNING, action, f"%s {action}d %s: %s", caller, lane, reason, lane=lane, caller=caller,
            reason=reason, outcome=outcome,
        )  # fmt: skip

    listener.__name__ = f"_{action}d"
    return listener


def _registered(worker_id: str, lanes: list[str], concurrency: int, **_: Any) -> None:
    _log(
        logging.INFO, "register", "worker %s pulls %s with %d slots", worker_id, ", ".join(lanes), concurrency,
        worker=worker_id,
    )  # fmt: skip


def _draining(worker_id: str, in_flight: int, **_: Any) -> None:
    _log(logging.INFO, "drain", "worker %s drains, %d in flight", worker_id, in_flight, worker=worker_id)


def _left(worker_id: str, **_: Any) -> None:
    _log(logging.INFO, "leave", "worker %s left", worker_id, worker=worker_id)


def _failed(worker_id: str, fault: str, **_: Any) -> None:
    _log(logging.CRITICAL, "worker_failed", "worker %s ends: %s", worker_id, fault, worker=worker_id, reason=fault)


def _audit_stored(number: int, **_: Any) -> None:
    if _wanted(logging.DEBUG):
        _log(logging.DEBUG, "audit", "stored %d audit events", number, number=number)


def _audit_marked(rows: list[Any], **_: Any) -> None:
    for row in rows:
        level = logging.ERROR if "conflict" in row.mark else logging.WARNING
        _log(
            level, "audit", "audit event %s of %s is marked: %s", row.stream_id, row.job or row.caller, row.mark,
            job_id=row.job, reason=row.mark,
        )  # fmt: skip


def _loop_failed(loop: str, error: Exception, wait_s: float, **_: Any) -> None:
    reason = f"{type(error).__name__}: {_quoted(str(error))}"
    _log(
        logging.ERROR, "loop_failed", "%s failed, goes on in %.1f s: %s", loop, wait_s, reason, loop=loop,
        reason=reason,
    )  # fmt: skip


_LISTENERS: dict[Signal, Callable[..., None]] = {
    events.job_enqueued: _enqueued,
    events.push_failed: _push_failed,
    events.jobs_promoted: _promoted,
    events.jobs_claimed: _claims,
    events.jobs_acked: _acked,
    events.job_retried: _retried,
    events.job_buried: _buried,
    events.job_crashed: _crashed,
    events.job_released: _released,
    events.lease_lost: _lease_lost,
    events.jobs_reclaimed: _reclaimed,
    events.job_cancelled: _cancelled,
    events.jobs_requeued: _letters("requeue", "ready"),
    events.jobs_purged: _letters("purge", "gone"),
    events.job_replaced: _replaced,
    events.lane_paused: _lane_told("pause", "paused"),
    events.lane_resumed: _lane_told("resume", "resumed"),
    events.worker_registered: _registered,
    events.worker_draining: _draining,
    events.worker_left: _left,
    events.worker_failed: _failed,
    events.audit_stored: _audit_stored,
    events.audit_marked: _audit_marked,
    events.loop_failed: _loop_failed,
}

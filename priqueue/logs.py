"""Logs: the listener that writes one record per transition. Everything else only says what happened.

The message is for people; the same facts stand in ``extra`` under stable names, for machines. Control characters
from outside are escaped, so that one event is one line.
"""

import logging
from collections.abc import Callable
from typing import Any

from django.dispatch import Signal

from priqueue import events
from priqueue.clock import wall_ms
from priqueue.jobs import Claim, Failure, Job

logger = logging.getLogger("priqueue")

_CONTROL = {number: f"\\x{number:02x}" for number in (*range(32), *range(127, 160))}


def connect() -> None:
    """Let the listeners hear every event."""
    for signal, listener in _LISTENERS.items():
        signal.connect(listener, dispatch_uid=f"priqueue.logs.{listener.__name__}")


def _about(job: Job, **more: Any) -> dict[str, Any]:
    return {
        "job_id": job.id, "handler": job.name, "caller": job.caller,
        "correlation_id": job.correlation_id or job.id, **more,
    }  # fmt: skip


def _claimed(claim: Claim, **more: Any) -> dict[str, Any]:
    return _about(claim.job, lane=claim.lane, attempt=claim.attempt, worker=claim.worker_id, **more)


def _log(level: int, action: str, message: str, *args: object, **fields: Any) -> None:
    if logger.isEnabledFor(level):
        clean = [arg.translate(_CONTROL) if isinstance(arg, str) else arg for arg in args]
        logger.log(level, message, *clean, extra={"action": action, **fields})


def _enqueued(job: Job, **_: Any) -> None:
    _log(logging.INFO, "enqueue", "enqueued %s %s on %s", job.name, job.id, job.lane, **_about(job, lane=job.lane))


def _push_failed(job: Job, error: Exception, **_: Any) -> None:
    _log(
        logging.ERROR, "enqueue", "lost %s %s: the transaction has committed, but the queue did not take it: %s",
        job.name, job.id, str(error), **_about(job, lane=job.lane),
    )  # fmt: skip


def _promoted(number: int, **_: Any) -> None:
    _log(logging.DEBUG, "promote", "promoted %d", number, number=number)


def _claim(claim: Claim, **_: Any) -> None:
    wait_ms = max(0, wall_ms() - claim.ready_since_ms)
    job = claim.job
    _log(
        logging.INFO, "claim", "claimed %s %s from %s, attempt %d, after %d ms", job.name, job.id, claim.lane,
        claim.attempt, wait_ms, **_claimed(claim, wait_ms=wait_ms),
    )  # fmt: skip


def _acked(claim: Claim, run_s: float, **_: Any) -> None:
    run_ms, job = round(run_s * 1000), claim.job
    _log(logging.INFO, "ack", "done %s %s in %d ms", job.name, job.id, run_ms, **_claimed(claim, run_ms=run_ms))


def _retried(claim: Claim, failure: Failure, delay_s: float, note: str, **_: Any) -> None:
    job = claim.job
    _log(
        logging.WARNING, "retry", "failed %s %s, attempt %d of %d, again in %.1f s: %s: %s%s", job.name, job.id,
        claim.attempt, job.max_attempts, delay_s, failure.error, failure.message[:500], note and f" ({note})",
        **_claimed(claim, reason=failure.error, delay_s=delay_s),
    )  # fmt: skip


def _buried(claim: Claim, failure: Failure, **_: Any) -> None:
    job = claim.job
    _log(
        logging.ERROR, "bury", "buried %s %s after attempt %d of %d: %s: %s", job.name, job.id, claim.attempt,
        job.max_attempts, failure.error, failure.message[:500], **_claimed(claim, reason=failure.error),
    )  # fmt: skip


def _crashed(claim: Claim, failure: Failure, deaths: int, **_: Any) -> None:
    job = claim.job
    _log(
        logging.ERROR, "crash", "%s %s ended its process, %d times so far: %s", job.name, job.id,
        claim.crashes + deaths, failure.message, **_claimed(claim, reason=failure.message),
    )  # fmt: skip


def _released(claim: Claim, reason: str, **_: Any) -> None:
    job = claim.job
    _log(logging.INFO, "release", "released %s %s: %s", job.name, job.id, reason, **_claimed(claim, reason=reason))


def _lease_lost(claim: Claim, **_: Any) -> None:
    _log(
        logging.WARNING, "lease_lost", "lost the lease of %s %s: what this run does counts for nothing",
        claim.job.name, claim.job.id, **_claimed(claim),
    )  # fmt: skip


def _reclaimed(number: int, **_: Any) -> None:
    _log(logging.WARNING, "reclaim", "reclaimed %d whose worker was lost", number, number=number)


def _cancelled(job_id: str, **_: Any) -> None:
    _log(logging.INFO, "cancel", "cancelled %s", job_id, job_id=job_id)


def _letters(action: str) -> Callable[..., None]:
    def listener(job_ids: list[str], reason: str, **_: Any) -> None:
        _log(logging.INFO, action, "%sd %d dead letters: %s", action, len(job_ids), reason, reason=reason)

    listener.__name__ = f"_{action}d"
    return listener


def _replaced(job_id: str, copy: Job, reason: str, **_: Any) -> None:
    _log(
        logging.INFO, "replace", "replaced %s by %s %s on %s: %s", job_id, copy.name, copy.id, copy.lane, reason,
        **_about(copy, lane=copy.lane, reason=reason),
    )  # fmt: skip


def _paused(lane: str, caller: str, reason: str, **_: Any) -> None:
    _log(logging.WARNING, "pause", "%s paused %s: %s", caller, lane, reason, lane=lane, caller=caller)


def _resumed(lane: str, caller: str, reason: str, **_: Any) -> None:
    _log(logging.WARNING, "resume", "%s resumed %s: %s", caller, lane, reason, lane=lane, caller=caller)


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
    _log(logging.DEBUG, "audit", "stored %d audit events", number, number=number)


def _audit_marked(rows: list[Any], **_: Any) -> None:
    for row in rows:
        level = logging.ERROR if "conflict" in row.mark else logging.WARNING
        _log(
            level, "audit", "audit event %s of %s is marked: %s", row.stream_id, row.job or row.caller, row.mark,
            job_id=row.job, reason=row.mark,
        )  # fmt: skip


def _loop_failed(loop: str, error: Exception, wait_s: float, **_: Any) -> None:
    _log(
        logging.ERROR, "loop_failed", "%s failed, goes on in %.1f s: %s: %s", loop, wait_s, type(error).__name__,
        str(error), loop=loop,
    )  # fmt: skip


_LISTENERS: dict[Signal, Callable[..., None]] = {
    events.job_enqueued: _enqueued,
    events.push_failed: _push_failed,
    events.jobs_promoted: _promoted,
    events.job_claimed: _claim,
    events.job_acked: _acked,
    events.job_retried: _retried,
    events.job_buried: _buried,
    events.job_crashed: _crashed,
    events.job_released: _released,
    events.lease_lost: _lease_lost,
    events.jobs_reclaimed: _reclaimed,
    events.job_cancelled: _cancelled,
    events.jobs_requeued: _letters("requeue"),
    events.jobs_purged: _letters("purge"),
    events.job_replaced: _replaced,
    events.lane_paused: _paused,
    events.lane_resumed: _resumed,
    events.worker_registered: _registered,
    events.worker_draining: _draining,
    events.worker_left: _left,
    events.worker_failed: _failed,
    events.audit_stored: _audit_stored,
    events.audit_marked: _audit_marked,
    events.loop_failed: _loop_failed,
}

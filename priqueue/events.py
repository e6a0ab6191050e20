"""Events: every transition is said once, as a signal; logs and metrics listen. The core formats nothing.

Receivers get keyword arguments as listed. They are called in the process that made the change, after it, and one
that raises is logged by Django and disturbs nobody; nor does a log that raises in its turn.
"""

from typing import Any

from django.dispatch import Signal

job_enqueued = Signal(use_caching=True)  # job
push_failed = Signal()  # job, error: the push after the commit did not come through
jobs_promoted = Signal()  # number
jobs_claimed = Signal(use_caching=True)  # claims: all that came in one turn
jobs_acked = Signal(use_caching=True)  # claims, each with its run_ms: all that went in one turn
job_retried = Signal()  # claim, failure, delay_s, note
job_buried = Signal()  # claim, failure
job_crashed = Signal()  # claim, failure, deaths: the process that ran it, and it alone, died
job_released = Signal()  # claim, reason
lease_lost = Signal()  # claim: it was reclaimed while it ran, its outcome counts for nothing
jobs_reclaimed = Signal()  # number
job_cancelled = Signal()  # job_id
jobs_requeued = Signal()  # job_ids, reason
jobs_purged = Signal()  # job_ids, reason
job_replaced = Signal()  # job_id, copy, reason: a dead job's edited copy was enqueued in its place
lane_paused = Signal()  # lane, caller, reason
lane_resumed = Signal()  # lane, caller, reason
worker_registered = Signal()  # worker_id, lanes, concurrency
worker_draining = Signal()  # worker_id, in_flight
worker_left = Signal()  # worker_id
worker_failed = Signal()  # worker_id, fault: it ends, with exit code 1
audit_stored = Signal()  # number
audit_marked = Signal()  # rows: audit events that could not be stored as they were, or contradict a stored one
loop_failed = Signal()  # loop, error, wait_s


def send(signal: Signal, **what: Any) -> None:
    """Tell the listeners; with none, this costs next to nothing."""
    if signal.receivers:
        try:  # noqa: SIM105 (two for each job: a context manager costs as much as a listener)
            signal.send_robust(signal, **what)  # a sender that stays: who listens to it is looked up once
        except Exception:  # noqa: S110
            pass  # the transition is done: whoever tells of it must not be kept from going on

"""priqueue: a Redis-backed job queue for Django with three priority lanes, drained 6:3:1.

To follow a job's life, read the files in this order:

    lanes        the priority lists and their weights
    picker       which lane is next
    jobs         a job, its envelope, its claim, its failure
    signing      how an envelope proves where it comes from
    handlers     the functions that run jobs, and what they accept
    limits       how many jobs a caller may hand in
    client       how a job comes in: validate, wait for the commit, hand over
    coordinator  the only code that knows Redis: one script for each change of state
    ticker       what was delayed becomes ready when it is due
    worker       the claim loop: settle, claim, wait
    settler      outcomes on their way to the coordinator
    pool         the slots: where a run takes place, its time, and who kills a child
    crew         the children of a worker: started, replaced, let go
    children     a child as its parent sees it
    ears         how the claim loop hears its children
    orders       what a parent tells a child, on its way
    child        the process in which handlers run
    runner       runs beside each other in one process, in threads and on an event loop
    executor     one run: handler, outcome
    heartbeat    how a lease is kept
    retry        what follows a failure
    sweeper      what follows the loss of a worker
    dead_letters what is kept for a person
    runs         many letters requeued or purged, in steps
    operations   pause, resume, drain
    api          the HTTP door, for callers from outside
    audit        from the queue into rows that nobody changes, and the proof of it
"""

from priqueue.callers import acting_as
from priqueue.client import aenqueue, cancel, enqueue, enqueue_many, get, stats
from priqueue.exceptions import (
    Bury,
    ConfigurationError,
    InvalidCaller,
    InvalidDelay,
    InvalidLane,
    InvalidPayload,
    LeaseLost,
    NotHandedOver,
    PayloadTooLarge,
    PriqueueError,
    QueueFull,
    QueueUnavailable,
    RateLimited,
    Retry,
    Timeout,
    UnknownHandler,
    WorkerDraining,
    WorkerNotRegistered,
)
from priqueue.executor import current_job
from priqueue.handlers import job
from priqueue.jobs import Job, JobStatus

__all__ = [
    "Bury", "ConfigurationError", "InvalidCaller", "InvalidDelay", "InvalidLane", "InvalidPayload", "Job",
    "JobStatus", "LeaseLost", "NotHandedOver", "PayloadTooLarge", "PriqueueError", "QueueFull",
    "QueueUnavailable", "RateLimited", "Retry", "Timeout", "UnknownHandler", "WorkerDraining",
    "WorkerNotRegistered", "acting_as", "aenqueue", "cancel", "current_job", "enqueue", "enqueue_many", "get",
    "job", "stats",
]  # fmt: skip

"""Jobs: the values that travel through the queue, and the envelope they travel in.

A job is written once, as one line of JSON with a head in a fixed order, and the payload as its last member:

    {"v":1,"name":"shop.jobs.send_receipt","caller":"user:42","correlation_id":"…","lane":"high",…,"payload":{…}}

The payload's text is cut out of the line, never encoded again: the handler sees byte for byte what was
accepted. No head field can hold a quote or a backslash, so the first ``,"payload":`` is the real one and Lua
may read the head by a pattern, without decoding.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from math import inf
from typing import Any, Self

from pydantic_core import from_json
from uuid_utils import uuid7

from priqueue import callers, clock, traces
from priqueue.exceptions import InvalidDelay

ENVELOPE_VERSION = 1
MAX_DELAY = timedelta(days=3_653)  # ten years
_PAYLOAD = ',"payload":'
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_A_MS = timedelta(milliseconds=1)


class State(StrEnum):
    """Where a job is: in exactly one of these."""

    DELAYED = "delayed"  # waits for its time
    READY = "ready"  # in a lane
    IN_FLIGHT = "in flight"  # claimed and not yet settled
    DEAD = "dead"  # buried: kept for a person


class NewerEnvelope(ValueError):
    """The envelope was written by a newer version of priqueue."""


def new_id() -> str:
    """Return a fresh job id: a UUIDv7, so ids sort by time and grow within a process."""
    return str(uuid7())


def now() -> datetime:
    """Return this machine's time of day, aware, in UTC."""
    return from_ms(clock.wall_ms())


def from_ms(ms: float) -> datetime:
    """Return the aware UTC datetime of ``ms`` milliseconds since 1970."""
    return _EPOCH + ms * _A_MS  # a float of seconds would be a millisecond off now and then


def to_ms(moment: datetime) -> int:
    """Return the milliseconds since 1970 of an aware datetime, without a detour over floats."""
    return (moment - _EPOCH) // _A_MS


def due(delay: object, run_at: object, begin: datetime | None = None) -> tuple[int | None, datetime]:
    """Return the wait in ms, None when ``run_at`` is absolute, and the due time by this machine's clock.

    ``delay`` is None, seconds or a timedelta; ``run_at`` is None or an aware datetime. One in the past stays
    what it is: only the server's clock can tell that it is past, and then it means now. A delay counts from ``begin``,
    now if not given. Raises InvalidDelay.
    """
    if run_at is None:
        begin = begin or now()
        if delay is None:
            return 0, begin
        # Rounded up: a job is never early.
        delay_ms = -(-wait("delay", delay) // _A_MS)
        return delay_ms, begin + timedelta(milliseconds=delay_ms)
    if delay is not None:
        raise InvalidDelay("delay and run_at: give one of them, not both")
    return None, _instant(run_at)


def wait(field: str, value: object) -> timedelta:
    """Return a wait given as seconds or as a timedelta. Raises InvalidDelay naming the field."""
    seconds: object = value.total_seconds() if isinstance(value, timedelta) else value
    if not isinstance(seconds, int | float) or isinstance(seconds, bool):
        raise InvalidDelay(f"{field}: use seconds or a timedelta, not {type(value).__name__}")
    if not 0 <= seconds <= MAX_DELAY.total_seconds():  # false for NaN, too
        raise InvalidDelay(f"{field}: use a number of seconds from 0 to ten years")
    return value if isinstance(value, timedelta) else timedelta(seconds=seconds)


def _instant(run_at: object) -> datetime:
    """Return an aware datetime in UTC, whole ms, not before 1970. Raises InvalidDelay."""
    if not isinstance(run_at, datetime):
        raise InvalidDelay(f"run_at: use an aware datetime, not {type(run_at).__name__}")
    if run_at.utcoffset() is None:
        raise InvalidDelay("run_at: a datetime without a time zone; make it aware")
    ms = max(0, to_ms(run_at))
    if ms > to_ms(now() + MAX_DELAY):
        raise InvalidDelay(f"run_at: {run_at.isoformat()} is more than ten years ahead")
    return from_ms(ms)


def _check_limits(max_attempts: object, timeout_s: object) -> None:
    """Raise ValueError for limits with which no run could be counted or watched."""
    if type(max_attempts) is not int or max_attempts < 0:
        raise ValueError("the envelope's max_attempts is no whole number")
    if type(timeout_s) not in (int, float) or not 0 < timeout_s < inf:  # type: ignore[operator]
        raise ValueError("the envelope's timeout_s is no number of seconds")


@lru_cache(maxsize=1024)  # most jobs share these with many others; what is refused is not remembered
def _check_head(name: str, lane: str, caller: str) -> None:
    callers.check_word("name", name)
    callers.check_word("lane", lane)
    callers.check_word("caller", caller)


@dataclass(frozen=True, kw_only=True)  # without slots: ``of`` fills it in one step
class Job:
    """One unit of work: a handler's name and a payload, and how it wants to be run."""

    id: str = field(default_factory=new_id)
    name: str
    payload: Mapping[str, Any]
    lane: str = "default"
    #: ms from the server's "now" to the due time; None when ``run_at`` is an absolute wish
    delay_ms: int | None = 0
    #: when it is due, by this machine's estimate if ``delay_ms`` says how long to wait
    run_at: datetime | None = None
    max_attempts: int = 5
    #: seconds that one run may take
    timeout: float = 300
    caller: str = "system"
    #: "" stands for the job's own id
    correlation_id: str = ""
    enqueued_at: datetime = field(default_factory=now)
    #: id of the dead job of which this is an edited copy; "" for none
    replaces: str = ""
    #: the payload's exact text; encoded from ``payload`` when not given
    payload_json: str = field(default="", repr=False, compare=False)

    @classmethod
    def of(cls, **values: Any) -> Self:
        """Return a job of the values of all its fields, unchecked. To set them one by one is dear."""
        job = object.__new__(cls)
        object.__setattr__(job, "__dict__", values)
        return job

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> Self:
        """Return the job itself if its head may travel. Raises InvalidCaller, or ValueError."""
        try:
            _check_head(self.name, self.lane, self.caller)
        except TypeError:  # what cannot be looked up in its memory is no word
            _check_head.__wrapped__(self.name, self.lane, self.caller)
        if self.correlation_id:
            callers.check_word("correlation_id", self.correlation_id)
        if self.replaces:
            callers.check_word("replaces", self.replaces)
        if self.delay_ms is None and self.run_at is None:
            raise ValueError("a job without delay_ms needs a run_at")
        return self

    def encode(self) -> str:
        """Return the envelope: one line of JSON, as the head comment of this module shows it."""
        due = f'"run_at_ms":{to_ms(self.run_at)}' if self.delay_ms is None else f'"delay_ms":{self.delay_ms}'  # type: ignore[arg-type]
        replaces = f',"replaces":"{self.replaces}"' if self.replaces else ""
        return (
            f'{{"v":{ENVELOPE_VERSION},"name":"{self.name}","caller":"{self.caller}"'
            f',"correlation_id":"{self.correlation_id}","lane":"{self.lane}",{due}'
            f',"max_attempts":{self.max_attempts},"timeout_s":{self.timeout}'
            f',"enqueued_at_ms":{to_ms(self.enqueued_at)}{replaces}{_PAYLOAD}{self.payload_text()}}}'
        )

    def payload_text(self) -> str:
        """Return the payload as the JSON text that was accepted."""
        return self.payload_json or json.dumps(self.payload, ensure_ascii=False, allow_nan=False, separators=(",", ":"))

    @classmethod
    def decode(cls, job_id: str, envelope: str) -> Self:
        """Return the job that ``encode`` wrote.

        Raises NewerEnvelope for a version this code does not know and ValueError for what is no envelope.
        """
        try:
            return cls._decode(job_id, envelope)
        except (KeyError, TypeError, OverflowError, RecursionError) as fault:
            raise ValueError(f"no envelope: {fault!r}") from fault

    @classmethod
    def _decode(cls, job_id: str, envelope: str) -> Self:
        head_text, found, rest = envelope.partition(_PAYLOAD)
        head = from_json(head_text + "}" if found else envelope)
        if head["v"] > ENVELOPE_VERSION:
            raise NewerEnvelope(f"envelope version {head['v']}, this code knows {ENVELOPE_VERSION}")
        if not rest.endswith("}"):
            raise ValueError("the envelope holds no payload, or is cut short")
        _check_limits(head["max_attempts"], head["timeout_s"])
        payload_json = rest[:-1]
        enqueued_at_ms, delay_ms = head["enqueued_at_ms"], head.get("delay_ms")
        due_ms = head["run_at_ms"] if delay_ms is None else enqueued_at_ms + delay_ms
        enqueued_at = from_ms(enqueued_at_ms)
        return cls.of(
            id=job_id, name=head["name"], payload=from_json(payload_json), lane=head["lane"], delay_ms=delay_ms,
            run_at=enqueued_at if due_ms == enqueued_at_ms else from_ms(due_ms), max_attempts=head["max_attempts"],
            timeout=head["timeout_s"], caller=head["caller"], correlation_id=head["correlation_id"],
            enqueued_at=enqueued_at, replaces=head.get("replaces", ""), payload_json=payload_json,
        ).check()  # fmt: skip


@dataclass(slots=True, kw_only=True)  # not frozen: a run makes two, and frozen ones take three times as long
class Claim:
    """A job under a lease: the right to run it and to settle it once."""

    job: Job
    token: str
    worker_id: str
    lane: str
    #: failures so far + 1
    attempt: int
    #: workers that were lost while they held it
    crashes: int
    #: server ms at which the lease lapses unless it is beaten
    deadline_ms: int
    #: server ms at which it became ready
    ready_since_ms: int
    #: the process that ran it, and it alone, died before: it runs alone
    suspect: bool = False
    #: how long it ran, to be counted when it is settled; None when nobody measured that
    run_ms: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a run failed, in a form that every store takes: bounded, and valid UTF-8 without NUL."""

    #: the error's type, by which dead letters are grouped
    error: str
    message: str = ""
    traceback: str = ""

    @classmethod
    def of(cls, exception: BaseException) -> Self:
        """Return what is to be remembered of an exception. Never raises, whatever it is made of."""
        error, message, traceback = traces.render(exception)
        return cls(error=error, message=message, traceback=traceback)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One line of a job's trail: a failure, or a crash."""

    error: str
    message: str
    traceback: str
    worker: str
    attempt: int
    #: a lost worker, which counts against ``max_crashes`` and not against ``max_attempts``
    crash: bool
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """What is known of a job that is still in the queue."""

    job: Job
    state: State
    lane: str
    attempt: int
    crashes: int
    #: who holds it, while it is in flight
    worker: str | None
    #: when it is due, while it is delayed
    run_at: datetime | None
    trail: Sequence[Attempt] = ()

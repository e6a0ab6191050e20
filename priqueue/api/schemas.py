"""Schemas: the shapes of what comes in and goes out, with examples; the OpenAPI document is made of them.

What comes in is strict: no text for a number, no field that is not known.
"""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SkipValidation

from priqueue.jobs import State

_ID = "0197f0c2-5a7e-7c1c-8c9b-1f6a5b7d9e01"
_ENQUEUE = {"job": "shop.jobs.send_receipt", "payload": {"order_id": 7, "email": "a@b.c"}}
_ACCEPTED = {"id": _ID, "job": "shop.jobs.send_receipt", "lane": "high", "run_at": None}
_PROBLEM = {
    "type": "urn:priqueue:problem:invalid-lane", "title": "Invalid lane", "status": 422,
    "detail": "lane: not one that this caller may use", "correlation_id": _ID,
    "errors": [{"field": "lane", "reason": "lane: not one that this caller may use"}],
}  # fmt: skip
#: what an idempotency key may be: visible ASCII
KEY_PATTERN = r"^[!-~]{1,255}$"


def _example(**example: Any) -> Any:
    return {"examples": [example]}


class Enqueue(BaseModel):
    """A job to be enqueued, now or for later."""

    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra=_example(**_ENQUEUE, lane="high", delay=30)
    )

    job: Annotated[str, Field(max_length=200, description="the handler's name")]
    payload: Annotated[dict[str, Any], Field(description="its arguments, by name")] = {}
    lane: Annotated[str | None, Field(max_length=32, description="another lane than the handler's")] = None
    delay: Annotated[float | None, Field(ge=0, description="seconds to wait, up to ten years")] = None
    run_at: Annotated[
        str | None,
        Field(
            max_length=40,
            json_schema_extra={"format": "date-time"},
            description="when it is due, with an offset from UTC",
        ),
    ] = None
    idempotency_key: Annotated[
        str | None, Field(pattern=KEY_PATTERN, description="for a day, the same key and content are the same job")
    ] = None


class EnqueueBatch(BaseModel):
    """Jobs to be enqueued, each answered by itself."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra=_example(jobs=[_ENQUEUE]))

    jobs: Annotated[list[SkipValidation[Enqueue]], Field(min_length=1, max_length=100)]


class Accepted(BaseModel):
    """A job that is in."""

    model_config = ConfigDict(json_schema_extra=_example(**_ACCEPTED))

    id: str
    job: str
    lane: str
    run_at: datetime | None = Field(description="when it is due, by an estimate; null for at once")


class Fault(BaseModel):
    """A field, and what is wrong with it."""

    field: str
    reason: str


class ProblemOut(BaseModel):
    """An answer that is no success, after RFC 9457."""

    model_config = ConfigDict(title="Problem", json_schema_extra=_example(**_PROBLEM))

    type: str
    title: str
    status: int
    detail: str
    errors: list[Fault]
    correlation_id: str


class Result(BaseModel):
    """What became of one item of a batch: the job, or the problem."""

    status: int = Field(description="the status that the item alone would have got")
    job: Accepted | None = None
    problem: ProblemOut | None = None


class Results(BaseModel):
    """What became of each item, in their order."""

    model_config = ConfigDict(
        json_schema_extra=_example(results=[{"status": 202, "job": _ACCEPTED}, {"status": 422, "problem": _PROBLEM}])
    )

    results: list[Result]


class JobOut(BaseModel):
    """A job that is still in the queue."""

    model_config = ConfigDict(
        json_schema_extra=_example(
            **_ACCEPTED, state="ready", attempt=1, enqueued_at="2026-06-01T12:00:00Z", correlation_id=_ID
        )
    )

    id: str
    job: str
    lane: str
    state: Literal[State.DELAYED, State.READY, State.IN_FLIGHT, State.DEAD]
    attempt: int = Field(description="failures so far + 1; of a dead job its failures")
    run_at: datetime | None = Field(description="when it is due, while it is delayed")
    enqueued_at: datetime
    correlation_id: str


class LaneOut(BaseModel):
    """One lane."""

    name: str
    weight: int
    ready: int
    delayed: int
    in_flight: int
    oldest_ready_s: float
    paused: bool


class Lanes(BaseModel):
    """The lanes that the caller may use, in priority order."""

    model_config = ConfigDict(
        json_schema_extra=_example(
            lanes=[
                {
                    "name": "high", "weight": 6, "ready": 12, "delayed": 3, "in_flight": 8, "oldest_ready_s": 0.4,
                    "paused": False,
                }
            ]
        )
    )  # fmt: skip

    lanes: list[LaneOut]

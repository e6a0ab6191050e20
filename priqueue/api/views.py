"""Views: the operations of the HTTP door, each with all it may answer."""

import re
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Router, Status

from priqueue import events, wiring
from priqueue.api import schemas, submission
from priqueue.api.credentials import Known
from priqueue.api.problems import Problem, allowance_headers, correlation_id, problem_of
from priqueue.api.submission import Draft, Entry
from priqueue.coordinator.intake import Allowance
from priqueue.exceptions import PriqueueError
from priqueue.jobs import JobStatus, State

router = Router(tags=["jobs"])
_P = schemas.ProblemOut
_ANY = {401: _P, 403: _P, 500: _P, 503: _P}
_BODY = {400: _P, 411: _P, 413: _P, 415: _P, 422: _P, **_ANY}
#: read by hand: a model of headers took as long as the whole body
_KEY = {
    "parameters": [
        {
            "in": "header", "name": "Idempotency-Key", "required": False,
            "schema": {"type": "string", "pattern": schemas.KEY_PATTERN},
            "description": "for a day, the same key and content are the same job",
        }
    ]
}  # fmt: skip


@router.post(
    "/jobs", response={202: schemas.Accepted, 200: schemas.Accepted, 409: _P, 429: _P, **_BODY},
    operation_id="enqueue", summary="Enqueue a job", openapi_extra=_KEY,
)  # fmt: skip
def enqueue(request: HttpRequest, response: HttpResponse, item: schemas.Enqueue) -> Any:
    """Enqueue a job: 202. Under an idempotency key that was sent before with the same content: 200 and that job.

    The key is a field of the body, or the header Idempotency-Key.
    """
    item.idempotency_key = _idempotency_key(request, item)
    known = _known(request)
    (outcome,) = submission.hand_in([submission.draft(item, known, correlation_id(request))], known)
    if isinstance(outcome, Problem):
        raise outcome
    _add_rate_headers(response, outcome.allowance)
    response["Location"] = f"{request.path}/{outcome.id}"
    return Status(202 if outcome.is_new else 200, _accepted(outcome))


@router.post(
    "/jobs/batch", response={200: schemas.Results, **_BODY},
    operation_id="enqueue_batch", summary="Enqueue many jobs",
)  # fmt: skip
def enqueue_batch(request: HttpRequest, response: HttpResponse, batch: schemas.EnqueueBatch) -> Any:
    """Enqueue up to a hundred jobs. Each is answered by itself: some may be in, and others refused."""
    known = _known(request)
    drafts = [_draft_or_problem(item, known, request) for item in batch.jobs]
    good = [each for each in drafts if isinstance(each, Draft)]
    entered = iter(submission.hand_in(good, known))
    outcomes = [next(entered) if isinstance(each, Draft) else each for each in drafts]
    allowances = [each.allowance for each in outcomes if isinstance(each, Entry)]
    _add_rate_headers(response, allowances[-1] if allowances else None)
    return {"results": [_result(each, request) for each in outcomes]}


@router.get(
    "/jobs/{job_id}", response={200: schemas.JobOut, 404: _P, 422: _P, **_ANY},
    operation_id="get_job", summary="Look at a job",
)  # fmt: skip
def get_job(request: HttpRequest, job_id: UUID) -> Any:
    """Say where a job of the caller is. One that is done, or another caller's, is not found."""
    status = _own(request, job_id)
    return schemas.JobOut(
        id=status.job.id, job=status.job.name, lane=status.lane, state=status.state, attempt=status.attempt,
        run_at=status.run_at, enqueued_at=status.job.enqueued_at,
        correlation_id=status.job.correlation_id or status.job.id,
    )  # fmt: skip


@router.delete(
    "/jobs/{job_id}", response={204: None, 404: _P, 409: _P, 422: _P, **_ANY},
    operation_id="cancel_job", summary="Cancel a job",
)  # fmt: skip
def cancel_job(request: HttpRequest, job_id: UUID) -> Any:
    """Cancel a job of the caller that has not been started."""
    status = _own(request, job_id)
    if status.state in (State.IN_FLIGHT, State.DEAD) or not wiring.door().cancel(
        status.job.id, lane=status.lane, caller=_known(request).caller, reason="over HTTP"
    ):
        raise Problem(409, "not-cancellable", "The job has been started; it cannot be cancelled any more.")
    events.send(events.job_cancelled, job_id=status.job.id)
    return Status(204, None)


@router.get(
    "/lanes", response={200: schemas.Lanes, **_ANY}, operation_id="list_lanes", summary="Look at the lanes",
    tags=["lanes"],
)  # fmt: skip
def list_lanes(request: HttpRequest) -> Any:
    """Give the figures of the lanes that the caller may use."""
    known = _known(request)
    found = wiring.door_inspector().stats().lanes
    lanes = [
        schemas.LaneOut(
            name=name, weight=lane.weight, ready=lane.ready, delayed=lane.delayed, in_flight=lane.in_flight,
            oldest_ready_s=lane.oldest_ready_s, paused=lane.paused is not None,
        )
        for name, lane in found.items()
        if known.may_use_lane(name)
    ]  # fmt: skip
    return schemas.Lanes(lanes=lanes)


def _idempotency_key(request: HttpRequest, item: schemas.Enqueue) -> str | None:
    key: str | None = request.META.get("HTTP_IDEMPOTENCY_KEY")
    if key is None:
        return item.idempotency_key
    if not re.fullmatch(schemas.KEY_PATTERN, key) or item.idempotency_key not in (None, key):
        told = "idempotency_key: the header Idempotency-Key is not visible ASCII, or the body has another"
        raise Problem(422, "invalid-request", told, field="idempotency_key")
    return key


def _known(request: HttpRequest) -> Known:
    known: Known = request.auth  # type: ignore[attr-defined]
    return known


def _own(request: HttpRequest, job_id: UUID) -> JobStatus:
    """Return the state of a job of the caller. Raises Problem: another caller's is as unknown as none at all."""
    status = wiring.door_inspector().job(str(job_id))
    if status is None or status.job.caller != _known(request).caller:
        raise Problem(404, "not-found", "No job of this caller: it is done, cancelled or purged, or there was none.")
    return status


def _draft_or_problem(item: object, known: Known, request: HttpRequest) -> Draft | Problem:
    try:
        return submission.draft(submission.parsed(item), known, correlation_id(request))
    except (Problem, PriqueueError) as error:
        return problem_of(error)


def _result(outcome: Entry | Problem, request: HttpRequest) -> schemas.Result:
    if isinstance(outcome, Problem):
        body = schemas.ProblemOut(**outcome.body(correlation_id(request)))
        return schemas.Result(status=outcome.status, problem=body)
    return schemas.Result(status=202 if outcome.is_new else 200, job=_accepted(outcome))


def _accepted(entry: Entry) -> schemas.Accepted:
    return schemas.Accepted(id=entry.id, job=entry.job.name, lane=entry.job.lane, run_at=entry.run_at)


def _add_rate_headers(response: HttpResponse, allowance: Allowance | None) -> None:
    for name, value in allowance_headers(allowance).items():
        response[name] = value

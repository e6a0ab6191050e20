"""Problems: every answer that is no success, as RFC 9457 has it.

Outsiders are told what is wrong with what they sent, by field. Of what is wrong inside they get a correlation id; the
log has the whole error under the same id.
"""

import logging
import math
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.db import DatabaseError
from django.http import Http404, HttpRequest, JsonResponse, UnreadablePostError
from ninja.errors import AuthenticationError, HttpError, ValidationError

from priqueue import callers, middleware
from priqueue.coordinator.intake import Allowance
from priqueue.exceptions import (
    InvalidCaller,
    InvalidDelay,
    InvalidLane,
    InvalidPayload,
    PayloadTooLarge,
    QueueFull,
    QueueUnavailable,
    RateLimited,
)
from priqueue.limits import Limit
from priqueue.logs.lines import escaped

MEDIA_TYPE = "application/problem+json"
ID_HEADER = "X-Request-ID"
_FULL_S, _UNAVAILABLE_S = 10, 2
logger = logging.getLogger("priqueue.api")


class Problem(Exception):
    """An answer that is no success: its status, a word for programs, a sentence for people, and the fields at fault."""

    def __init__(
        self, status: int, word: str, detail: str, *, field: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status, self.word, self.detail = status, word, detail
        self.errors = [{"field": field, "reason": detail}] if field else []
        self.headers = dict(headers or {})

    def body(self, correlation_id: str) -> dict[str, Any]:
        """Return what is sent."""
        return {
            "type": f"urn:priqueue:problem:{self.word}", "title": self.word.replace("-", " ").capitalize(),
            "status": self.status, "detail": self.detail, "errors": self.errors, "correlation_id": correlation_id,
        }  # fmt: skip


def correlation_id(request: HttpRequest) -> str:
    """Return the id under which a request is known: in its answer, its log lines, its jobs and their audit events."""
    known: str | None = getattr(request, "_priqueue_correlation_id", None)
    if known is None:
        known = callers.correlation_id() or middleware.correlation_id(request)
        request._priqueue_correlation_id = known  # type: ignore[attr-defined]
    return known


def answer(request: HttpRequest, error: Any) -> JsonResponse:
    """Return the answer for an error, and log what it does not tell."""
    problem, known = problem_of(error), correlation_id(request)
    if problem.status >= 500:
        _log(request, error, problem, known)
    return JsonResponse(problem.body(known), status=problem.status, content_type=MEDIA_TYPE, headers=problem.headers)


def problem_of(error: BaseException) -> Problem:
    """Return the problem that an error is to outsiders. What is not known here is a fault of ours, and not told."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, HttpError) and error.__cause__ is not None:  # what the body's parser raised
        return problem_of(error.__cause__)
    if isinstance(error, ValidationError):
        return invalid(error.errors)
    known = next((make for kind, make in _KNOWN if isinstance(error, kind)), None)
    if known is not None:
        return known(error)
    return Problem(500, "internal-error", "Something went wrong here. The correlation id stands for what it was.")


def invalid(errors: Sequence[Mapping[str, Any]]) -> Problem:
    """Return the problem of what does not have the right shape."""
    found = [{"field": _field(error["loc"]), "reason": str(error["msg"])[:300]} for error in errors[:10]]
    told = "; ".join(f"{each['field']}: {each['reason']}" for each in found)
    problem = Problem(422, "invalid-request", told)
    problem.errors = found
    return problem


def _field(place: Sequence[object]) -> str:
    """Return a place without the names that only the code has: ("body", "item", "lane") is lane."""
    inner = [str(part)[:60] for part in place[:10]]
    if inner[:1] in (["body"], ["path"], ["header"]):
        inner = inner[2:] if inner[0] == "body" else inner[1:]
    return ".".join(inner) or "body"


def rate_headers(limit: Limit, left: int, full_in_s: float) -> dict[str, str]:
    """Return the RateLimit headers: the policy as it is configured, and what is left of it."""
    return {
        "RateLimit-Policy": f'"default";q={limit.burst};w={max(1, math.ceil(limit.burst * limit.interval_us / 1e6))}',
        "RateLimit": f'"default";r={left};t={math.ceil(full_in_s)}',
    }


def allowance_headers(allowance: Allowance | None) -> dict[str, str]:
    """Return the RateLimit headers of an answer that was admitted."""
    return rate_headers(allowance.limit, allowance.left, allowance.full_in_s) if allowance else {}


def rate_limited(error: RateLimited, limit: Limit | None = None) -> Problem:
    """Return the problem of a caller that is over its rate; with ``limit``, and its headers."""
    after_s = math.ceil(error.retry_after_s) if math.isfinite(error.retry_after_s) else 1
    headers = {"Retry-After": str(max(1, after_s))}
    if limit is not None:
        headers |= rate_headers(limit, 0, after_s)
    return Problem(429, "rate-limited", "Over the rate limit; nothing was enqueued.", headers=headers)


def _full(_: Exception) -> Problem:
    return Problem(503, "queue-full", "The queue takes no more jobs now.", headers={"Retry-After": str(_FULL_S)})


def _unavailable(_: Exception) -> Problem:
    told = "The queue does not answer. What was asked may or may not have been done."
    return Problem(503, "queue-unavailable", told, headers={"Retry-After": str(_UNAVAILABLE_S)})


def _too_large(error: Exception) -> Problem:
    return Problem(413, "too-large", str(error), field="payload")


def unauthorized() -> Problem:
    """Return the problem of a caller nobody knows; it does not say what was wrong."""
    told = "Send a valid API key as Authorization: Bearer, or log in."
    return Problem(401, "unauthorized", told, headers={"WWW-Authenticate": 'Bearer realm="priqueue"'})


def not_allowed(methods: Iterable[str]) -> Problem:
    """Return the problem of a method that an address does not take; it names those that it takes."""
    told = "This address does not take this method; the header Allow names those it takes."
    return Problem(405, "method-not-allowed", told, headers={"Allow": ", ".join(sorted(methods))})


def _delay(error: Exception) -> Problem:
    field = str(error).partition(":")[0]
    return Problem(422, "invalid-delay", str(error), field=field if field in ("delay", "run_at") else "delay")


_KNOWN: tuple[tuple[type[BaseException], Callable[[Any], Problem]], ...] = (
    (Http404, lambda error: Problem(404, "not-found", "There is nothing at this address.")),
    (AuthenticationError, lambda error: unauthorized()),
    (RateLimited, rate_limited),
    (QueueFull, _full),
    (QueueUnavailable, _unavailable),
    (DatabaseError, _unavailable),
    (PayloadTooLarge, _too_large),
    (InvalidDelay, _delay),
    (InvalidPayload, lambda error: Problem(422, "invalid-payload", str(error), field="payload")),
    (InvalidLane, lambda error: Problem(422, "invalid-lane", str(error), field="lane")),
    (InvalidCaller, lambda error: Problem(422, "invalid-request", str(error))),
    (RequestDataTooBig, lambda error: Problem(413, "too-large", "The body is larger than this server takes.")),
    (UnreadablePostError, lambda error: Problem(400, "not-json", "The body ended before its announced length.")),
)


def _log(request: HttpRequest, error: Exception, problem: Problem, known: str) -> None:
    """Write the whole error as one record, no line of which can be taken for another record."""
    whole = "".join(traceback.format_exception(error)) if problem.status == 500 else f"{type(error).__name__}: {error}"
    lines = "\n  | ".join(escaped(line) for line in whole.splitlines())
    logger.log(
        logging.ERROR if problem.status == 500 else logging.WARNING,
        "%s %s under %s: %s",
        request.method, problem.word, known, lines,
        extra={"action": "api", "correlation_id": known, "reason": problem.word},
    )  # fmt: skip

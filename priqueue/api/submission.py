"""Submission: from what was sent to a job, or to the field that is wrong; then through the limits and into the queue.

Every check comes before the first write: the handler by the caller's list, the lane by exact match, the time, the
payload by the handler's signature; then, in one step with the job itself, its idempotency key, room and rate.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pydantic import ValidationError

from priqueue import client, events, wiring
from priqueue.api.credentials import Known
from priqueue.api.problems import Problem, invalid, problem_of, rate_limited
from priqueue.api.schemas import Enqueue
from priqueue.coordinator.calls import born_ms, mark
from priqueue.coordinator.intake import Allowance, Taken
from priqueue.exceptions import InvalidDelay, InvalidPayload, QueueFull, RateLimited
from priqueue.handlers import AnyHandler, registry
from priqueue.jobs import Job, from_ms
from priqueue.limits import Rule

_INSTANT = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?([Zz]|[+-]\d\d:\d\d)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Entry:
    """A job that is in: its id, which may be that of an earlier one with the same idempotency key."""

    job: Job
    id: str
    is_for_later: bool
    allowance: Allowance | None

    @property
    def is_new(self) -> bool:
        """Whether it came in just now."""
        return self.id == self.job.id

    @property
    def run_at(self) -> datetime | None:
        """When it is due; None for at once."""
        if not self.is_for_later or self.is_new or self.job.delay_ms is None:
            return self.job.run_at if self.is_for_later else None
        return from_ms(born_ms(self.id)) + timedelta(milliseconds=self.job.delay_ms)


@dataclass(frozen=True, slots=True)
class Draft:
    """A job that may be handed in, and its mark: "" without an idempotency key."""

    job: Job
    mark: str
    is_for_later: bool


def draft(item: Enqueue, known: Known, correlation_id: str) -> Draft:
    """Return the job that was asked for. Raises Problem, PriqueueError, or another error for a fault of ours."""
    handler = _handler(item.job, known)
    lane = handler.lane or "default" if item.lane is None else item.lane
    if not known.may_use_lane(lane) or lane not in wiring.settings().lane_names:
        raise Problem(422, "invalid-lane", "lane: not one that this caller may use", field="lane")
    when = (item.delay, _instant(item.run_at))
    job = client.prepare(handler, item.payload, lane, when, (known.caller, correlation_id))
    key = item.idempotency_key
    return Draft(job, mark(known.caller, key, _content(item)) if key else "", bool(item.delay or item.run_at))


def hand_in(drafts: Sequence[Draft], known: Known) -> list[Entry | Problem]:
    """Hand jobs in; return what became of each. Raises QueueFull and QueueUnavailable where all have met the same."""
    rule, jobs = known.rule, [each.job for each in drafts]
    if not jobs:
        return []
    outcomes = wiring.door().enqueue_once(jobs, [each.mark for each in drafts], rule)
    entries = [_outcome(each, said, rule) for each, said in zip(drafts, outcomes, strict=True)]
    for entry in entries:
        if isinstance(entry, Entry) and entry.is_new:
            events.send(events.job_enqueued, job=entry.job)
    return entries


def _outcome(each: Draft, said: Taken | RateLimited | QueueFull | None, rule: Rule | None) -> Entry | Problem:
    if isinstance(said, RateLimited):
        return rate_limited(said, rule.limit if rule else None)
    if isinstance(said, QueueFull):
        return problem_of(said)
    if said is None:
        told = "idempotency_key: it stands for a job with other content"
        return Problem(409, "idempotency-conflict", told, field="idempotency_key")
    return Entry(each.job, said.job_id, each.is_for_later, said.allowance)


def parsed(item: object) -> Enqueue:
    """Return an item of a batch in its shape. Raises Problem."""
    try:
        return Enqueue.model_validate(item)
    except ValidationError as fault:
        raise invalid([{"loc": each["loc"], "msg": each["msg"]} for each in fault.errors()]) from None


def _handler(name: str, known: Known) -> AnyHandler:
    found = registry.find(name)
    if found is None or not known.may_use(found):
        # One answer for both: who may not use a handler does not learn that there is one.
        raise Problem(422, "unknown-job", "job: not one that this caller may enqueue", field="job")
    try:
        _ = found.signature.validator
    except InvalidPayload as fault:
        raise RuntimeError(f"{found.name} cannot be used") from fault
    return found


def _instant(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        if _INSTANT.fullmatch(text):
            return datetime.fromisoformat(text.upper())
    except ValueError:  # a 30th of February
        pass
    raise InvalidDelay("run_at: not a date and time as of ISO 8601, such as 2030-06-01T12:00:00Z")


def _content(item: Enqueue) -> str:
    """Return what has to be the same under the same key, in one order whatever the order it was sent in."""
    return json.dumps(item.model_dump(exclude={"idempotency_key"}), sort_keys=True)

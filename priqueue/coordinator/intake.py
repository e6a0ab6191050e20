"""Intake: how jobs come into the queue, as a part of the Coordinator.

1. ``admit`` asks, before anything is written, whether there is room in their lanes and whether their caller's rate
   allows them; where nothing limits them it asks nobody
2. ``enqueue`` and ``enqueue_many`` take them in; what was admitted is not refused for room or rate any more, however
   late it comes
3. ``enqueue_once`` does both in one step, job by job, and with idempotency keys
4. ``report`` makes audit events of what was refused
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from priqueue.conf import Settings
from priqueue.coordinator import calls
from priqueue.coordinator.owed import Owed
from priqueue.coordinator.scripts import Begun, Call, Scripts
from priqueue.exceptions import NotHandedOver, QueueFull, RateLimited
from priqueue.jobs import Job
from priqueue.limits import Limit, Rule


@dataclass(frozen=True, slots=True)
class Allowance:
    """What is left to a caller: jobs of its burst, and seconds until it has the whole burst again."""

    limit: Limit
    left: int
    full_in_s: float


@dataclass(frozen=True, slots=True)
class Taken:
    """A job that is in: its id, or that of the job that came in before under the same mark."""

    job_id: str
    allowance: Allowance | None = None


class Intake:
    """The side of the Coordinator where jobs come in."""

    settings: Settings
    _scripts: Scripts
    _owed: Owed

    def admit(self, jobs: Sequence[Job], rule: Rule | None = None) -> Allowance | None:
        """Check that the jobs of one caller may come in, all or none; return what its limit leaves it, if it has one.

        Raises QueueFull where a lane would hold more than MAX_READY, and RateLimited.
        """
        if not jobs or not self._is_limited(jobs, rule):
            return None
        lanes = Counter(job.lane for job in jobs)
        (answer,) = self._scripts.run(calls.admit(jobs[0], lanes, len(jobs), self.settings, rule))
        return self._allowance(answer, rule, len(jobs))

    def _is_limited(self, jobs: Sequence[Job], rule: Rule | None) -> bool:
        if rule is not None and rule.limit is not None:
            return True
        most = self.settings.max_ready_of
        return self.settings.max_ready is not None and any(most(job.lane) is not None for job in jobs)

    def _allowance(self, answer: Sequence[str], rule: Rule | None, number: int) -> Allowance | None:
        said, limit = answer[0], rule.limit if rule else None
        if said == "full":
            most = self.settings.max_ready_of(answer[1])
            raise QueueFull(f"lane {answer[1]} holds {answer[2]} ready jobs; MAX_READY is {most}")
        if limit is None:
            return None
        if said == "limited":
            raise _rate_limited(limit, int(answer[1]), number)
        return Allowance(limit, int(answer[1]), int(answer[2]) / 1e6)

    def enqueue(self, job: Job) -> bool:
        """Take a job in; return False when it was there already. Raises QueueFull at the memory limit."""
        try:
            taken = bool(self._scripts.run(calls.enqueue([job], self.settings))[0][0])
        except NotHandedOver as error:
            raise type(error)(f"job {job.id}: {error}", job_id=job.id) from error
        self._owed.pay()
        return taken

    def enqueue_many(self, jobs: Sequence[Job]) -> None:
        """Take jobs in, in their order within each lane, by round trips of bounded size.

        Raises QueueFull with ``job_id``: the first job that was not taken in; those after it were in part, where they
        have several lanes. Raises QueueUnavailable with ``job_id``: the first job that may not have been taken in.
        """
        under_way: Callable[[], None] | None = None
        for batch in calls.batches(jobs):
            groups = calls.by_lane(batch)
            # While the server is at the batch before.
            asked = [calls.enqueue(group, self.settings) for group in groups]
            if under_way:
                under_way()
            under_way = partial(_await, self._scripts.begin(*asked), groups, batch[0].id)
        if under_way:
            under_way()
        self._owed.pay()

    def enqueue_once(
        self, jobs: Sequence[Job], marks: Sequence[str], rule: Rule | None = None
    ) -> list[Taken | RateLimited | QueueFull | None]:
        """Take in, one by one, those jobs of one caller that the limits admit, a hundred at most, in one round trip.

        Each comes in under a mark (``calls.mark``), or none, "". Return what became of each; None where its mark stands
        for other content. Raises QueueFull where the memory limit kept all of them out, and QueueUnavailable.
        """
        marked = {job.id: mark for job, mark in zip(jobs, marks, strict=True)}
        groups = calls.by_lane(jobs)
        answers = self._scripts.run_each(*(calls.enqueue_once(group, marked, self.settings, rule) for group in groups))
        refused = [answer for answer in answers if isinstance(answer, QueueFull)]
        if refused and len(refused) == len(answers):
            raise refused[0]
        self._owed.pay()
        said: dict[str, Any] = {}
        for group, answer in zip(groups, answers, strict=True):
            codes = [answer] * len(group) if isinstance(answer, QueueFull) else answer
            said |= zip((job.id for job in group), codes, strict=True)
        return [self._taken(job, said[job.id], rule) for job in jobs]

    def _taken(self, job: Job, said: Any, rule: Rule | None) -> Taken | RateLimited | QueueFull | None:
        if isinstance(said, QueueFull):
            return said
        if isinstance(said, list):
            try:
                return Taken(job.id, self._allowance(said, rule, 1))
            except (RateLimited, QueueFull) as refusal:
                return refusal
        if said == -1:
            return None
        return Taken(said if isinstance(said, str) else job.id)

    def report(self, limit: int = 100) -> int:
        """Write an audit event for each caller whose minute of refusals is over, ``limit`` at most; return how many."""
        return int(self._scripts.run(Call("report", (limit,)))[0])


def _await(begun: Begun, groups: Sequence[Sequence[Job]], first: str) -> None:
    """Wait until a batch is in. Raises QueueFull and QueueUnavailable with the first job that may not be."""
    try:
        for group, answer in zip(groups, begun(), strict=True):
            if isinstance(answer, QueueFull):
                first = group[0].id
                raise answer
    except NotHandedOver as error:
        raise type(error)(f"from job {first} on: {error}", job_id=first) from error


def _rate_limited(limit: Limit, wait_us: int, number: int) -> RateLimited:
    if wait_us < 0:
        said = f"{number} jobs at once are more than a burst of the rate limit {limit}; hand over fewer"
        return RateLimited(said, retry_after_s=math.inf)
    wait_s = wait_us / 1e6
    return RateLimited(f"over the rate limit {limit}; try again in {wait_s:.3f} s", retry_after_s=wait_s)

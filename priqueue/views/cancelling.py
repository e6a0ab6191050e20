"""Cancelling: to delete a job that waits."""

from typing import Any

from django.http import HttpResponse

from priqueue import operations
from priqueue.jobs import JobStatus
from priqueue.views.confirming import Outcome, Question, ReasonForm, confirmed
from priqueue.views.visit import Visit
from priqueue.words import short_id


def cancel(visit: Visit, job: str) -> HttpResponse:
    """Cancel a ready or delayed job."""
    with visit.desk.breaker.trying():
        status = visit.desk.lanes.job(job)
    back = visit.url("lane", lane=status.lane) if status else visit.home
    question = Question(
        title=f"Cancel job {short_id(job)}?",
        facts=[
            _what(visit, job, status),
            "It is deleted, with its payload and its trail, and will not run. This cannot be undone.",
        ],
        button="Cancel 1 job", back=back, form=ReasonForm(visit.request.POST or None), danger=True,
        crumbs=[(f"Lane {status.lane}", back)] if status else [],
    )  # fmt: skip

    def act(said: dict[str, Any]) -> Outcome:
        refused = operations.cancel(job, said["reason"])
        if refused is None:
            return Outcome(f"Job {job} is cancelled: {said['reason']}", back)
        why = {
            "in flight": f"Too late: {refused.worker} has claimed it.",
            "dead": "It is a dead letter by now.",
            "gone": "It is not in the queue any more.",
        }
        return Outcome(f"{why[refused.state]} Nothing was changed.", back, "warning")

    return confirmed(visit, question, act)


def _what(visit: Visit, job: str, status: JobStatus | None) -> str:
    if status is None:
        return f"Job {job} is not in the queue any more."
    visit.people.expect([status.job.caller])
    caller = visit.people.told(status.job.caller)
    return f"Job {job}: {status.job.name} in {status.lane}, {status.state}, from {caller}."

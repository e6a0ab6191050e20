"""Workers: who is there, what each is running, and to ask one to leave."""

from typing import Any

from django.http import HttpResponse

from priqueue import operations
from priqueue.views.board import workers as rows_of
from priqueue.views.confirming import Outcome, Question, ReasonForm, confirmed
from priqueue.views.visit import Visit
from priqueue.words import amount

_SHOWN, _HELD = 50, 20


def workers(visit: Visit) -> HttpResponse:
    """Show the workers and the jobs that they hold."""
    rows = rows_of(visit.now(), visit.desk.settings)
    shown = rows[:_SHOWN]
    held = [job_id for row in shown for job_id in row.held[:_HELD]]
    with visit.desk.breaker.trying():
        jobs = visit.desk.lanes.jobs(held)
    visit.people.expect(job.caller for job in jobs.values())
    context = {
        "rows": [(row, [(job_id, jobs.get(job_id)) for job_id in row.held[:_HELD]]) for row in shown],
        "more": len(rows) - len(shown), "held": _HELD,
    }  # fmt: skip
    return visit.render("workers_page.html", "Workers", context)


def drain(visit: Visit, worker: str) -> HttpResponse:
    """Ask a worker to leave."""
    found = next((known for known in visit.now().stats.workers if known.id == worker), None)
    back = visit.url("workers")
    holds = amount(found.in_flight, "job") if found else "what it holds"
    question = Question(
        title=f"Drain {worker}?",
        facts=[
            f"{worker} claims no more jobs, finishes {holds} and leaves.",
            "To undo it, start the worker again.",
            *([] if found else ["It is not registered any more, so there may be nothing to do."]),
        ],
        button="Drain this worker", back=back, form=ReasonForm(visit.request.POST or None),
        crumbs=[("Workers", back)],
    )  # fmt: skip

    def act(said: dict[str, Any]) -> Outcome:
        if operations.drain(worker, said["reason"]):
            return Outcome(f"Worker {worker} was asked to drain: {said['reason']}", back)
        return Outcome(f"Worker {worker} is not registered any more. Nothing was changed.", back, "warning")

    return confirmed(visit, question, act)

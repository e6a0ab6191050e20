"""Jobs: where a job is, asked for by its id or by a correlation id, from one field on every page."""

import re
from typing import Any

from django.http import HttpResponse, HttpResponseRedirect, QueryDict

from priqueue.jobs import JobStatus, State
from priqueue.views import life, story
from priqueue.views.letter import shown
from priqueue.views.life import Life
from priqueue.views.visit import PERMISSIONS, Visit
from priqueue.words import short_id

#: what comes along when an id is copied: quotes, brackets, commas and blanks around it, also such as nobody sees
_WITH_IT = r"[\s\"'`<>()\[\]{},;\u2018-\u201f\u00ab\u00bb\u200b-\u200f\u2060\ufeff]+"
_AROUND = re.compile(f"^{_WITH_IT}|{_WITH_IT}$")
_LONGEST = 200
_LISTED = 50


def jobs(visit: Visit) -> HttpResponse:
    """Show where a job is, or the jobs of a request."""
    wanted = cleaned(visit.request.GET.get("id", ""))
    if not wanted:
        return visit.render("jobs.html", "Find a job", {"wanted": ""})
    with visit.desk.breaker.trying():
        status = visit.desk.letters.job(wanted)
    known = life.of_job(visit, wanted)
    if status:
        return _found(visit, status, known)
    if not known.rows and not known.why_not:
        request = life.of_request(visit, wanted)
        if len(request.jobs) == 1:
            return HttpResponseRedirect(f"{visit.url('jobs')}?{_query(request.jobs[0])}")
        if request.jobs:
            return _listed(visit, wanted, request)
    context = {
        "wanted": wanted, "life": known, "end": known.end, "rows": life.seen(visit, known), "job_id": wanted,
    }  # fmt: skip
    found = known.rows or known.why_not
    return visit.render("jobs.html", "Not in the queue", context, status=200 if found else 404)


def cleaned(text: str) -> str:
    """Return an id without what was pasted along with it; "" for what cannot be one."""
    text = _AROUND.sub("", text[:2000])
    return text if len(text) <= _LONGEST and "\0" not in text else ""


def _found(visit: Visit, status: JobStatus, known: Life) -> HttpResponse:
    visit.people.expect([status.job.caller])
    context = {
        "status": status, "job": status.job, **shown(visit, status.job), "attempts": story.told(status.trail),
        "timeline": story.timeline(status.job, status.trail), "life": known, "rows": life.seen(visit, known),
        "may_cancel": status.state in (State.READY, State.DELAYED), "is_dead": status.state is State.DEAD,
        "wanted": status.job.id, "payload_permission": PERMISSIONS["view_payload"],
    }  # fmt: skip
    return visit.render("job.html", f"Job {short_id(status.job.id)}", context)


def _listed(visit: Visit, wanted: str, request: Life) -> HttpResponse:
    with visit.desk.breaker.trying():
        states = {job_id: visit.desk.letters.job(job_id) for job_id in request.jobs[:_LISTED]}
    found: dict[str, Any] = {"wanted": wanted, "states": states, "more": max(0, len(request.jobs) - _LISTED)}
    return visit.render("jobs.html", f"{len(request.jobs)} jobs of one request", found)


def _query(job_id: str) -> str:
    query = QueryDict(mutable=True)
    query["id"] = job_id
    return query.urlencode()

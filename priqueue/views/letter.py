"""Letter: one dead letter, and why it failed; or where it went, when it is a dead letter no more."""

import json
from typing import Any

from django.http import HttpResponse

from priqueue.coordinator.letters import OpenedLetter
from priqueue.jobs import Job
from priqueue.views import life, story, taken
from priqueue.views.trace import SHOWN_CHARS
from priqueue.views.visit import PERMISSIONS, Visit
from priqueue.views.way import Way, way


def letter(visit: Visit, job: str) -> HttpResponse:
    """Show a letter, or what became of it."""
    came = way(visit)
    with visit.desk.breaker.trying():
        opened = visit.desk.letters.open(job)
        causes = visit.desk.letters.causes() if opened else {}
        steps = _steps(came, job)
    if opened is None:
        return _gone(visit, job, steps)
    known = life.of_job(visit, job)
    visit.people.expect([opened.letter.caller])
    context = {
        "opened": opened, "letter": opened.letter, "job": opened.job, **shown(visit, opened.job),
        "attempts": story.told(opened.trail), "like_this": causes.get(opened.letter.cause, 1) - 1,
        "timeline": story.timeline(opened.job, opened.trail, [("buried", opened.letter.buried_at)]),
        "life": known, "rows": life.seen(visit, known), "replacement": taken.replacement(known.rows),
        "payload_permission": PERMISSIONS["view_payload"],
        **steps,
    }  # fmt: skip
    return visit.render("letter.html", title_of(visit, opened), context, crumbs=[("Dead letters", steps["back"])])


def _steps(came: Way, job: str) -> dict[str, Any]:
    """Return what leads on from a letter: to those beside it, and back to the list."""
    return {
        "way": came.query, "back": came.listed(job), "newer": came.beside(newer=True), "older": came.beside(),
    }  # fmt: skip


def title_of(visit: Visit, opened: OpenedLetter) -> str:
    """Return what failed in a line; the message may quote the payload."""
    message = opened.trail[-1].message if opened.trail and visit.may("view_payload") else ""
    error = opened.error or opened.letter.cause
    return f"{error}: {message.splitlines()[0][:120]}" if message else error


def shown(visit: Visit, job: Job) -> dict[str, Any]:
    """Return a job's payload as a visitor may see it: its size alone, or as pretty JSON, cut where it is too long."""
    size = len(job.payload_text().encode())
    if not visit.may("view_payload"):
        return {"payload": None, "payload_bytes": size}
    text = pretty(job)
    return {"payload": text[:SHOWN_CHARS], "payload_bytes": size, "payload_is_cut": len(text) > SHOWN_CHARS}


def pretty(job: Job) -> str:
    """Return a payload as JSON for people."""
    return json.dumps(job.payload, indent=2, ensure_ascii=False)


def _gone(visit: Visit, job: str, steps: dict[str, Any]) -> HttpResponse:
    with visit.desk.breaker.trying():
        status = visit.desk.letters.job(job)
    known = life.of_job(visit, job)
    context = {
        "job_id": job, "status": status, "life": known, "end": known.end, "rows": life.seen(visit, known), **steps,
    }  # fmt: skip
    found = status or known.rows or known.why_not
    return visit.render(
        "letter_gone.html", "No dead letter any more" if found else "Never a dead letter here", context,
        crumbs=[("Dead letters", steps["back"])], status=200 if found else 404,
    )  # fmt: skip

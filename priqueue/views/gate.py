"""Gate: who may come in, what happens to those who may not, and what a page says when the queue does not answer."""

import logging
from typing import Any

from django.http import HttpResponse, HttpResponseNotAllowed

from priqueue import callers
from priqueue.coordinator.operations import DENIED, Note
from priqueue.exceptions import PriqueueError
from priqueue.views.routes import Route
from priqueue.views.visit import PERMISSIONS, Visit

_log = logging.getLogger(__name__)


def answer(visit: Visit, route: Route, parts: dict[str, Any]) -> HttpResponse:
    """Return what a route answers to a visit: its page, a refusal, or that the queue is away."""
    missing = next((needed for needed in ("view_queue", route.permission) if not visit.may(needed)), None)
    if missing:
        _note(visit, route, missing)
        return refusal(visit, missing)
    if visit.request.method not in route.methods:
        return HttpResponseNotAllowed(route.methods)
    try:
        return route.view(visit, **parts)
    except PriqueueError as error:
        return unavailable(visit, str(error))


def _note(visit: Visit, route: Route, missing: str) -> None:
    """Leave an audit event of the try. A queue that does not answer is no reason to keep somebody waiting for a no."""
    acting = callers.acting()
    note = Note(
        action=route.action, caller=acting.caller, outcome=DENIED, input=visit.request.path,
        reason=f"needs priqueue.{missing}", correlation_id=acting.correlation_id,
    )  # fmt: skip
    try:
        with visit.desk.breaker.trying():
            visit.desk.coordinator.note(note)
    except PriqueueError as error:
        _log.warning("denied %s to %s, and could not note it: %s", visit.request.path, acting.caller, error)


def refusal(visit: Visit, codename: str) -> HttpResponse:
    """Return the page that names the permission that is missing."""
    context = {"codename": codename, "permission": PERMISSIONS[codename]}
    return visit.render("forbidden.html", "Not permitted", context, status=403)


def unavailable(visit: Visit, why: str) -> HttpResponse:
    """Return the page that says that the queue does not answer; what was to be changed may have been."""
    context = {"why_not": why, "was_sent": visit.request.method == "POST"}
    return visit.render("unavailable.html", "Redis does not answer", context, status=503)

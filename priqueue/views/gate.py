"""Gate: who may come in, what happens to those who may not, and what a page says when the queue does not answer."""

from typing import Any

from django.http import HttpResponse, HttpResponseNotAllowed
from django.http.response import HttpResponseBase

from priqueue.exceptions import PriqueueError, QueueUnavailable
from priqueue.views.noting import note_denial
from priqueue.views.routes import Route
from priqueue.views.visit import PERMISSIONS, Visit


def answer(visit: Visit, route: Route, parts: dict[str, Any]) -> HttpResponseBase:
    """Return what a route answers to a visit: its page, a refusal, or that the queue is away."""
    missing = next((needed for needed in route.permissions if not visit.may(needed)), None)
    if missing:
        note_denial(visit, route.name, missing)
        return refusal(visit, missing)
    if visit.request.method not in route.methods:
        return HttpResponseNotAllowed(route.methods)
    try:
        return route.view(visit, **parts)
    except QueueUnavailable as error:
        return unavailable(visit, str(error))
    except PriqueueError as error:
        return refused(visit, str(error))


def refusal(visit: Visit, codename: str) -> HttpResponse:
    """Return the page that names the permission that is missing."""
    context = {"codename": codename, "permission": PERMISSIONS[codename]}
    return visit.render("forbidden.html", "Not permitted", context, status=403)


def unavailable(visit: Visit, why: str) -> HttpResponse:
    """Return the page that says that the queue does not answer; what was to be changed may have been."""
    visit.lost(why)  # what it saw before is not how it is now, and to look again would be a second wait
    context = {"why_not": why, "was_sent": visit.request.method == "POST"}
    return visit.render("unavailable.html", "Redis does not answer", context, status=503)


def refused(visit: Visit, why: str) -> HttpResponse:
    """Return the page that says what the queue had against it: its memory limit, or its configuration."""
    return visit.render("refused.html", "The queue refused this", {"why": why}, status=503)

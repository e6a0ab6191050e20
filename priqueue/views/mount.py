"""Mount: where the pages hang. In the admin they have its frame and its log-in; by themselves they have their own."""

import functools
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.views.decorators.csrf import csrf_protect

from priqueue import callers, jobs
from priqueue.middleware import caller_of
from priqueue.views.gate import answer
from priqueue.views.routes import Route
from priqueue.views.visit import Visit

_OWN_POLICY = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"


class Mount(ABC):
    """One place in which the pages hang."""

    #: the template that is around each page
    frame: str

    @abstractmethod
    def url(self, name: str, **parts: str) -> str:
        """Return the address of a page."""

    @abstractmethod
    def context(self, request: HttpRequest) -> dict[str, Any]:
        """Return what the frame wants to know."""

    def respond(self, request: HttpRequest, route: Route, parts: dict[str, Any]) -> HttpResponseBase:
        """Return the answer to a request of somebody who is known."""
        # By their own name, also in a project without our middleware.
        correlation_id = callers.acting().correlation_id or jobs.new_id()
        with callers.acting_as(caller_of(request), correlation_id=correlation_id):
            response = answer(Visit(request, self, route.action, parts), route, parts)
            if isinstance(response, TemplateResponse):
                response.render()
        response["Cache-Control"] = "no-store"
        response["X-Frame-Options"] = "DENY"
        response.setdefault("Referrer-Policy", "same-origin")
        return response


class OwnMount(Mount):
    """By ``include("priqueue.urls")``."""

    frame = "priqueue/frame_own.html"

    def paths(self, routes: Iterable[Route]) -> list[URLPattern]:
        """Return the addresses of some routes."""
        return [path(route.path, self._view(route), name=route.name) for route in routes]

    def url(self, name: str, **parts: str) -> str:
        """Return the address of a page."""
        return reverse(f"priqueue:{name}", kwargs=parts)

    def context(self, request: HttpRequest) -> dict[str, Any]:
        """Return nothing: our own frame needs no more than every page has."""
        return {}

    def _view(self, route: Route) -> Any:
        @csrf_protect
        @functools.wraps(route.view)
        def view(request: HttpRequest, **parts: Any) -> HttpResponseBase:
            if not request.user.is_authenticated:
                return redirect_to_login(request.get_full_path())
            response = self.respond(request, route, parts)
            response.setdefault("Content-Security-Policy", _OWN_POLICY)
            return response

        return view


class AdminMount(Mount):
    """Inside an admin site."""

    frame = "priqueue/frame_admin.html"

    def __init__(self, site: Any) -> None:
        self._site = site

    def paths(self, routes: Iterable[Route]) -> list[URLPattern]:
        """Return the addresses of some routes."""
        return [path(route.path, self._view(route), name=f"priqueue_{route.name}") for route in routes]

    def url(self, name: str, **parts: str) -> str:
        """Return the address of a page."""
        return reverse(f"admin:priqueue_{name}", kwargs=parts, current_app=self._site.name)

    def context(self, request: HttpRequest) -> dict[str, Any]:
        """Return what the admin's own templates want to know."""
        request.current_app = self._site.name
        return dict(self._site.each_context(request))

    def _view(self, route: Route) -> Any:
        @functools.wraps(route.view)
        def view(request: HttpRequest, **parts: Any) -> HttpResponseBase:
            return self.respond(request, route, parts)

        return self._site.admin_view(view, cacheable=True)  # "no-store" says it already

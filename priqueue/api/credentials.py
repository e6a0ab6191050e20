"""Credentials: who asks. An API key in the Authorization header, or the session of a user with the permission.

A key that is given and wrong is an answer: nobody is then looked for in the session. Neither a query string nor any
other header names a caller.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from ninja.security.base import AuthBase
from ninja.utils import check_csrf

from priqueue import apikeys, limits, middleware, wiring
from priqueue.api.bodies import check_head
from priqueue.api.problems import Problem, unauthorized
from priqueue.handlers import AnyHandler
from priqueue.limits import Limit, Rule

PERMISSION = "priqueue.enqueue_job"


@dataclass(frozen=True, slots=True)
class Known:
    """A caller that has proved who it is, and what it may use."""

    caller: str
    lanes: Sequence[str] = (apikeys.ALL,)
    handlers: Sequence[str] = (apikeys.ALL,)
    own_limit: Limit | None = None

    @property
    def rule(self) -> Rule | None:
        """The limit that holds for it at the door."""
        return limits.rule_for(self.caller, wiring.door().settings.rate_limit, own=self.own_limit, at_door=True)

    def may_use_lane(self, lane: str) -> bool:
        """Return whether it may use a lane."""
        return apikeys.ALL in self.lanes or lane in self.lanes

    def may_use(self, handler: AnyHandler) -> bool:
        """Return whether it may enqueue jobs of a handler: one that is open to the outside at all, and to it."""
        return handler.api and (apikeys.ALL in self.handlers or handler.name in self.handlers)


class ApiKeyAuth(AuthBase):
    """``Authorization: Bearer pq_…``."""

    openapi_type = "http"
    openapi_scheme = "bearer"

    def __call__(self, request: HttpRequest) -> Known | None:
        """Return the caller; None where no such header is given. Raises Problem for one that is wrong."""
        given = request.META.get("HTTP_AUTHORIZATION")
        if given is None:
            return None
        scheme, _, token = given.partition(" ")
        grant = apikeys.find(token) if scheme.lower() == "bearer" else None
        if grant is None:
            raise unauthorized()
        check_head(request)
        return Known(f"key:{grant.name}", grant.lanes, grant.handlers, grant.limit)


class SessionAuth(AuthBase):
    """The session of a user with the permission; what changes something needs the CSRF token in its header."""

    openapi_type = "apiKey"
    openapi_in = "cookie"
    openapi_name = settings.SESSION_COOKIE_NAME

    def __call__(self, request: HttpRequest) -> Known | None:
        """Return the caller; None where nobody is logged in. Raises Problem for one who may not."""
        user: Any = getattr(request, "user", None)
        if user is None or not user.is_authenticated:
            return None
        check_head(request)
        if check_csrf(request) is not None:
            raise Problem(403, "forbidden", "The CSRF token is missing or wrong.")
        if not user.has_perm(PERMISSION):
            raise Problem(403, "forbidden", "This user may not use the queue over HTTP.")
        return Known(middleware.caller_of(request))

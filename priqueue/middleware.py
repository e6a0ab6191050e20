"""Middleware: a request says who acts, and under which correlation id, for the jobs that it enqueues.

The user is looked up only when something asks: a request that enqueues nothing loads no session and gains no
``Vary: Cookie``. It asks each time, so a job that a login view enqueues after the login carries the new user.

In an async view the look-up may query the database, which Django refuses on the event loop. Ask through
``sync_to_async``, as ``priqueue.aenqueue`` does: it carries the context into the thread where it may.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import cast

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from priqueue import callers, jobs
from priqueue.exceptions import InvalidCaller

_Response = HttpResponseBase | Awaitable[HttpResponseBase]


class PriqueueMiddleware:
    """Name the caller ``user:<pk>`` and a correlation id inside each request.

    The id is the ``X-Request-ID`` header if it is 1 to 200 characters without spaces, quotes, backslashes and
    control characters, else a fresh one. Its place among the middlewares does not matter.
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], _Response]) -> None:
        self.get_response = get_response
        self.is_async = iscoroutinefunction(get_response)
        if self.is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> _Response:
        if self.is_async:
            return self._call_async(request)
        with _acting(request):
            return self.get_response(request)

    async def _call_async(self, request: HttpRequest) -> HttpResponseBase:
        with _acting(request):
            return await cast(Awaitable[HttpResponseBase], self.get_response(request))


def _acting(request: HttpRequest) -> AbstractContextManager[None]:
    return callers.acting_when_asked(lambda: caller_of(request), correlation_id=correlation_id(request))


def caller_of(request: HttpRequest) -> str:
    """Return the caller that a request's user is: ``user:<pk>``, or "system" where nobody is logged in."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return "system"
    return callers.of_user(user.pk)


def correlation_id(request: HttpRequest) -> str:
    """Return the request's ``X-Request-ID`` if it can be one, else a fresh id."""
    try:
        return callers.check_word("X-Request-ID", request.META.get("HTTP_X_REQUEST_ID"))
    except InvalidCaller:
        return jobs.new_id()

"""Policy: every page of the project may load from the project alone, and run nothing that is written into it."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

_POLICY = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"


class ContentSecurityPolicy:
    """Say so in a header, where a view has not said something of its own."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.headers.setdefault("Content-Security-Policy", _POLICY)
        return response

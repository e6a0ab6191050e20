"""Document: the API as one object, its addresses, and the OpenAPI document that it gives of itself."""

from collections.abc import Callable
from functools import wraps
from importlib.metadata import version
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.urls import URLPattern, URLResolver, re_path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe
from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema

from priqueue.api.bodies import StrictParser
from priqueue.api.credentials import ApiKeyAuth, SessionAuth
from priqueue.api.problems import ID_HEADER, MEDIA_TYPE, answer, correlation_id, not_allowed
from priqueue.api.views import router

_DESCRIPTION = (
    "Enqueue jobs, look at them and cancel them. A caller sees its own jobs only. Every answer that is no "
    "success is a problem body, also that of another address, 404, and of another method, 405 with Allow."
)
_RETRY = {"schema": {"type": "integer"}, "description": "seconds to wait"}
_HEADERS = {429: {"Retry-After": _RETRY}, 503: {"Retry-After": _RETRY}}


class Api(NinjaAPI):
    """A NinjaAPI whose every answer has its correlation id, and whose problems are documented as what they are."""

    @property
    def urls(self) -> tuple[list[URLResolver | URLPattern], str, str]:
        """The addresses of its operations, and after them every other beneath it, where nothing is."""
        patterns, *names = super().urls
        for pattern in patterns:
            pattern.callback = _answering(pattern.callback)  # type: ignore[arg-type]
        return [*patterns, re_path("", _answering(_nothing))], *names  # type: ignore[return-value]

    def get_openapi_schema(self, *args: Any, **options: Any) -> OpenAPISchema:
        """Return the document."""
        document = super().get_openapi_schema(*args, **options)
        for operations in document["paths"].values():
            for operation in operations.values():
                for status, response in operation["responses"].items():
                    _correct(int(status), response)
        return document


def _nothing(request: HttpRequest) -> HttpResponse:
    raise Http404


def _answering(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Return a view that has no answer but the door's, each with its correlation id.

    A method that is not taken and an address without anything are known before an operation is, and a form's missing
    token even before: Django and ninja would answer them by pages. Operations check the token by themselves.
    """

    @csrf_exempt
    @wraps(view)
    def answering(request: HttpRequest, **given: Any) -> HttpResponse:
        try:
            response = view(request, **given)
        except Http404 as error:
            response = answer(request, error)
        if isinstance(response, HttpResponseNotAllowed):
            response = answer(request, not_allowed(response["Allow"].split(", ")))
        response[ID_HEADER] = correlation_id(request)
        response["Cache-Control"] = "no-store"
        return response

    return answering


def _correct(status: int, response: dict[str, Any]) -> None:
    if status >= 400:
        response["content"] = {MEDIA_TYPE: response["content"]["application/json"]}
    response["headers"] = {ID_HEADER: {"schema": {"type": "string"}}, **_HEADERS.get(status, {})}


def made() -> Api:
    """Return the API, with its operations."""
    api = Api(
        title="priqueue", version=version("priqueue"), urls_namespace="priqueue-api", docs_url=None,
        docs_decorator=require_safe, description=_DESCRIPTION,
        auth=[ApiKeyAuth(), SessionAuth()], parser=StrictParser(),
    )  # fmt: skip
    api.add_exception_handler(Exception, answer)
    for kind in list(api._exception_handlers):
        api.add_exception_handler(kind, answer)  # its own would tell more in debug mode, and less as documented
    api.add_router("", router)
    return api

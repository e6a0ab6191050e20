"""Document: the API as one object, and the OpenAPI document that it gives of itself."""

from importlib.metadata import version
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema

from priqueue.api.bodies import StrictParser
from priqueue.api.credentials import ApiKeyAuth, SessionAuth
from priqueue.api.problems import ID_HEADER, MEDIA_TYPE, answer, correlation_id
from priqueue.api.views import router

_RETRY = {"schema": {"type": "integer"}, "description": "seconds to wait"}
_HEADERS = {429: {"Retry-After": _RETRY}, 503: {"Retry-After": _RETRY}}


class Api(NinjaAPI):
    """A NinjaAPI whose every answer has its correlation id, and whose problems are documented as what they are."""

    def create_temporal_response(self, request: HttpRequest) -> HttpResponse:
        """Begin an answer."""
        response = super().create_temporal_response(request)
        response[ID_HEADER] = correlation_id(request)
        response["Cache-Control"] = "no-store"
        return response

    def get_openapi_schema(self, *args: Any, **options: Any) -> OpenAPISchema:
        """Return the document."""
        document = super().get_openapi_schema(*args, **options)
        for operations in document["paths"].values():
            for operation in operations.values():
                for status, response in operation["responses"].items():
                    _correct(int(status), response)
        return document


def _correct(status: int, response: dict[str, Any]) -> None:
    if status >= 400:
        response["content"] = {MEDIA_TYPE: response["content"]["application/json"]}
    response["headers"] = {ID_HEADER: {"schema": {"type": "string"}}, **_HEADERS.get(status, {})}


def made() -> Api:
    """Return the API, with its operations."""
    api = Api(
        title="priqueue", version=version("priqueue"), urls_namespace="priqueue-api", docs_url=None,
        description="Enqueue jobs, look at them and cancel them. A caller sees its own jobs only.",
        auth=[ApiKeyAuth(), SessionAuth()], parser=StrictParser(),
    )  # fmt: skip
    api.add_exception_handler(Exception, answer)
    for kind in list(api._exception_handlers):
        api.add_exception_handler(kind, answer)  # its own would tell more in debug mode, and less as documented
    api.add_router("", router)
    return api

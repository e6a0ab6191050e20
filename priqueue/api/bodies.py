"""Bodies: what was sent is sized before it is read, and read before it is believed.

1. ``check_head``, before a byte of the body is touched: JSON, not compressed, of a length that is told and allowed
2. ``StrictParser``: UTF-8 without a byte order mark, one JSON value, no name twice, no NaN, nothing after it
"""

from typing import Any

from django.http import HttpRequest
from ninja.parser import Parser

from priqueue import wiring
from priqueue.api.problems import Problem
from priqueue.exceptions import InvalidPayload
from priqueue.payloads import loads_strict

#: for what stands around a payload
_AROUND_BYTES = 4096
_BATCH_PAYLOADS = 16
BATCH_ITEMS = 100
#: a longer one is not read: beyond some thousands of digits, zeros too, Python refuses to
_LENGTH_DIGITS = 19


def largest_bytes(request: HttpRequest) -> int:
    """Return the length that a body may have: a payload and what stands around it, in a batch sixteen times that."""
    one = wiring.settings().max_payload_bytes + _AROUND_BYTES
    return one * _BATCH_PAYLOADS if request.path.endswith("/batch") else one


def check_head(request: HttpRequest) -> None:
    """Refuse a body by what its head says of it. Raises Problem."""
    if request.method != "POST":
        return
    _check_type(request)
    told = request.META.get("CONTENT_LENGTH") or ""
    if "HTTP_TRANSFER_ENCODING" in request.META or not told:
        raise Problem(411, "length-required", "Send the body with a Content-Length.")
    if not (told.isascii() and told.isdecimal()) or not told.strip("0"):
        raise Problem(400, "not-json", "The body is empty, or its Content-Length is no number.")
    if len(told) > _LENGTH_DIGITS or int(told) > largest_bytes(request):
        raise _too_large(request)


def _check_type(request: HttpRequest) -> None:
    charset = (request.content_params or {}).get("charset", "utf-8")
    if request.content_type != "application/json" or charset.lower() not in ("utf-8", "utf8"):
        raise Problem(415, "unsupported-media-type", "Send the body as application/json in UTF-8.")
    if request.META.get("HTTP_CONTENT_ENCODING", "identity").lower() != "identity":
        raise Problem(415, "unsupported-media-type", "Send the body without a Content-Encoding.")


def _too_large(request: HttpRequest) -> Problem:
    return Problem(413, "too-large", f"The body may have {largest_bytes(request):,} bytes.")


class StrictParser(Parser):
    """Reads JSON that leaves no two readers of different opinions."""

    def parse_body(self, request: HttpRequest) -> Any:
        """Return what the body says. Raises Problem."""
        if len(request.body) > largest_bytes(request):
            raise _too_large(request)
        if len(request.body) != int(request.META["CONTENT_LENGTH"]):
            raise Problem(400, "not-json", "The body does not have its announced length.")
        try:
            return loads_strict(request.body)
        except InvalidPayload as fault:
            raise Problem(400, "not-json", str(fault), field="body") from None

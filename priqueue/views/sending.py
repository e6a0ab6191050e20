"""Sending: a file, bit by bit, whichever way the project is served."""

from collections.abc import Iterator
from typing import Protocol

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse


class Pieces(Protocol):
    """What is sent. It is closed when that ends, also when somebody goes away before the first piece."""

    def __iter__(self) -> Iterator[str]:
        """Return the pieces."""

    def __next__(self) -> str:
        """Return the next piece."""

    def close(self) -> None:
        """Make no further one."""


def attached(request: HttpRequest, pieces: Pieces, *, name: str, kind: str) -> StreamingHttpResponse:
    """Return the answer that sends pieces as a file of a name, of the content type ``kind``."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "X-Content-Type-Options": "nosniff"}
    sent = _InThread(pieces) if isinstance(request, ASGIRequest) else pieces
    return StreamingHttpResponse(sent, content_type=kind, headers=headers)


class _InThread:
    """Pieces under ASGI: Django would gather all of a plain iterator before it sends the first."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces

    def __aiter__(self) -> "_InThread":
        return self

    async def __anext__(self) -> str:
        piece = await sync_to_async(_next)(self._pieces)
        if piece is None:
            raise StopAsyncIteration
        return piece

    def close(self) -> None:
        self._pieces.close()


def _next(pieces: Pieces) -> str | None:
    return next(iter(pieces), None)

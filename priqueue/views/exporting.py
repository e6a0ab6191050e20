"""Exporting: the letters of a filter as lines of JSON, sent bit by bit. That it was done is in the audit log."""

from collections.abc import AsyncIterator, Iterator

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpResponse, StreamingHttpResponse

from priqueue import callers, records
from priqueue.coordinator import INTENDED, Note
from priqueue.coordinator.calls import batches
from priqueue.coordinator.letters import Filter, Letters
from priqueue.coordinator.runs import said
from priqueue.views.letters import FilterForm
from priqueue.views.visit import Visit

_BATCH = 100


def export(visit: Visit) -> HttpResponse | StreamingHttpResponse:
    """Send all letters that match, the newest first; payloads, messages and traces to those who may see them."""
    form = FilterForm(visit.request.GET)
    if not form.is_valid():
        context = {"why": "This filter is not understood, so nothing is exported."}
        return visit.render("letters_refused.html", "Which letters?", context, status=400)
    wanted, payload = form.wanted(), visit.may("view_payload")
    lines: Iterator[str] = iter(())
    if visit.request.method == "GET":  # a HEAD exports nothing
        _note(visit, wanted, payload)
        lines = _lines(visit.desk.letters, wanted, payload)
    sent = _in_thread(lines) if isinstance(visit.request, ASGIRequest) else lines
    headers = {"Content-Disposition": 'attachment; filename="dead-letters.jsonl"', "X-Content-Type-Options": "nosniff"}
    return StreamingHttpResponse(sent, content_type="application/x-ndjson; charset=utf-8", headers=headers)


def _note(visit: Visit, wanted: Filter, payload: bool) -> None:
    acting = callers.acting()
    about = Note(
        action="export", caller=acting.caller, outcome=INTENDED, correlation_id=acting.correlation_id,
        input=f"{said(wanted)}, {'with' if payload else 'without'} payloads",
    )  # fmt: skip
    with visit.desk.breaker.trying():
        visit.desk.coordinator.note(about)


def _lines(reader: Letters, wanted: Filter, payload: bool) -> Iterator[str]:
    for stretch in reader.walk(wanted):
        for some in batches(stretch.letters, _BATCH):
            yield "".join(f"{records.opened_line(opened, payload=payload)}\n" for opened in reader.opened(some))


async def _in_thread(pieces: Iterator[str]) -> AsyncIterator[str]:
    """Under ASGI: Django would gather all pieces of a plain iterator before it sends the first."""
    while (piece := await sync_to_async(_next)(pieces)) is not None:
        yield piece


def _next(pieces: Iterator[str]) -> str | None:
    return next(pieces, None)

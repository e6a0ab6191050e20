"""Exporting: the letters of a filter as lines of JSON, sent bit by bit. The audit log tells of it, and how it ended."""

from collections.abc import Generator, Iterator
from dataclasses import replace

from django.http import HttpResponse, StreamingHttpResponse

from priqueue import callers, records
from priqueue.coordinator import INTENDED, Note
from priqueue.coordinator.calls import batches
from priqueue.coordinator.letters import Filter, Letters
from priqueue.coordinator.runs import said
from priqueue.views.letters import FilterForm
from priqueue.views.noting import leave, try_to_leave
from priqueue.views.sending import Pieces, attached
from priqueue.views.visit import Visit
from priqueue.words import amount

_BATCH = 100


def export(visit: Visit) -> HttpResponse | StreamingHttpResponse:
    """Send all letters that match, the newest first; payloads, messages and traces to those who may see them."""
    form = FilterForm(visit.request.GET)
    if not form.is_valid():
        context = {"why": "This filter is not understood, so nothing is exported."}
        return visit.render("letters_refused.html", "Which letters?", context, status=400)
    wanted, payload = form.wanted(), visit.may("view_payload")
    sent: Pieces = _nothing()
    if visit.request.method == "GET":  # a HEAD exports nothing
        intent = _intent(wanted, payload)
        leave(visit, intent)
        sent = _Export(visit, intent, _lines(visit.desk.letters, wanted, payload))
    return attached(visit.request, sent, name="dead-letters.jsonl", kind="application/x-ndjson; charset=utf-8")


def _nothing() -> Generator[str]:
    yield from ()


class _Export:
    """Letters on their way. How it ended is noted, once: it was all of them, or it was broken off."""

    def __init__(self, visit: Visit, intent: Note, lines: Iterator[list[str]]) -> None:
        self._visit, self._intent, self._lines = visit, intent, lines
        self._number, self._ended = 0, False

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        try:
            lines = next(self._lines)
        except StopIteration:
            self._end(f"exported {amount(self._number, 'letter')}")
            raise
        except BaseException as error:
            self._end(f"{self._broken_off()}: {type(error).__name__}")
            raise
        self._number += len(lines)
        return "".join(lines)

    def close(self) -> None:
        """Note that whoever asked for it has gone, where it has not ended before."""
        self._end(self._broken_off())

    def _broken_off(self) -> str:
        return f"broken off after {amount(self._number, 'letter')}"

    def _end(self, outcome: str) -> None:
        if not self._ended:
            self._ended = True
            try_to_leave(self._visit, replace(self._intent, outcome=outcome))


def _intent(wanted: Filter, payload: bool) -> Note:
    acting = callers.acting()
    return Note(
        action="export", caller=acting.caller, outcome=INTENDED, correlation_id=acting.correlation_id,
        input=f"{said(wanted)}, {'with' if payload else 'without'} payloads",
    )  # fmt: skip


def _lines(reader: Letters, wanted: Filter, payload: bool) -> Iterator[list[str]]:
    for stretch in reader.walk(wanted):
        for some in batches(stretch.letters, _BATCH):
            yield [f"{records.opened_line(opened, payload=payload)}\n" for opened in reader.opened(some)]

"""Overview: is it healthy, and if not, where? The page, and the document by which it keeps itself up to date.

The document holds the parts of the page as they are drawn now and the charts' new points, so that there is one set of
templates. An unchanged one is not sent again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from django.http import HttpResponse, HttpResponseNotModified, JsonResponse
from django.template.loader import render_to_string

from priqueue.coordinator.series import Sums, merged
from priqueue.exceptions import PriqueueError
from priqueue.jobs import from_ms
from priqueue.views import marks
from priqueue.views.board import board
from priqueue.views.reading import Look
from priqueue.views.visit import Visit

PARTS = ("status", "figures", "lanes", "dead", "workers", "services")
_ROW_MS = 300_000
_LAST_MS = 2**53


@dataclass(frozen=True, slots=True)
class TableRow:
    """Five minutes of all charts, in the tables beside them."""

    at: Any
    sums: Sums
    #: jobs per second and share, in the lanes' order
    lanes: Sequence[tuple[float | None, float | None]]


def overview(visit: Visit) -> HttpResponse:
    """Show the whole queue."""
    look = visit.look
    points = _points(visit, look, 0)
    lanes = look.settings.lane_names if look else ()
    slo = look.settings.slo if look else None
    context = {
        **_board(look), **_marks(visit, look),
        "points": [_wired(point, lanes) for point in points], "rows": _rows(points, lanes),
        "chart": {
            "data": visit.url("data"), "lanes": lanes,
            "slo": {
                "throughput": slo and slo.throughput_per_s, "errors": slo and slo.error_rate,
                "load": slo and slo.utilisation,
            },
        },
    }  # fmt: skip
    return visit.render("overview.html", "Priqueue", context)


def data(visit: Visit) -> HttpResponse:
    """Return what the page needs to be up to date: its parts, and the points that begin after ``since``."""
    look = visit.look
    if look is None or look.why_not or look.snapshot is None:
        parts = {"status": _part(visit, "status", look)}
        return JsonResponse({"parts": parts, "why_not": look.why_not if look else "not configured"}, status=503)
    since_ms = _whole_number(visit.request.GET.get("since", ""))
    points = [_wired(point, look.settings.lane_names) for point in _points(visit, look, since_ms)]
    parts = {name: _part(visit, name, look) for name in PARTS}
    if points:  # the charts end where their last point does: before the next, there is nothing new to mark
        parts["marks"] = _part(visit, "marks", look, _marks(visit, look))
    body = {"parts": parts, "points": points}
    answer: HttpResponse = JsonResponse(body)
    tag = f'"{blake2b(answer.content, digest_size=12).hexdigest()}"'
    if visit.request.headers.get("If-None-Match") == tag:
        answer = HttpResponseNotModified()
    answer["ETag"] = tag
    answer["Priqueue-As-Of"] = str(look.snapshot.at_ms)
    return answer


def _board(look: Look | None) -> dict[str, Any]:
    snapshot = look and look.snapshot
    return {"board": board(snapshot, look.settings) if look and snapshot else None}


def _marks(visit: Visit, look: Look | None) -> dict[str, Any]:
    """Return what happened to lanes and workers meanwhile, and why that may not be all."""
    if look is None or look.why_not or look.snapshot is None:
        return {}
    logged, lacks = visit.desk.log.marks()
    rows = marks.rows([*logged, *marks.in_force(look.snapshot)], look.snapshot.at_ms)
    visit.people.expect(row.caller for row in rows)
    return {"marks": rows, "marks_lack": lacks}


def _part(visit: Visit, name: str, look: Look | None, more: Mapping[str, Any] | None = None) -> str:
    context = {**visit.context(), **_board(look), **(more or {})}
    return render_to_string(f"priqueue/{name}.html", context, visit.request)


def _points(visit: Visit, look: Look | None, since_ms: int) -> list[Sums]:
    """Return points of the charts; none where the queue does not answer: the page says so already."""
    if look is None or look.why_not or look.snapshot is None:
        return []
    try:
        with visit.desk.breaker.trying():
            return visit.desk.overview.points(since_ms, look.snapshot.at_ms)
    except PriqueueError:
        return []


def _wired(point: Sums, lanes: Sequence[str]) -> dict[str, Any]:
    """Return a point as scripts take it; by lane in the lanes' order."""
    return {
        "t": point.at_ms // 1000, "s": point.known_s,
        "acked": [point.acked.get(lane, 0) for lane in lanes],
        "picks": [point.picks_full.get(lane, 0) for lane in lanes],
        "failed": sum(point.failed.values()), "slots": point.slots, "capacity": point.capacity,
    }  # fmt: skip


def _rows(points: Sequence[Sums], lanes: Sequence[str]) -> list[TableRow]:
    """Return the rows of the tables, the newest first."""
    rows = [
        TableRow(from_ms(sums.at_ms), sums, [(sums.per_s(lane), sums.share(lane)) for lane in lanes])
        for sums in merged(points, _ROW_MS)
    ]
    return rows[::-1]


def _whole_number(text: str) -> int:
    return min(int(text), _LAST_MS) if text.isdecimal() and text.isascii() and len(text) < 20 else 0

"""Pages: the rows that somebody asks for, page by page, each read off an index and never counted.

A page is where the one before it ended, by id: so the last page of millions costs what the first one costs, and rows
that are added meanwhile shift nothing. The order begins with what the filter asks for, with the rarest of it: then that
one's index alone has the order. By id alone the planner would at times walk through all rows, in the hope to meet soon
what has in truth not been there for years.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import BooleanField, F, Func, Q, QuerySet, Value

from priqueue.audit import exports
from priqueue.models import AuditEvent

#: what scripts, notes and the archive write; a select of them from the rows would read the whole table
ACTIONS = (
    "enqueue", "promote", "claim", "ack", "retry", "bury", "crash", "release", "reclaim", "requeue", "purge", "replace",
    "cancel", "pause", "resume", "register", "drain", "leave", "forget", "refuse", "archive", "view", "export",
    "create", "change", "revoke",
)  # fmt: skip
SIZE, BATCH = 100, 1000
_EXACT = ("job", "correlation_id", "caller", "handler", "lane", "action")
#: from this many rows on one text is as frequent as another
_FREQUENT = 100_000

#: the row beyond which to go on: its values of what the order is by
Edge = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which rows: those that have all of these; empty is any. The times are ms since 1970, the second exclusive."""

    action: str = ""
    caller: str = ""
    handler: str = ""
    lane: str = ""
    job: str = ""
    correlation_id: str = ""
    since_ms: int | None = None
    until_ms: int | None = None

    @property
    def oldest_first(self) -> bool:
        """Whether this is the life of a job or a request, which is read from its beginning."""
        return bool(self.job or self.correlation_id)

    @property
    def by_time(self) -> bool:
        """Whether pages go by time; a life is short enough to be sorted by id in any case."""
        return not self.oldest_first and (self.since_ms is not None or self.until_ms is not None)

    def exact(self) -> dict[str, str]:
        """Return the columns that have to have a certain text, and that text."""
        return {name: getattr(self, name) for name in _EXACT if getattr(self, name)}

    def rows(self, lead: str) -> QuerySet[AuditEvent]:
        """Return the rows, in no order, but for the condition on the column ``lead``."""
        rows = AuditEvent.objects.filter(**{name: text for name, text in self.exact().items() if name != lead})
        if self.since_ms is not None:
            rows = rows.filter(at_ms__gte=self.since_ms)
        return rows if self.until_ms is None else rows.filter(at_ms__lt=self.until_ms)


@dataclass(frozen=True, slots=True)
class Page:
    """Rows, and the ids before and after which there are older and newer ones; None where there are none."""

    rows: list[AuditEvent]
    older: int | None = None
    newer: int | None = None


def page(wanted: Wanted, before: int | None = None, after: int | None = None) -> Page:
    """Return the rows before or after that of an id, next to it; without one the first in the order of ``wanted``."""
    order = _order(wanted)
    edge = _edge(wanted, order, before if after is None else after)
    forward = after is not None or (before is None and wanted.oldest_first)
    found = list(_walk(wanted, order, edge, forward)[: SIZE + 1])
    rows = found[:SIZE] if forward else found[SIZE - 1 :: -1]  # oldest first
    if not rows:
        return Page([])
    ahead, behind = len(found) > SIZE, edge is not None
    older = rows[0].id if (behind if forward else ahead) else None
    newer = rows[-1].id if (ahead if forward else behind) else None
    return Page(rows if wanted.oldest_first else rows[::-1], older, newer)


def newest(namespace: str, action: str, outcome: str) -> AuditEvent | None:
    """Return the newest row of an action that has this outcome, if it is among the newest of the action."""
    rows = _walk(Wanted(action=action), ["action", "id"], None, False)[:SIZE]
    return next((row for row in rows if (row.namespace, row.outcome) == (namespace, outcome)), None)


def of_jobs(jobs: Sequence[str], actions: Sequence[str]) -> list[AuditEvent]:
    """Return the rows of some actions of up to a hundred jobs, those of each job from its oldest."""
    rows = AuditEvent.objects.filter(job__in=jobs, action__in=actions)
    return list(rows.order_by("job", "id")[:BATCH])


def batches(wanted: Wanted) -> Iterator[list[tuple[Any, ...]]]:
    """Yield all rows that there are by now, from the oldest, as the values of ``exports.COLUMNS``.

    Batch by batch and not through a cursor of the server: that would compute the whole result before its first row,
    and behind a pooler it would hold a connection for as long as somebody downloads.
    """
    head = AuditEvent.objects.order_by("-id").values_list("id", flat=True).first() or 0
    order = _order(wanted)
    places = [exports.COLUMNS.index(name) for name in order]
    edge: Edge | None = None
    while batch := list(_walk(wanted, order, edge, True).filter(id__lte=head).values_list(*exports.COLUMNS)[:BATCH]):
        yield batch
        edge = tuple(batch[-1][place] for place in places)


def _order(wanted: Wanted) -> list[str]:
    """Return the columns to sort by."""
    if wanted.by_time:
        return ["at_ms", "id"]
    exact = wanted.exact()
    lead = min(exact, key=lambda name: _frequency(name, exact[name])) if len(exact) > 1 else next(iter(exact), None)
    return [lead, "id"] if lead else ["id"]


def _frequency(name: str, text: str) -> int:
    """Return how many rows have a text, as far as it matters; by its index alone."""
    return AuditEvent.objects.filter(_span(name, text)).order_by(name, "id")[:_FREQUENT].count()


def _span(name: str, text: str, *bounds: str) -> Q:
    """Return that a column has a text, as a range: one that is known to be constant would not count for the order."""
    return Q(**{f"{name}__{bound}": text for bound in bounds or ("gte", "lte")})


def _walk(wanted: Wanted, order: list[str], edge: Edge | None, forward: bool) -> QuerySet[AuditEvent]:
    """Return the rows from the edge on, in the order in which they are met."""
    lead = order[0]
    rows = wanted.rows(lead).order_by(*(name if forward else f"-{name}" for name in order))
    # The edge is a bound already; with a second one on its side the index would begin at the wrong of the two.
    far = () if edge is None else ("lte",) if forward else ("gte",)
    if lead in wanted.exact():
        rows = rows.filter(_span(lead, wanted.exact()[lead], *far))
    return rows if edge is None else rows.filter(_beyond(order, edge, " > " if forward else " < "))


def _beyond(order: list[str], edge: Edge, than: str) -> Func:
    """Return ``(a, b) > (x, y)``: one bound of an index, which comparisons in an OR are not."""
    sides = [_row(*map(F, order)), _row(*map(Value, edge))]
    return Func(*sides, arg_joiner=than, template="%(expressions)s", output_field=BooleanField())


def _row(*parts: F | Value) -> Func:
    return Func(*parts, template="(%(expressions)s)", output_field=BooleanField())


def _edge(wanted: Wanted, order: list[str], row_id: int | None) -> Edge | None:
    """Return the edge at a row. One that was archived meanwhile has no time: then pages begin anew."""
    if row_id is None:
        return None
    if not wanted.by_time:
        return (*(wanted.exact()[name] for name in order[:-1]), row_id)
    at_ms = AuditEvent.objects.filter(id=row_id).values_list("at_ms", flat=True).first()
    return None if at_ms is None else (at_ms, row_id)

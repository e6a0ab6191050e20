"""Verify: walks the chain from row to row and names the first break.

edited   a row does not say any more what its hash was made of
missing  rows are gone: from the middle, from the beginning without an archive, or from the end (only anchors tell)
swapped  a row stands at the place of another
forged   a row was put in, or made anew with a hash that fits it and not the row after it

Who owns the table can make the whole rest of the chain anew. Only an anchor that was kept elsewhere tells of that.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal

from django.db.models import QuerySet

from priqueue.audit import chain
from priqueue.models import AuditEvent

Kind = Literal["edited", "missing", "swapped", "forged"]
ARCHIVED = "archive"
_BATCH = 2000


@dataclass(frozen=True, slots=True)
class Break:
    """The first place where the chain does not hold."""

    id: int
    kind: Kind
    about: str


@dataclass(frozen=True, slots=True)
class Report:
    """What a walk found. ``last_id`` and ``head`` are where it ended."""

    checked: int
    first_id: int
    last_id: int
    head: bytes
    broken: Break | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {
            "ok": self.broken is None, "checked": self.checked, "first_id": self.first_id, "last_id": self.last_id,
            "hash": self.head.hex(), "break": asdict(self.broken) if self.broken else None,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Row:
    """A row as the walk needs it."""

    id: int
    previous: bytes
    hash: bytes
    content: tuple[object, ...]

    def fits(self, row_id: int, previous: bytes, digest: bytes) -> bool:
        return chain.digest(previous, row_id, self.content) == digest

    @property
    def is_whole(self) -> bool:
        return self.fits(self.id, self.previous, self.hash)


def verify(
    alias: str,
    *,
    since: datetime | None = None,
    up_to: int | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> Report:
    """Walk the chain, from the first row stored at ``since`` to the row ``up_to``, and return what was found."""
    rows = AuditEvent.objects.using(alias).order_by("id")
    if up_to is not None:
        rows = rows.filter(id__lte=up_to)
    before = _before(rows, since)
    first_id, head = before.id + 1, before
    for batch in _batches(rows.filter(id__gt=before.id)):
        for at, row in enumerate(batch):
            if row.id != head.id + 1 or row.previous != head.hash or not row.is_whole:
                found = _diagnosed(rows, row, head, batch[at + 1 :])
                return Report(row.id - first_id, first_id, head.id, head.hash, found)
            head = row
        progress(head.id + 1 - first_id)
    return Report(head.id + 1 - first_id, first_id, head.id, head.hash)


def number_of_rows(alias: str) -> int:
    """Return about how many rows there are, without counting them."""
    ids = AuditEvent.objects.using(alias).order_by("id").values_list("id", flat=True)
    first, last = ids.first(), ids.last()
    return 0 if first is None or last is None else last + 1 - first


def _before(rows: "QuerySet[AuditEvent]", since: datetime | None) -> _Row:
    """Return what stands before the first row to be checked."""
    if since is not None:
        first = rows.filter(stored_ms__gte=int(since.timestamp() * 1000)).values_list("id", flat=True).first()
        earlier = _batches(rows.filter(id__lt=first).reverse()[:1]) if first else _batches(rows.reverse()[:1])
        for (row,) in earlier:
            return row
    return _start(rows)


def _start(rows: "QuerySet[AuditEvent]") -> _Row:
    """Return the genesis, or where the newest archive ended that the first row follows on."""
    first = rows.first()
    archives = AuditEvent.objects.using(rows.db).filter(action=ARCHIVED, epoch=ARCHIVED) if first else ()
    for event in archives:
        last_id, _, last_hash = event.input.partition(" ")
        if first and last_id == str(first.id - 1):
            return _Row(int(last_id), b"", bytes.fromhex(last_hash), ())
    return _Row(0, b"", chain.GENESIS, ())


def _batches(rows: "QuerySet[AuditEvent]") -> Iterator[list[_Row]]:
    found = rows.values_list("id", "previous", "hash", *chain.PARTS[2:])
    if found.query.is_sliced:
        yield from ([_row(values)] for values in found)
        return
    last_id = 0
    while batch := [_row(values) for values in found.filter(id__gt=last_id)[:_BATCH]]:
        yield batch
        last_id = batch[-1].id


def _row(values: tuple[Any, ...]) -> _Row:
    row_id, previous, own, *content = values
    return _Row(row_id, bytes(previous), bytes(own), tuple(content))


def _diagnosed(rows: "QuerySet[AuditEvent]", row: _Row, head: _Row, following: list[_Row]) -> Break:
    if row.id != head.id + 1:
        return Break(head.id + 1, "missing", f"no rows from {head.id + 1} to {row.id - 1}")
    if _belongs_elsewhere(rows, row, following):
        return Break(row.id, "swapped", "it stands at the place of another row")
    if row.previous == head.hash:
        return Break(row.id, "edited", "it does not say what its hash was made of")
    if row.is_whole and head.id:
        return Break(head.id, "forged", f"row {row.id} was chained to another one than it")
    return Break(row.id, "forged", "it is not chained to the row before it")


def _belongs_elsewhere(rows: "QuerySet[AuditEvent]", row: _Row, following: list[_Row]) -> bool:
    if any(row.fits(other.id, other.previous, other.hash) for other in following):
        return True
    # Moved as a whole: it fits the place after what it was chained to, or that of it, where the two were exchanged.
    before = rows.filter(hash=row.previous).values_list("id", flat=True).first() or 0
    return any(row.fits(place, row.previous, row.hash) for place in (before, before + 1) if place != row.id)

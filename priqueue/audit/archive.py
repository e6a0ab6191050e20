"""Archive: the one way out of the audit log, for the table's owner.

1. find the last row that is old enough, and verify the chain up to it
2. write those rows into a file, as lines of JSON, and make sure that they are on disk
3. in one transaction: add an event that holds id and hash of the last of them, and delete them

The event is part of the chain, so the chain goes on from where the archive ended, and who archived what is on record.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TextIO

from django.db import connections

from priqueue.audit import exports
from priqueue.audit.store import insert, locked
from priqueue.audit.verify import ARCHIVED, Report, verify
from priqueue.clock import wall_ms
from priqueue.exceptions import PriqueueError
from priqueue.guards import TABLE, lifted
from priqueue.models import AuditEvent

_BATCH = 2000


class BrokenChain(PriqueueError):
    """The chain is broken: nothing was archived."""


@dataclass(frozen=True, slots=True)
class Range:
    """The rows to archive."""

    first_id: int
    last_id: int
    hash: bytes

    @property
    def number(self) -> int:
        """How many rows they are."""
        return self.last_id + 1 - self.first_id


def old_rows(alias: str, before: datetime) -> Range | None:
    """Return the rows that were stored before a time, verified; None if there are none. Raises BrokenChain."""
    rows = AuditEvent.objects.using(alias).order_by("id")
    newer = rows.filter(stored_ms__gte=int(before.timestamp() * 1000)).values_list("id", flat=True).first()
    last = (rows.filter(id__lt=newer) if newer else rows).values_list("id", flat=True).last()
    if last is None:
        return None
    report: Report = verify(alias, up_to=last)
    if report.broken:
        raise BrokenChain(
            f"row {report.broken.id} is {report.broken.kind}: {report.broken.about}; nothing was archived"
        )
    return Range(report.first_id, report.last_id, report.head)


def export(alias: str, wanted: Range, file: Path, progress: Callable[[int], None]) -> None:
    """Write the rows to a new file. Raises FileExistsError."""
    with file.open("x", encoding="utf-8") as out:
        for number, line in enumerate(_lines(alias, wanted), 1):
            out.write(line + "\n")
            if number % _BATCH == 0:
                progress(number)
        _flush(out)


def delete(alias: str, wanted: Range, namespace: str, caller: str, reason: str) -> None:
    """Delete the rows and put on record that it was done. Raises DatabaseError for a role without the right."""
    with locked(alias, patient=True), lifted(alias):
        event = AuditEvent(
            namespace=namespace, epoch=ARCHIVED, stream_id=str(wanted.last_id), at_ms=wall_ms(), action=ARCHIVED,
            caller=caller, input=f"{wanted.last_id} {wanted.hash.hex()}", outcome=f"{wanted.number} rows",
            reason=reason,
        )  # fmt: skip
        insert(alias, [event], AuditEvent.objects.using(alias).order_by("-id").first())
        with connections[alias].cursor() as cursor:
            cursor.execute(f"DELETE FROM {TABLE} WHERE id <= %s", [wanted.last_id])  # noqa: S608 (a constant)


def _lines(alias: str, wanted: Range) -> Iterator[str]:
    last_id = wanted.first_id - 1
    rows = AuditEvent.objects.using(alias).order_by("id").filter(id__lte=wanted.last_id).values_list(*exports.COLUMNS)
    while batch := list(rows.filter(id__gt=last_id)[:_BATCH]):
        for values in batch:
            yield exports.json_line(values)
        last_id = batch[-1][0]


def _flush(out: TextIO) -> None:
    out.flush()
    os.fsync(out.fileno())

"""Anchors: heads of the chain in a file that the database's owner cannot write.

A line of JSON each: id and hash of the newest row, and when it was checked. A later check finds every row that was
anchored, with the hash it had; if not, the tail was cut or the chain was made anew.
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path

from priqueue import jobs
from priqueue.audit.verify import Break, Report
from priqueue.exceptions import PriqueueError
from priqueue.models import AuditEvent


@dataclass(frozen=True, slots=True)
class Anchor:
    """A head of the chain as it was."""

    id: int
    hash: str


def read(file: Path) -> list[Anchor]:
    """Return the anchors of a file, none if there is no such file. Raises PriqueueError for a line that is none."""
    anchors = []
    for number, line in enumerate(file.read_text().splitlines() if file.exists() else (), 1):
        try:
            said = json.loads(line)
            anchors.append(Anchor(int(said["id"]), str(said["hash"])))
        except (ValueError, KeyError, TypeError) as error:
            raise PriqueueError(f"{file}, line {number}: no anchor; give the file that verifyaudit wrote") from error
    return anchors


def write(file: Path, report: Report) -> None:
    """Add the head that a check ended with."""
    line = {"id": report.last_id, "hash": report.head.hex(), "checked_at": jobs.now().isoformat()}
    with file.open("a") as out:
        out.write(json.dumps(line) + "\n")


def checked(alias: str, anchors: list[Anchor], report: Report) -> Report:
    """Return the report of a whole chain with the first anchor that does not hold, if there is one."""
    return replace(report, broken=_first_broken(alias, anchors))


def _first_broken(alias: str, anchors: list[Anchor]) -> Break | None:
    """Return the first anchor that does not hold. Those before the first row are archived and are left out."""
    rows = AuditEvent.objects.using(alias)
    first_id = rows.order_by("id").values_list("id", flat=True).first() or 0
    for anchor in sorted(anchors, key=lambda each: each.id):
        if anchor.id < max(first_id, 1):
            continue
        row = rows.filter(id=anchor.id).first()
        if row is None:
            last_id = rows.order_by("-id").values_list("id", flat=True).first() or 0
            return Break(last_id + 1, "missing", f"row {anchor.id} was anchored; the log ends with {last_id}")
        if bytes(row.hash).hex() != anchor.hash:
            return Break(anchor.id, "forged", "it had another hash when it was anchored")
    return None

"""Chain: the hash of a row. It covers all that the row says and the hash of the row before.

The canonical form of a row is the text of its parts in the order of ``PARTS``, each preceded by its length in
characters and a colon, as in ``2:42``: so no two rows have the same form. Hashes stand in it as
hex, numbers in decimal. The hash is the SHA-256 of that text in UTF-8; on PostgreSQL ``sql/postgresql.sql`` makes it.
"""

from collections.abc import Iterable, Sequence
from hashlib import sha256

from priqueue import clock
from priqueue.models import AuditEvent

TEXTS = (
    "namespace", "epoch", "stream_id", "action", "caller", "job", "handler", "lane", "input", "outcome", "reason",
    "correlation_id", "mark",
)  # fmt: skip
PARTS = ("previous", "id", "stored_ms", "at_ms", *TEXTS)
GENESIS = bytes(32)


def digest(previous: bytes, row_id: int, content: Sequence[object]) -> bytes:
    """Return the hash of a row. ``content`` is what ``PARTS`` names after the id."""
    parts = [previous.hex(), str(row_id), *map(str, content)]
    return sha256("".join([f"{len(part)}:{part}" for part in parts]).encode()).digest()


def content_of(row: AuditEvent) -> list[object]:
    """Return what a row's hash covers beside its id and the row before."""
    return [getattr(row, name) for name in PARTS[2:]]


def seal(rows: Iterable[AuditEvent], head: AuditEvent | None) -> None:
    """Give rows the ids, hashes and time of their places after the head. PostgreSQL gives its own instead."""
    row_id, previous = (head.id, bytes(head.hash)) if head else (0, GENESIS)
    stored_ms = clock.wall_ms()
    for row in rows:
        row_id += 1
        row.id, row.previous, row.stored_ms = row_id, previous, stored_ms
        row.hash = previous = digest(previous, row_id, content_of(row))

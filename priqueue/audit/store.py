"""Store: a batch of events goes into the table in one transaction, each exactly once.

1. take the lock; who does not get it stands by. It belongs to the transaction, so it works behind a pooler
2. leave out what is stored already: after a commit whose answer was lost, or a trim that failed
3. what has the name of a stored event and says something else is stored beside it, marked "conflict"
4. insert; a row that the database refuses for its content is made harmless and marked, and holds up nobody

Several namespaces may share the table: it has one chain.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count

from django.db import DataError, IntegrityError, connections, transaction

from priqueue.audit import chain
from priqueue.audit.rows import FIELDS, escaped, harmless, row_of
from priqueue.coordinator import Batch
from priqueue.guards import TABLE
from priqueue.models import AuditEvent

LOCK_TIMEOUT_S, STATEMENT_TIMEOUT_S = 2, 20
# "priqueue" as a number: the key of the lock, here and in the trigger.
_LOCK = int.from_bytes(b"priqueue", "big")


class Held(Exception):
    """Another auditor holds the lock: it stores, this one stands by."""


def store(alias: str, namespace: str, batch: Batch) -> list[AuditEvent]:
    """Store what is new in a batch and return its rows. Raises Held, and whatever the database raises."""
    with locked(alias):
        rows = [row_of(namespace, batch.epoch, entry) for entry in batch.entries]
        head = AuditEvent.objects.using(alias).order_by("-id").first()
        if not _all_follow(head, rows):
            rows = list(_new(alias, rows))
        try:
            insert(alias, rows, head)
        except (IntegrityError, DataError):
            # Either may hide the other. Ids that are older than the head's: the server's clock was set back.
            rows = list(_new(alias, rows))
            _insert_what_fits(alias, rows, head)
    return rows


@contextmanager
def locked(alias: str, *, patient: bool = False) -> Iterator[None]:
    """Hold the lock of the one writer for one transaction, with time-outs. Raises Held, unless ``patient``."""
    with transaction.atomic(using=alias, durable=False), connections[alias].cursor() as cursor:
        if connections[alias].vendor == "postgresql":
            for name, seconds in (("lock_timeout", LOCK_TIMEOUT_S), ("statement_timeout", STATEMENT_TIMEOUT_S)):
                cursor.execute("SELECT set_config(%s, %s, true)", [name, "0" if patient else f"{seconds}s"])
            # What is let go of in the queue after the commit must not be lost by a crash of this server.
            cursor.execute(
                "SELECT set_config('synchronous_commit', 'on', true)"
                " WHERE current_setting('synchronous_commit') = 'off'"
            )
            cursor.execute(f"SELECT pg_{'' if patient else 'try_'}advisory_xact_lock(%s)", [_LOCK])
            if not patient and not cursor.fetchone()[0]:
                raise Held
        else:
            # The first statement writes, so that SQLite waits here for its one writer instead of failing later.
            cursor.execute(f"DELETE FROM {TABLE} WHERE id IS NULL")  # noqa: S608 (a constant)
        yield


def _all_follow(head: AuditEvent | None, rows: Sequence[AuditEvent]) -> bool:
    """Return whether all rows are certainly new, because the newest stored one came before them."""
    if head is None:
        return True
    same_stream = (head.namespace, head.epoch) == (rows[0].namespace, rows[0].epoch)
    return same_stream and _place(head.stream_id) < _place(rows[0].stream_id)


def _place(stream_id: str) -> tuple[int, int]:
    ms, _, number = stream_id.partition("/")[0].partition("-")
    return int(ms), int(number)


def _new(alias: str, rows: Sequence[AuditEvent]) -> Iterator[AuditEvent]:
    """Yield the rows that are not stored yet; those in conflict with a stored one under a name of their own."""
    stored = _stored(alias, rows, [row.stream_id for row in rows])
    for row in rows:
        before = stored.get(row.stream_id)
        if before is None or (not _is_of(before, row) and _renamed(alias, row)):
            yield row


def _renamed(alias: str, row: AuditEvent) -> bool:
    """Give a row in conflict the next free name; return False when it is stored under one already."""
    name = row.stream_id
    row.mark = ",".join(filter(None, [row.mark, "conflict"]))
    for number in count(2):
        row.stream_id = f"{name}/{number}"
        before = _stored(alias, [row], [row.stream_id]).get(row.stream_id)
        if before is None:
            return True
        if _is_of(before, row):
            return False
    raise AssertionError


def _stored(alias: str, rows: Sequence[AuditEvent], names: Sequence[str]) -> dict[str, AuditEvent]:
    found = AuditEvent.objects.using(alias).filter(
        namespace=rows[0].namespace, epoch=rows[0].epoch, stream_id__in=names
    )
    return {row.stream_id: row for row in found}


def _is_of(stored: AuditEvent, row: AuditEvent) -> bool:
    """Return whether a stored row says what a row says, if need be in escapes: it is of the same event."""
    said = _said(stored)
    return said == _said(row) or ("cleaned" in stored.mark and said == [row.at_ms, *escaped(row)])


def _said(row: AuditEvent) -> list[object]:
    return [row.at_ms, *(getattr(row, name) for name in FIELDS)]


def insert(alias: str, rows: Sequence[AuditEvent], head: AuditEvent | None) -> None:
    """Add rows after the head, all or none. On PostgreSQL the trigger gives them their places in the chain."""
    connection = connections[alias]
    by_trigger = connection.vendor == "postgresql"
    if not by_trigger:
        chain.seal(rows, head)
    names = chain.PARTS[3:] if by_trigger else (*chain.PARTS, "hash")
    values = [tuple([getattr(row, name) for name in names]) for row in rows]
    with transaction.atomic(using=alias), connection.cursor() as cursor:
        if by_trigger and hasattr(cursor, "copy"):
            # A statement with a parameter per value took psycopg 3 and the server five times as long.
            with connection.wrap_database_errors, cursor.copy(f"COPY {TABLE} ({', '.join(names)}) FROM STDIN") as copy:
                for each in values:
                    copy.write_row(each)
        else:
            marks = ", ".join(["%s"] * len(names))
            cursor.executemany(f"INSERT INTO {TABLE} ({', '.join(names)}) VALUES ({marks})", values)  # noqa: S608


def _insert_what_fits(alias: str, rows: Sequence[AuditEvent], head: AuditEvent | None) -> None:
    """Add rows after the head, those made harmless that the database refuses for their content."""
    try:
        insert(alias, rows, head)
    except DataError:
        _insert_one_by_one(alias, rows)


def _insert_one_by_one(alias: str, rows: Sequence[AuditEvent]) -> None:
    for row in rows:
        head = AuditEvent.objects.using(alias).order_by("-id").first()
        try:
            insert(alias, [row], head)
        except DataError:
            insert(alias, [harmless(row)], head)

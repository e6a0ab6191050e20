"""Connections: a job leaves its thread's database connections as clean as it found them.

A long-lived thread may hold a connection that the server has closed meanwhile, and a handler may leave a transaction
open. Either would break the next job that runs there.
"""

import threading
from contextlib import suppress
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created


class _Here(threading.local):
    """What is known of this thread."""

    connected = False


_here = _Here()


def _note(**_: Any) -> None:
    _here.connected = True


connection_created.connect(_note, dispatch_uid="priqueue.connections")


def tidy() -> bool:
    """Close the connections of this thread that are old or unusable, and any with an open transaction.

    Return whether the thread has any, that is, whether they are to be tidied once more before the next job.
    """
    if not _here.connected:  # for every job, and to ask Django takes longer than the shortest of them
        return False
    held = connections.all(initialized_only=True)
    for connection in held:
        with suppress(Exception):  # one that cannot even be closed must not cost this thread, or the other connections
            connection.queries_log.clear()
            _tidy(connection)
    return bool(held)


def _tidy(connection: BaseDatabaseWrapper) -> None:
    if connection.in_atomic_block:
        _drop(connection)
    # The server may have closed it while this thread had nothing to do: the next job's first query finds out
    # before it is sent. It costs a round trip per job that uses the database, and only where connections are kept.
    connection.health_check_enabled = True  # type: ignore[attr-defined]
    connection.close_if_unusable_or_obsolete()


def _drop(connection: BaseDatabaseWrapper) -> None:
    """Close a connection with an open transaction, so that the next job gets a new one.

    ``close`` alone would leave it marked as inside of that transaction, and one that the handler closed itself broken.
    """
    connection.in_atomic_block = connection.closed_in_transaction = connection.needs_rollback = False
    connection.savepoint_ids.clear()
    connection.atomic_blocks.clear()
    connection.close()

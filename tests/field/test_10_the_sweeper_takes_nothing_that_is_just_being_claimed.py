"""A sweeper without a pause beside eight workers: it finds nothing lapsed, and no job is claimed twice."""

import threading

from redis import Redis

from priqueue.jobs import Claim, Job
from tests.support.queues import Queue, test_settings

JOBS, WORKERS, AT_ONCE = 20_000, 8, 50


def worked(queue: Queue, worker_id: str, taken: list[str]) -> None:
    """Claim and ack until nothing is left."""
    done: list[Claim] = []
    while True:
        turn = queue.coordinator.turn(worker_id, AT_ONCE, done)
        assert not turn.lost
        done = turn.claims
        taken += [claim.job.id for claim in done]
        if not done:
            return


def test_a_sweeper_in_a_tight_loop_reclaims_nothing_and_no_job_runs_twice(client: Redis) -> None:
    queue = Queue(client, test_settings(), clock=None)
    jobs = [Job(name="shop.note", payload={}) for _ in range(JOBS)]
    queue.coordinator.enqueue_many(jobs)
    taken: list[list[str]] = [[] for _ in range(WORKERS)]
    names = [queue.register(f"w{n}", concurrency=AT_ONCE) for n in range(WORKERS)]
    workers = [
        threading.Thread(target=worked, args=(queue, name, found)) for name, found in zip(names, taken, strict=True)
    ]
    reclaimed = sweeps = 0

    for worker in workers:
        worker.start()
    while any(worker.is_alive() for worker in workers):
        reclaimed += queue.coordinator.reclaim()
        sweeps += 1

    assert sorted(job_id for found in taken for job_id in found) == sorted(job.id for job in jobs)
    assert (reclaimed, queue.places(), queue.state()["slots"]) == (0, {}, {})
    assert sweeps > 10

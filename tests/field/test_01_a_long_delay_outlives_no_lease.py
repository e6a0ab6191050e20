"""A delay much longer than a lease: the job runs once, never early, and waits without lease or worker."""

from collections.abc import Callable

from priqueue.jobs import Claim
from priqueue.sweeper import Sweeper
from priqueue.ticker import Ticker
from tests.support.queues import Queue

JOBS = 50


def served(queue: Queue, workers: list[str]) -> list[Claim]:
    """Let the ticker, the sweeper and all workers do what there is to do; ack what was claimed."""
    Ticker(queue.coordinator, queue.inspector).run_once()
    Sweeper(queue.coordinator, queue.inspector).run_once()
    claims = [claim for worker in workers for claim in queue.coordinator.pull(worker, JOBS)]
    for claim in claims:
        queue.coordinator.ack(claim)
    return claims


def test_jobs_delayed_by_ten_leases_run_once_and_not_early_though_workers_restart(
    make_queue: Callable[..., Queue],
) -> None:
    queue = make_queue(HEARTBEAT_S=0.5, SOCKET_TIMEOUT_S=0.4)
    lease_s = queue.settings.lease_s
    workers = [queue.register(f"w{n}") for n in range(4)]
    jobs = queue.enqueue(number=JOBS, delay_ms=round(10 * lease_s * 1000))

    for half in range(20):
        assert served(queue, workers) == []
        assert queue.state()["in flight"] == {}
        if half in (5, 10, 15):
            queue.coordinator.leave(workers.pop(0))
            workers.append(queue.register(f"again{half}"))
        queue.clock.advance(lease_s / 2)
    claims = served(queue, workers)
    queue.clock.advance(10 * lease_s)

    assert [claim.job.id for claim in claims] == [job.id for job in jobs]
    assert served(queue, workers) == []
    assert queue.places() == {}

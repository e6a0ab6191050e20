"""Case 41: long low jobs hold every slot, and urgent work waits: weights are shares of picks, never of time.

That is the documented limit; a worker for the lane alone keeps slots free (``runworker --lanes high``). What is
promised: a slot that becomes free goes by the shares, so that urgent work is next, and low work goes on, too.
"""

from collections import Counter, deque

import pytest
from redis import Redis

from tests.support.processes import Live
from tests.support.queues import Queue, test_settings

SLOTS = 16


def test_slots_that_long_low_jobs_free_go_six_three_one_in_favour_of_high(client: Redis) -> None:
    queue = Queue(client, test_settings())
    queue.enqueue(number=200, lane="low")
    queue.register(concurrency=SLOTS)
    running = queue.coordinator.pull("worker", SLOTS)
    assert {claim.lane for claim in running} == {"low"}
    queue.enqueue(number=100, lane="high")
    queue.enqueue(number=100, lane="default")
    assert queue.coordinator.pull("worker", SLOTS) == []

    taken, ending = [], deque(running)
    for _ in range(19):
        claims = queue.coordinator.turn("worker", 1, [ending.popleft()]).claims
        taken += [claim.lane for claim in claims]
        ending += claims

    assert Counter(taken[:9]) == {"high": 6, "default": 3}
    assert Counter(taken[9:]) == {"high": 6, "default": 3, "low": 1}


@pytest.mark.chaos
def test_a_worker_for_high_alone_keeps_urgent_work_from_waiting(live: Live) -> None:
    live.enqueue("work", 50, lane="low", payload={"seconds": 5})
    live.start_worker("--concurrency", "4")
    live.until(lambda: len(live.history("start")) == 4)
    live.start_worker("--lanes", "high", "--concurrency", "2")

    urgent = {job.id for job in live.enqueue("work", 20, lane="high", payload={"seconds": 0.01})}

    live.until(lambda: urgent == {line["id"] for line in live.history("end")} & urgent, 4)

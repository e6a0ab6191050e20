"""Weights are exact shares of picks, however long the jobs of a lane take."""

from collections import Counter
from random import Random

from priqueue.jobs import Claim, Job
from tests.support.queues import Queue

CLAIMS = 10_000
SHARES = {"high": 6, "default": 3, "low": 1}


def test_ten_thousand_claims_are_split_exactly_six_three_one_though_low_jobs_take_long(real_queue: Queue) -> None:
    random, coordinator = Random(42), real_queue.coordinator
    for lane, share in SHARES.items():
        waiting = [Job(name="shop.note", payload={}, lane=lane) for _ in range(share * CLAIMS // 10 + 100)]
        coordinator.enqueue_many(waiting)
    workers = [real_queue.register(f"w{n}", concurrency=40) for n in range(5)]
    picks: list[str] = []
    running: dict[str, list[Claim]] = {worker: [] for worker in workers}

    while len(picks) < CLAIMS:
        worker = random.choice(workers)
        # A high job ends soon, a low one stays in its slot.
        done = [claim for claim in running[worker] if random.random() < SHARES[claim.lane] / 10]
        turn = coordinator.turn(worker, min(random.randint(1, 20), CLAIMS - len(picks)), done)
        running[worker] = [claim for claim in running[worker] if claim not in done] + turn.claims
        picks += [claim.lane for claim in turn.claims]

    assert Counter(picks) == {lane: share * CLAIMS // 10 for lane, share in SHARES.items()}
    rounds = [Counter(picks[start : start + 10]) for start in range(0, CLAIMS, 10)]
    assert all(counted == SHARES for counted in rounds)

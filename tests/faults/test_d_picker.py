"""Row D9: picks are shared 6:3:1, exactly, over any number of workers; a lane without work gives its share away."""

import threading
from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import pytest
from redis import Redis

from tests.faults.checker import audit
from tests.support.processes import Live
from tests.support.queues import Queue, test_settings

pytestmark = pytest.mark.chaos
LANES = ("high", "default", "low")
SHARE = {"high": 6, "default": 3, "low": 1}


def filled(client: Redis, number: int, lanes: tuple[str, ...] = LANES) -> Queue:
    queue = Queue(client, test_settings(MAX_CRASHES=1_000), clock=None)
    for lane in lanes:
        queue.enqueue(number=number, lane=lane)
    return queue


def picks(queue: Queue) -> list[str]:
    """Return the lane of each pick, in the order in which the server made them."""
    entries = queue.raw.xrange(queue.keys.audit)
    return [entry["lane"] for _, entry in entries if entry["action"] == "claim"]


def unfair(lanes: list[str]) -> int:
    """Count the windows of ten consecutive picks that do not hold exactly 6, 3 and 1."""
    return sum(Counter(lanes[at : at + 10]) != SHARE for at in range(len(lanes) - 9))


@pytest.mark.parametrize("pollers", [1, 4, 16])
def test_d9_any_ten_consecutive_picks_of_any_number_of_pollers_hold_six_three_and_one(
    client: Redis, figure: Callable[..., None], pollers: int
) -> None:
    queue = filled(client, 1_200)
    start = threading.Barrier(pollers)

    def poll(number: int) -> None:
        seat = Queue(client, queue.settings, clock=None)
        seat.register(f"w{number}", concurrency=100)
        start.wait()
        for limit in range(1_600 // pollers):
            claims = seat.coordinator.pull(f"w{number}", 1 + limit % 2)
            seat.coordinator.turn(f"w{number}", 0, claims)
        seat.close()

    threads = [threading.Thread(target=poll, args=(number,)) for number in range(pollers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    made = picks(queue)[:2_000]  # all lanes still hold work: high has 1,200 jobs
    wrong = unfair(made)
    figure("D9", f"unfair windows of {len(made)} picks, {pollers} pollers", wrong, "= 0", wrong == 0)
    assert Counter(made) == {"high": 1_200, "default": 600, "low": 200}


def test_d9_a_killed_worker_leaves_the_share_exact(live: Live, figure: Callable[..., None]) -> None:
    live.options["MAX_CRASHES"] = 20
    for lane, number in (("high", 3_000), ("default", 1_500), ("low", 500)):
        live.enqueue("note", number, lane=lane)
    victim = live.start_worker("--concurrency", "4")
    live.start_worker("--concurrency", "4")
    live.until(lambda: live.inspector.stats().lanes["low"].picks > 20)
    victim.kill()
    live.until(lambda: live.inspector.stats().lanes["low"].picks > 200)

    made = [event["lane"] for _, event in audit(live, "claim")][:2_000]
    wrong = unfair(made)
    figure("D9", "unfair windows with a worker killed midway", wrong, "= 0", wrong == 0)


@pytest.mark.parametrize("empty", LANES)
def test_d9_the_share_of_an_empty_lane_goes_to_the_others_without_an_idle_poll(client: Redis, empty: str) -> None:
    others = tuple(lane for lane in LANES if lane != empty)
    queue = filled(client, 120, others)
    queue.register(concurrency=200)

    polls = [len(queue.coordinator.pull("worker", 1)) for _ in range(100)]

    assert polls == [1] * 100
    weights = {lane: SHARE[lane] for lane in others}
    round_, made = sum(weights.values()), picks(queue)
    windows = [Counter(made[at : at + round_]) for at in range(0, 100 - round_, round_)]
    assert windows == [weights] * len(windows)


def test_d9_a_flood_of_high_starves_nobody(client: Redis, figure: Callable[..., None]) -> None:
    queue = Queue(client, test_settings(), clock=None)
    queue.register(concurrency=10)
    queue.enqueue(number=50, lane="low")
    queue.enqueue(number=150, lane="default")
    for _ in range(60):
        queue.enqueue(number=10, lane="high")
        queue.coordinator.turn("worker", 0, queue.coordinator.pull("worker", 5))

    at = [number for number, lane in enumerate(picks(queue)) if lane == "low"]
    longest = max(later - earlier - 1 for earlier, later in pairwise([-1, *at]))
    figure("D9", "picks that a low job waited under a flood of high", longest, "<= 9", longest <= 9)


@pytest.mark.parametrize("before", range(10))
def test_d9_a_lone_low_job_waits_for_nine_picks_at_most(client: Redis, before: int) -> None:
    queue = filled(client, 60, ("high", "default"))
    queue.register(concurrency=100)
    queue.coordinator.pull("worker", before)
    queue.enqueue(lane="low")

    claims = queue.coordinator.pull("worker", 10)

    assert "low" in [claim.lane for claim in claims]

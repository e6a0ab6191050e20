"""The picker inside Redis, held to the pure one: the same lanes in the same order, whatever the load."""

from collections import Counter
from collections.abc import Callable

import pytest
from fakeredis import FakeRedis, FakeServer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis

from priqueue.coordinator import Coordinator
from priqueue.jobs import Job
from priqueue.lanes import Lane
from priqueue.picker import pick
from tests.support.queues import HANDLER, Queue, test_settings

ALL = ("high", "default", "low")
ROUND = ["high"] * 6 + ["default"] * 3 + ["low"]
POOLS = [ALL, ("high",), ("low",), ("high", "low"), ("default", "low")]

pools = st.sampled_from(POOLS)
claims = st.tuples(st.just("claim"), pools, st.integers(1, 12))
arrivals = st.tuples(st.just("enqueue"), st.sampled_from(ALL), st.integers(1, 25))
pauses = st.tuples(st.just("pause"), st.sampled_from(ALL), st.booleans())
loads = st.lists(st.one_of(claims, claims, arrivals, arrivals, pauses), min_size=1, max_size=25)
several_lanes = st.lists(st.integers(1, 9), min_size=3, max_size=3)


class Model:
    """What the pure picker says the script has to do."""

    def __init__(self, weights: list[int]) -> None:
        self.lanes = [Lane(name, weight) for name, weight in zip(ALL, weights, strict=True)]
        self.ready: dict[str, list[str]] = {name: [] for name in ALL}
        self.paused: set[str] = set()
        self.credits: dict[tuple[str, ...], dict[str, int]] = {}

    def claim(self, pool: tuple[str, ...], limit: int) -> list[tuple[str, str]]:
        """Return (lane, job id) of each pick."""
        lanes, credits = [lane for lane in self.lanes if lane.name in pool], self.credits.setdefault(pool, {})
        picked: list[tuple[str, str]] = []
        while len(picked) < limit:
            with_work = [name for name in pool if self.ready[name] and name not in self.paused]
            lane = pick(lanes, credits, with_work)
            if lane is None:
                break
            picked.append((lane, self.ready[lane].pop(0)))
        return picked


def _worker(pool: tuple[str, ...]) -> str:
    return "worker-" + "-".join(pool)


def _client(kind: str, request: pytest.FixtureRequest) -> Redis:
    return FakeRedis(server=FakeServer()) if kind == "fakeredis" else request.getfixturevalue("client")


def _apply(queue: Queue, model: Model, action: str, what: object, how: int) -> None:
    """Do one thing to both and compare what comes of it."""
    if action == "enqueue":
        jobs = queue.enqueue(number=how, lane=what)
        model.ready[str(what)] += [job.id for job in jobs]
    elif action == "pause":
        if how:
            queue.coordinator.pause(str(what), caller="user:1", reason="test")
            model.paused.add(str(what))
        else:
            queue.coordinator.resume(str(what), caller="user:1")
            model.paused.discard(str(what))
    else:
        claimed = queue.coordinator.pull(_worker(what), how)  # type: ignore[arg-type]
        assert [(claim.lane, claim.job.id) for claim in claimed] == model.claim(what, how)  # type: ignore[arg-type]


def _credits(queue: Queue) -> dict[str, int]:
    return {name: int(number) for name, number in queue.raw.hgetall(queue.keys.picker).items()}


def _is_as_modelled(queue: Queue, model: Model) -> None:
    """The ready jobs, and the credits that were kept for each pool, are those of the model."""
    assert queue.state()["ready"] == model.ready
    kept = _credits(queue)
    for pool, credits in model.credits.items():
        for lane, number in credits.items():
            assert kept[f"{','.join(pool)}:{lane}"] == number


@pytest.mark.parametrize("kind", ["fakeredis", "valkey"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(weights=several_lanes, load=loads)
def test_the_script_picks_what_the_pure_picker_picks(
    request: pytest.FixtureRequest, kind: str, weights: list[int], load: list[tuple[str, object, int]]
) -> None:
    lanes = dict(zip(ALL, weights, strict=True))
    queue, model = Queue(_client(kind, request), test_settings(LANES=lanes)), Model(weights)
    for pool in POOLS:
        queue.register(_worker(pool), pool, concurrency=1_000)

    for step in load:
        _apply(queue, model, *step)

    _is_as_modelled(queue, model)


def _flood(queue: Queue, number: int = 120, lanes: tuple[str, ...] = ALL) -> None:
    jobs = [Job(name=HANDLER, payload={}, lane=lane) for lane in lanes for _ in range(number)]
    queue.coordinator.enqueue_many(jobs)


def _picks(queue: Queue, worker_id: str, number: int, at_once: int = 1) -> list[str]:
    turns = range(0, number, at_once)
    return [claim.lane for _ in turns for claim in queue.coordinator.pull(worker_id, at_once)]


@pytest.mark.parametrize("at_once", [1, 3, 7, 10])
def test_from_the_first_refill_on_any_ten_picks_hold_six_three_and_one(queue: Queue, at_once: int) -> None:
    _flood(queue)
    queue.register("w")

    picks = _picks(queue, "w", 90, at_once)

    windows = [Counter(picks[start : start + 10]) for start in range(len(picks) - 9)]
    assert all(window == {"high": 6, "default": 3, "low": 1} for window in windows)


def test_the_share_holds_over_all_workers_of_a_pool(queue: Queue) -> None:
    _flood(queue)
    workers = [queue.register(f"w{number}") for number in range(3)]

    picks = [queue.coordinator.pull(workers[turn % 3])[0].lane for turn in range(50)]

    assert picks == ROUND * 5


def test_the_share_holds_when_every_process_is_a_new_one(queue: Queue) -> None:
    _flood(queue)
    queue.register("w")

    picks = []
    for _ in range(20):
        coordinator = Coordinator(queue.client, queue.settings, queue.clock)
        picks += [claim.lane for claim in coordinator.pull("w")]

    assert picks == ROUND * 2


def test_a_lone_low_job_under_a_flood_waits_at_most_nine_picks(queue: Queue) -> None:
    queue.register("w", concurrency=10_000)
    waits = []
    for picked in range(10):
        _flood(queue, 30, ("high", "default"))
        _picks(queue, "w", picked)
        queue.enqueue(lane="low")
        waits.append(_picks(queue, "w", 30).index("low"))

    assert max(waits) <= 9


def test_where_the_others_had_been_empty_just_before_it_waits_at_most_eighteen(queue: Queue) -> None:
    queue.register("w")
    queue.enqueue(number=2, lane="low")
    queue.coordinator.pull("w")
    queue.coordinator.pull("w")
    _flood(queue, 30, ("high", "default"))

    queue.enqueue(lane="low")

    assert 9 < _picks(queue, "w", 30).index("low") <= 18


def test_an_empty_lane_costs_nothing_and_its_share_goes_to_the_others(queue: Queue) -> None:
    _flood(queue, 40, ("default", "low"))
    queue.register("w")

    assert _picks(queue, "w", 20) == (["default"] * 3 + ["low"]) * 5


def test_a_paused_lane_costs_nothing_and_its_share_goes_to_the_others(queue: Queue) -> None:
    _flood(queue, 40)
    queue.register("w")
    queue.coordinator.pause("high", caller="user:1", reason="test")

    assert _picks(queue, "w", 20) == (["default"] * 3 + ["low"]) * 5


def test_no_pick_leaves_the_credits_as_they_are(queue: Queue) -> None:
    _flood(queue, 1)
    queue.register("w")
    _picks(queue, "w", 3)
    before = _credits(queue)

    assert queue.coordinator.pull("w", 5) == []

    assert _credits(queue) == before == {"high,default,low:high": 5, "high,default,low:default": 2,
                                         "high,default,low:low": 0}  # fmt: skip


def test_a_pool_of_its_own_takes_nothing_from_the_share_of_the_others(queue: Queue) -> None:
    _flood(queue)
    queue.register("all")
    queue.register("special", ["high"])

    picks = []
    for _ in range(40):
        queue.coordinator.pull("special")
        picks += [claim.lane for claim in queue.coordinator.pull("all")]

    assert picks == ROUND * 4


def test_the_weights_are_those_of_the_worker_that_claims(make_queue: Callable[..., Queue]) -> None:
    queue = make_queue(LANES={"high": 2, "default": 1, "low": 1})
    _flood(queue, 20)
    queue.register("w")

    assert _picks(queue, "w", 12) == ["high", "high", "default", "low"] * 3


def test_lanes_in_another_order_than_that_of_who_registered_keep_their_pauses_and_credits(queue: Queue) -> None:
    queue.register("w", ("high", "low"))
    jobs = {lane: queue.enqueue(number=3, lane=lane) for lane in ("high", "low")}
    queue.raw.hset(queue.keys.picker, mapping={"high,low:high": 2, "high,low:low": 0})
    queue.coordinator.pause("low", caller="user:1", reason="test")
    other = queue.with_settings(NAMESPACE=queue.settings.namespace, LANES={"low": 1, "default": 3, "high": 6})

    claims = other.coordinator.pull("w", 2)

    assert [claim.job.id for claim in claims] == [job.id for job in jobs["high"][:2]]
    assert _credits(queue) == {"high,low:high": 0, "high,low:low": 0}


def test_a_claim_of_many_is_as_many_picks_in_their_order(queue: Queue) -> None:
    _flood(queue, 30)
    queue.register("w")

    assert [claim.lane for claim in queue.coordinator.pull("w", 25)] == (ROUND * 3)[:25]


def test_picks_under_full_load_are_counted_apart_so_that_the_share_can_be_judged(queue: Queue) -> None:
    _flood(queue, 60)
    queue.register("w", concurrency=1_000)

    _picks(queue, "w", 180, 10)

    counted = queue.counters()

    full = {lane: counted[f"picks_full:{lane}"] for lane in ALL}
    assert full == {"high": 60, "default": 27, "low": 9}  # high ran empty in the tenth round
    assert {lane: counted[f"picks:{lane}"] for lane in ALL} == {"high": 60, "default": 60, "low": 60}

"""Foreign data at our keys: it is counted and stepped over, the other lanes go on, and no job is lost."""

import json
from collections.abc import Callable

import pytest

from priqueue.exceptions import PriqueueError
from priqueue.jobs import State
from priqueue.sweeper import Sweeper
from priqueue.ticker import Ticker
from tests.support.queues import FAILURE, Queue


def test_a_foreign_value_in_place_of_a_lane_does_not_keep_the_others_from_being_claimed(queue: Queue) -> None:
    (default,) = queue.enqueue(lane="default")
    (low,) = queue.enqueue(lane="low")
    queue.register("w")
    queue.raw.set(queue.keys.lane("high"), "foreign")

    claims = queue.coordinator.pull("w", 9)

    assert [claim.job for claim in claims] == [default, low]
    assert queue.counters()["foreign:high"] == 1


def test_a_lane_that_is_whole_again_is_claimed_from_again(queue: Queue) -> None:
    queue.register("w")
    queue.raw.set(queue.keys.lane("high"), "foreign")
    queue.coordinator.pull("w")
    queue.raw.delete(queue.keys.lane("high"))
    (job,) = queue.enqueue(lane="high")

    assert [claim.job for claim in queue.coordinator.pull("w")] == [job]


def test_ids_without_a_job_are_counted_and_stepped_over_in_one_claim(queue: Queue) -> None:
    first, second = queue.enqueue(number=2)
    lane = queue.keys.lane("default")
    queue.raw.lpush(lane, "junk", "", "two words", "ü\n")
    queue.raw.rpush(lane, "more junk")
    queue.register("w")

    claims = queue.coordinator.pull("w", 9)

    assert [claim.job for claim in claims] == [first, second]
    assert queue.state() == queue.expected(*claims)
    assert queue.counters()["ghosts:default"] == 5


def test_more_ghosts_than_one_claim_may_look_at_end_after_a_few_claims(queue: Queue) -> None:
    lane = queue.keys.lane("high")
    queue.raw.rpush(lane, *(f"ghost{number}" for number in range(2_500)))
    (job,) = queue.enqueue(lane="high")
    queue.register("w")

    found = [len(queue.coordinator.pull("w", 9)) for _ in range(4)]

    assert found == [0, 0, 1, 0]
    assert queue.places() == {job.id: "in flight"}
    assert queue.counters()["ghosts:high"] == 2_500


def test_ghosts_left_behind_leave_a_token_so_that_the_next_claim_comes_at_once(queue: Queue) -> None:
    queue.raw.rpush(queue.keys.lane("high"), *(f"ghost{number}" for number in range(1_001)))
    queue.register("w")

    queue.coordinator.pull("w")

    assert queue.tokens() == {"high": 1}


def test_what_stands_before_the_ghosts_that_are_too_many_is_given(queue: Queue) -> None:
    lane = queue.keys.lane("high")
    first, *_ = queue.enqueue(lane="high")
    queue.raw.lpush(lane, *(f"before{number}" for number in range(1_000)))
    queue.raw.rpush(lane, *(f"behind{number}" for number in range(5)))
    queue.register("w")

    claims = queue.coordinator.pull("w", 1), queue.coordinator.pull("w", 9)

    assert [[claim.job.id for claim in each] for each in claims] == [[first.id], []]
    assert queue.counters()["ghosts:high"] == 1_005


@pytest.mark.parametrize("foreign", ["1.5", "many"])
def test_a_foreign_number_of_leases_keeps_a_worker_from_claims_and_loses_no_job(queue: Queue, foreign: str) -> None:
    (job,) = queue.enqueue()
    queue.register("w")
    queue.raw.hset(queue.keys.slots, "w", foreign)

    with pytest.raises(PriqueueError):
        queue.coordinator.pull("w")

    assert queue.raw.lrange(queue.keys.lane("default"), 0, -1) == [job.id]
    assert (queue.raw.hgetall(queue.keys.inflight), queue.raw.hgetall(queue.keys.slots)) == ({}, {"w": foreign})


def test_ghosts_cost_their_lane_no_share(queue: Queue) -> None:
    for lane in ("high", "default", "low"):
        queue.enqueue(number=20, lane=lane)
    queue.raw.lpush(queue.keys.lane("high"), *(f"ghost{number}" for number in range(7)))
    queue.register("w")

    lanes = [claim.lane for claim in queue.coordinator.pull("w", 20)]

    assert lanes == (["high"] * 6 + ["default"] * 3 + ["low"]) * 2


def test_an_id_that_is_twice_in_a_lane_is_claimed_once(queue: Queue) -> None:
    (job,) = queue.enqueue()
    queue.raw.rpush(queue.keys.lane("default"), job.id)
    queue.register("w")

    claims = queue.coordinator.pull("w", 9)

    assert [claim.job for claim in claims] == [job]
    assert queue.state() == queue.expected(*claims)


def test_a_job_in_flight_that_is_pushed_on_a_lane_is_not_claimed_again(queue: Queue) -> None:
    (claim,) = queue.claimed()
    queue.raw.rpush(queue.keys.lane("default"), claim.job.id)

    assert queue.coordinator.pull("worker", 9) == []

    assert queue.state() == queue.expected(claim)


def test_a_dead_job_that_is_pushed_on_a_lane_stays_dead(queue: Queue) -> None:
    (job,) = queue.buried()
    queue.raw.rpush(queue.keys.lane("default"), job.id)

    assert queue.coordinator.pull("worker", 9) == []

    assert queue.places() == {job.id: "dead"}


def _with(envelope: dict[str, object]) -> str:
    """Return a whole envelope, but for what is given."""
    usual = {
        "v": 1, "name": "tests.shop.jobs.note", "caller": "system", "correlation_id": "", "lane": "default",
        "delay_ms": 0, "max_attempts": 5, "timeout_s": 300, "enqueued_at_ms": 1, "payload": {},
    }  # fmt: skip
    return json.dumps(usual | envelope, separators=(",", ":"))


@pytest.mark.parametrize(
    "envelope",
    [
        "junk", "{}", '{"v":1}', '{"v":1,"payload":{}}', '{"v":"x","payload":{}}', "[]",
        *(_with({"timeout_s": value}) for value in ("x", None, True, 0, -1, [], float("nan"), float("inf"))),
        *(_with({"max_attempts": value}) for value in ("x", None, True, 1.5, -1, [])),
    ],
)  # fmt: skip
def test_a_job_with_a_missing_or_wrong_field_is_buried_as_a_bad_envelope_and_the_others_run(
    make_queue: Callable[..., Queue], envelope: str
) -> None:
    queue = make_queue(SIGNING_KEYS=[])
    bad, good = queue.enqueue(number=2)
    queue.raw.hset(queue.keys.jobs, bad.id, envelope)
    queue.register("w")

    claims = queue.coordinator.pull("w", 9)

    assert [claim.job for claim in claims] == [good]
    assert queue.places() == {bad.id: "dead", good.id: "in flight"}
    assert [cause.partition(" ")[0] for cause in queue.state()["causes"]] == ["BadEnvelope"]


def test_a_job_of_a_newer_version_waits_for_a_newer_worker(make_queue: Callable[..., Queue]) -> None:
    queue = make_queue(SIGNING_KEYS=[])
    (job,) = queue.enqueue()
    envelope = queue.raw.hget(queue.keys.jobs, job.id)
    queue.raw.hset(queue.keys.jobs, job.id, envelope.replace('"v":1', '"v":2'))
    queue.register("w")

    assert queue.coordinator.pull("w") == []

    assert queue.places() == {job.id: "delayed"}
    assert queue.state()["attempts"] == {}


def test_attempts_that_cannot_be_read_count_as_none(queue: Queue) -> None:
    (job,) = queue.enqueue()
    queue.raw.hset(queue.keys.attempts, job.id, "many")
    queue.register("w")

    (claim,) = queue.coordinator.pull("w")

    assert (claim.attempt, claim.crashes) == (1, 0)


def test_a_foreign_value_at_a_token_keeps_no_transition_from_happening(queue: Queue) -> None:
    queue.raw.set(queue.keys.wake("default"), "foreign")
    queue.raw.set(queue.keys.wake_ticker, "foreign")
    queue.register("w")

    queue.enqueue(delay_ms=1_000)
    queue.clock.advance(1)
    queue.coordinator.promote()
    (claim,) = queue.coordinator.pull("w")
    queue.coordinator.retry(claim, FAILURE, delay_s=0)

    assert queue.places() == {claim.job.id: "delayed"}


def test_a_foreign_value_at_a_lane_does_not_keep_its_figures_from_people(queue: Queue) -> None:
    queue.enqueue(number=2, lane="low")
    queue.raw.set(queue.keys.lane("high"), "foreign")
    queue.raw.set(queue.keys.delayed("default"), "foreign")

    lanes = queue.inspector.stats().lanes

    assert {name: (lane.ready, lane.delayed) for name, lane in lanes.items()} == {
        "high": (0, 0), "default": (0, 0), "low": (2, 0),
    }  # fmt: skip


def test_a_foreign_value_at_a_lane_does_not_keep_the_sweeper_from_its_rounds(queue: Queue) -> None:
    (claim,) = queue.claimed(lane="low")
    queue.raw.set(queue.keys.lane("high"), "foreign")
    sweeper = Sweeper(queue.coordinator, queue.inspector)
    sweeper.run_once()
    queue.clock.advance(10)

    wait_s = sweeper.run_once()

    assert 0 < wait_s <= queue.settings.sweep_s
    assert queue.raw.lrange(queue.keys.lane("low"), 0, -1) == [claim.job.id]


def test_a_foreign_value_among_the_delayed_does_not_keep_a_timed_pause_from_ending(queue: Queue) -> None:
    queue.raw.set(queue.keys.delayed("high"), "foreign")
    queue.coordinator.pause("low", caller="user:1", reason="quiet", lasts_s=5)
    queue.clock.advance(5)

    Ticker(queue.coordinator, queue.inspector).run_once()

    assert queue.raw.hgetall(queue.keys.paused) == {}


def test_a_due_id_without_a_job_is_promoted_once_and_ends_as_a_ghost(queue: Queue) -> None:
    queue.raw.zadd(queue.keys.delayed("default"), {"ghost": 1})
    queue.register("w")
    queue.coordinator.promote()

    assert queue.coordinator.pull("w") == []

    state = queue.state()
    assert (state["ready"]["default"], state["delayed"]["default"]) == ([], {})
    assert queue.counters()["ghosts:default"] == 1


def test_a_job_whose_envelope_cannot_be_trusted_can_still_be_looked_at(queue: Queue) -> None:
    (job,) = queue.enqueue()
    queue.raw.hset(queue.keys.jobs, job.id, "junk")

    status = queue.inspector.job(job.id)

    assert status is not None
    assert (status.job.id, status.job.name, status.state) == (job.id, "unreadable", State.READY)


def test_bytes_that_are_no_text_are_stepped_over_like_any_other_ghost(queue: Queue) -> None:
    queue.raw.rpush(queue.keys.lane("default"), b"\xff\xfe")
    (job,) = queue.enqueue()
    queue.register("w")

    assert [claim.job for claim in queue.coordinator.pull("w", 9)] == [job]


@pytest.mark.parametrize("transition", ["purge", "requeue"])
def test_a_letter_that_cannot_be_read_does_not_hold_up_the_others(queue: Queue, transition: str) -> None:
    bad, good = queue.buried(number=2)
    queue.raw.hset(queue.keys.letters, bad.id, "junk")

    done = getattr(queue.coordinator, transition)([bad.id, good.id], caller="user:1", reason="test")

    assert done == [good.id]
    assert queue.raw.hkeys(queue.keys.letters) == [bad.id]


def test_a_foreign_value_at_one_jobs_trail_does_not_keep_the_others_from_being_reclaimed(queue: Queue) -> None:
    bad, good = queue.claimed(number=2)
    queue.raw.set(queue.keys.trail(bad.job.id), "foreign")

    queue.lapse()

    assert queue.places() == {bad.job.id: "ready", good.job.id: "ready"}


def test_a_foreign_value_at_one_lane_does_not_keep_the_dead_of_the_others(queue: Queue) -> None:
    (high,) = queue.buried(lane="high")
    (low,) = queue.buried(lane="low")
    queue.raw.set(queue.keys.lane("high"), "foreign")

    assert queue.coordinator.requeue([high.id, low.id], caller="user:1", reason="test") == [low.id]

    assert queue.raw.hkeys(queue.keys.letters) == [high.id]


@pytest.mark.parametrize("name", ["counters", "paused", "wake:ticker", "wake:default"])
def test_what_only_tells_or_wakes_does_not_stop_a_settle(queue: Queue, name: str) -> None:
    (claim,) = queue.claimed()
    queue.raw.delete(queue.keys.prefix + name)
    queue.raw.set(queue.keys.prefix + name, "foreign")

    queue.coordinator.retry(claim, FAILURE, delay_s=1)

    assert queue.places() == {claim.job.id: "delayed"}

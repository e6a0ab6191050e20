"""report: refusals of a minute that is over → one audit event for each caller, with their number."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from priqueue import RateLimited
from priqueue.jobs import Job
from priqueue.limits import Limit, Rule
from priqueue.sweeper import Sweeper
from tests.support.queues import HANDLER, START_MS, Queue

NONE_FOR_AN_HOUR = Rule("named", Limit.parse("1/h"))


def refuse(queue: Queue, times: int = 1, caller: str = "user:1") -> None:
    """Let a caller be refused so many times."""
    refused = 0
    while refused < times:
        try:
            queue.coordinator.admit([Job(name=HANDLER, payload={}, caller=caller)], NONE_FOR_AN_HOUR)
        except RateLimited:
            refused += 1


def told(queue: Queue) -> dict[str, list[int]]:
    """Return the numbers that audit events tell, by caller."""
    found: dict[str, list[int]] = {}
    for _, event in queue.raw.xrange(queue.keys.audit):
        if event["action"] == "refuse":
            found.setdefault(event["caller"], []).append(int(event["reason"].split()[0]))
    return found


def test_a_minute_s_refusals_are_one_event_that_says_how_many_and_since_when(queue: Queue) -> None:
    refuse(queue, 3)
    queue.clock.advance(60)

    assert queue.coordinator.report() == 1

    assert queue.event() == {
        "action": "refuse", "caller": "user:1", "outcome": "refused",
        "reason": f"3 over the rate limit since {START_MS} ms", "at": str(START_MS + 60_000),
    }  # fmt: skip
    assert not queue.raw.exists(queue.keys.refusals, queue.keys.refused)


def test_a_minute_that_is_not_over_is_left_alone(queue: Queue) -> None:
    refuse(queue, 3)
    queue.clock.advance(59.999)
    before = queue.everything()

    assert queue.coordinator.report() == 0

    assert queue.everything() == before


def test_a_repeat_tells_nothing_twice(queue: Queue) -> None:
    refuse(queue)
    queue.clock.advance(60)
    queue.eat_replies()

    queue.coordinator.report()

    assert told(queue) == {"user:1": [1]}


def test_the_next_refusal_after_a_minute_tells_of_it_where_nobody_sweeps(queue: Queue) -> None:
    refuse(queue, 3)
    queue.clock.advance(61)

    refuse(queue, 2)

    assert told(queue) == {"user:1": [3]}
    assert queue.raw.hgetall(queue.keys.refused) == {"user:1": "2"}


def test_a_sweep_tells_of_it(queue: Queue) -> None:
    refuse(queue, 3)
    queue.clock.advance(60)

    Sweeper(queue.coordinator, queue.inspector).run_once()

    assert told(queue) == {"user:1": [3]}


def test_a_clock_that_was_set_back_holds_no_refusal_back(queue: Queue) -> None:
    refuse(queue, 3)
    queue.clock.advance(-3600)

    queue.coordinator.report()

    assert told(queue) == {"user:1": [3]}


def test_over_ten_minutes_no_caller_has_more_than_an_event_a_minute_and_no_refusal_is_left_out(queue: Queue) -> None:
    refused: Counter[str] = Counter()
    for step in range(600):
        caller = f"user:{step % 3}"
        refuse(queue, 1 + step % 4, caller)
        refused[caller] += 1 + step % 4
        queue.clock.advance(1)
        if step % 2:
            queue.coordinator.report()
    queue.clock.advance(60)
    queue.coordinator.report()

    numbers = told(queue)
    assert {caller: sum(each) for caller, each in numbers.items()} == dict(refused)
    assert all(len(each) <= 11 for each in numbers.values())


def test_beyond_a_thousand_callers_the_rest_of_a_kind_share_one_count(make_queue: Callable[..., Queue]) -> None:
    queue = make_queue()
    for number in range(1_000):
        queue.raw.zadd(queue.keys.refusals, {f"user:{number}": START_MS})
        queue.raw.hset(queue.keys.refused, f"user:{number}", 1)

    for number in range(1_000, 1_020):
        refuse(queue, 1, f"user:{number}")
        refuse(queue, 1, f"key:{number}")
        refuse(queue, 1, f"odd{number}")
    refuse(queue, 2, "user:7")

    counts = queue.raw.hgetall(queue.keys.refused)
    assert len(counts) == 1_003
    assert (counts["user:*"], counts["key:*"], counts["*"], counts["user:7"]) == ("20", "20", "20", "3")


def test_at_most_so_many_are_told_at_a_time(queue: Queue) -> None:
    for number in range(5):
        refuse(queue, 1, f"user:{number}")
    queue.clock.advance(60)

    assert [queue.coordinator.report(2) for _ in range(4)] == [2, 2, 1, 0]


@pytest.mark.parametrize(("audit", "callers"), [("all", 3), ("callers", 2), ("off", 0)])
def test_only_what_is_audited_is_kept(make_queue: Callable[..., Queue], audit: str, callers: int) -> None:
    queue: Any = make_queue(AUDIT=audit)
    for caller in ("user:1", "key:a", "somebody"):
        refuse(queue, 1, caller)

    assert queue.raw.zcard(queue.keys.refusals) == callers
    assert queue.counters() == {"refused:named": 3}

"""The retry policy, as tables and as properties."""

import asyncio
import math
from dataclasses import dataclass
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from priqueue.exceptions import Bury, Retry
from priqueue.retry import Again, GiveUp, decide, default_delay_s


@dataclass(frozen=True)
class Limits:
    backoff_s: float = 2
    backoff_max_s: float = 600


def raises(error):
    def backoff(attempt, exception):
        raise error

    return backoff


def decided(attempt=1, exception=None, *, max_attempts=5, backoff=None, random=lambda: 0.5):
    return decide(
        attempt,
        exception or ValueError("it failed"),
        max_attempts=max_attempts,
        backoff=backoff,
        limits=Limits(),
        random=random,
    )


@pytest.mark.parametrize(
    ("attempt", "max_attempts", "decision"),
    [
        (1, 0, GiveUp()),
        (1, 1, GiveUp()),
        (1, 2, Again(2)),
        (2, 2, GiveUp()),
        (3, 2, GiveUp()),
        (4, 5, Again(16)),
        (5, 5, GiveUp()),
        (10**9, 5, GiveUp()),
    ],
)
def test_a_job_runs_max_attempts_times_and_at_least_once(attempt, max_attempts, decision):
    assert decided(attempt, max_attempts=max_attempts) == decision


@pytest.mark.parametrize(
    ("attempt", "delay_s"),
    [(1, 2), (2, 4), (3, 8), (8, 256), (9, 512), (10, 600), (1_000, 600), (1_025, 600), (10**9, 600)],
)
def test_the_default_wait_doubles_up_to_the_cap_and_never_overflows(attempt, delay_s):
    assert decided(attempt, max_attempts=10**12) == Again(delay_s)


@pytest.mark.parametrize(
    ("draw", "delay_s"), [(0.0, 1.8), (0.25, 1.9), (0.5, 2.0), (0.75, 2.1), (math.nextafter(1, 0), 2.2)]
)
def test_the_jitter_is_ten_percent_to_either_side(draw, delay_s):
    assert decided(random=lambda: draw).delay_s == pytest.approx(delay_s)


@given(st.integers(1, 10**9), st.floats(0, 1e308), st.floats(0, 1e308), st.floats(0, 1, exclude_max=True))
def test_the_default_wait_is_always_between_zero_and_the_cap(attempt, backoff_s, backoff_max_s, draw):
    delay_s = default_delay_s(attempt, Limits(backoff_s, backoff_max_s), lambda: draw)

    assert 0 <= delay_s <= backoff_max_s


@given(st.integers(1, 7), st.floats(0, 1, exclude_max=True), st.floats(0, 1, exclude_max=True))
def test_below_the_cap_each_wait_is_longer_than_the_one_before(attempt, draw, next_draw):
    assert (
        decided(attempt, max_attempts=99, random=lambda: draw).delay_s
        < decided(attempt + 1, max_attempts=99, random=lambda: next_draw).delay_s
    )


@pytest.mark.parametrize(
    ("backoff", "waits_s"),
    [
        (0, [0, 0, 0]),
        (7, [7, 7, 7]),
        (0.25, [0.25, 0.25, 0.25]),
        (3_600, [3_600, 3_600, 3_600]),
        (timedelta(minutes=2), [120, 120, 120]),
        ([1, 10], [1, 10, 10]),
        ((5, timedelta(minutes=1), 0), [5, 60, 0]),
        (range(1, 9), [1, 2, 3]),
        (lambda attempt, exception: attempt * 10, [10, 20, 30]),
        (lambda attempt, exception: timedelta(days=attempt), [86_400, 172_800, 259_200]),
        (lambda attempt, exception: len(str(exception)), [9, 9, 9]),
    ],
)
def test_a_handlers_own_backoff_is_taken_exactly(backoff, waits_s):
    made = [decided(attempt, backoff=backoff, random=lambda: 0.9) for attempt in (1, 2, 3)]

    assert made == [Again(wait_s) for wait_s in waits_s]


@given(st.lists(st.floats(0, 1e8), min_size=1), st.integers(1, 10**9))
def test_the_last_wait_of_a_sequence_repeats(waits_s, attempt):
    decision = decided(attempt, max_attempts=10**12, backoff=waits_s)

    assert decision.delay_s == pytest.approx(waits_s[min(attempt, len(waits_s)) - 1], abs=1e-6)


@pytest.mark.parametrize(
    "backoff",
    [
        math.nan,
        math.inf,
        -math.inf,
        -1,
        -1e18,
        1e308,
        10**400,
        True,
        "5",
        b"55",
        {},
        [math.nan],
        ["5"],
        [None],
        [],
        [[5]],
        timedelta(-1),
        timedelta.max,
        object(),
        raises(ValueError("no")),
        raises(SystemExit(3)),
        raises(asyncio.CancelledError()),
        lambda: 5,
        lambda attempt, exception: None,
        lambda attempt, exception: "5",
        lambda attempt, exception: math.nan,
        lambda attempt, exception: -1,
        lambda attempt, exception: True,
        lambda attempt, exception: 1 << 100_000,
        lambda attempt, exception: [5],
    ],
)
def test_a_backoff_that_makes_no_sense_falls_back_to_the_default_and_says_so(backoff):
    decision = decided(2, backoff=backoff)

    assert (decision.delay_s, decision.note.partition(":")[0]) == (4, "backoff")
    assert decision.note.endswith("; used the default backoff")


def test_the_note_names_the_error_of_a_backoff_function_and_not_its_message():
    assert decided(backoff=raises(KeyError("secret"))).note == (
        "backoff: the function raised KeyError; used the default backoff"
    )


@pytest.mark.parametrize("after", [0, 60, 0.5, timedelta(hours=1), 3_653 * 86_400])
def test_a_retry_says_its_own_wait(after):
    seconds = after.total_seconds() if isinstance(after, timedelta) else after

    assert decided(exception=Retry(after=after), backoff=7) == Again(seconds)


@pytest.mark.parametrize("after", [-1, math.nan, math.inf, True, "60", 3_653 * 86_400 + 1, 1e400, []])
def test_a_retry_that_makes_no_sense_falls_back_to_the_default_and_says_so(after):
    decision = decided(exception=Retry(after=after), backoff=7)

    assert (decision.delay_s, decision.note.partition(":")[0]) == (2, "Retry(after)")


def test_a_retry_without_a_wait_takes_the_handlers_backoff():
    assert decided(exception=Retry(), backoff=7) == Again(7)


def test_a_retry_on_the_last_attempt_gives_up():
    assert decided(5, Retry(after=1)) == GiveUp()


def test_a_bury_gives_up_on_the_first_attempt():
    assert decided(1, Bury("for good"), backoff=7) == GiveUp()


def test_decisions_are_frozen_values():
    with pytest.raises(AttributeError):
        decided().delay_s = 3
    assert {Again(2), Again(2), GiveUp(), GiveUp()} == {Again(2), GiveUp()}

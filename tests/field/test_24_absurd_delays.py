"""Case 24: a hugely negative delay spins a CPU, one of 24 days fires at once, a past time sticks."""

import math
from datetime import UTC, datetime, timedelta

import pytest

from priqueue import jobs
from priqueue.exceptions import InvalidDelay
from priqueue.jobs import due, to_ms
from priqueue.retry import Again, decide

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def stopped_clock(monkeypatch):
    monkeypatch.setattr(jobs.clock, "wall_ms", lambda: to_ms(NOW))


class Limits:
    backoff_s = 2
    backoff_max_s = 600


ABSURD = [-1e18, -1, -(2**63), 2**53 + 1, 1e18, 1e308, 10**400, math.nan, math.inf, -math.inf, True, "5"]


@pytest.mark.parametrize("delay", ABSURD, ids=lambda delay: f"{delay!r:.20}")
def test_an_absurd_delay_is_refused(delay):
    with pytest.raises(InvalidDelay, match=r"^delay: "):
        due(delay, None)


@pytest.mark.parametrize("delay", ABSURD, ids=lambda delay: f"{delay!r:.20}")
def test_an_absurd_backoff_is_replaced_by_the_default(delay):
    decision = decide(1, ValueError(), max_attempts=5, backoff=lambda *_: delay, limits=Limits(), random=lambda: 0.5)

    assert (type(decision), decision.delay_s) == (Again, 2)


@pytest.mark.parametrize(("delay", "delay_ms"), [(0, 0), (2**31 / 1_000, 2**31), (25 * 86_400, 25 * 86_400_000)])
def test_a_delay_beyond_what_32_bits_hold_is_kept(delay, delay_ms):
    assert due(delay, None) == (delay_ms, NOW + timedelta(milliseconds=delay_ms))


@pytest.mark.parametrize("past", [NOW - timedelta(seconds=1), datetime(1970, 1, 1, tzinfo=UTC)])
def test_a_past_time_travels_as_it_is_so_that_the_server_finds_it_due(past):
    assert due(None, past) == (None, past)


@pytest.mark.parametrize("past", [datetime(1, 1, 1, tzinfo=UTC), datetime(1969, 12, 31, tzinfo=UTC)])
def test_a_time_before_1970_is_due_without_ever_being_negative(past):
    assert to_ms(due(None, past)[1]) == 0


def test_the_year_9999_is_refused():
    with pytest.raises(InvalidDelay, match=r"^run_at: .* is more than ten years ahead$"):
        due(None, datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC))

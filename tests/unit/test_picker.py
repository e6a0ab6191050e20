"""picker: which lane is next."""

from collections import Counter
from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from priqueue.lanes import Lane
from priqueue.picker import pick

LANES = (Lane("high", 6), Lane("default", 3), Lane("low", 1))
ALL = ("high", "default", "low")
ROUND = ["high"] * 6 + ["default"] * 3 + ["low"]


def _picks(number: int, credits: dict[str, int], with_work: Collection[str] = ALL) -> list[str | None]:
    return [pick(LANES, credits, with_work) for _ in range(number)]


def test_a_full_load_is_served_in_rounds_of_six_three_and_one() -> None:
    assert _picks(30, {}) == ROUND * 3


def test_an_idle_queue_serves_high_first() -> None:
    assert pick(LANES, {}, ALL) == "high"


def test_without_work_there_is_no_pick_and_the_credits_stay() -> None:
    credits = {"high": 2, "default": 0, "low": 1}

    assert pick(LANES, credits, ()) is None

    assert credits == {"high": 2, "default": 0, "low": 1}


def test_a_pick_spends_one_credit_of_its_lane() -> None:
    credits = {"high": 2, "default": 3, "low": 1}

    pick(LANES, credits, ALL)

    assert credits == {"high": 1, "default": 3, "low": 1}


def test_a_lane_without_work_costs_nothing_and_its_share_goes_to_the_others() -> None:
    assert _picks(8, {}, ("default", "low")) == (["default"] * 3 + ["low"]) * 2


def test_a_lane_that_is_alone_gets_every_pick() -> None:
    assert _picks(25, {}, ("low",)) == ["low"] * 25


def test_a_lane_without_work_keeps_its_credits_until_the_next_refill() -> None:
    credits = {"high": 4, "default": 0, "low": 1}

    assert pick(LANES, credits, ("default", "low")) == "low"

    assert credits == {"high": 4, "default": 0, "low": 0}


def test_a_refill_gives_every_lane_its_weight_whatever_it_had_left() -> None:
    credits = {"high": 4, "default": 0, "low": 0}

    assert pick(LANES, credits, ("default", "low")) == "default"

    assert credits == {"high": 6, "default": 2, "low": 1}


def test_of_a_hundred_picks_under_a_flood_sixty_thirty_and_ten() -> None:
    assert Counter(_picks(100, {})) == {"high": 60, "default": 30, "low": 10}


@given(st.integers(0, 300))
def test_any_ten_picks_under_a_flood_hold_six_three_and_one(start: int) -> None:
    window = _picks(start + 10, {})[start:]

    assert Counter(window) == {"high": 6, "default": 3, "low": 1}


credits_of_any_past = st.fixed_dictionaries({lane.name: st.integers(0, lane.weight) for lane in LANES})


@given(credits_of_any_past)
def test_a_low_job_waits_at_most_nine_picks_or_eighteen_where_the_others_had_been_empty(
    credits: dict[str, int],
) -> None:
    had_none = not credits["low"]

    before_low = _picks(30, dict(credits)).index("low")

    assert before_low <= (18 if had_none else 9)


@given(credits_of_any_past, st.sets(st.sampled_from(ALL), min_size=1))
def test_whatever_was_before_a_lane_with_work_is_picked_and_no_credit_goes_below_none(
    credits: dict[str, int], with_work: set[str]
) -> None:
    assert pick(LANES, credits, with_work) in with_work

    assert all(0 <= credits[lane.name] <= lane.weight for lane in LANES)


@given(st.lists(st.integers(1, 20), min_size=1, max_size=5))
def test_any_weights_are_shared_exactly_in_every_round(weights: list[int]) -> None:
    lanes = [Lane(f"lane{number}", weight) for number, weight in enumerate(weights)]
    credits: dict[str, int] = {}
    names = [lane.name for lane in lanes]

    picks = [pick(lanes, credits, names) for _ in range(3 * sum(weights))]

    assert Counter(picks) == {lane.name: 3 * lane.weight for lane in lanes}


@pytest.mark.parametrize("with_work", [["low", "high"], {"high", "low"}, ("high", "low")])
def test_the_order_in_which_work_is_told_does_not_matter(with_work: Collection[str]) -> None:
    assert pick(LANES, {}, with_work) == "high"

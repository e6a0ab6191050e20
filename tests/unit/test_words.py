"""words: numbers and times as people read them."""

import pytest

from priqueue import words


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0, "0.0 s"), (-3, "0.0 s"), (0.44, "0.4 s"), (9.9, "9.9 s"), (12.3, "12 s"), (60, "1 m"), (200, "3 m 20 s"),
        (41 * 60 + 59, "41 m"), (3600, "1 h"), (11_100, "3 h 5 m"), (187_200, "2 d 4 h"),
    ],
)  # fmt: skip
def test_a_duration_is_told_in_its_two_largest_units_at_most(seconds: float, told: str) -> None:
    assert words.duration(seconds) == told


def test_numbers_are_told_with_separators_and_their_noun() -> None:
    told = words.count(9210), words.amount(1, "job"), words.amount(9210, "job"), words.amount(2, "job is", "jobs are")

    assert told == ("9,210", "1 job", "9,210 jobs", "2 jobs are")


@pytest.mark.parametrize(("per_s", "told"), [(0, "0"), (0.04, "0.0"), (3.14, "3.1"), (412.4, "412"), (1234.5, "1,234")])
def test_a_small_rate_has_a_digit_behind_the_point(per_s: float, told: str) -> None:
    assert words.rate(per_s) == told


@pytest.mark.parametrize(("number", "told"), [(412, "412 B"), (1536, "1.5 KiB"), (300 * 1024**2, "300 MiB")])
def test_bytes_are_told_in_their_unit(number: int, told: str) -> None:
    assert words.size(number) == told


def test_ids_and_errors_are_told_by_their_ends() -> None:
    told = words.short_id("0193-abcdefgh"), words.short_id("short"), words.short_error("shop.jobs.CardDeclined")

    assert told == ("…abcdefgh", "short", "CardDeclined")


@pytest.mark.parametrize(
    ("ms", "told"),
    [
        (None, "\u2013"),
        (5, "≤ 5 ms"),
        (500, "≤ 500 ms"),
        (2500, "≤ 2.5 s"),
        (300_000, "≤ 5 m"),
        (float("inf"), "> 1 h"),
    ],
)
def test_the_end_of_a_range_is_told_as_such(ms: float | None, told: str) -> None:
    assert words.at_most(ms) == told


@pytest.mark.parametrize(
    ("worker_id", "name"), [("web1:311:a7f3", "web1:311"), ("alone", "alone"), (":x", "x"), ("", "")]
)
def test_a_worker_is_named_without_the_random_end_of_its_id(worker_id: str, name: str) -> None:
    assert words.worker_name(worker_id) == name

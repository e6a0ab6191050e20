"""histograms: how long jobs waited and ran, read back from what the scripts count."""

import re
from importlib import resources
from math import inf

import pytest

from priqueue.coordinator.histograms import BOUNDS_MS, Histogram

NOTHING = (0,) * (len(BOUNDS_MS) + 1)


def test_script_and_reader_know_the_same_ranges() -> None:
    file = resources.files("priqueue.coordinator") / "lua" / "prelude" / "histograms.lua"
    (listed,) = re.findall(r"local bounds = \{(.*?)\}", file.read_text(encoding="utf-8"))

    assert tuple(int(bound) for bound in listed.split(",")) == BOUNDS_MS
    assert sorted(BOUNDS_MS) == list(BOUNDS_MS)


def test_a_lanes_histogram_is_cut_out_of_the_totals() -> None:
    fields = {
        "wait_le_5:low": "2",
        "wait_le_inf:low": "1",
        "wait_ms:low": "9",
        "wait_le_5:high": "7",
        "run_ms:low": "3",
    }

    histogram = Histogram.of(fields, "wait", "low")

    assert histogram == Histogram((2, *NOTHING[2:], 1), 9)
    assert histogram.count == 3


def test_two_histograms_make_one_of_both() -> None:
    assert Histogram((1, 2), 3) + Histogram((10, 20), 30) == Histogram((11, 22), 33)


@pytest.mark.parametrize(
    ("numbers", "part", "expected"),
    [
        ({5: 100}, 0.5, 5),
        ({5: 50, 100: 50}, 0.5, 5),
        ({5: 50, 100: 50}, 0.51, 100),
        ({5: 94, 1_000: 6}, 0.95, 1_000),
        ({5: 1, inf: 1}, 0.95, inf),
        ({}, 0.95, None),
    ],
)
def test_a_part_of_all_took_at_most_the_end_of_a_range(
    numbers: dict[float, int], part: float, expected: float | None
) -> None:
    histogram = Histogram([numbers.get(bound, 0) for bound in (*BOUNDS_MS, inf)], 0)

    assert histogram.at_most_ms(part) == expected

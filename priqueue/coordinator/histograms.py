"""Histograms: how long jobs waited and ran, by range, as the scripts count it; pure.

Three things are measured, in each lane: ``wait``, from ready to claimed; ``lateness``, from due to claimed, of what
was delayed; ``run``, from the start of a handler to its end.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf
from typing import Self

MEASURES = ("wait", "lateness", "run")
#: the upper ends of the ranges, in ms, as in prelude/histograms.lua; what took longer is in a last one without an end
BOUNDS_MS = (
    5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 900_000, 3_600_000,
)  # fmt: skip
_NAMES = (*map(str, BOUNDS_MS), "inf")


def fields_of(measure: str, lane: str) -> list[str]:
    """Return the names under which a lane's histogram is counted."""
    return [*(f"{measure}_le_{name}:{lane}" for name in _NAMES), f"{measure}_ms:{lane}"]


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many took how long: a number for each range of ``BOUNDS_MS`` and one for all above."""

    numbers: Sequence[int]
    #: of everything together
    sum_ms: int

    @classmethod
    def of(cls, fields: Mapping[str, str], measure: str, lane: str) -> Self:
        """Return a lane's histogram out of the totals, or out of one bucket of the series."""
        return cls(
            tuple(int(fields.get(f"{measure}_le_{name}:{lane}", 0)) for name in _NAMES),
            int(fields.get(f"{measure}_ms:{lane}", 0)),
        )

    def __add__(self, other: Self) -> Self:
        """Return both together: the buckets of some minutes make those minutes' histogram."""
        numbers = tuple(mine + yours for mine, yours in zip(self.numbers, other.numbers, strict=True))
        return type(self)(numbers, self.sum_ms + other.sum_ms)

    @property
    def count(self) -> int:
        """How many were measured."""
        return sum(self.numbers)

    def at_most_ms(self, part: float) -> float | None:
        """Return the time within which ``part`` of all were, such as 0.95: the end of its range, inf for the last.

        None when nothing was measured.
        """
        left = ceil(part * self.count)
        for bound_ms, number in zip((*BOUNDS_MS, inf), self.numbers, strict=True):
            left -= number
            if left <= 0 < self.count:
                return bound_ms
        return None

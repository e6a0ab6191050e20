"""Lanes: the priority lists, in order, each with its weight.

A weight is a share of *picks* while every lane holds work: 6:3:1 means that of any ten jobs handed out,
six are high, three default and one low. It is no share of worker time: ten slow low jobs still hold ten slots.
"""

import re
from dataclasses import dataclass

LANE_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}\Z")


@dataclass(frozen=True, slots=True)
class Lane:
    """A priority list: its name and how many picks it gets in a round."""

    name: str
    weight: int

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not LANE_NAME.match(self.name):
            raise ValueError(
                f"lane name {self.name!r}: use a lower-case letter, then letters, digits, '_' and '-', 32 at most"
            )
        if type(self.weight) is not int or not 1 <= self.weight <= 1000:
            raise ValueError(f"weight of lane {self.name!r}: use a whole number from 1 to 1000, not {self.weight!r}")

"""Limits: how many jobs a caller may hand in, and which limit is whose. Pure: ``admit.lua`` keeps count.

A limit is a rate and a burst: ``100/s`` lets a caller hand in a hundred jobs at once and then one every 10 ms. The rule
for a caller is looked for in this order:

1. the caller's own limit, as an API key may have one
2. RATE_LIMIT: the caller by name, its kind (``user:``), then ``*``, which leaves out what the system does by itself
3. at the HTTP door, 100/s for a key or a user
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

_FORM = re.compile(r"([1-9][0-9]{0,5})/(s|min|h)(?: burst ([1-9][0-9]{0,5}))?")
_SECONDS = {"s": 1, "min": 60, "h": 3600}
_HOW = 'use a text such as "100/s", "30/min" or "100/s burst 500"'
#: limited only where they are named
_TRUSTED = frozenset({"system", "command", "worker"})
_AT_THE_DOOR = frozenset({"key", "user"})


@dataclass(frozen=True, slots=True)
class Limit:
    """So many jobs in so many seconds, and how many of them may come at once."""

    count: int
    per_s: int
    burst: int

    @classmethod
    def parse(cls, text: object) -> Self:
        """Return the limit that a text such as ``"100/s burst 500"`` says. Raises ValueError.

        The burst, where it is not given, is what one second brings, at least one job.
        """
        found = _FORM.fullmatch(text) if isinstance(text, str) else None
        if found is None:
            raise ValueError(f"{text!r:.60} is no limit; {_HOW}")
        count, per_s = int(found[1]), _SECONDS[found[2]]
        return cls(count, per_s, int(found[3] or max(1, count // per_s)))

    @property
    def interval_us(self) -> float:
        """Microseconds from one job to the next, once the burst is used up."""
        return self.per_s * 1_000_000 / self.count

    def __str__(self) -> str:
        unit = next(unit for unit, seconds in _SECONDS.items() if seconds == self.per_s)
        return f"{self.count}/{unit} burst {self.burst}"


AT_THE_DOOR = Limit.parse("100/s")


@dataclass(frozen=True, slots=True)
class Rule:
    """The limit of one caller, None for no limit at all, and the policy it comes from: a word that names no caller."""

    policy: str
    limit: Limit | None


@dataclass(frozen=True, slots=True)
class Policy:
    """RATE_LIMIT: limits by caller (``key:billing``), by kind (``key:``) and for the rest (``*``); None lifts one."""

    limits: Mapping[str, Limit | None]

    @classmethod
    def parse(cls, given: object) -> Self:
        """Return the policy of a text, which limits ``*``, or of a dict. Raises ValueError."""
        if not isinstance(given, Mapping):
            return cls({"*": Limit.parse(given)})
        return cls({_name(name): None if text is None else Limit.parse(text) for name, text in given.items()})

    def rule_of(self, caller: str) -> Rule | None:
        """Return the rule for a caller; None where none is meant for it."""
        kind = caller.partition(":")[0]
        if caller in self.limits and caller != "*":
            return Rule("named", self.limits[caller])
        if f"{kind}:" in self.limits:
            return Rule(kind, self.limits[f"{kind}:"])
        if kind in _TRUSTED or "*" not in self.limits:
            return None
        return Rule("all", self.limits["*"])


def _name(name: object) -> str:
    if not isinstance(name, str) or not name or name == ":":
        raise ValueError(f'{name!r:.60} names no caller; use "key:billing", "key:" for a kind, or "*" for the rest')
    return name


def most_ready(given: object) -> object:
    """Return MAX_READY if it is a number of jobs, or one for each of some lanes. Raises ValueError."""
    numbers = [*given.values()] if isinstance(given, Mapping) else [given]
    if not all(type(number) is int and number >= 1 for number in numbers):
        raise ValueError('not a number of jobs, nor a dict of them; use a whole number from 1, or {"low": 10000}')
    return given


def rule_for(caller: str, policy: Policy | None, *, own: Limit | None = None, at_door: bool = False) -> Rule | None:
    """Return the rule that holds for a caller; None where nothing limits it."""
    if own is not None:
        return Rule("own", own)
    found = policy.rule_of(caller) if policy else None
    if found is None and at_door and caller.partition(":")[0] in _AT_THE_DOOR:
        return Rule("door", AT_THE_DOOR)
    return found

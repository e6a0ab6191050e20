"""Plans: what to ask the server, and what then, so that readers who each need an answer first share their round trips.

A plan is a generator: it yields commands, is sent their answers, and returns what it made of them. Pure.
"""

from collections.abc import Callable, Generator, Sequence
from itertools import islice
from typing import Any, TypeVar

T = TypeVar("T")
Command = Sequence[Any]
Plan = Generator[Sequence[Command], Sequence[Any], T]


def follow(plans: Sequence[Plan[Any]], ask: Callable[[Sequence[Command]], Sequence[Any]]) -> list[Any]:
    """Carry out plans side by side, and return what they return. What all of them ask next is asked at once."""
    results: dict[Plan[Any], Any] = {}
    asked = {plan: next(plan) for plan in plans}
    while asked:
        answers = iter(ask([command for commands in asked.values() for command in commands]))
        for plan, commands in list(asked.items()):
            try:
                asked[plan] = plan.send(list(islice(answers, len(commands))))
            except StopIteration as ended:
                results[plan] = ended.value
                del asked[plan]
    return [results[plan] for plan in plans]

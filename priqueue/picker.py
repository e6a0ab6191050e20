"""The picker: which lane is next. This is the model that ``claim.lua`` is held to by tests.

1. Among the pool's lanes in priority order, skip the paused and the empty, take the first with credits left.
2. If none has credits but some lane has work, give every lane its weight again and look once more.
3. If no lane has work, there is no pick and the credits stay.

So a full load is served in rounds of 6, 3 and 1, an idle queue serves high first, and an empty lane costs nothing.
"""

from collections.abc import Collection, Sequence

from priqueue.lanes import Lane


def pick(lanes: Sequence[Lane], credits: dict[str, int], with_work: Collection[str]) -> str | None:
    """Return the name of the next lane and spend one of its credits; None when no lane has work.

    ``with_work`` names the lanes that hold a job and are not paused. A lane missing in ``credits`` has none left.
    """
    busy = [lane.name for lane in lanes if lane.name in with_work]
    if not busy:
        return None
    if not any(credits.get(name, 0) > 0 for name in busy):
        credits.update({lane.name: lane.weight for lane in lanes})
    chosen = next(name for name in busy if credits.get(name, 0) > 0)
    credits[chosen] -= 1
    return chosen

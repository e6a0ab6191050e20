"""Pace: whether runs are so quick that to begin, or to settle, each of them by itself costs more than the runs do."""

#: how long something may wait, to be done together with what is quick
PATIENCE_MS = 1
_QUICK_S = 0.0002
_MOSTLY = 0.9
_LAST = 32
_WORTH_IT = 8  # outcomes for which a round trip does not wait for more


class Pace:
    """What is known of the last dozens of runs."""

    def __init__(self) -> None:
        self._share = 0.0

    def note(self, run_s: float) -> None:
        """Note how long a run took."""
        self._share += ((run_s < _QUICK_S) - self._share) / _LAST

    @property
    def is_quick(self) -> bool:
        """Whether nearly all of them were quick. Slow ones tell at once, quick ones only when they are many."""
        return self._share > _MOSTLY

    def rest_s(self, number: int, begun_s: float, now_s: float) -> float:
        """Return how long so many outcomes of quick runs wait for the rest of what began then.

        The first is back before the others have begun, and some are not worth a round trip.
        """
        return begun_s + PATIENCE_MS / 1000 - now_s if 0 < number < _WORTH_IT else 0

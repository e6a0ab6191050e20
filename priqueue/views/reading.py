"""Reading: what pages know of the queue, and since when.

A queue that does not answer costs a page one short wait, and the pages after it none: for two seconds they are told
at once, then one of them asks again. What was last known stays, with its time, and is never shown as if it were now.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache

from priqueue import health, wiring
from priqueue.clock import monotonic_s
from priqueue.conf import Settings
from priqueue.coordinator import Coordinator, Runs
from priqueue.coordinator.forms import Forms
from priqueue.coordinator.overview import Overview, Snapshot
from priqueue.coordinator.queued import Lanes
from priqueue.exceptions import PriqueueError, QueueUnavailable
from priqueue.health import Health

# A page makes one call that gets no answer, and no other after it. Each of these ends within two seconds, also where a
# connection comes about at the last moment:
#   a read          0.8 to connect + 0.8 for the answer, tried once            = 1.6
#   a change        tried for twice 0.4, a last try of 0.4 + 0.4 at the end    = 1.6
#   a form's token  tried for 0.4, a last try of 0.4 + 0.4 at the end          = 1.2
TIMEOUT_S, CHANGE_TIMEOUT_S = 0.8, 0.4
_REST_S = 2.0


class Breaker:
    """Keeps callers from waiting for what did not answer a moment ago."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._why = ""
        self._again_at_s = 0.0

    @contextmanager
    def trying(self) -> Iterator[None]:
        """Try it inside the block. Raises QueueUnavailable, at once while another one was refused lately."""
        with self._lock:
            if self._why and monotonic_s() < self._again_at_s:
                raise QueueUnavailable(self._why)
            self._again_at_s = monotonic_s() + _REST_S  # the others are not to wait for this try
        try:
            yield
        except QueueUnavailable as error:
            with self._lock:
                self._why, self._again_at_s = str(error), monotonic_s() + _REST_S
            raise
        with self._lock:
            self._why = ""


@dataclass(frozen=True, slots=True)
class Look:
    """The queue as it is now or, with ``why_not``, as it was when it last answered this process."""

    settings: Settings
    snapshot: Snapshot | None
    why_not: str = ""

    @property
    def health(self) -> Health:
        """What is wrong."""
        if self.why_not or self.snapshot is None:
            return health.unknown("Redis does not answer")
        return health.judge(self.snapshot, self.settings)

    @property
    def pausers(self) -> list[str]:
        """The callers who paused the lanes that are paused."""
        lanes = self.snapshot.stats.lanes.values() if self.snapshot else ()
        return [lane.paused.caller for lane in lanes if lane.paused]


class Desk:
    """The readers of one queue, on connections of their own with short time-outs, and what they last read."""

    def __init__(self, coordinator: Coordinator) -> None:
        self.settings = _hurried(coordinator.settings, TIMEOUT_S)
        source = (coordinator.client, self.settings, coordinator.clock)
        self.overview, self.lanes, self.letters = Overview(*source), Lanes(*source), Runs(*source)
        source = (coordinator.client, _hurried(coordinator.settings, CHANGE_TIMEOUT_S), coordinator.clock)
        self.coordinator, self.forms = Coordinator(*source), Forms(*source)
        self.breaker = Breaker()
        self._last: Snapshot | None = None

    def look(self) -> Look:
        """Return the queue as it is or was. Never raises for a queue that does not answer."""
        try:
            with self.breaker.trying():
                self._last = self.overview.snapshot()
        except PriqueueError as error:
            return self.last(str(error))
        return Look(self.settings, self._last)

    def last(self, why_not: str) -> Look:
        """Return the queue as it was, without asking: somebody was just told why it does not answer."""
        return Look(self.settings, self._last, why_not)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Let what is done inside the block be done with the patience of a page. Raises QueueUnavailable as a try."""
        with self.breaker.trying(), wiring.acting_through(self.coordinator):
            yield

    def close(self) -> None:
        """Close the connections."""
        for part in (self.coordinator, self.overview, self.lanes, self.letters, self.forms):
            part.close()


def _hurried(settings: Settings, timeout_s: float) -> Settings:
    return replace(settings, socket_timeout_s=min(timeout_s, settings.socket_timeout_s))


def desk() -> Desk:
    """Return this process's readers. Raises ConfigurationError."""
    return _desk_of(wiring.coordinator())


@lru_cache(maxsize=1)
def _desk_of(coordinator: Coordinator) -> Desk:
    return Desk(coordinator)

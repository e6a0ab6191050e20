"""Crew: the children of a worker. It starts them, replaces those that die or have done their share, and knows who has
room.
"""

from collections.abc import Callable, Iterable
from typing import Any

from priqueue.children import Child, Here, Place
from priqueue.clock import monotonic_s
from priqueue.conf import Settings
from priqueue.ears import Ears
from priqueue.loops import backoff_s

_MAX_FAILED_STARTS = 5
_START_WITHIN_S = 60
#: how long a suspect may wait, or run alone, before another child is started
ALONE_WITHIN_S = 1.0
_MAX_EXTRA = 4


class Crew:
    """The places where runs take place: ``processes`` children, or this process when that is 0."""

    def __init__(
        self,
        processes: int,
        threads: int,
        settings: Settings,
        tell: Callable[[Any, str, Any], None],
        ears: Ears,
        max_jobs: int | None,
    ) -> None:
        self._processes = processes
        self._threads = threads
        self._tell = tell
        self._ears = ears
        self._max_jobs = max_jobs
        self._settings = settings
        self.members: list[Place] = []
        self.alone: dict[Place, float] = {}  # with one suspect, and since when that is held up
        self._leaving: set[Place] = set()
        self._starting: dict[Place, float] = {}  # since when
        self._failed_starts = 0
        self.next_start_s = 0.0

    @property
    def room(self) -> int:
        """How many runs could begin now."""
        return sum(self._room_of(place) for place in self.members)

    def _room_of(self, place: Place) -> int:
        if not place.ready or place in self.alone or place in self._leaving:
            return 0
        left = self._threads if self._max_jobs is None else self._max_jobs - place.taken
        return max(0, min(self._threads - len(place.runs), left))

    def roomiest(self) -> Place | None:
        """Return who has the most room; None when nobody has any."""
        best, most = None, 0
        for place in self.members:
            if (room := self._room_of(place)) > most:
                best, most = place, room
        return best

    def empty(self, *, spare: bool = False) -> Place | None:
        """Return who is ready and has nothing to do; a ``spare`` one, beside whom there are as many as usual."""
        away = self._leaving | self.alone.keys()
        serving = [place for place in self.members if place.ready and place not in away]
        if spare and len(serving) <= self._processes:
            return None
        return next((place for place in serving if not place.runs and self._room_of(place)), None)

    def send(self) -> None:
        """Let everybody run what was placed there."""
        for place in self.members:
            place.send()

    def keep_up(self, suspects_since_s: Iterable[float], *, dismissing: bool = True) -> None:
        """Start who is missing; let go who has done its share, once empty, and, when ``dismissing``, who is too many.

        For each suspect that waits, or runs alone, for too long there is one more, so that the others go on.
        """
        if not self._processes:
            self.members = self.members or [Here(self._threads, self._settings, self._tell, self._ears)]
            return
        for place, since_s in self._starting.items():
            if monotonic_s() > since_s + _START_WITHIN_S:
                place.kill()
        late_s = monotonic_s() - ALONE_WITHIN_S
        late = sum(since_s <= late_s for since_s in (*suspects_since_s, *self.alone.values()))
        wanted = self._processes + min(late, _MAX_EXTRA)
        staying = [place for place in self.members if not self._is_done(place)]
        surplus = [place for place in staying if place.ready and not place.runs and place not in self.alone]
        self._leaving.update(surplus[: max(0, len(staying) - wanted) if dismissing else 0])
        for place in [place for place in self._leaving if not place.runs]:
            self.remove(place)
            place.dismiss()
        missing = wanted - len([place for place in self.members if place not in self._leaving])
        for _ in range(missing if monotonic_s() >= self.next_start_s else 0):
            try:
                child = Child(self._threads, self._tell, self._ears)
            except OSError:  # no more processes, memory or files: what the others bring is settled all the same
                self._note_failed_start()
                break
            self.members.append(child)
            self._starting[child] = monotonic_s()

    def _is_done(self, place: Place) -> bool:
        if self._max_jobs is not None and place.taken >= self._max_jobs:
            self._leaving.add(place)
        return place in self._leaving

    def welcome(self, place: Place) -> None:
        """Note that a child is ready."""
        place.ready = True
        self._starting.pop(place, None)
        self._failed_starts = 0

    def remove(self, place: Place) -> None:
        """Note that a child is no more. One that never got ready makes the next start wait."""
        if place in self.members:
            self.members.remove(place)
        self.alone.pop(place, None)
        self._starting.pop(place, None)
        self._leaving.discard(place)
        if not place.ready:
            self._note_failed_start()

    def _note_failed_start(self) -> None:
        self._failed_starts += 1
        self.next_start_s = monotonic_s() + backoff_s(self._failed_starts)

    @property
    def fault(self) -> str:
        """Why no child can be had, if so."""
        if self._failed_starts < _MAX_FAILED_STARTS:
            return ""
        return f"{self._failed_starts} children in a row were never ready: see their output"

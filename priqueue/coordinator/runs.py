"""Runs: a requeue or purge of many letters, done in steps by whoever has its page open.

It is kept beside the queue, so that it can be stopped, and gone on with after the page was closed, by anybody who may.
Its bound is a time: what is buried later is never touched. A step names where the run has to stand, and is done there
alone; so it does not matter how many pages take steps at once.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any

from priqueue.coordinator.calls import batches
from priqueue.coordinator.letters import Filter, Letters
from priqueue.jobs import from_ms, to_ms

# A script of as many letters holds up nobody for long, on a slow machine either.
_STEP = 50
NEW, GOING, STOPPED, DONE = "new", "going", "stopped", "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A requeue or purge of many letters, and how far it is."""

    id: str
    action: str
    wanted: Filter
    reason: str
    #: what was buried later is left alone
    until_ms: int
    #: letters that were meant when it began
    number: int
    #: letters a second at most; 0 is as fast as it goes
    per_s: int = 0
    state: str = NEW
    #: letters this was done to, and those found gone, replaced, or impossible to requeue
    done: int = 0
    alone: int = 0
    #: where it stands in the order of the dead, from the oldest; "" is before the first
    cursor: str = ""
    #: server ms before which no further step is done
    next_ms: int = 0
    begun_ms: int = 0
    #: who let it begin, stop, go on or end, and when
    steered_by: str = ""
    steered_ms: int = 0

    @property
    def left(self) -> int:
        """How many letters are still before it."""
        return max(0, self.number - self.done - self.alone) if self.state != DONE else 0

    def fields(self) -> dict[str, str | int]:
        """Return what is kept of it when it begins."""
        kept = ("action", "reason", "until_ms", "number", "per_s", "done", "alone", "cursor", "next_ms")
        return {
            "input": f"{self.number} letters: {said(self.wanted)}", "wanted": _encoded(self.wanted),
            **{name: getattr(self, name) for name in kept},
        }  # fmt: skip


class Runs(Letters):
    """The inspector of one queue's runs, and of the letters before them."""

    def run(self, run_id: str) -> Run | None:
        """Return a run; None when there is none, or its last step is more than a week ago."""
        (found,) = self._read(("HGETALL", self.keys.run(run_id)))
        return _run(run_id, found) if found else None

    def ahead(self, run: Run) -> Iterator[tuple[list[str], str]]:
        """Give the ids of the letters before a run, in steps, and where it stands after each."""
        # One that was replaced has its edited copy: requeued, both would run.
        replaced = False if run.action == "requeue" else run.wanted.replaced
        size = max(1, min(_STEP, run.per_s // 2)) if run.per_s else _STEP
        until = from_ms(run.until_ms)
        # Its own bound ends no walk: where the clock was set back, letters that fit follow on those that are too late.
        for stretch in self.walk(replace(run.wanted, replaced=replaced), run.cursor, newer=True):
            letters = [letter for letter in stretch.letters if letter.buried_at <= until]
            for some in batches(letters, size):
                yield [letter.id for letter in some], some[-1].cursor
            if not letters or letters[-1].cursor != stretch.cursor:
                yield [], stretch.cursor


def said(wanted: Filter) -> str:
    """Return a filter in words, as "lane=low caller=user:7"; "all letters" when it has no condition."""
    words = [f"{name}={_word(value)}" for name, value in _given(wanted).items() if name != "replaced"]
    return " ".join(words) or "all letters"


def _word(value: Any) -> str:
    return value.isoformat(timespec="seconds") if isinstance(value, datetime) else str(value)


def _given(wanted: Filter) -> dict[str, Any]:
    values = {each.name: getattr(wanted, each.name) for each in fields(wanted)}
    return {name: value for name, value in values.items() if value is not None}


def _encoded(wanted: Filter) -> str:
    given = _given(wanted)
    times = {name: to_ms(value) for name, value in given.items() if isinstance(value, datetime)}
    return json.dumps({**given, **times})


def _decoded(text: str) -> Filter:
    given = json.loads(text)
    times = {name: from_ms(given[name]) for name in ("since", "until") if name in given}
    return Filter(**{**given, **times})


def _run(run_id: str, found: dict[str, str]) -> Run:
    texts = ("action", "reason", "state", "cursor", "steered_by")
    numbers = ("until_ms", "number", "per_s", "done", "alone", "next_ms", "begun_ms", "steered_ms")
    kept: dict[str, Any] = {**{name: found[name] for name in texts}, **{name: int(found[name]) for name in numbers}}
    return Run(id=run_id, wanted=_decoded(found["wanted"]), **kept)

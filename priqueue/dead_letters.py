"""Dead letters: what is kept for a person, and the only way out of there.

To take many letters: select them, which notes what is there now; then requeue or purge the selection, in
bounded batches. What dies again meanwhile was buried after the selection and is left alone, so this ends.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from django.dispatch import Signal

from priqueue import callers, client, events, wiring
from priqueue.coordinator import Letters
from priqueue.coordinator.calls import batches
from priqueue.coordinator.letters import Filter, Letter, OpenedLetter, Page

__all__ = [
    "Filter", "Letter", "OpenedLetter", "Page", "Selection", "causes", "noted", "page", "purge", "read", "replace",
    "requeue", "scan", "select",
]  # fmt: skip

EVERYTHING = Filter()
Progress = Callable[[int], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Ids of letters, in the order in which to take them, and the server's time when this was noted."""

    ids: Sequence[str]
    until_ms: int


def scan(wanted: Filter = EVERYTHING, cursor: str = "") -> Iterator[Letter]:
    """Give the letters that are meant, newest first, reading only as far as they are taken.

    A ``cursor`` goes on behind the letter it is from. Raises ValueError for one that is from no letter.
    """
    return _reader().scan(wanted, cursor)


def page(wanted: Filter = EVERYTHING, cursor: str = "", size: int = 50, *, newer: bool = False) -> Page:
    """Return up to ``size`` letters, newest first: those behind a cursor, or with ``newer`` those before it.

    Without a cursor the newest, or with ``newer`` the oldest. Raises ValueError as ``scan``.
    """
    return _reader().page(wanted, cursor, size=size, newer=newer)


def read(job_id: str) -> OpenedLetter | None:
    """Return a letter with its job, payload and trail; None when there is none of this id."""
    return _reader().open(job_id)


def causes() -> dict[str, int]:
    """Return the number of letters of each cause, the most frequent first."""
    return _reader().causes()


def select(wanted: Filter = EVERYTHING, limit: int | None = None) -> Selection:
    """Note which letters are meant, the newest ``limit`` of them, the oldest first; a million take 100 MB."""
    reader = _reader()
    until_ms = reader.now_ms()
    ids = [letter.id for letter in islice(reader.scan(wanted), limit)]
    return Selection(ids=ids[::-1], until_ms=until_ms)


def noted(ids: Sequence[str]) -> Selection:
    """Return a selection of the letters of these ids, as they are now."""
    return Selection(ids=list(dict.fromkeys(ids)), until_ms=_reader().now_ms())


def requeue(selection: Selection, *, reason: str, caller: str | None = None, progress: Progress | None = None) -> int:
    """Give dead jobs all their attempts again, at the tails of their lanes; return how many.

    A letter that is gone, was buried after the selection, or was replaced, is left alone. ``progress`` is told after
    each batch how many ids are behind it. Raises ValueError without a reason, and InvalidCaller. QueueUnavailable
    midway leaves the rest dead; it can be called again.
    """
    return _act(wiring.coordinator().requeue, events.jobs_requeued, selection, (reason, caller), progress)


def purge(selection: Selection, *, reason: str, caller: str | None = None, progress: Progress | None = None) -> int:
    """Delete dead jobs for good and return how many; all else as for ``requeue``."""
    return _act(wiring.coordinator().purge, events.jobs_purged, selection, (reason, caller), progress)


def replace(
    job_id: str, payload: Mapping[str, Any], *, reason: str, caller: str | None = None, copy_id: str | None = None
) -> str | None:
    """Enqueue an edited copy of a dead job, and let the letter say so; it stays, and cannot be requeued any more.

    Return the id of the job by which it is replaced now: the copy's, which is ``copy_id`` if given, so that a repeat
    changes nothing; or another one's, where somebody was faster. None where there is no such letter.
    Raises what ``enqueue`` raises for the payload, ValueError without a reason, and InvalidCaller.
    """
    reason, caller = _why(reason, caller)
    opened = read(job_id)
    if opened is None:
        return None
    job = opened.job
    made = client.prepare(job.name, payload, job.lane, who=(caller, job.correlation_id or job.id))
    copy = dataclasses.replace(made, id=copy_id or made.id, replaces=job.id)
    found = wiring.coordinator().replace(job_id, copy, caller=caller, reason=reason)
    if found == copy.id:
        events.send(events.job_replaced, job_id=job_id, copy=copy, reason=reason)
    return found or None


def _act(
    transition: Callable[..., list[str]],
    signal: Signal,
    selection: Selection,
    why: tuple[str, str | None],
    progress: Progress | None,
) -> int:
    reason, caller = _why(*why)
    done = behind = 0
    for batch in batches(selection.ids):
        changed = transition(batch, caller=caller, reason=reason, until_ms=selection.until_ms)
        if changed:
            events.send(signal, job_ids=changed, reason=reason)
        done, behind = done + len(changed), behind + len(batch)
        if progress:
            progress(behind)
    return done


def _why(reason: str, caller: str | None) -> tuple[str, str]:
    if not reason.strip():
        raise ValueError("reason: say why; it is kept with the change")
    return reason.strip(), callers.check_word("caller", caller or callers.acting().caller)


def _reader() -> Letters:
    found = wiring.coordinator()
    return Letters(found.client, found.settings, found.clock)

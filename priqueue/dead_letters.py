"""Dead letters: what is kept for a person, and the only way out of there.

To take many letters: select them, which notes what is there now; then requeue or purge the selection, in
bounded batches. What dies again meanwhile was buried after the selection and is left alone, so this ends.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from django.dispatch import Signal

from priqueue import callers, events, wiring
from priqueue.coordinator import Letters
from priqueue.coordinator.calls import batches
from priqueue.coordinator.letters import Filter, Letter, OpenedLetter

__all__ = [
    "Filter", "Letter", "OpenedLetter", "Page", "Selection", "causes", "noted", "page", "purge", "read",
    "requeue", "scan", "select",
]  # fmt: skip

EVERYTHING = Filter()
Progress = Callable[[int], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some letters, newest first, and the cursor of the next page: "" when this is the last."""

    letters: Sequence[Letter]
    next: str


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


def page(wanted: Filter = EVERYTHING, cursor: str = "", size: int = 50) -> Page:
    """Return up to ``size`` letters behind a cursor, "" being the newest. Raises ValueError as ``scan``."""
    found = list(islice(scan(wanted, cursor), size + 1))
    return Page(letters=found[:size], next=found[size - 1].cursor if len(found) > size else "")


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

    A letter that is gone, or was buried after the selection, is left alone. ``progress`` is told after each
    batch how many ids are behind it. Raises ValueError without a reason, and InvalidCaller. QueueUnavailable
    midway leaves the rest dead; it can be called again.
    """
    return _act(wiring.coordinator().requeue, events.jobs_requeued, selection, (reason, caller), progress)


def purge(selection: Selection, *, reason: str, caller: str | None = None, progress: Progress | None = None) -> int:
    """Delete dead jobs for good and return how many; all else as for ``requeue``."""
    return _act(wiring.coordinator().purge, events.jobs_purged, selection, (reason, caller), progress)


def _act(
    transition: Callable[..., list[str]],
    signal: Signal,
    selection: Selection,
    why: tuple[str, str | None],
    progress: Progress | None,
) -> int:
    reason, caller = why[0].strip(), callers.check_word("caller", why[1] or callers.acting().caller)
    if not reason:
        raise ValueError("reason: say why; it is kept with the change")
    done = behind = 0
    for batch in batches(selection.ids):
        changed = transition(batch, caller=caller, reason=reason, until_ms=selection.until_ms)
        if changed:
            events.send(signal, job_ids=changed, reason=reason)
        done, behind = done + len(changed), behind + len(batch)
        if progress:
            progress(behind)
    return done


def _reader() -> Letters:
    found = wiring.coordinator()
    return Letters(found.client, found.settings, found.clock)

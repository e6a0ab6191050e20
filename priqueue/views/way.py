"""Way: from where in the list somebody came to a letter, and the way back to there, on to the next letter.

It travels in each address as filter and place of the list, and never as an address: so it leads nowhere else.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

from django.http import QueryDict

from priqueue.coordinator.letters import Letter, Stretch
from priqueue.exceptions import QueueUnavailable
from priqueue.views.letters import FilterForm, PlaceForm, fragment_of, page_at, query_at, query_of
from priqueue.views.visit import Visit

#: no cursor is longer
_LONGEST = 240


@dataclass(frozen=True, slots=True)
class Way:
    """A filter, a place in its list, and the letter there."""

    visit: Visit
    form: FilterForm
    place: PlaceForm
    #: the cursor of the letter at which somebody is; "" where that is not known
    here: str = ""

    @property
    def query(self) -> str:
        """What the address of a page about this letter carries."""
        return query_at(query_of(self.form, self.place), **({"here": self.here} if self.here else {}))

    def listed(self, at: str = "") -> str:
        """Return the address of the list as it was, at a letter of it."""
        return self._list(query_of(self.form, self.place), at)

    def to(self, page: str, job: str) -> str:
        """Return the address of a page about a letter, with the way on it."""
        return _address(self.visit.url(page, job=job), self.query)

    def beside(self, *, newer: bool = False) -> str:
        """Return where the next letter of the list is, on its older or its newer side; "" where there is none.

        Where a page may not look far enough to find it, that is where the list looks on.
        """
        found = self._stretch(newer=newer)
        if found is None:
            return ""
        if not found.letters:
            return self._list(query_at(query_of(self.form), **{_side(newer): found.cursor}))
        return self._at(found.letters[0].cursor).to("letter", found.letters[0].id)

    def at_last_of(self, ids: Collection[str]) -> "Way":
        """Return the way at the last of some letters that the list shows, where there is none yet."""
        if self.here:
            return self
        shown = page_at(self.visit, self.form.wanted(), self.place.cleaned_data)
        cursors = [letter.cursor for letter in shown.letters if letter.id in ids] if shown else []
        return self._at(cursors[-1]) if cursors else self

    def on(self) -> str:
        """Return the list as it was, at the letter that follows on this one; for after this one was tended.

        What was done is done: without an answer of the queue it is the list alone.
        """
        try:
            with self.visit.desk.breaker.trying():
                return self._on()
        except QueueUnavailable:
            return self.listed()

    def _on(self) -> str:
        for newer in (False, True):
            found = self._stretch(newer=newer)
            if found and found.letters:
                letter = found.letters[0]
                if self._shows(letter):
                    return self.listed(letter.id)
                return self._list(query_at(query_of(self.form), **{_side(newer): self.here}), letter.id)
        return self.listed()

    def _shows(self, letter: Letter) -> bool:
        shown = page_at(self.visit, self.form.wanted(), self.place.cleaned_data)
        return shown is not None and any(each.id == letter.id for each in shown.letters)

    def _stretch(self, *, newer: bool) -> Stretch | None:
        if not self.here:
            return None
        try:
            return self.visit.desk.letters.beside(self.form.wanted(), self.here, newer=newer)
        except ValueError:  # made by hand: from no letter
            return None

    def _at(self, cursor: str) -> "Way":
        return replace(self, here=cursor)

    def _list(self, query: str, at: str = "") -> str:
        return _address(self.visit.url("letters"), query) + (f"#{fragment_of(at)}" if at else "")


def way(visit: Visit) -> Way:
    """Return the way by which a visit came; one that is not understood is the whole list's."""
    given = visit.request.GET
    form, place = FilterForm(given), PlaceForm(given)
    if form.is_valid() and place.is_valid():
        return Way(visit, form, place, given.get("here", "")[:_LONGEST])
    form, place = FilterForm(QueryDict()), PlaceForm(QueryDict())
    form.full_clean()
    place.full_clean()
    return Way(visit, form, place)


def _side(newer: bool) -> str:
    return "newer" if newer else "older"


def _address(path: str, query: str) -> str:
    return f"{path}?{query}" if query else path

"""Letters: the list of dead letters, by cause, by filter, page by page from any time on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from django import forms
from django.http import HttpResponse, HttpResponseRedirect, QueryDict

from priqueue.coordinator.letters import Filter, Letter, Page
from priqueue.handlers import registry
from priqueue.views import taken
from priqueue.views.visit import Visit

SIZE = 25
_CAUSES = 20


def _text(label: str, length: int = 400, suggestions: str = "") -> forms.CharField:
    widget = forms.TextInput(attrs={"list": suggestions} if suggestions else {})
    return forms.CharField(required=False, max_length=length, label=label, widget=widget)


def _moment(label: str) -> forms.DateTimeField:
    widget = forms.DateTimeInput(attrs={"type": "datetime-local", "step": "1"}, format="%Y-%m-%dT%H:%M:%S")
    return forms.DateTimeField(required=False, label=label, widget=widget)


class FilterForm(forms.Form):
    """Which letters somebody asks for. All is exact: a part of a text would need a look at every letter."""

    cause = _text("Cause")
    # Suggested, not prescribed: letters outlive the handlers and lanes of today.
    lane = _text("Lane", 64, "pq-lanes")
    handler = _text("Handler", 200, "pq-handlers")
    caller = _text("Caller", 200)
    since = _moment("Buried since")
    until = _moment("Buried until")

    def wanted(self) -> Filter:
        """Return the filter. Only of a form that is valid."""
        return Filter(**{name: said or None for name, said in self.cleaned_data.items()})

    def words(self) -> list[tuple[str, str]]:
        """Return what the filter says, with the query string of the same filter without it."""
        given = {name: self.data.get(name, "") for name in self.fields if self.data.get(name)}
        return [(f"{name}={said}", _query({**given, name: ""})) for name, said in given.items()]


class PlaceForm(forms.Form):
    """From where on, and in which direction."""

    older = forms.CharField(required=False, max_length=240)
    newer = forms.CharField(required=False, max_length=240)
    oldest = forms.BooleanField(required=False)
    at = _moment("Go to")


@dataclass(frozen=True, slots=True)
class Row:
    """A letter as the list shows it."""

    letter: Letter
    error: str
    message: str
    attempts: int
    #: what the letter's address carries, and what the row is called in the list's: see ``way``
    way: str
    fragment: str


def letters(visit: Visit) -> HttpResponse:
    """Show the letters that are meant."""
    form, place = FilterForm(visit.request.GET), PlaceForm(visit.request.GET)
    understood = form.is_valid() and place.is_valid()
    with visit.desk.breaker.trying():
        causes = visit.desk.letters.causes()
        page = page_at(visit, form.wanted(), place.cleaned_data) if understood else Page(letters=())
        rows = _rows(visit, page.letters, query_of(form, place)) if page else []
    if page is None:  # a cursor that is from no letter
        return HttpResponseRedirect(f"?{query_of(form)}")
    query, total = query_of(form), sum(causes.values())
    visit.people.expect(row.letter.caller for row in rows)
    context = {
        "form": form, "place": place, "understood": understood, "rows": rows, "page": page, "query": query,
        "way": QueryDict(query_of(form, place)).items(),
        "causes": [_cause(cause, number, form) for cause, number in list(causes.items())[:_CAUSES]],
        "more_causes": max(0, len(causes) - _CAUSES), "total": total, "words": form.words(),
        "number": _number(form, page, causes, place) if understood else None,
        "older": page.older and query_at(query, older=page.older),
        "newer": page.newer and query_at(query, newer=page.newer), "oldest": query_at(query, oldest="1"),
        "last": taken.last(visit) if understood and not total and not query else None,
        "handlers": [handler.name for handler in registry], "lanes": visit.desk.settings.lane_names,
    }  # fmt: skip
    return visit.render("letters.html", "Dead letters", context)


def query_of(*forms: FilterForm | PlaceForm) -> str:
    """Return the query string of a filter, and of a place in it if given."""
    return _query({name: form.data.get(name, "") for form in forms for name in form.fields})


def query_at(query: str, **place: str) -> str:
    """Return a query string with more to it."""
    there = QueryDict(query, mutable=True)
    there.update(place)
    return there.urlencode()


def fragment_of(job: str) -> str:
    """Return what the row of a letter is called in the list's address."""
    return f"letter-{quote(job, safe='')}"


def _query(given: dict[str, str]) -> str:
    query = QueryDict(mutable=True)
    query.update({name: said for name, said in given.items() if said})
    return query.urlencode()


def page_at(visit: Visit, wanted: Filter, place: dict[str, Any]) -> Page | None:
    """Return the page that is asked for; None for a cursor that is from no letter."""
    reader = visit.desk.letters
    try:
        if place["at"]:
            return reader.page(wanted, reader.at(wanted, place["at"]), size=SIZE)
        newer = bool(place["newer"] or place["oldest"])
        page = reader.page(wanted, place["newer"] or place["older"], size=SIZE, newer=newer)
    except ValueError:
        return None
    # Nothing is newer any more: the newest there are.
    return page if page.letters or not place["newer"] or page.newer else reader.page(wanted, size=SIZE)


def _rows(visit: Visit, found: Sequence[Letter], query: str) -> list[Row]:
    latest = visit.desk.letters.latest(found)
    return [
        Row(
            letter, last.attempt.error if last.attempt else error_of(letter),
            last.attempt.message if last.attempt and visit.may("view_payload") else "", last.failures + last.crashes,
            way=query_at(query, here=letter.cursor), fragment=fragment_of(letter.id),
        )
        for letter, last in zip(found, latest, strict=True)
    ]  # fmt: skip


def error_of(letter: Letter) -> str:
    """Return the error of a letter's cause."""
    return letter.cause.removesuffix(f" {letter.handler}")


def _cause(cause: str, number: int, form: FilterForm) -> dict[str, Any]:
    error, _, handler = cause.rpartition(" ")
    return {
        "error": error or cause, "handler": handler if error else "", "number": number,
        "query": _query({"cause": cause}), "chosen": form.data.get("cause") == cause,
    }  # fmt: skip


def _number(form: FilterForm, page: Page, causes: dict[str, int], place: PlaceForm) -> int | None:
    """Return how many letters are meant, where that is known without a look at all of them."""
    given = {name for name, said in form.cleaned_data.items() if said}
    if not given:
        return sum(causes.values())
    if given == {"cause"}:
        return causes.get(form.cleaned_data["cause"], 0)
    whole = not page.older and not page.newer and not any(place.cleaned_data.values())
    return len(page.letters) if whole else None

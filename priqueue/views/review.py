"""Review: the audit log, page by page, with what was intended beside what came of it; and its export."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain

from django import forms
from django.db import DatabaseError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBadRequest, StreamingHttpResponse
from django.utils import timezone

from priqueue import wiring
from priqueue.audit import exports, pages, privacy
from priqueue.audit.pages import ACTIONS, Page, Wanted
from priqueue.coordinator import DENIED, INTENDED
from priqueue.handlers import registry
from priqueue.models import AuditEvent
from priqueue.views.sending import attached
from priqueue.views.visit import Visit

_CURSORS = ("before", "after")
_LARGEST_ID = 2**63 - 1


def _moment() -> forms.DateTimeField:
    widget = forms.DateTimeInput(attrs={"type": "datetime-local", "step": "1"}, format="%Y-%m-%dT%H:%M:%S")
    return forms.DateTimeField(required=False, widget=widget)


def _text(length: int, suggestions: str = "") -> forms.CharField:
    widget = forms.TextInput(attrs={"list": suggestions} if suggestions else {})
    return forms.CharField(required=False, max_length=length, strip=False, widget=widget)


def _cursor() -> forms.IntegerField:
    return forms.IntegerField(required=False, min_value=1, max_value=_LARGEST_ID, widget=forms.HiddenInput)


class FilterForm(forms.Form):
    """Which rows a reader asks for, and from where on. All is exact: a part of a text would need a scan."""

    job = _text(200)
    correlation_id = _text(200)
    action = forms.ChoiceField(required=False, choices=[("", "any"), *((action, action) for action in ACTIONS)])
    caller = _text(200)
    # Suggested, not prescribed: the log outlives the handlers and lanes of today.
    lane = _text(64, "priqueue-lanes")
    handler = _text(200, "priqueue-handlers")
    since = _moment()
    until = _moment()
    before = _cursor()
    after = _cursor()

    def wanted(self) -> Wanted:
        """Return the filter. Only of a form that is valid."""
        said = {name: value for name, value in self.cleaned_data.items() if name not in _CURSORS}
        since, until = _ms(said.pop("since")), _ms(said.pop("until"))
        return Wanted(**said, since_ms=since, until_ms=until)

    def page(self) -> Page:
        """Return the page that is asked for; of a form that is not valid an empty one."""
        if not self.is_valid():
            return Page([])
        return pages.page(self.wanted(), self.cleaned_data["before"], self.cleaned_data["after"])


@dataclass(frozen=True, slots=True)
class Row:
    """A row as the list shows it: with the one that intended it, or as an intent of which no outcome is known here."""

    event: AuditEvent
    at: str
    intent: AuditEvent | None = None
    intended_at: str = ""
    is_open: bool = False


def listed(visit: Visit) -> HttpResponse:
    """Show a page of rows."""
    form = FilterForm(visit.request.GET)
    try:
        page = form.page()
    except DatabaseError as error:
        return unavailable(visit, error)
    visit.people.expect(row.caller for row in page.rows)
    seen = page.rows if visit.may("view_payload") else [privacy.hide(row) for row in page.rows]
    context = {
        "form": form, "lanes": wiring.settings().lane_names, "handlers": [handler.name for handler in registry],
        "rows": paired(seen), "query": _query(visit.request),
        "first": any(name in visit.request.GET for name in _CURSORS),
        "older": page.older and _query(visit.request, before=page.older),
        "newer": page.newer and _query(visit.request, after=page.newer),
    }  # fmt: skip
    return visit.render("audit_list.html", "Audit log", context, of_queue=False)


def paired(rows: Sequence[AuditEvent]) -> list[Row]:
    """Return rows of which each outcome has its intent with it. Both are notes of one act, and share its request."""
    waiting: dict[tuple[str, str], AuditEvent] = {}
    outcomes: dict[int, AuditEvent] = {}
    for row in sorted(rows, key=lambda row: row.id):
        intent = waiting.get(_act(row))
        if row.outcome == INTENDED and row.correlation_id:
            waiting[_act(row)] = row
        elif intent and row.outcome != DENIED and _is_note(row, intent):
            outcomes[row.id] = waiting.pop(_act(row))
    taken = {intent.id for intent in outcomes.values()}
    return [_row(row, outcomes.get(row.id)) for row in rows if row.id not in taken]


def _act(row: AuditEvent) -> tuple[str, str]:
    return row.action, row.correlation_id


def _is_note(row: AuditEvent, intent: AuditEvent) -> bool:
    """Return whether a row is what came of an intent: it says what it was about as the intent did."""
    return (row.input, row.reason, row.handler) == (intent.input, intent.reason, "")


def _row(event: AuditEvent, intent: AuditEvent | None) -> Row:
    intended_at = shown_ms(intent.at_ms) if intent else ""
    return Row(event, shown_ms(event.at_ms), intent, intended_at, is_open=event.outcome == INTENDED)


def export(visit: Visit, kind: str) -> HttpResponse | StreamingHttpResponse:
    """Send all rows of a filter as a file, bit by bit."""
    if kind not in exports.type_of:
        raise Http404
    form = FilterForm(visit.request.GET)
    if not form.is_valid():
        return HttpResponseBadRequest(form.errors.as_json(), content_type="application/json")
    batches = pages.batches(form.wanted())
    try:
        first = list(filter(None, [next(batches, None)]))  # so that a database that is away is no file cut short
    except DatabaseError as error:
        return unavailable(visit, error)
    whole = chain(first, batches)
    pieces = exports.text(kind, whole if visit.may("view_payload") else privacy.hidden(whole))
    return attached(visit.request, pieces, name=f"audit.{kind}", kind=exports.type_of[kind])


def unavailable(visit: Visit, error: DatabaseError) -> HttpResponse:
    """Return the page that says that the audit log's database does not answer, and what waits for it."""
    look = visit.look
    backlog = look.snapshot.backlog if look and look.snapshot and not look.why_not else None
    context = {"why_not": type(error).__name__, "backlog": backlog}
    return visit.render("audit_unavailable.html", "Audit log unavailable", context, status=503, of_queue=False)


def _query(request: HttpRequest, **cursor: int) -> str:
    """Return the query string of the same filter at another place."""
    query = request.GET.copy()
    for name in _CURSORS:
        query.pop(name, None)
    query.update({name: str(row_id) for name, row_id in cursor.items()})
    return query.urlencode()


def _ms(moment: datetime | None) -> int | None:
    return None if moment is None else int(moment.timestamp() * 1000)


def shown_ms(ms: int) -> str:
    """Return a time in the reader's zone; one that no calendar has, which a caller may have claimed, as its number."""
    try:
        moment = timezone.localtime(datetime.fromtimestamp(ms // 1000, UTC))
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"
    return f"{moment:%Y-%m-%d %H:%M:%S}.{ms % 1000:03}"

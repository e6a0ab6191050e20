"""Admin: the pages of the queue, and the review of the audit log, which nobody adds to, changes or deletes from here.

Only the admin's own autodiscovery imports this, so a project without the admin never does.
"""

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async
from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.core.handlers.asgi import ASGIRequest
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBadRequest, StreamingHttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone

from priqueue import key_admin as key_admin
from priqueue import wiring
from priqueue.audit import exports, pages
from priqueue.audit.pages import ACTIONS, Page, Wanted
from priqueue.handlers import registry
from priqueue.models import AuditEvent, DeadLetter, Queue
from priqueue.views.mount import AdminMount
from priqueue.views.routes import LETTERS, QUEUE

if TYPE_CHECKING:
    _Admin = admin.ModelAdmin[AuditEvent]
else:
    _Admin = admin.ModelAdmin

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


class _Pages(admin.ModelAdmin):  # type: ignore[type-arg]
    """An entry in the admin's index that leads to pages of ours. There are no rows behind it."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody may."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """Nobody may."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """Nobody may."""
        return False

    def has_view_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """Those may who may see the queue."""
        return request.user.has_perm("priqueue.view_queue")

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Those may who may see the queue."""
        return self.has_view_permission(request)


@admin.register(Queue)
class QueueAdmin(_Pages):
    """The overview, lanes, workers and jobs."""

    def get_urls(self) -> list[URLPattern]:
        """Return the addresses of these pages; the first also by the name that the index knows."""
        pages = AdminMount(self.admin_site).paths(QUEUE)
        return [path("", pages[0].callback, name="priqueue_queue_changelist"), *pages]


@admin.register(DeadLetter)
class DeadLetterAdmin(_Pages):
    """The dead letters."""

    def get_urls(self) -> list[URLPattern]:
        """Return the addresses of these pages; the first also by the name that the index knows."""
        pages = AdminMount(self.admin_site).paths(LETTERS)
        return [*(path("", page.callback, name="priqueue_deadletter_changelist") for page in pages[:1]), *pages]


class _List:
    """What the admin's own template wants to know of a list."""

    formset = None
    opts = AuditEvent._meta


@admin.register(AuditEvent)
class AuditEventAdmin(_Admin):
    """Audit events: a list with filters, each event by itself, and an export."""

    change_list_template = "priqueue/audit_list.html"
    change_form_template = "priqueue/audit_event.html"
    fields = readonly_fields = (
        "id", "happened", "stored", "action", "caller", "job", "handler", "lane", "input", "outcome", "reason",
        "correlation_id", "mark", "namespace", "epoch", "stream_id", "previous_hex", "hash_hex",
    )  # fmt: skip

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody may."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """Nobody may."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """Nobody may."""
        return False

    def get_urls(self) -> list[URLPattern]:
        """Add the export; before the others, one of which takes any path for an id."""
        export = self.admin_site.admin_view(self.export_view)
        return [path("export/<str:kind>/", export, name="priqueue_auditevent_export"), *super().get_urls()]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show a page of rows. Not by the admin's own list, which counts all rows and goes by page numbers."""
        self._check(request)
        form = FilterForm(request.GET)
        page = form.page()
        context = {
            **self.admin_site.each_context(request),
            "title": "Audit log", "cl": _List, "opts": _List.opts, "actions_on_top": True, "media": self.media,
            "form": form, "lanes": wiring.settings().lane_names, "handlers": [handler.name for handler in registry],
            "rows": [(row, _shown(row.at_ms)) for row in page.rows],
            "query": _query(request), "first": any(name in request.GET for name in _CURSORS),
            "older": page.older and _query(request, before=page.older),
            "newer": page.newer and _query(request, after=page.newer),
            **(extra_context or {}),
        }  # fmt: skip
        request.current_app = self.admin_site.name
        return TemplateResponse(request, self.change_list_template, context)

    def export_view(self, request: HttpRequest, kind: str) -> HttpResponse | StreamingHttpResponse:
        """Send all rows of a filter as a file, bit by bit."""
        self._check(request)
        if kind not in exports.type_of:
            raise Http404
        form = FilterForm(request.GET)
        if not form.is_valid():
            return HttpResponseBadRequest(form.errors.as_json(), content_type="application/json")
        pieces = exports.text(kind, pages.batches(form.wanted()))
        sent = _in_thread(pieces) if isinstance(request, ASGIRequest) else pieces
        headers = {
            "Content-Disposition": f'attachment; filename="audit.{kind}"',
            "X-Content-Type-Options": "nosniff",
        }
        return StreamingHttpResponse(sent, content_type=exports.type_of[kind], headers=headers)

    def _check(self, request: HttpRequest) -> None:
        if request.method not in ("GET", "HEAD") or not self.has_view_permission(request):
            raise PermissionDenied

    @admin.display(description="at")
    def happened(self, event: AuditEvent) -> str:
        """When it happened."""
        return _shown(event.at_ms)

    @admin.display(description="stored at")
    def stored(self, event: AuditEvent) -> str:
        """When it was stored."""
        return _shown(event.stored_ms)

    @admin.display(description="hash of the row before")
    def previous_hex(self, event: AuditEvent) -> str:
        """The hash of the row before, as hex."""
        return bytes(event.previous).hex()

    @admin.display(description="hash")
    def hash_hex(self, event: AuditEvent) -> str:
        """The row's hash, as hex."""
        return bytes(event.hash).hex()


def _query(request: HttpRequest, **cursor: int) -> str:
    """Return the query string of the same filter at another place."""
    query = request.GET.copy()
    for name in _CURSORS:
        query.pop(name, None)
    query.update({name: str(row_id) for name, row_id in cursor.items()})
    return query.urlencode()


def _ms(moment: datetime | None) -> int | None:
    return None if moment is None else int(moment.timestamp() * 1000)


def _shown(ms: int) -> str:
    """Return a time in the reader's zone; one that no calendar has, which a caller may have claimed, as its number."""
    try:
        moment = timezone.localtime(datetime.fromtimestamp(ms // 1000, UTC))
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"
    return f"{moment:%Y-%m-%d %H:%M:%S}.{ms % 1000:03}"


async def _in_thread(pieces: Iterator[str]) -> AsyncIterator[str]:
    """Under ASGI: Django would gather all pieces of a plain iterator before it sends the first."""
    while (piece := await sync_to_async(_next)(pieces)) is not None:
        yield piece


def _next(pieces: Iterator[str]) -> str | None:
    return next(pieces, None)

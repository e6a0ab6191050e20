"""Admin: the pages of the queue, and the review of the audit log, which nobody adds to, changes or deletes from here.

Only the admin's own autodiscovery imports this, so a project without the admin never does.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path

from priqueue import key_admin as key_admin
from priqueue.audit import privacy
from priqueue.models import AuditEvent, DeadLetter, Queue
from priqueue.views import review
from priqueue.views.mount import AdminMount
from priqueue.views.people import People
from priqueue.views.routes import LETTERS, QUEUE, Route
from priqueue.views.visit import Visit

if TYPE_CHECKING:
    _Admin = admin.ModelAdmin[AuditEvent]
else:
    _Admin = admin.ModelAdmin


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


@admin.register(AuditEvent)
class AuditEventAdmin(_Admin):
    """Audit events: a list with filters, each event by itself, and an export."""

    change_form_template = "priqueue/audit_event.html"
    fields = readonly_fields = (
        "id", "happened", "stored", "action", "who", "job", "handler", "lane", "input", "outcome", "reason",
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
        return self._answer(request, review.listed)

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:  # fmt: skip
        """Show one event."""

        def shown(visit: Visit) -> HttpResponseBase:
            try:
                return super(AuditEventAdmin, self).changeform_view(request, object_id, form_url, extra_context)
            except DatabaseError as error:
                return review.unavailable(visit, error)

        return self._answer(request, shown)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> AuditEvent | None:
        """Return an event as this reader may see it."""
        found = super().get_object(request, object_id, from_field)
        hides = found is not None and not request.user.has_perm("priqueue.view_payload")
        return privacy.hide(found) if found and hides else found

    def export_view(self, request: HttpRequest, kind: str) -> HttpResponse:
        """Send all rows of a filter as a file, bit by bit."""
        return self._answer(request, lambda visit: review.export(visit, kind), "export")

    def _answer(
        self, request: HttpRequest, view: Callable[[Visit], HttpResponseBase], action: str = "view"
    ) -> HttpResponse:
        """Answer as the pages of the queue do, to those who may view the log; nobody sends a form here."""
        if request.method not in ("GET", "HEAD"):
            raise PermissionDenied
        route = Route("", "audit", view, "view_auditevent", action, also="view_auditevent", door="view_auditevent")
        return cast(HttpResponse, AdminMount(self.admin_site).respond(request, route, {}))

    @admin.display(description="at")
    def happened(self, event: AuditEvent) -> str:
        """When it happened."""
        return review.shown_ms(event.at_ms)

    @admin.display(description="caller")
    def who(self, event: AuditEvent) -> str:
        """Whose doing it was."""
        found = People()
        found.expect([event.caller])
        return found.told(event.caller)

    @admin.display(description="stored at")
    def stored(self, event: AuditEvent) -> str:
        """When it was stored."""
        return review.shown_ms(event.stored_ms)

    @admin.display(description="hash of the row before")
    def previous_hex(self, event: AuditEvent) -> str:
        """The hash of the row before, as hex, for those who may see it."""
        return bytes(event.previous).hex() or privacy.HIDDEN

    @admin.display(description="hash")
    def hash_hex(self, event: AuditEvent) -> str:
        """The row's hash, as hex, for those who may see it."""
        return bytes(event.hash).hex() or privacy.HIDDEN

"""Visit: one request to a page: who came, what they may do, and how the answer is drawn."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol
from urllib.parse import urlencode

import django
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from priqueue.coordinator.overview import Snapshot
from priqueue.exceptions import ConfigurationError, QueueUnavailable
from priqueue.models import DeadLetter, Queue
from priqueue.views import reading
from priqueue.views.people import People
from priqueue.views.reading import Desk, Look

#: codename → what a person is told of it
PERMISSIONS: Mapping[str, str] = {
    codename: name for model in (Queue, DeadLetter) for codename, name in model._meta.permissions
} | {"view_auditevent": "Can view audit event"}
Crumb = tuple[str, str]


class Place(Protocol):
    """Where the pages hang; see ``mount``."""

    #: the template that is around each page
    frame: str

    def url(self, name: str, **parts: str) -> str:
        """Return the address of a page."""

    def context(self, request: HttpRequest) -> dict[str, Any]:
        """Return what the frame wants to know."""


@dataclass(frozen=True)
class Visit:
    """A request, and the mount through which it came."""

    request: HttpRequest
    mount: Place
    #: what it is about, in the audit log's words
    action: str = "view"
    #: what the address names: a job, a lane, a worker
    parts: Mapping[str, str] = field(default_factory=dict)

    def may(self, codename: str) -> bool:
        """Return whether the visitor has one of our permissions."""
        return bool(self.request.user.has_perm(f"priqueue.{codename}"))

    def url(self, name: str, **parts: str) -> str:
        """Return the address of one of the pages, in the same mount."""
        return self.mount.url(name, **parts)

    @property
    def home(self) -> str:
        """The address of the overview."""
        return self.url("overview")

    def about(self, what: str) -> str:
        """Return the address of the page that tells more of what a finding is about."""
        kind, _, name = what.partition(":")
        if kind == "lane":
            return self.url("lane", lane=name)
        if kind == "dead":
            return self.url("letters") + (f"?{urlencode({'cause': name})}" if name else "")
        return self.url("workers") if kind == "workers" else f"{self.home}#{kind}" if kind else self.home

    @cached_property
    def people(self) -> People:
        """The users whom this page tells of: say whom you expect, and the template's ``person`` tells their names."""
        return People()

    @cached_property
    def desk(self) -> Desk:
        """The readers of the queue, the same from the beginning of a visit to its end."""
        return reading.desk()

    @cached_property
    def look(self) -> Look | None:
        """The queue as this page knows it, read once; None when the settings name no queue."""
        return self._looked(lambda: self.desk.look())

    def lost(self, why_not: str) -> None:
        """Keep to what was last known from now on: nobody waits twice for what does not answer."""
        self.__dict__["look"] = self._looked(lambda: self.desk.last(why_not))

    def _looked(self, look: Callable[[], Look]) -> Look | None:
        try:
            found = look()
        except ConfigurationError:
            return None
        self.people.expect(found.pausers)  # of them the status line tells, on every page
        return found

    def now(self) -> Snapshot:
        """Return the queue as it is now. Raises QueueUnavailable, for a page that makes no sense without it."""
        look = self.look
        if look is None or look.snapshot is None or look.why_not:
            raise QueueUnavailable(look.why_not if look else "the settings name no queue")
        return look.snapshot

    def context(self) -> dict[str, Any]:
        """Return what every template of a page wants to know."""
        return {
            "visit": self, "look": self.look if self.may("view_queue") else None,
            "may": {codename: self.may(codename) for codename in PERMISSIONS},
        }  # fmt: skip

    def render(
        self, template: str, title: str, context: Mapping[str, Any], *, crumbs: Sequence[Crumb] = (), status: int = 200,
        of_queue: bool = True,
    ) -> HttpResponse:  # fmt: skip
        """Return a page in the frame of the mount. ``crumbs``: labels and addresses between overview and page.

        One that is not ``of_queue`` goes on without Redis.
        """
        if of_queue and status == 200 and self.may("view_queue") and (self.look is None or self.look.why_not):
            status = 503  # whatever it shows, it is not what it would show
        home = [("Priqueue", self.home)] if self.may("view_queue") and self.request.path != self.home else []
        whole = {
            **self.mount.context(self.request), **self.context(),
            "frame": self.mount.frame, "title": title, "crumbs": [*home, *crumbs],
            "listed_crumbs": django.VERSION >= (6, 1), **context,
        }  # fmt: skip
        return TemplateResponse(self.request, f"priqueue/{template}", whole, status=status)

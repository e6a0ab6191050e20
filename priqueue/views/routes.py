"""Routes: every address of the pages, its view, and the permission it takes besides "view_queue"."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.http.response import HttpResponseBase

from priqueue.views import (
    bulk,
    cancelling,
    editing,
    exporting,
    jobs,
    lanes,
    letter,
    letters,
    overview,
    tending,
    workers,
)

_LOOK: Sequence[str] = ("GET", "HEAD")
_SHOWS = ("view", "export")
_CHANGE: Sequence[str] = ("GET", "HEAD", "POST")


@dataclass(frozen=True, slots=True)
class Route:
    """One page."""

    path: str
    name: str
    view: Callable[..., HttpResponseBase]
    permission: str = "view_queue"
    #: what it does, in the audit log's words
    action: str = "view"
    #: a permission that it takes as well
    also: str = "view_queue"
    #: the permission without which the others open nothing
    door: str = "view_queue"

    @property
    def permissions(self) -> Sequence[str]:
        """All that it takes."""
        return (self.door, self.permission, self.also)

    @property
    def methods(self) -> Sequence[str]:
        """What only shows something is never sent a form."""
        return _LOOK if self.action in _SHOWS else _CHANGE


# A name may hold a slash: as a path it has an address, whatever it is.
#: under "queue/" in the admin, at the root of our own mount
QUEUE: Sequence[Route] = (
    Route("", "overview", overview.overview),
    Route("data/", "data", overview.data),
    Route("lanes/<path:lane>/pause/", "pause", lanes.pause, "pause_lane", "pause"),
    Route("lanes/<path:lane>/resume/", "resume", lanes.resume, "pause_lane", "resume"),
    Route("lanes/<path:lane>/", "lane", lanes.lane),
    Route("jobs/", "jobs", jobs.jobs),
    Route("jobs/<path:job>/cancel/", "cancel", cancelling.cancel, "cancel_job", "cancel"),
    Route("workers/", "workers", workers.workers),
    Route("workers/<path:worker>/drain/", "drain", workers.drain, "drain_worker", "drain"),
)
#: under "deadletter/" in the admin, under "dead/" of our own mount
LETTERS: Sequence[Route] = (
    Route("", "letters", letters.letters),
    Route("export/", "export", exporting.export, action="export"),
    Route("requeue/", "requeue_matching", tending.requeue, "requeue_letter", "requeue"),
    Route("requeue/<str:run>/", "requeue_run", bulk.run_of_requeue, "requeue_letter", "requeue"),
    Route("purge/", "purge_matching", tending.purge, "purge_letter", "purge"),
    Route("purge/<str:run>/", "purge_run", bulk.run_of_purge, "purge_letter", "purge"),
    Route("<path:job>/requeue/", "requeue", tending.requeue, "requeue_letter", "requeue"),
    Route("<path:job>/purge/", "purge", tending.purge, "purge_letter", "purge"),
    Route("<path:job>/edit/", "edit", editing.edit, "requeue_letter", "replace", also="view_payload"),
    Route("<path:job>/", "letter", letter.letter),
)

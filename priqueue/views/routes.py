"""Routes: every address of the pages, its view, and the permission it takes besides "view_queue"."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.http import HttpResponse

from priqueue.views import cancelling, lanes, overview, workers

_LOOK: Sequence[str] = ("GET", "HEAD")
_SHOWS = ("view", "export")
_CHANGE: Sequence[str] = ("GET", "HEAD", "POST")


@dataclass(frozen=True, slots=True)
class Route:
    """One page."""

    path: str
    name: str
    view: Callable[..., HttpResponse]
    permission: str = "view_queue"
    #: what it does, in the audit log's words
    action: str = "view"

    @property
    def methods(self) -> Sequence[str]:
        """What only shows something is never sent a form."""
        return _LOOK if self.action in _SHOWS else _CHANGE


#: under "queue/" in the admin, at the root of our own mount
QUEUE: Sequence[Route] = (
    Route("", "overview", overview.overview),
    Route("data/", "data", overview.data),
    Route("lanes/<str:lane>/", "lane", lanes.lane),
    Route("lanes/<str:lane>/pause/", "pause", lanes.pause, "pause_lane", "pause"),
    Route("lanes/<str:lane>/resume/", "resume", lanes.resume, "pause_lane", "resume"),
    Route("jobs/<str:job>/cancel/", "cancel", cancelling.cancel, "cancel_job", "cancel"),
    Route("workers/", "workers", workers.workers),
    Route("workers/<str:worker>/drain/", "drain", workers.drain, "drain_worker", "drain"),
)
#: under "deadletter/" in the admin, under "dead/" of our own mount
LETTERS: Sequence[Route] = ()

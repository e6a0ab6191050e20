"""Routes: every address of the pages, its view, and the permission it takes besides "view_queue"."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.http import HttpResponse

from priqueue.views import overview

_LOOK: Sequence[str] = ("GET", "HEAD")
_CHANGE: Sequence[str] = ("GET", "HEAD", "POST")


@dataclass(frozen=True, slots=True)
class Route:
    """One page."""

    path: str
    name: str
    view: Callable[..., HttpResponse]
    permission: str = "view_queue"

    @property
    def methods(self) -> Sequence[str]:
        """A page that takes no more than a look changes nothing."""
        return _LOOK if self.permission in ("view_queue", "view_payload") else _CHANGE


#: under "queue/" in the admin, at the root of our own mount
QUEUE: Sequence[Route] = (Route("", "overview", overview.overview),)
#: under "deadletter/" in the admin, under "dead/" of our own mount
LETTERS: Sequence[Route] = ()

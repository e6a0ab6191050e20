"""Forms: a form of a page acts once, however often it is sent and whichever web process gets it."""

from collections.abc import Callable

from redis import Redis
from uuid_utils import uuid4

from priqueue.conf import Settings
from priqueue.coordinator.connection import derive
from priqueue.coordinator.keys import Keys
from priqueue.coordinator.scripts import Call, Scripts


class Forms:
    """The forms of one queue's pages. Every method may raise QueueUnavailable."""

    def __init__(self, client: "Redis", settings: Settings, clock: Callable[[], int] | None = None) -> None:
        self.client = derive(client, socket_timeout_s=settings.socket_timeout_s)
        deadline_s, keys = settings.socket_timeout_s, Keys(settings.namespace)
        self._scripts = Scripts(self.client, keys, audit=settings.audit, deadline_s=deadline_s, now_ms=clock)

    def close(self) -> None:
        """Close the connections."""
        self.client.close()

    def begin(self, token: str) -> str | None:
        """Return None to who sends a form first: go on. Else what came of it: "" while the first is still at it."""
        sending = str(uuid4())
        kept = str(self._scripts.run(Call("form", (token, sending, "")))[0])
        if not kept:
            return None
        return kept if kept.startswith("{") else ""

    def finish(self, token: str, outcome: str) -> None:
        """Keep what came of a form, a JSON object, for an hour."""
        self._scripts.run(Call("form", (token, "", outcome)))

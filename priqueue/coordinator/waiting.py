"""Waiting: blocking pops of the tokens that say that there is work, on connections of their own.

They may stay silent for as long as the wait, so they must not hold up, or be held up by, any other call.
"""

from collections.abc import Sequence

from redis import Redis
from redis.exceptions import RedisError

from priqueue.clock import monotonic_s
from priqueue.conf import Settings
from priqueue.coordinator.connection import derive
from priqueue.coordinator.scripts import leave_demoted, translated

_SLACK_S = 2
_AFTER_TROUBLE_S = 1


class Waiting:
    """Waits for tokens."""

    def __init__(self, client: "Redis", settings: Settings) -> None:
        self._longest_s = settings.pull_timeout_s
        silence_s = self._longest_s + _SLACK_S
        self._client = derive(client, socket_timeout_s=silence_s, connect_timeout_s=settings.socket_timeout_s)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def pop(self, keys: Sequence[str], timeout_s: float) -> bool:
        """Wait until there is a token at one of the keys; return whether one was taken."""
        # The server serves time-outs ten times a second, and 0 would mean for ever.
        timeout_s = min(max(timeout_s, 0.01), self._longest_s)
        try:
            return self._client.blpop(keys, timeout=timeout_s) is not None
        except RedisError as error:
            leave_demoted(self._client, error)
            raise translated(error) from error

    def reliable_s(self, troubled_at_s: float) -> float:
        """Return how long one may wait for a token without asking for work; after trouble, shorter.

        A wait that a dead connection swallowed hears of nothing until it times out.
        """
        silence_s = self._longest_s + _SLACK_S
        return self._longest_s if monotonic_s() - troubled_at_s > silence_s else min(_AFTER_TROUBLE_S, self._longest_s)

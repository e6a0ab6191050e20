"""Outbox: audit events on their way from the queue to the database.

Scripts write them into a stream in the same step as the change. The auditor reads the oldest, stores them, and only
then lets them go; so what was read and not let go is simply read again.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

from redis import Redis
from redis.client import Pipeline
from redis.exceptions import RedisError, WatchError

from priqueue.conf import Settings
from priqueue.coordinator.connection import derive
from priqueue.coordinator.keys import Keys
from priqueue.coordinator.scripts import Call, Scripts, leave_demoted, translated


@dataclass(frozen=True, slots=True)
class Entry:
    """One audit event as it stands in the stream."""

    #: "ms-number", growing within an epoch
    id: str
    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Batch:
    """The oldest events. The epoch names the stream: a server that lost its data begins another."""

    epoch: str
    entries: list[Entry]


class Outbox:
    """Reads the audit stream and lets go of what is stored. Every method may raise QueueUnavailable."""

    def __init__(self, client: "Redis", settings: Settings) -> None:
        self.namespace = settings.namespace
        self._keys = Keys(settings.namespace)
        self._settings = settings
        self.client = derive(client, socket_timeout_s=settings.socket_timeout_s)

    def read(self, limit: int) -> Batch:
        """Return the oldest events, ``limit`` at most."""
        with self._faults_translated(), self.client.pipeline(transaction=True) as pipeline:
            # One transaction: events of one stream must not come under the name of another.
            pipeline.get(self._keys.epoch)
            pipeline.xrange(self._keys.audit, count=limit)
            epoch, found = pipeline.execute()
        return Batch(epoch or "", [Entry(entry_id, fields) for entry_id, fields in found])

    def let_go(self, batch: Batch) -> None:
        """Drop the events of a batch and what is older, unless the stream is another one by now."""
        if batch.entries:
            ms, _, number = batch.entries[-1].id.partition("-")
            with self._faults_translated():
                self._while_epoch_is(
                    batch.epoch,
                    lambda line: line.xtrim(self._keys.audit, minid=f"{ms}-{int(number) + 1}", approximate=False),
                )

    def waiting(self, batch: int = 1000) -> Iterator[Entry]:
        """Give every event that waits now, oldest first, reading in batches and letting go of nothing."""
        newest, after = self._ask("XREVRANGE", "+", "-", 1), "-"
        while newest:
            found = self._ask("XRANGE", after, newest[0][0], batch)
            yield from (Entry(entry_id, fields) for entry_id, fields in found)
            if len(found) < batch:
                return
            after = f"({found[-1][0]}"

    def _ask(self, command: str, start: str, end: str, limit: int) -> list[tuple[str, dict[str, str]]]:
        with self._faults_translated():
            found = self.client.execute_command(command, self._keys.audit, start, end, "COUNT", limit)
        return list(found or ())

    def backlog(self) -> int:
        """Return how many events are waiting."""
        with self._faults_translated():
            return int(self.client.xlen(self._keys.audit))

    def say_seen(self) -> None:
        """Tell that the auditor has had its turn. By a script, as a plain write is refused at the memory limit."""
        self._scripts.run(Call("seen", ("auditor",)))

    @cached_property
    def _scripts(self) -> Scripts:
        deadline_s = self._settings.socket_timeout_s
        return Scripts(self.client, self._keys, audit=self._settings.audit, deadline_s=deadline_s, now_ms=None)

    def _while_epoch_is(self, epoch: str, change: Callable[["Pipeline"], object]) -> None:
        with self.client.pipeline(transaction=True) as pipeline:
            pipeline.watch(self._keys.epoch)
            if (pipeline.get(self._keys.epoch) or "") != epoch:
                return
            pipeline.multi()
            change(pipeline)
            try:
                pipeline.execute()
            except WatchError:  # another stream has begun this moment: nothing in it was read yet
                return

    @contextmanager
    def _faults_translated(self) -> Iterator[None]:
        try:
            yield
        except RedisError as error:
            leave_demoted(self.client, error)
            raise translated(error) from error

"""Models: the audit log, one row per change of the queue; API keys; and what has no table, but permissions.

Rows of the audit log are only ever added. Triggers (``guards``) see to it, and on PostgreSQL they set id, time and
hashes themselves.
"""

from datetime import UTC, datetime, timedelta
from typing import ClassVar

from django.core.validators import RegexValidator
from django.db import models

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class AuditEvent(models.Model):
    """One change, by whom, to which job. Times are whole ms since 1970, so that no time zone can change a hash."""

    #: without gaps: the number of the row before, and one
    id = models.BigIntegerField(primary_key=True)
    #: when the database took it in; on PostgreSQL by the database's own clock
    stored_ms = models.BigIntegerField()
    #: when it happened, by the queue server's clock
    at_ms = models.BigIntegerField()
    namespace = models.CharField(max_length=64)
    #: the stream it came through, and its id there
    epoch = models.CharField(max_length=64)
    stream_id = models.CharField(max_length=64)
    action = models.CharField(max_length=32)
    caller = models.CharField(max_length=200)
    job = models.CharField(max_length=200)
    handler = models.CharField(max_length=200)
    lane = models.CharField(max_length=64)
    input = models.TextField()
    outcome = models.CharField(max_length=200)
    reason = models.TextField()
    correlation_id = models.CharField(max_length=200)
    #: what was done to store it: "" as it was, "cleaned", "cut", "extra", "conflict"
    mark = models.CharField(max_length=64)
    #: the hash of the row before; 32 zeros in the first
    previous = models.BinaryField(max_length=32)
    #: SHA-256 of all of the above, see ``audit.chain``
    hash = models.BinaryField(max_length=32)

    objects: ClassVar[models.Manager["AuditEvent"]] = models.Manager()

    class Meta:
        """Nobody is ever allowed to add, change or delete."""

        default_permissions = ("view",)
        verbose_name_plural = "Audit log"
        constraints = [
            models.UniqueConstraint(fields=["namespace", "epoch", "stream_id"], name="priqueue_audit_once"),
        ]
        # With the id, so that a page of a filter is read off its index in order, however many rows the filter leaves.
        indexes = [
            models.Index(fields=[name, "id"], name=f"priqueue_audit_{name}"[:30])
            for name in ("job", "correlation_id", "caller", "action", "handler", "lane", "at_ms")
        ]

    def __str__(self) -> str:
        return f"{self.id} {self.action} {self.job or self.lane} by {self.caller}"

    @property
    def at(self) -> datetime:
        """When it happened."""
        return _EPOCH + timedelta(milliseconds=self.at_ms)

    @property
    def stored_at(self) -> datetime:
        """When the database took it in."""
        return _EPOCH + timedelta(milliseconds=self.stored_ms)


class ApiKey(models.Model):
    """What an outside caller proves itself with: the caller ``key:<name>``. Of its secret only a hash is kept."""

    name = models.CharField(
        max_length=100,
        unique=True,
        validators=[RegexValidator(r"^[A-Za-z0-9_.@-]+\Z", "Use letters, digits and _ . @ - only.")],
        help_text="Its jobs are those of the caller key:<name>.",
    )
    #: the part of the token that says which key it is; no secret
    prefix = models.CharField(max_length=16, unique=True, editable=False)
    #: SHA-256 of the whole token, which is random enough to need no more
    digest = models.BinaryField(max_length=32, editable=False)
    #: lanes and handlers by name, ["*"] for all
    lanes = models.JSONField(default=list)
    handlers = models.JSONField(default=list)
    #: a limit of its own, as RATE_LIMIT takes it; "" for what holds for everybody
    rate = models.CharField(max_length=40, blank=True, help_text='For example "100/s" or "30/min burst 60".')
    created_at = models.DateTimeField(editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, editable=False)
    #: exact to the minute
    last_used_at = models.DateTimeField(null=True, editable=False)

    objects: ClassVar[models.Manager["ApiKey"]] = models.Manager()

    class Meta:
        """The permission is for people: with it a session may use the HTTP door."""

        permissions = [("enqueue_job", "Can enqueue jobs over HTTP")]
        verbose_name = "API key"

    def __str__(self) -> str:
        return self.name


class Queue(models.Model):
    """The queue: no table, but the permissions of its pages, and their place in the admin."""

    class Meta:
        """Its name in the plural is the entry in the admin's index."""

        managed = False
        default_permissions = ()
        verbose_name = "queue"
        verbose_name_plural = "Overview"
        permissions = [
            ("view_queue", "Can view the queue"),
            ("pause_lane", "Can pause and resume lanes"),
            ("cancel_job", "Can cancel jobs"),
            ("drain_worker", "Can drain workers"),
        ]

    def __str__(self) -> str:
        return "the queue"


class DeadLetter(models.Model):
    """The dead letters: no table, but their permissions, and their place in the admin."""

    class Meta:
        """Its name in the plural is the entry in the admin's index."""

        managed = False
        default_permissions = ()
        verbose_name = "dead letter"
        verbose_name_plural = "Dead letters"
        permissions = [
            ("view_payload", "Can view payloads, error messages and tracebacks"),
            ("requeue_letter", "Can requeue dead letters"),
            ("purge_letter", "Can purge dead letters"),
        ]

    def __str__(self) -> str:
        return "a dead letter"

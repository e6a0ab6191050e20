"""System checks: what configuration, handlers and audit database tell without the queue. Codes: docs/settings.md."""

from collections.abc import Collection, Iterator
from typing import Any

from django.core.checks import CheckMessage, Error, Warning
from django.db import connections, router

from priqueue import wiring
from priqueue.audit import rights
from priqueue.conf import Settings
from priqueue.exceptions import ConfigurationError, InvalidPayload
from priqueue.guards import VENDORS
from priqueue.handlers import AnyHandler, registry
from priqueue.models import AuditEvent

_SHORTEST_KEY = 16
_SEE = "docs/settings.md describes every setting."


def check_configuration(**_: Any) -> list[CheckMessage]:
    """Return one error per fault in the PRIQUEUE setting; warnings about it when there is none."""
    try:
        settings = wiring.settings()
    except ConfigurationError as faults:
        return [_error(fault) for fault in str(faults).splitlines()]
    return list(_warnings(settings))


def check_handlers(**_: Any) -> list[CheckMessage]:
    """Return one error per handler whose annotations cannot be used: none of its jobs could be enqueued or run."""
    return [error for handler in registry for error in _unusable(handler)]


def check_audit(**_: Any) -> list[CheckMessage]:
    """Return an error where the audit log has no database that could keep it."""
    settings = _audited()
    return list(_unfit(settings.audit_database)) if settings else []


def check_audit_database(databases: Collection[str] | None = None, **_: Any) -> list[CheckMessage]:
    """Return warnings about the audit log's table, asked only when its database is to be asked."""
    settings = _audited()
    if not settings or settings.audit_database not in (databases or ()) or list(_unfit(settings.audit_database)):
        return []
    return list(_table_warnings(settings.audit_database))


def _audited() -> Settings | None:
    """Return the settings where they are sound and switch auditing on."""
    try:
        settings = wiring.settings()
    except ConfigurationError:  # told by another check
        return None
    return None if settings.audit == "off" else settings


def _unfit(alias: str) -> Iterator[CheckMessage]:
    if alias not in connections.settings:
        yield Error(
            f"PRIQUEUE['AUDIT_DATABASE']: DATABASES has no {alias!r}",
            hint=f"Choose from {', '.join(connections.settings)}.",
            id="priqueue.E003",
        )
    elif connections[alias].vendor not in VENDORS:
        yield Error(
            f"PRIQUEUE['AUDIT_DATABASE']: {connections[alias].display_name} cannot keep the audit log append-only",
            hint="Use PostgreSQL (or SQLite, to try it), or switch it off with AUDIT 'off'.",
            id="priqueue.E004",
        )
    elif router.db_for_write(AuditEvent) != alias:
        yield Error(
            f"PRIQUEUE['AUDIT_DATABASE']: nothing keeps the audit log on {alias!r}",
            hint='Add "priqueue.routers.AuditRouter" to DATABASE_ROUTERS, before other routers.',
            id="priqueue.E005",
        )


def _table_warnings(alias: str) -> Iterator[CheckMessage]:
    if not rights.has_table(alias):
        # The first migration of all is about to make it.
        if rights.is_migrated(alias):
            hint = f"Run manage.py migrate --database {alias}; until then events wait in the queue's memory."
            yield Warning(f"The audit log's table is missing in {alias!r}.", hint=hint, id="priqueue.W005")
        return
    found = rights.too_many(alias) if connections[alias].vendor == "postgresql" else []
    if found:
        yield Warning(
            f"The application could rewrite the audit log: its role on {alias!r} {', '.join(found)}.",
            hint="docs/audit.md: give AUDIT_DATABASE a role of its own, made fit by manage.py auditgrants.",
            id="priqueue.W004",
        )


def _unusable(handler: AnyHandler) -> Iterator[CheckMessage]:
    try:
        _ = handler.signature.validator
    except (InvalidPayload, AttributeError, SyntaxError) as fault:  # the last two: an annotation that is text
        hint = f"Annotate the parameters of {handler.name} with types that pydantic knows, imported where it stands."
        yield Error(f"{handler.name}: {fault}", hint=hint, id="priqueue.E002")


def _error(fault: str) -> CheckMessage:
    wrong, _, remedy = fault.rpartition("; ")
    return Error(wrong or fault, hint=remedy if wrong else _SEE, id="priqueue.E001")


def _warnings(settings: Settings) -> Iterator[CheckMessage]:
    if not settings.signing_keys:
        yield Warning(
            "Jobs are not signed: whoever can write to the Redis server decides what the workers run.",
            hint="Leave SIGNING_KEYS out to have keys made of SECRET_KEY.",
            id="priqueue.W001",
        )
    if not settings.tls.verified:
        yield Warning(
            "TLS does not verify the Redis server: whoever stands between reads password and jobs.",
            hint="Give the authority's certificate as TLS ca_certs, and drop cert_reqs and check_hostname.",
            id="priqueue.W002",
        )
    if any(len(key) < _SHORTEST_KEY for key in settings.signing_keys):
        yield Warning(
            f"A signing key is shorter than {_SHORTEST_KEY} bytes and can be guessed.",
            hint="Use secrets.token_urlsafe(32) for a key.",
            id="priqueue.W003",
        )

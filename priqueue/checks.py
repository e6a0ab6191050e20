"""System checks: what the configuration and the handlers tell without asking the server. Codes: docs/settings.md."""

from collections.abc import Iterator
from typing import Any

from django.core.checks import CheckMessage, Error, Warning

from priqueue import wiring
from priqueue.conf import Settings
from priqueue.exceptions import ConfigurationError, InvalidPayload
from priqueue.handlers import AnyHandler, registry

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

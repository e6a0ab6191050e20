"""Masking: takes secrets out of what a record quotes: those of the settings, and the payload fields of AUDIT_REDACT.

An error's message may quote what the handler was given. So the values are looked for, not the names.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from priqueue.conf import Settings
from priqueue.jobs import Job

MASK = "***"
#: shorter ones are masked only where they stand as a word: or else every 7 would be one
_PART_OF_A_WORD = 4


def masked(text: str, settings: Settings, job: Job | None = None) -> str:
    """Return a text without the settings' secrets, and without the redacted fields of a job."""
    for secret in _secrets_of(settings):
        text = text.replace(secret, MASK)
    if job is None or not settings.audit_redact:
        return text
    found = {word for value in _values(job.payload, frozenset(settings.audit_redact)) for word in _spellings(value)}
    for word in sorted(found, key=len, reverse=True):
        whole = re.escape(word)
        text = re.sub(whole if len(word) >= _PART_OF_A_WORD else rf"(?<!\w){whole}(?!\w)", MASK, text)
    return text


def _secrets_of(settings: Settings) -> Iterator[str]:
    in_url = urlsplit(settings.url).password or ""
    sentinel = settings.sentinel.password if settings.sentinel else None
    return filter(None, (in_url, unquote(in_url), settings.password, sentinel, settings.metrics_token))


def _values(found: Any, redacted: frozenset[str], inside: bool = False) -> Iterator[Any]:
    """Give every plain value below a field that is redacted."""
    if isinstance(found, Mapping):
        for name, value in found.items():
            yield from _values(value, redacted, inside or name in redacted)
    elif isinstance(found, list):
        for value in found:
            yield from _values(value, redacted, inside)
    elif inside and not isinstance(found, bool) and found not in (None, ""):
        yield found


def _spellings(value: Any) -> set[str]:
    """Return a value as messages quote it."""
    return {str(value), repr(value).strip("'\"")}

"""Records: a dead letter as JSON, for programs; the same from commands and from pages."""

import json
from dataclasses import asdict
from typing import Any

from priqueue.coordinator.letters import Letter, OpenedLetter
from priqueue.jobs import Attempt


def line(letter: Letter) -> str:
    """Return a letter as a line of JSON."""
    return json.dumps(_letter(letter))


def opened_line(opened: OpenedLetter, *, payload: bool = True) -> str:
    """Return a letter with its job and its trail as a line of JSON.

    Without ``payload`` there is nothing in it that may quote one: no message and no traceback either.
    """
    job = opened.job
    about = {
        "error": opened.error, "attempts": opened.attempts, "crashes": opened.crashes,
        "max_attempts": job.max_attempts, "correlation_id": job.correlation_id or job.id,
        "enqueued_at": job.enqueued_at.isoformat(), "replaces": job.replaces,
    }  # fmt: skip
    shown = {"payload": job.payload} if payload else {}
    trail = [_attempt(attempt, payload) for attempt in opened.trail]
    return json.dumps({**_letter(opened.letter), **about, **shown, "trail": trail})


def _letter(letter: Letter) -> dict[str, Any]:
    return {
        "id": letter.id, "handler": letter.handler, "lane": letter.lane, "cause": letter.cause,
        "caller": letter.caller, "buried_at": letter.buried_at.isoformat(), "replaced_by": letter.replaced_by,
    }  # fmt: skip


def _attempt(attempt: Attempt, payload: bool) -> dict[str, Any]:
    said = asdict(attempt) | {"at": attempt.at.isoformat()}
    return said if payload else {name: value for name, value in said.items() if name not in ("message", "traceback")}

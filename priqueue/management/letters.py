"""Letters: how commands show dead letters: as a table or a text for people, as JSON for programs."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from priqueue.dead_letters import Letter, OpenedLetter
from priqueue.jobs import Attempt
from priqueue.management.text import block, table, utc, visible

_HEADS = ("id", "buried at", "lane", "caller", "cause")


def listed(letters: Iterable[Letter]) -> str:
    """Return letters as a table."""
    rows = [(letter.id, utc(letter.buried_at), letter.lane, letter.caller, letter.cause) for letter in letters]
    return table(_HEADS, rows) if rows else "no letters"


def line(letter: Letter) -> str:
    """Return a letter as a line of JSON."""
    return json.dumps(_record(letter))


def opened_line(opened: OpenedLetter) -> str:
    """Return a letter with its job and its trail as a line of JSON."""
    job = opened.job
    about = {
        "error": opened.error, "attempts": opened.attempts, "crashes": opened.crashes,
        "max_attempts": job.max_attempts, "correlation_id": job.correlation_id or job.id,
        "enqueued_at": job.enqueued_at.isoformat(), "payload": job.payload,
    }  # fmt: skip
    trail = [asdict(attempt) | {"at": attempt.at.isoformat()} for attempt in opened.trail]
    return json.dumps({**_record(opened.letter), **about, "trail": trail})


def opened_text(opened: OpenedLetter) -> str:
    """Return a letter with its job and its trail for a person."""
    letter, job = opened.letter, opened.job
    facts = {
        "letter": letter.id, "handler": letter.handler, "lane": letter.lane, "cause": letter.cause,
        "buried at": utc(letter.buried_at), "enqueued at": utc(job.enqueued_at), "caller": letter.caller,
        "correlation": job.correlation_id or job.id,
        "attempts": f"{opened.attempts} of {job.max_attempts}", "crashes": opened.crashes,
    }  # fmt: skip
    return "\n".join(
        [
            *(f"{name + ':':<13}{visible(fact)}" for name, fact in facts.items()),
            "payload:",
            block(json.dumps(job.payload, indent=2, ensure_ascii=False)),
            *map(_attempt_text, opened.trail),
        ]
    )


def _attempt_text(attempt: Attempt) -> str:
    head = f"attempt {attempt.attempt}, {utc(attempt.at)}, {attempt.worker}: {attempt.error}: {attempt.message}"
    return "\n".join([visible(head), *([block(attempt.traceback)] if attempt.traceback else [])])


def _record(letter: Letter) -> dict[str, Any]:
    return {
        "id": letter.id, "handler": letter.handler, "lane": letter.lane, "cause": letter.cause,
        "caller": letter.caller, "buried_at": letter.buried_at.isoformat(),
    }  # fmt: skip

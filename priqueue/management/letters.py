"""Letters: how commands show dead letters to people, as a table or a text. For programs there are ``records``."""

import json
from collections.abc import Iterable, Mapping

from priqueue.dead_letters import Letter, OpenedLetter
from priqueue.jobs import Attempt
from priqueue.management.text import block, table, utc, visible

_HEADS = ("id", "buried at", "lane", "caller", "cause", "replaced by")


def listed(letters: Iterable[Letter]) -> str:
    """Return letters as a table."""
    rows = [(each.id, utc(each.buried_at), each.lane, each.caller, each.cause, each.replaced_by) for each in letters]
    shown = len(_HEADS) if any(each[-1] for each in rows) else -1
    return table(_HEADS[:shown], [each[:shown] for each in rows]) if rows else "no letters"


def caused(causes: Mapping[str, int]) -> str:
    """Return the number of letters of each cause as a table."""
    rows = [(number, cause) for cause, number in causes.items()]
    return table(("letters", "cause"), rows) if rows else "no letters"


def opened_text(opened: OpenedLetter) -> str:
    """Return a letter with its job and its trail for a person."""
    letter, job = opened.letter, opened.job
    facts = {
        "letter": letter.id, "handler": letter.handler, "lane": letter.lane, "cause": letter.cause,
        "buried at": utc(letter.buried_at), "enqueued at": utc(job.enqueued_at), "caller": letter.caller,
        "correlation": job.correlation_id or job.id,
        **({"replaces": job.replaces} if job.replaces else {}),
        **({"replaced by": letter.replaced_by} if letter.replaced_by else {}),
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

"""Choice: which dead letters a command is about, and what is refused before it begins."""

import argparse
import sys
from typing import Any

from django.core.management.base import CommandError

from priqueue import dead_letters
from priqueue.dead_letters import Filter, Selection
from priqueue.management.options import moment


def add_filter(parser: argparse.ArgumentParser) -> None:
    """Declare the options that say which letters are meant: what fits all of them."""
    parser.add_argument("--lane", help="of this lane")
    parser.add_argument("--cause", help='of this cause, as in "ValueError shop.jobs.send_receipt"')
    parser.add_argument("--handler", help="of this handler")
    parser.add_argument("--caller", help="of jobs that this caller enqueued")
    parser.add_argument("--since", type=moment, help="buried then or later: 2026-11-29T03:00, or 90m for ago")
    parser.add_argument("--until", type=moment, help="buried then or earlier")


def wanted(options: dict[str, Any]) -> Filter:
    """Return the filter that the options describe."""
    return Filter(**{name: options[name] for name in ("lane", "cause", "handler", "caller", "since", "until")})


def check_choice(options: dict[str, Any]) -> None:
    """Refuse what could mean more than was meant. Raises CommandError."""
    given = [bool(options["ids"]), wanted(options) != Filter(), options.get("all", False)]
    if not any(given):
        raise CommandError("which letters? give ids, a filter" + (" or --all" if "all" in options else ""))
    if sum(given) > 1:
        raise CommandError("give one of these, not more: ids, a filter, --all")


def check_change(options: dict[str, Any]) -> None:
    """Refuse a change without a reason, or one that nobody could confirm. Raises CommandError."""
    if not options["reason"].strip():
        raise CommandError("--reason: say why; it is kept with the change")
    if not options["yes"] and not sys.stdin.isatty():
        raise CommandError("nobody is here to be asked: use --yes")


def selected(options: dict[str, Any]) -> Selection:
    """Return the letters that are meant, the oldest first, or as their ids were given."""
    if options["ids"]:
        return dead_letters.noted(options["ids"])
    return dead_letters.select(wanted(options), options["limit"])

"""deadletters: list, count, show, requeue and purge what is kept for a person."""

import argparse
import json
import sys
from itertools import islice
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from priqueue import dead_letters, records, wiring
from priqueue.management import choice, letters
from priqueue.management.options import whole
from priqueue.management.progress import Progress
from priqueue.management.sessions import session
from priqueue.management.text import described, visible

_SHOWN = 50
_CHANGES = {"requeue": dead_letters.requeue, "purge": dead_letters.purge}
_ABOUT = {
    "list": "list letters, the newest first",
    "causes": "count letters by cause, the most frequent first",
    "show": "show letters with their payload and the trail of their attempts",
    "requeue": "give jobs all attempts again, at the tails of their lanes, the oldest letter first",
    "purge": "delete jobs for good",
}


class Command(BaseCommand):
    """Shows dead letters, and does with them what a person says."""

    help = "List and show dead letters, give their jobs all attempts again (requeue), or delete them (purge)."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the actions and their options."""
        actions = parser.add_subparsers(dest="action", required=True, metavar=" | ".join(_ABOUT))
        for action, about in _ABOUT.items():
            declared = actions.add_parser(action, help=about, description=about)
            if action == "causes":
                declared.add_argument("--json", action="store_true", help="print lines of JSON")
                continue
            if action != "list":
                declared.add_argument("ids", nargs="*", metavar="ID", help="the letters; or a filter instead")
            choice.add_filter(declared)
            declared.add_argument("--json", action="store_true", help="print lines of JSON")
            declared.add_argument("--limit", type=whole, help="the newest so many")
            if action in _CHANGES:
                declared.add_argument("--all", action="store_true", help="all letters, where no filter is given")
                declared.add_argument("--reason", required=True, help="why; it is kept with the change")
                declared.add_argument("--yes", action="store_true", help="do not ask")

    def handle(self, **options: Any) -> None:
        """Check what is asked for, then do it."""
        action = options["action"]
        if action not in ("list", "causes"):
            choice.check_choice(options)
        if action in _CHANGES:
            choice.check_change(options)
        with session():
            if action in _CHANGES:
                self._change(action, options)
            elif action == "show":
                self._show(options)
            elif action == "causes":
                self._causes(options)
            else:
                self._list(options)

    def _list(self, options: dict[str, Any]) -> None:
        limit = options["limit"] or _SHOWN
        found = list(islice(dead_letters.scan(choice.wanted(options)), limit + 1))
        if options["json"]:
            for letter in found[:limit]:
                self.stdout.write(records.line(letter))
            return
        self.stdout.write(letters.listed(found[:limit]))
        if len(found) > limit:
            self.stdout.write(f"and older ones: --limit shows more than {limit}")

    def _causes(self, options: dict[str, Any]) -> None:
        found = dead_letters.causes()
        if options["json"]:
            for cause, number in found.items():
                self.stdout.write(json.dumps({"cause": cause, "letters": number}))
        else:
            self.stdout.write(letters.caused(found))

    def _show(self, options: dict[str, Any]) -> None:
        show = records.opened_line if options["json"] else letters.opened_text
        missing = []
        for job_id in choice.selected(options).ids:
            opened = dead_letters.read(job_id)
            if opened:
                self.stdout.write(show(opened))
            else:
                missing.append(job_id)
        if missing and options["ids"]:
            raise CommandError(f"no dead letter: {visible(', '.join(missing))}")

    def _change(self, action: str, options: dict[str, Any]) -> None:
        selection = choice.selected(options)
        number, queue = len(selection.ids), described(wiring.coordinator().settings)
        if number and not options["yes"] and not self._agreed(f"{action} {number:,} letters of {queue}?"):
            raise CommandError("nothing was changed")
        with Progress(self.stderr, number) as progress:
            done = _CHANGES[action](selection, reason=options["reason"], progress=progress)
        if options["json"]:
            self.stdout.write(json.dumps({"action": action, "selected": number, "done": done}))
        else:
            self.stdout.write(f"{action}: done for {done:,} of {number:,} letters")
        if done < number and options["ids"]:
            or_replaced = ", or of one that was replaced" if action == "requeue" else ""
            raise CommandError(f"{number - done:,} of the ids are of no dead letter{or_replaced}")

    def _agreed(self, question: str) -> bool:
        self.stderr.write(f"{question} [y/N] ", style_func=str, ending="")
        self.stderr.flush()
        return sys.stdin.readline().strip().lower() in ("y", "yes")

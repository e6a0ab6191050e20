"""lanestats: the queue in figures."""

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from priqueue import wiring
from priqueue.management import figures
from priqueue.management.sessions import session
from priqueue.management.text import visible
from priqueue.management.watching import Watch


class Command(BaseCommand):
    """Shows what is wrong, lanes, dead letters and workers."""

    help = (
        "Show what is wrong, the lanes, the number of dead letters and the workers. The share is a lane's part of the"
        " picks that were made while every lane held work: those that weights speak of. It is no share of time."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        how = parser.add_mutually_exclusive_group()
        how.add_argument("--json", action="store_true", help="print one JSON document")
        how.add_argument("--watch", action="store_true", help="show it again each second, until Ctrl-C")
        how.add_argument(
            "--reconcile",
            action="store_true",
            help="name each job that is not in exactly one place; exit code 1 if any",
        )

    def handle(self, **options: Any) -> None:
        """Show it."""
        with session():
            if options["reconcile"]:
                self._reconcile()
                return
            reader = wiring.overview()
            if options["watch"]:
                Watch(self.stdout, lambda: figures.screen(reader.snapshot(), reader.settings)).run()
                return
            show = figures.document if options["json"] else figures.screen
            self.stdout.write(show(reader.snapshot(), reader.settings))

    def _reconcile(self) -> None:
        count = wiring.census().take()
        for finding in count.findings:
            self.stdout.write(visible(finding))
        if count.more:
            self.stdout.write(f"{count.more} more ids seem wrong; look again when these are settled")
        if count.findings:
            raise CommandError(f"{len(count.findings)} things are wrong among {count.jobs} jobs")
        self.stdout.write(f"{count.jobs} jobs, each in exactly one place")

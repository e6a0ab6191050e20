"""runcoordinator: ticker and sweeper in one process, for small installations."""

import argparse
from typing import Any

from django.core.management.base import BaseCommand

from priqueue import wiring
from priqueue.management.duties import (
    add_probe_option,
    fit_coordinator,
    run_until_stopped,
    say,
    touch_with_every_turn,
)
from priqueue.sweeper import Sweeper
from priqueue.ticker import Ticker


class Both:
    """A ticker and, in a thread beside it, a sweeper."""

    def __init__(self, ticker: Ticker, sweeper: Sweeper) -> None:
        self._ticker = ticker
        self._sweeper = sweeper
        self.loop = ticker.loop

    def run(self) -> None:
        """Run both until stopped."""
        thread = self._sweeper.loop.start()
        self.loop.needs(thread)
        self._ticker.run()
        thread.join()

    def stop(self) -> None:
        """End both. Safe in a signal handler."""
        self._ticker.stop()
        self._sweeper.stop()


class Command(BaseCommand):
    """Runs ticker and sweeper until it is stopped. Any number may run at once."""

    help = "Run ticker and sweeper in one process. Any number may run."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        add_probe_option(parser)

    def handle(self, **options: Any) -> None:
        """Run them."""
        coordinator, inspector = fit_coordinator(self.stderr), wiring.inspector()
        if options["verbosity"]:
            say(self.stdout, "coordinator: ticker and sweeper running")
        both = Both(Ticker(coordinator, inspector), Sweeper(coordinator, inspector))
        touch_with_every_turn(both.loop, options["heartbeat_file"])
        run_until_stopped(both)

"""``manage.py demo``: the shop and its queue, until Ctrl-C; with ``--once`` 300 jobs and their accounts."""

import logging
import os
import sys
from argparse import ArgumentParser
from contextlib import closing
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import Error as DatabaseError

import priqueue
from project import datafolder
from project.demo import load, once, operator, services, tidy, watch
from project.demo.interruption import Interruption
from project.demo.supervisor import NotReady, Supervisor
from project.demo.table import Screen

EXPECTED = (once.NotAccounted, NotReady, RuntimeError, OSError, DatabaseError, priqueue.PriqueueError)


class Command(BaseCommand):
    """Run the demo. Exit code 0: it was asked to stop, or with --once every job is accounted for."""

    help = "Start the shop, two workers, ticker and sweeper, and a server and a database where none is given."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--once", action="store_true", help="run 300 jobs, print the accounts, end")
        parser.add_argument("--port", type=int, help="the shop's port on loopback (default: 8000, or a free one)")

    def handle(self, *args: Any, **options: Any) -> None:
        once_only: bool = options["once"]
        logging.getLogger("priqueue").setLevel(logging.WARNING)  # the services say it in their logs
        try:
            with Interruption() as interruption, closing(services.listen(options["port"])) as listener:
                stages = services.stages(listener)  # first: it refuses a folder that another demo works in
                _prepare()
                screen = Screen(sys.stdout, redraw=not once_only and _can_redraw())
                if not once_only:
                    _greet(screen, listener.getsockname()[1])
                _run(stages, interruption, screen, once_only)
        except EXPECTED as error:
            raise CommandError(f"demo: {error}") from error


def _prepare() -> None:
    datafolder.make(settings.DATA_DIR)
    call_command("migrate", verbosity=0)
    load.make_sample_orders()


def _greet(screen: Screen, port: int) -> None:
    screen.head(f"shop: http://127.0.0.1:{port}/   admin: http://127.0.0.1:{port}/admin/")
    screen.head(f"operator: {operator.NAME}   password: {operator.renew()}")
    screen.head(f"data and logs: {settings.DATA_DIR}   Ctrl-C stops everything")


def _run(stages: services.Stages, interruption: Interruption, screen: Screen, once_only: bool) -> None:
    supervisor = Supervisor(stages, settings.DATA_DIR / "run", {"DATA_DIR": str(settings.DATA_DIR)})
    try:
        supervisor.start(interruption)
        (once if once_only else watch).run(supervisor, interruption, screen)
        screen.say("stopping")
    finally:
        supervisor.stop()
        tidy.forget_namespace()
    screen.say("stopped")


def _can_redraw() -> bool:
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"

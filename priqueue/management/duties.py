"""Duties: how a command runs a long-lived duty until it is told to stop.

SIGTERM and SIGINT stop it in order; a second one at once. A bad configuration or an unfit server is said in one
line before anything is done.
"""

import argparse
import atexit
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from django.core.management.base import CommandError, OutputWrapper

from priqueue import wiring
from priqueue.coordinator import Coordinator
from priqueue.coordinator.connection import check_server
from priqueue.exceptions import ConfigurationError, PriqueueError
from priqueue.loops import Loop
from priqueue.management import figures

_RELOAD_GRACE_S = 10


class Duty(Protocol):
    """What runs until it is stopped."""

    def run(self) -> None:
        """Run until stopped."""

    def stop(self) -> None:
        """End it; safe in a signal handler."""


class LoopedDuty(Duty, Protocol):
    """A duty that runs turn by turn of a loop."""

    loop: Loop


def fit_coordinator(stderr: OutputWrapper) -> Coordinator:
    """Return the coordinator of this project, its server checked. Raises CommandError in one clear line."""
    try:
        coordinator = wiring.coordinator()
        report = check_server(coordinator.client, coordinator.settings)
    except ConfigurationError as error:
        raise CommandError(f"configuration: {error}") from error
    except PriqueueError as error:
        raise CommandError(str(error)) from error
    for warning in report.warnings:
        stderr.write(f"warning: {warning}")
    if report.faults:
        raise CommandError("; ".join(report.faults))
    with contextlib.suppress(PriqueueError):  # a warning, of which the want stops nobody
        for warning in figures.left_behind(wiring.inspector().stats()):
            stderr.write(warning)
    return coordinator


def add_probe_option(parser: argparse.ArgumentParser) -> None:
    """Declare the option for liveness probes."""
    parser.add_argument(
        "--heartbeat-file", type=Path, help="touch this file with every turn: a probe may ask how old it is"
    )


def say(stdout: OutputWrapper, line: str) -> None:
    """Write a line; that nobody reads it is no reason to end."""
    with contextlib.suppress(OSError):
        stdout.write(line)
        stdout.flush()


def keep_running(duty: LoopedDuty, line: str, stdout: OutputWrapper, options: Mapping[str, Any]) -> None:
    """Say in a line what runs, unless told to be silent, and run it until it ends or a signal stops it.

    ``options`` are the command's own: ``verbosity``, and ``heartbeat_file`` as ``add_probe_option`` declares it.
    """
    file: Path | None = options["heartbeat_file"]
    if options["verbosity"]:
        say(stdout, line)
    if file is not None:
        duty.loop.turned = lambda: _touch(file)
    run_until_stopped(duty)


def run_until_stopped(duty: Duty) -> None:
    """Run a duty until it ends or a signal stops it."""
    try:
        if threading.current_thread() is threading.main_thread():
            _run_with_signals(duty)
        else:
            _run_beside_the_main_thread(duty)
    finally:
        _give_up_broken_output()


def _run_with_signals(duty: Duty) -> None:
    stopped = False

    def stop(_number: int, _frame: FrameType | None) -> None:
        nonlocal stopped
        stopped = True
        duty.stop()

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        duty.run()
    finally:
        for number, handler in before.items():
            # Once stopped, the process ends: one more signal now is not to end it with an exit code of its own.
            signal.signal(number, signal.SIG_IGN if stopped else handler)


def _run_beside_the_main_thread(duty: Duty) -> None:
    """Run under the autoreloader, which keeps the main thread and ends the process when code has changed."""
    over = threading.Event()

    def drain() -> None:
        duty.stop()
        over.wait(_RELOAD_GRACE_S)

    atexit.register(drain)
    try:
        duty.run()
    finally:
        over.set()


def _touch(file: Path) -> None:
    with contextlib.suppress(OSError):  # a full disk is for the probe to notice, not a reason to stop working
        file.touch()


def _give_up_broken_output() -> None:
    """Keep the interpreter's last flush from turning an orderly end into an exit code of its own."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

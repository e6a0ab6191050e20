"""Duties: how a command runs a long-lived duty until it is told to stop.

SIGTERM and SIGINT stop it in order; a second one at once. A bad configuration or an unfit server is said in one
line before anything is done.
"""

import signal
from types import FrameType
from typing import Protocol

from django.core.management.base import CommandError, OutputWrapper

from priqueue import wiring
from priqueue.coordinator import Coordinator
from priqueue.coordinator.connection import check_server
from priqueue.exceptions import ConfigurationError, PriqueueError


class Duty(Protocol):
    """What runs until it is stopped."""

    def run(self) -> None:
        """Run until stopped."""

    def stop(self) -> None:
        """End it; safe in a signal handler."""


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
    return coordinator


def run_until_stopped(duty: Duty) -> None:
    """Run a duty until it ends or a signal stops it."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        duty.stop()

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        duty.run()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

"""Sessions: what the commands of people share: who runs it, and every expected fault as one clear line."""

import getpass
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from django.core.management.base import CommandError

from priqueue import callers
from priqueue.exceptions import ConfigurationError, PriqueueError
from priqueue.management.text import visible


@contextmanager
def session() -> Iterator[None]:
    """Let what happens inside be done by ``command:<user of the system>``, and faults be told in one line.

    Raises CommandError for every PriqueueError.
    """
    try:
        with callers.acting_as(f"command:{user()}"):
            yield
    except ConfigurationError as error:
        raise CommandError(f"configuration: {one_line(error)}") from error
    except PriqueueError as error:
        raise CommandError(one_line(error)) from error


def one_line(error: Exception) -> str:
    """Return an error's message in one harmless line."""
    return visible("; ".join(str(error).splitlines()))


def user() -> str:
    """Return the system's name of who runs this, or the number where it has none."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = f"uid-{os.getuid()}"
    return re.sub(r"[^\w.@-]", "_", name)[:100]

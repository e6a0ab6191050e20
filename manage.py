#!/usr/bin/env python
"""The project's commands. ``demo --once`` works in a data folder and under a namespace of its own."""

import os
import secrets
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from django.core.management import execute_from_command_line


@contextmanager
def own_ground(argv: list[str]) -> Iterator[None]:
    """Give ``demo --once`` a folder and a namespace that nobody else uses, and remove the folder after.

    Here, because the settings name both. A run signs its jobs with a key of its own, so it must not meet jobs
    of others on a server that it was given.
    """
    if argv[1:2] != ["demo"] or "--once" not in argv:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="priqueue-demo-") as folder:
        os.environ["DATA_DIR"] = folder
        os.environ["PRIQUEUE_NAMESPACE"] = f"demo-once-{secrets.token_hex(6)}"
        yield


def main() -> None:
    """Run the command that the command line names."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    with own_ground(sys.argv):
        execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()

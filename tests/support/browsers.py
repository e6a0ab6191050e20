"""Browsers: the system's Chromium, where there is one, and how it is started."""

import importlib.util
import os
import shutil

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-first-run",
]  # fmt: skip


def chromium() -> str | None:
    """Return the path of a Chromium: what CHROMIUM names, or the first on the PATH; None where there is none."""
    if importlib.util.find_spec("playwright") is None:
        return None
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)

"""Wiring: the one place that reads Django's settings and makes a coordinator of them.

Everything else is given its settings and its coordinator, or asks here for those of this process.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from django.conf import settings as django_settings
from django.core.signals import setting_changed

from priqueue.conf import Settings
from priqueue.coordinator import Coordinator, Inspector, Outbox
from priqueue.coordinator.connection import connect
from priqueue.coordinator.overview import Overview

_replacement: Coordinator | None = None


@lru_cache(maxsize=1)
def settings() -> Settings:
    """Return the PRIQUEUE setting, parsed. Raises ConfigurationError with every fault in it."""
    secrets = (django_settings.SECRET_KEY, *django_settings.SECRET_KEY_FALLBACKS)
    return Settings.parse(getattr(django_settings, "PRIQUEUE", None), secrets=secrets)


def coordinator() -> Coordinator:
    """Return this process's coordinator for the current settings. Raises ConfigurationError."""
    return _replacement or _coordinator_of(os.getpid())


@lru_cache(maxsize=1)
def _coordinator_of(pid: int) -> Coordinator:
    # By process: a forked child that used its parent's connections would read the parent's replies.
    return Coordinator(connect(settings()), settings())


def inspector() -> Inspector:
    """Return a reader of this process's queue. Raises ConfigurationError."""
    found = coordinator()
    return Inspector(found.client, found.settings, found.clock)


def overview() -> Overview:
    """Return a reader of this process's queue as a whole. Raises ConfigurationError."""
    found = coordinator()
    return Overview(found.client, found.settings, found.clock)


def outbox() -> Outbox:
    """Return what hands on the audit events of this process's queue. Raises ConfigurationError."""
    found = coordinator()
    return Outbox(found.client, found.settings)


@contextmanager
def override(replacement: Coordinator) -> Iterator[Coordinator]:
    """Let every thread get another coordinator inside the block: for tests without a server."""
    global _replacement
    before, _replacement = _replacement, replacement
    try:
        yield replacement
    finally:
        _replacement = before


def _forget(*, setting: str, **_: Any) -> None:
    """Read the settings anew after a test has changed them."""
    if setting in {"PRIQUEUE", "SECRET_KEY", "SECRET_KEY_FALLBACKS"}:
        settings.cache_clear()
        _coordinator_of.cache_clear()


setting_changed.connect(_forget, dispatch_uid="priqueue.wiring")

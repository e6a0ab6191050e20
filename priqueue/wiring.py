"""Wiring: the one place that reads Django's settings and makes a coordinator of them.

Everything else is given its settings and its coordinator, or asks here for those of this process.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import lru_cache
from typing import Any

from django.conf import settings as django_settings
from django.core.signals import setting_changed

from priqueue.conf import Settings
from priqueue.coordinator import Census, Coordinator, Inspector, Outbox
from priqueue.coordinator.connection import connect
from priqueue.coordinator.overview import Overview

#: a call is tried for twice as long, and its last try may begin at the very end of that
_DOOR_TIMEOUT_S = 0.4
_replacement: Coordinator | None = None
_here: ContextVar[Coordinator | None] = ContextVar("priqueue_coordinator", default=None)


@lru_cache(maxsize=1)
def settings() -> Settings:
    """Return the PRIQUEUE setting, parsed. Raises ConfigurationError with every fault in it."""
    secrets = (django_settings.SECRET_KEY, *django_settings.SECRET_KEY_FALLBACKS)
    return Settings.parse(getattr(django_settings, "PRIQUEUE", None), secrets=secrets)


def coordinator() -> Coordinator:
    """Return this process's coordinator for the current settings. Raises ConfigurationError."""
    return _here.get() or _replacement or _coordinator_of(os.getpid())


@lru_cache(maxsize=1)
def _coordinator_of(pid: int) -> Coordinator:
    # By process: a forked child that used its parent's connections would read the parent's replies.
    return Coordinator(connect(settings()), settings())


def door() -> Coordinator:
    """Return the coordinator for whoever waits behind an HTTP request: it gives up within a second and a half."""
    return _replacement or _door_of(os.getpid())


@lru_cache(maxsize=1)
def _door_of(pid: int) -> Coordinator:
    found = coordinator()
    shorter = replace(found.settings, socket_timeout_s=min(found.settings.socket_timeout_s, _DOOR_TIMEOUT_S))
    return Coordinator(found.client, shorter, found.clock)


def door_inspector() -> Inspector:
    """Return a reader with the patience of ``door``."""
    return _inspector_of(door())


@lru_cache(maxsize=1)
def _inspector_of(found: Coordinator) -> Inspector:
    return Inspector(found.client, found.settings, found.clock)


def inspector() -> Inspector:
    """Return a reader of this process's queue. Raises ConfigurationError."""
    found = coordinator()
    return Inspector(found.client, found.settings, found.clock)


def census() -> Census:
    """Return what counts the jobs of this process's queue. Raises ConfigurationError."""
    found = coordinator()
    return Census(found.client, found.settings, found.clock)


def overview() -> Overview:
    """Return a reader of this process's queue as a whole. Raises ConfigurationError."""
    found = coordinator()
    return Overview(found.client, found.settings, found.clock)


def outbox() -> Outbox:
    """Return what hands on the audit events of this process's queue. Raises ConfigurationError."""
    found = coordinator()
    return Outbox(found.client, found.settings)


@contextmanager
def acting_through(chosen: Coordinator) -> Iterator[None]:
    """Let what is done inside the block, and by no other thread, be done by a coordinator that has less patience."""
    reset = _here.set(chosen)
    try:
        yield
    finally:
        _here.reset(reset)


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
        _door_of.cache_clear()
        _inspector_of.cache_clear()


setting_changed.connect(_forget, dispatch_uid="priqueue.wiring")

"""Page: puts what was measured between two marks of a page, with when, where and on what."""

import os
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from redis import Redis

_PACKAGES = ("Django", "redis", "hiredis", "celery", "rq", "dramatiq", "huey")


def about(client: Redis, *, repeats: int, scale: float) -> str:
    """Return a line that says what was measured, on what, and how busy the machine was beside it."""
    versions = [f"{name} {found}" for name in _PACKAGES if (found := _version(name))]
    server = client.info()
    name = f"Valkey {server['valkey_version']}" if "valkey_version" in server else f"Redis {server['redis_version']}"
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {repeats} repeats at scale {scale:g}; load {os.getloadavg()[0]:.1f} at the end "
        f"on {os.cpu_count()} cores; {platform.system()}, Python {sys.version.split()[0]}, "
        f"{name} with {server['mem_allocator']}, {', '.join(versions)}.\n"
    )


def put_into(page: Path, mark: str, text: str) -> None:
    """Replace what stands between ``<!-- mark -->`` and ``<!-- /mark -->``. Raises ValueError without them."""
    begin, end = f"<!-- {mark} -->\n", f"<!-- /{mark} -->"
    before, found, rest = page.read_text().partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"{page} holds no {begin.strip()} … {end}")
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""

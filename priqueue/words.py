"""Words: numbers and times as people read them, the same on pages, on the terminal and in the status line."""

from math import inf

_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86_400
_KIB = 1024
#: a figure that nobody knows, which is not 0
UNKNOWN = "\u2013"


def count(number: int) -> str:
    """Return a whole number with separators: ``9,210``."""
    return f"{number:,}"


def amount(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun: ``1 job``, ``9,210 jobs``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def rate(per_s: float) -> str:
    """Return a rate per second, with a digit behind the point where it is small."""
    return f"{per_s:,.0f}" if per_s >= 10 or per_s == 0 else f"{per_s:.1f}"


def percent(part: float) -> str:
    """Return a part of 1 with one digit behind the point: ``60.0 %``."""
    return f"{part * 100:.1f} %"


def duration(seconds: float) -> str:
    """Return how long, in its two largest units at most: ``0.4 s``, ``3 m 20 s``, ``41 m``, ``2 d 4 h``."""
    if seconds < 10:
        return f"{max(seconds, 0):.1f} s"
    if seconds < _MINUTE_S:
        return f"{seconds:.0f} s"
    if seconds < 10 * _MINUTE_S:
        return _two(seconds, _MINUTE_S, "m", 1, "s")
    if seconds < _HOUR_S:
        return f"{seconds // _MINUTE_S:.0f} m"
    if seconds < _DAY_S:
        return _two(seconds, _HOUR_S, "h", _MINUTE_S, "m")
    return _two(seconds, _DAY_S, "d", _HOUR_S, "h")


def at_most(ms: float | None) -> str:
    """Return the end of a range of times, as histograms count: ``≤ 100 ms``, ``≤ 2.5 s``, ``> 1 h``."""
    if ms is None:
        return UNKNOWN
    if ms == inf:
        return "> 1 h"
    return f"≤ {ms:.0f} ms" if ms < 1000 else f"≤ {duration(ms / 1000)}"


def size(number: int) -> str:
    """Return a number of bytes in its unit: ``412 B``, ``1.5 MiB``."""
    value, units = float(number), ["B", "KiB", "MiB", "GiB", "TiB"]
    while value >= _KIB and len(units) > 1:
        value /= _KIB
        units.pop(0)
    return f"{value:.0f} {units[0]}" if units[0] == "B" or value >= 100 else f"{value:.1f} {units[0]}"


def short_id(job_id: str) -> str:
    """Return the end of an id, by which a list tells jobs apart: their beginnings are their times."""
    return f"…{job_id[-8:]}" if len(job_id) > 8 else job_id


def worker_name(worker_id: str) -> str:
    """Return a worker's id without its random end: ``web1:311``."""
    name, _, end = worker_id.rpartition(":")
    return name or end


def short_error(error: str) -> str:
    """Return the name of an error without the modules it is in."""
    return error.rpartition(".")[2] or error


def _two(seconds: float, large_s: int, large: str, small_s: int, small: str) -> str:
    whole, rest = divmod(int(seconds), large_s)
    return f"{whole} {large} {rest // small_s} {small}" if rest // small_s else f"{whole} {large}"

"""The lane table: redrawn in place on a terminal, one line per change elsewhere."""

from collections import deque
from typing import TextIO

from priqueue.coordinator.stats import LaneStats, Stats

CLEAR = "\x1b[H\x1b[J"
COLUMNS = ("lane", "ready", "delayed", "in flight", "oldest", "picks", "share")
WIDTHS = (-10, 9, 9, 11, 10, 9, 9)
KEPT_LINES = 6
UNKNOWN = "–"  # noqa: RUF001 (not known, or nothing to show: never a zero)


def line(cells: object, widths: tuple[int, ...] = WIDTHS) -> str:
    """Return cells side by side: a negative width aligns left, a positive one right."""
    pairs = zip(cells, widths, strict=True)
    return "".join(f"{cell!s:<{-width}}" if width < 0 else f"{cell!s:>{width}}" for cell, width in pairs).rstrip()


def rows(stats: Stats) -> list[str]:
    """Return the table as lines: a head, a line per lane, and one for dead letters and workers."""
    picks = sum(lane.picks for lane in stats.lanes.values())
    body = [line(_cells(name, lane, picks)) for name, lane in stats.lanes.items()]
    return [line(COLUMNS), *body, f"dead letters {stats.dead}, workers {len(stats.workers)}"]


def _cells(name: str, lane: LaneStats, picks: int) -> tuple[object, ...]:
    oldest = f"{lane.oldest_ready_s:.1f} s" if lane.ready else UNKNOWN
    share = f"{lane.picks / picks:.1%}" if picks else UNKNOWN
    return name, lane.ready, lane.delayed, lane.in_flight, oldest, lane.picks, share


class Screen:
    """Shows the table and the last messages on ``out``."""

    def __init__(self, out: TextIO, *, redraw: bool) -> None:
        self._out, self._redraw = out, redraw
        self._head: list[str] = []
        self._messages: deque[str] = deque(maxlen=KEPT_LINES)
        self._brief = ""

    def say(self, text: str) -> None:
        """Print a line."""
        print(text, file=self._out, flush=True)

    def head(self, text: str) -> None:
        """Say something that stays above the table."""
        self._head.append(text)
        self.say(text)

    def message(self, text: str) -> None:
        """Say that something happened; it stays below the table for a while."""
        self._messages.append(text)
        if not self._redraw:
            self.say(text)

    def show(self, stats: Stats) -> None:
        """Show the lanes."""
        self._draw(rows(stats), summary(stats))

    def show_unknown(self, reason: str) -> None:
        """Show that the lanes are not known, and why."""
        self._draw([f"lanes unknown: {reason}"], f"lanes unknown: {reason}")

    def _draw(self, table: list[str], brief: str) -> None:
        if self._redraw:
            self.say(CLEAR + "\n".join([*self._head, "", *table, "", *self._messages]))
        elif brief != self._brief:
            self.say(brief)
        self._brief = brief


def summary(stats: Stats) -> str:
    """Return the lanes in one line, for logs."""
    lanes = " | ".join(
        f"{name}: ready {lane.ready}, delayed {lane.delayed}, in flight {lane.in_flight}, picks {lane.picks}"
        for name, lane in stats.lanes.items()
    )
    return f"{lanes} | dead {stats.dead}"

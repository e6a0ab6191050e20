"""Figures: what the tests of the fault matrix measured. `make chaos` prints them as a table and writes it to a file."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Figure:
    """One measured value of a row, the bound it is held against, and whether it is within."""

    row: str
    name: str
    value: str
    bound: str
    held: bool

    def sort_key(self) -> tuple[str, int]:
        number = "".join(filter(str.isdigit, self.row))
        return self.row.rstrip("0123456789"), int(number or 0)


@dataclass
class Figures:
    """All figures of a test run, in the order in which they were reported."""

    seed: int
    found: list[Figure] = field(default_factory=list)

    def report(self, row: str, name: str, value: Any, bound: str, held: bool) -> None:
        """Note a figure, then fail the test unless it is within its bound."""
        text = f"{value:.3g}" if isinstance(value, float) else str(value)
        self.found.append(Figure(row, name, text, bound, held))
        assert held, f"{row}: {name} is {text}, and must be {bound}"

    def failed(self, row: str, test: str) -> None:
        """Note a test that failed; one that has said by a figure why needs no second line."""
        if all(figure.held for figure in self.found if figure.row == row):
            self.found.append(Figure(row, test, "failed", "passes", held=False))

    def table(self) -> str:
        """Return the table as Markdown, under a line with date and seed."""
        rows = [
            (figure.row, figure.name, figure.value, figure.bound, "held" if figure.held else "NOT HELD")
            for figure in sorted(self.found, key=Figure.sort_key)
        ]
        lines = [_line(("row", "figure", "value", "bound", "held")), _line(["---"] * 5), *map(_line, rows)]
        return f"Run of {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, seed {self.seed}.\n\n" + "\n".join(lines) + "\n"

    def write(self, path: Path) -> None:
        """Write the table to a file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.table())


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

"""The benchmark runs, small, and says everything that its table is to say."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks import page
from tests.benchmarks.table import ROWS, render

ROOT = Path(__file__).parents[2]
LIMITS = {row.limit: [1000.0] for row in ROWS if row.limit}


def bench(module: str, *options: str) -> str:
    """Run a benchmark and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", module, "--scale", "0.001", "--repeats", "1", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def cells(table: str) -> dict[str, list[str]]:
    """Return the cells of each line by its first."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line[:1] == "|"]
    return {line[0]: line[1:] for line in lines}


def test_every_row_of_the_table_has_a_figure_of_ours_and_the_page_gets_what_was_printed(tmp_path: Path) -> None:
    target = tmp_path / "page.md"
    target.write_text("before\n<!-- table -->\nold\n<!-- /table -->\nafter\n")

    printed = bench("tests.benchmarks", "--into", str(target))

    found = cells(printed)
    assert [title for title in found if title not in ("", "---")] == [row.title for row in ROWS]
    for row in ROWS:
        unit, ours, limit, ratio = found[row.title]
        assert unit == row.unit
        assert re.match(r"[\d,.e-]+ \(", ours), row.title
        assert (limit != "-", ratio != "-") == (bool(row.limit), bool(row.limit))
    assert target.read_text() == f"before\n<!-- table -->\n\n{printed}\n<!-- /table -->\nafter\n"


def test_a_page_without_the_marks_is_refused_as_it_is(tmp_path: Path) -> None:
    target = tmp_path / "page.md"
    target.write_text("nothing\n")

    with pytest.raises(ValueError, match="holds no <!-- table -->"):
        page.put_into(target, "table", "figures")
    assert target.read_text() == "nothing\n"


def test_the_ratio_is_to_the_best_peer_of_each_row_and_never_to_one_that_runs_jobs_early() -> None:
    ours = {row.key: [3.0, 1.0, 2.0] for row in ROWS}
    peers = {"One": {"enqueue": [1.0], "lateness p50": [-5.0]}, "Two": {"enqueue": [4.0], "lateness p50": [8.0]}}

    found = cells(render(ours, LIMITS, peers))

    assert found["enqueue, one at a time"] == [
        "jobs/s",
        "2 (1 to 3)",
        "1,000 (1,000 to 1,000), one call a job",
        "0.00",
        "0.50 (Two)",
        "1 (1 to 1)",
        "4 (4 to 4)",
    ]
    assert found["lateness of delayed jobs, p50"][4] == "0.25 (Two)"
    assert found["round trips of an idle worker"][4:] == ["-", "-", "-"]

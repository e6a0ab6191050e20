"""SECURITY.md: each line of defence names the test that holds it, and that test is there."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "SECURITY.md").read_text()
LINES = re.findall(r"^\| (.+) \| `(tests/[\w/]+\.py)::(\w+)` \|$", PAGE, re.MULTILINE)


def test_every_line_of_defence_names_a_test() -> None:
    table = PAGE.partition("| line | test |")[2]
    rows = [line for line in table.splitlines() if line.startswith("| ")]

    assert len(rows) == len(LINES) > 25


@pytest.mark.parametrize(("line", "file", "test"), LINES, ids=[test for _, _, test in LINES])
def test_the_test_is_there(line: str, file: str, test: str) -> None:
    found = ast.parse((ROOT / file).read_text()).body

    assert test in {node.name for node in found if isinstance(node, ast.FunctionDef)}


def test_it_says_how_to_report() -> None:
    assert "## How to report" in PAGE

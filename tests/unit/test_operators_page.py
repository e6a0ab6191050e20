"""What docs/operators.md says is held against the code."""

import re

from priqueue.health import Level
from priqueue.views.visit import PERMISSIONS
from tests.support.pages import ROOT

PAGE = (ROOT / "docs" / "operators.md").read_text()
_STATIC = ROOT / "priqueue" / "static" / "priqueue"


def test_its_permissions_are_those_of_the_pages() -> None:
    told = re.findall(r"^\| `priqueue\.(\w+)` \|", PAGE, re.MULTILINE)

    assert sorted(told) == sorted(PERMISSIONS)


def test_its_words_are_those_of_the_status_line() -> None:
    told = re.findall(r"^\| (\w+) \| . \|", PAGE, re.MULTILINE)

    assert told == [str(level) for level in Level]


def test_the_charts_library_is_of_the_version_and_licence_that_it_says() -> None:
    version = re.search(r"uPlot ([\d.]+),", PAGE)[1]

    assert f"uPlot (v{version})" in (_STATIC / "uPlot.iife.min.js").read_text()[:200]
    assert "MIT License" in (_STATIC / "uPlot.LICENSE.txt").read_text()

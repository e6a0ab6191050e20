"""docs/settings.md is held against the code: every setting with its default, every inner name, every code."""

import ast
import inspect
import re
from dataclasses import fields
from pathlib import Path

import pytest

from priqueue import checks
from priqueue.conf import Sentinel, Settings, Slo, Tls

PAGE = (Path(__file__).parents[2] / "docs" / "settings.md").read_text()
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| `")]
SETTINGS = {cells[0].strip("`"): cells[2] for cells in ROWS if re.fullmatch(r"`[A-Z_]+`", cells[0])}
SLO = {cells[0].strip("`"): cells[1] for cells in ROWS if re.fullmatch(r"`[a-z_]+`", cells[0])}
WORDS = {"none": None, "derived": (), "see below": Slo()}


def default_of(text):
    return WORDS[text] if text in WORDS else ast.literal_eval(text.strip("`"))


def test_the_page_names_every_setting_and_no_other():
    assert SETTINGS.keys() == {option.name.upper() for option in fields(Settings)}


@pytest.mark.parametrize("name", sorted(SETTINGS.keys() - {"URL"}))
def test_the_page_gives_the_default_of(name):
    expected = getattr(Settings(url="redis://localhost"), name.lower())
    told = default_of(SETTINGS[name])

    if name == "LANES":
        expected = {lane.name: lane.weight for lane in expected}
    if name == "TLS":
        expected = {} if expected == Tls() else expected
    if name == "AUDIT_REDACT":
        expected = list(expected)
    assert told == expected


def test_the_page_says_that_the_url_is_required():
    assert SETTINGS["URL"] == "required"


def test_the_page_names_every_line_of_the_slo_with_its_default():
    assert {name: default_of(text) for name, text in SLO.items()} == {
        option.name: getattr(Slo(), option.name) for option in fields(Slo)
    }


@pytest.mark.parametrize(("heading", "kind"), [("TLS", Tls), ("SENTINEL", Sentinel)])
def test_the_page_names_every_option_of(heading, kind):
    (paragraph,) = (part for part in PAGE.split("\n\n") if part.startswith(f"**{heading}**"))

    assert {option.name for option in fields(kind)} <= set(re.findall(r"`(\w+)`", paragraph))


def test_the_page_lists_every_code_that_a_check_can_give():
    in_code = set(re.findall(r'"(priqueue\.[EW]\d{3})"', inspect.getsource(checks)))
    on_page = set(re.findall(r"^\| `(priqueue\.[EW]\d{3})`", PAGE, re.MULTILINE))

    assert on_page == in_code

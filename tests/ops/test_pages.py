"""docs/ops and docs/runbooks are held to the code: alerts to pages, queries to the catalogue, commands to options."""

import re
from itertools import chain

import pytest
from django.core.management import load_command_class

from priqueue.metrics.catalogue import METRICS, UP
from tests.ops.files import ALERTS, DASHBOARD, OPS, PAGES, RECORDS, RULES, names_in, panels, queries

SERIES = {name for metric in METRICS for name in metric.series} | {UP}
HEADS = [
    "What it means to users", "How to confirm", "Likely causes, in order", "What to do", "What not to do",
]  # fmt: skip
TEXTS = {**PAGES, "README": (OPS / "README.md").read_text()}
#: what looks like a metric in a text and is none
OTHERS = {"priqueue_auditevent", *(metric.name for metric in METRICS if metric.kind == "histogram")}


def test_every_alert_has_its_page_and_every_page_its_alert() -> None:
    assert PAGES.keys() == ALERTS.keys()


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_says_how_bad_it_is_what_it_is_and_where_to_read_on(name: str) -> None:
    rule = ALERTS[name]

    assert rule["labels"]["severity"] in ("critical", "warning")
    assert rule["annotations"]["summary"].endswith(".")
    assert rule["annotations"]["runbook_url"] == f"docs/runbooks/{name}.md"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_answers_the_five_questions_in_their_order(name: str) -> None:
    assert PAGES[name].startswith(f"# {name}\n")
    assert re.findall("^## (.*)$", PAGES[name], re.MULTILINE) == HEADS


@pytest.mark.parametrize("name", PAGES)
def test_a_page_names_a_command_and_an_admin_page_that_confirm_it(name: str) -> None:
    confirm = PAGES[name].split("## How to confirm")[1].split("## ")[0]

    assert re.search(r"```sh\n.+\n```", confirm, re.DOTALL)
    assert re.search(r"\*\*Priqueue \W\s", confirm)


@pytest.mark.parametrize(
    ("page", "command", "options"),
    [
        (page, *found)
        for page, text in TEXTS.items()
        for found in re.findall(r"manage\.py ([a-z]+)((?: +(?:--[a-z-]+|[^\s`-][^\s`]*))*)", text)
        if found[0] != "check"
    ],
)
def test_every_command_in_a_page_exists_with_its_options(page: str, command: str, options: str) -> None:
    parser = load_command_class("priqueue", command).create_parser("manage.py", command)
    subparsers = [action.choices for action in parser._actions if isinstance(action.choices, dict)]
    known = {option for action in parser._actions for option in action.option_strings}
    for sub in chain.from_iterable(choices.values() for choices in subparsers):
        known |= {option for action in sub._actions for option in action.option_strings}

    assert set(re.findall(r"--[a-z-]+", options)) <= known


@pytest.mark.parametrize("name", TEXTS)
def test_every_metric_in_a_page_exists(name: str) -> None:
    assert names_in(TEXTS[name]) - OTHERS <= SERIES | RECORDS.keys()


def test_every_metric_in_a_query_exists() -> None:
    assert set().union(*map(names_in, queries())) <= SERIES | RECORDS.keys()


def test_every_record_has_a_reader() -> None:
    read = set().union(*map(names_in, queries()), *map(names_in, TEXTS.values()))

    assert RECORDS.keys() <= read


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_every_metric_has_a_consumer(metric) -> None:
    read = set().union(*map(names_in, queries()), *map(names_in, TEXTS.values()))

    assert read & {*metric.series}


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_names_and_units_are_those_of_prometheus(metric) -> None:
    assert re.fullmatch(r"priqueue_[a-z]+(_[a-z]+)*", metric.name)
    assert not metric.name.endswith(("_total", "_count", "_sum", "_bucket", "_ms"))
    assert metric.kind != "histogram" or metric.name.endswith("_seconds")
    assert metric.help.endswith(".")


def test_the_dashboard_begins_with_the_three_signals_each_with_its_objective_and_the_share_beside_them() -> None:
    first = panels()[:4]

    assert [panel["title"] for panel in first] == ["Throughput", "Error rate", "Utilisation", "Realised share"]
    assert all(any("priqueue_slo_" in target["expr"] for target in panel["targets"]) for panel in first[:3])
    assert {panel["gridPos"]["y"] for panel in first} == {0}
    rows = [panel["title"] for panel in DASHBOARD["panels"] if panel["type"] == "row"]
    assert rows == ["Lanes", "Waits", "Errors", "Workers", "Audit, server and callers"]


def test_the_panels_of_the_dashboard_have_ids_of_their_own_and_do_not_overlap() -> None:
    everything = DASHBOARD["panels"]
    cells = [
        (x, y)
        for panel in everything
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]

    assert len({panel["id"] for panel in everything}) == len(everything)
    assert len(set(cells)) == len(cells)


def test_nobody_sums_over_instances_of_which_each_tells_the_whole() -> None:
    """Each web process exposes the same figures: a plain sum would count them as often as there are processes."""
    text = RULES.read_text()

    assert not re.search(r"sum by \([a-z, ]+\) \((?:rate|increase)?\(?priqueue_", text)

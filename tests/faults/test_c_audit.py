"""Rows C1 to C8: PostgreSQL down, slow and cut off; auditors killed; the log edited by force; enqueue and commits.

The queue counts what it does in the same script that writes the event, and the stream counts what was ever added to it:
both are held against the rows, which are unique by the stream's own ids.
"""

import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import connections, transaction

import priqueue
from priqueue import wiring
from priqueue.audit.store import Held, store
from priqueue.audit.verify import verify
from priqueue.coordinator import Batch
from priqueue.jobs import Job
from tests.faults.checker import drain, percentile, produce
from tests.faults.fleet import let_pass
from tests.support.auditing import batch, by_force, entry, rows
from tests.support.databases import ALIAS, Postgres, migrate, placed, sqlite
from tests.support.processes import ROOT, Live
from tests.support.queues import Queue
from tests.support.waiting import until

long_and_short = pytest.mark.parametrize(
    "size", ["short", pytest.param("long", marks=[pytest.mark.chaos, pytest.mark.timeout(900)])]
)
_COUNTED = {
    "enqueue": "enqueued", "promote": "promoted", "claim": "picks", "ack": "acked", "retry": "retried",
    "bury": "buried", "requeue": "requeued", "purge": "purged", "cancel": "cancelled", "release": "released",
}  # fmt: skip


@pytest.fixture
def audited_live(live: Live, audit_postgres: Postgres) -> Live:
    """A queue whose sweepers store audit events on PostgreSQL."""
    live.keeps_audit_log(audit_postgres.settings(connections[ALIAS].settings_dict["NAME"]))
    return live


def written(live: Live) -> int:
    """Return how many events were ever added to the stream."""
    return int(live.raw.xinfo_stream(live.coordinator.keys.audit)["entries-added"])


def let_auditor_finish(live: Live, timeout_s: float = 60) -> None:
    """Wait until no event is left in the queue."""
    live.until(lambda: live.raw.xlen(live.coordinator.keys.audit) == 0, timeout_s)


def counted(live: Live) -> dict[str, int]:
    """Return how often each transition was made, by the queue's own totals."""
    totals: Counter[str] = Counter()
    for field, number in live.raw.hgetall(live.coordinator.keys.counters).items():
        totals[field.partition(":")[0]] += int(number)
    return {action: totals[event] for action, event in _COUNTED.items()}


def faults(live: Live) -> dict[str, object]:
    """Return what is wrong with the rows of a queue at rest; nothing when each transition is there once, in order."""
    kept = rows()
    # A job that a crash or a lost worker buried has no second event for that.
    actions = Counter(row.action for row in kept) | Counter(bury=sum(row.outcome == "dead" for row in kept))
    places = [tuple(map(int, row.stream_id.split("-"))) for row in kept]
    found = {
        "missing": written(live) - len(kept),
        "out of order": places != sorted(places),
        "not as counted": {
            name: (actions[name], number) for name, number in counted(live).items() if actions[name] != number
        },
        "marked": [row.mark for row in kept if row.mark],
        "broken": verify(ALIAS).broken,
    }
    return {name: value for name, value in found.items() if value}


@contextmanager
def load(live: Live, every_s: float = 0.02) -> Iterator[list[float]]:
    """Enqueue jobs all the time; the list holds the seconds that each call took."""
    over, took = threading.Event(), []

    def enqueue() -> None:
        while not over.wait(every_s):
            began_s = time.monotonic()
            produce(live, "tests.shop.jobs.work")
            took.append(time.monotonic() - began_s)

    thread = threading.Thread(target=enqueue)
    thread.start()
    try:
        yield took
    finally:
        over.set()
        thread.join()


@long_and_short
def test_c1_postgres_down_loses_and_doubles_no_row_and_delays_no_job(
    audited_live: Live, audit_postgres: Postgres, figure: Callable[..., None], size: str
) -> None:
    live = audited_live
    live.start("runsweeper")
    live.start_worker()
    with load(live) as took:
        live.until(lambda: took and rows())
        audit_postgres.stop()
        acked = counted(live)["ack"]
        let_pass(live, 20 if size == "long" else 3)
        ready = sum(live.raw.llen(live.coordinator.keys.lane(lane)) for lane in live.settings.lane_names)
        meanwhile, peak = counted(live)["ack"] - acked, live.raw.xlen(live.coordinator.keys.audit)
        audit_postgres.start()
        connections[ALIAS].close()
    drain(live)
    let_auditor_finish(live)

    figure("C1", "jobs done while PostgreSQL was down", meanwhile, "> 0, none waits", meanwhile > 0 and ready < 20)
    figure("C1", "events in the buffer at the peak", peak, "> 0, bounded by the memory limit", peak > 0)
    figure("C1", "rows missing, doubled or out of order", faults(live) or 0, "0", not faults(live))


@long_and_short
def test_c2_a_locked_table_slows_no_claim_and_the_wait_for_it_is_bounded(
    audited_live: Live, audit_postgres: Postgres, figure: Callable[..., None], size: str
) -> None:
    live = audited_live
    auditor = live.start("runauditor")
    live.start_worker()
    with load(live) as took:
        live.until(lambda: len(took) > 100)
        free = percentile(took[-100:], 0.99)
        took.clear()
        with audit_postgres.connect(connections[ALIAS].settings_dict["NAME"]) as owner, owner.transaction():
            owner.execute("LOCK TABLE priqueue_auditevent IN ACCESS EXCLUSIVE MODE")
            live.until(lambda: "lock timeout" in live.log(auditor))
            let_pass(live, 30 if size == "long" else 1)
            locked = percentile(took, 0.99)
    drain(live)
    let_auditor_finish(live)

    figure(
        "C2",
        "enqueue p99 while the table is locked, ms",
        locked * 1000,
        f"<= 5 x {free * 1000:.1f} + 20",
        locked <= 5 * free + 0.02,
    )
    figure("C2", "rows missing, doubled or out of order", faults(live) or 0, "0", not faults(live))


@long_and_short
def test_c3_connections_that_are_killed_all_the_time_lose_and_double_no_row(
    audited_live: Live, audit_postgres: Postgres, figure: Callable[..., None], size: str
) -> None:
    live = audited_live
    live.start("runauditor")
    live.start("runauditor")
    live.start_worker()
    name = connections[ALIAS].settings_dict["NAME"]
    connections[ALIAS].close()
    killed = 0
    with load(live, 0.005) as took, audit_postgres.connect() as owner:
        live.until(lambda: took)
        for _ in range(100 if size == "long" else 15):
            let_pass(live, 0.2)
            found = owner.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
            killed += len(found.fetchall())
    drain(live)
    let_auditor_finish(live)

    figure("C3", "connections killed", killed, "> 0", killed > 0)
    figure("C3", "rows missing, doubled or out of order", faults(live) or 0, "0", not faults(live))


@long_and_short
def test_c4_auditors_that_are_killed_at_random_leave_no_hole(
    audited_live: Live, chance: random.Random, figure: Callable[..., None], size: str
) -> None:
    live = audited_live
    standing_by = live.start("runauditor")
    live.start_worker()
    kills = 0
    with load(live, 0.002):
        for _ in range(60 if size == "long" else 4):
            auditor = live.start("runauditor")
            before = len(rows())
            live.until(lambda before=before: len(rows()) > before)
            let_pass(live, chance.uniform(0, 0.3))
            for process in (standing_by, auditor)[: chance.choice((1, 2))]:
                process.send_signal(signal.SIGKILL)
                process.wait()
                kills += 1
            standing_by = auditor
    live.start("runauditor")
    drain(live)
    let_auditor_finish(live)

    figure("C4", f"holes after {kills} kills", faults(live) or 0, "0", not faults(live))


def test_c5_every_edit_by_force_is_found(audit_postgres: Postgres, figure: Callable[..., None]) -> None:
    store(ALIAS, "n", batch(*range(1, 11)))
    table = "priqueue_auditevent"
    edits = [
        *(f"UPDATE {table} SET reason = 'x' WHERE id = {row_id}" for row_id in (1, 5, 10)),
        *(f"DELETE FROM {table} WHERE id = {row_id}" for row_id in (1, 5, 9)),
        f"UPDATE {table} SET id = 24 - id WHERE id IN (4, 8) OR id > 12",
        f"UPDATE {table} SET stored_ms = 0 WHERE id = 5",
        f"UPDATE {table} SET hash = previous WHERE id = 5",
    ]
    found = 0
    for edit in edits:
        with transaction.atomic(using=ALIAS):
            by_force(edit)
            found += verify(ALIAS).broken is not None
            transaction.set_rollback(True, using=ALIAS)

    figure("C5", "edits by the owner found", f"{found} of {len(edits)}", "all", found == len(edits))


@long_and_short
def test_c6_many_writers_make_one_chain(audit_postgres: Postgres, figure: Callable[..., None], size: str) -> None:
    number = 5000 if size == "long" else 300
    errors: list[Exception] = []

    def write(writer: int) -> None:
        try:
            for start in range(0, number, 100):
                part = Batch("e", [entry(n) for n in range(start, min(start + 100, number))])
                until(lambda part=part: _stored(f"n{writer}", part), 300)
        except Exception as error:
            errors.append(error)
        finally:
            connections[ALIAS].close()

    threads = [threading.Thread(target=write, args=[writer]) for writer in range(8)]
    began_s = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took_s = time.monotonic() - began_s

    report = verify(ALIAS)
    assert errors == []
    figure(
        "C6",
        "rows in one unbroken chain",
        report.checked,
        str(8 * number),
        report.checked == 8 * number and not report.broken,
    )
    figure("C6", "rows per second by 8 writers", 8 * number / took_s, "no bound", held=True)


def _stored(namespace: str, part: Batch) -> bool:
    try:
        store(ALIAS, namespace, part)
    except Held:
        return False
    return True


@pytest.mark.parametrize(("commits", "events"), [(True, 1), (False, 0)])
def test_c7_what_was_rolled_back_leaves_no_event(
    real_queue: Queue, audit_postgres: Postgres, commits: bool, events: int
) -> None:
    with wiring.override(real_queue.coordinator), transaction.atomic(using=ALIAS):
        priqueue.enqueue("tests.shop.jobs.note", {}, database=ALIAS)
        transaction.set_rollback(not commits, using=ALIAS)

    assert [action for action, _, _ in real_queue.events()] == ["enqueue"] * events


def test_c8_a_process_that_dies_between_commit_and_push_loses_that_one_job(
    live: Live, figure: Callable[..., None], tmp_path: Path
) -> None:
    script = (
        "import os, django; django.setup()\n"
        "from django.db import transaction\n"
        "import priqueue\n"
        "priqueue.enqueue('tests.shop.jobs.note', {})\n"
        "with transaction.atomic():\n"
        "    transaction.on_commit(lambda: os._exit(9))\n"
        "    priqueue.enqueue('tests.shop.jobs.note', {})\n"
    )
    code = subprocess.run([sys.executable, "-c", script], env=live.environ(), cwd=ROOT, check=False).returncode

    accepted = live.raw.hlen(live.coordinator.keys.jobs)
    figure("C8", "jobs lost by a death between commit and push", 2 - accepted, "1", (code, accepted) == (9, 1))
    assert written(live) == 1


@long_and_short
def test_the_rows_are_the_transitions_one_for_one_after_failures_crashes_and_operators(
    audited_live: Live, figure: Callable[..., None], size: str
) -> None:
    live, number = audited_live, 5000 if size == "long" else 300
    for command in ("runsweeper", "runticker"):
        live.start(command)
    workers = [live.start_worker("--concurrency", "4") for _ in range(2)]
    jobs = produce(live, "tests.shop.jobs.work", number)
    live.enqueue("fail", number // 20)
    live.enqueue("work", number // 20, delay_ms=300)
    live.enqueue("die", 2, payload={"how": "exit"})
    cancelled = Job(name="tests.shop.jobs.work", payload={}, lane="low", delay_ms=60_000)
    live.coordinator.enqueue(cancelled)
    live.until(lambda: counted(live)["ack"] > number // 4, 120)
    workers[0].send_signal(signal.SIGKILL)
    live.start_worker()
    live.coordinator.pause("default", caller="user:1", reason="a look")
    live.coordinator.resume("default", caller="user:1", reason="seen")
    live.coordinator.cancel(cancelled.id, lane="low", caller="command:ops", reason="no")
    drain(live, 300)
    dead = live.raw.hkeys(live.coordinator.keys.letters)
    live.coordinator.purge(dead[:3], caller="user:2", reason="known")
    live.coordinator.requeue(dead[3:5], caller="user:2", reason="again")
    drain(live, 60)
    let_auditor_finish(live)

    assert len(jobs) == number
    figure(
        "C1",
        f"rows that are no transition, or the reverse, of {written(live)}",
        faults(live) or 0,
        "0",
        not faults(live),
    )
    assert {row.caller for row in rows() if row.action in ("pause", "resume", "cancel", "purge", "requeue")} == {
        "user:1", "user:2", "command:ops",
    }  # fmt: skip


def test_the_demos_way_a_sweeper_beside_a_worker_on_sqlite_stores_all(
    live: Live, tmp_path: Path, django_db_blocker
) -> None:
    database = sqlite(tmp_path)
    live.keeps_audit_log(database)
    with placed(database), django_db_blocker.unblock():
        migrate()
        live.start("runsweeper")
        live.start_worker()
        produce(live, "tests.shop.jobs.work", 50)
        drain(live)
        let_auditor_finish(live)

        assert faults(live) == {}

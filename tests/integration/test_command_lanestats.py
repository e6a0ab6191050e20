"""lanestats: the queue in figures, once or each second."""

import json
import signal
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from redis import Redis

from priqueue import wiring
from priqueue.coordinator import Coordinator
from priqueue.jobs import Failure
from tests.support.queues import Queue, test_settings


@pytest.fixture(autouse=True)
def configured(queue: Queue) -> Iterator[None]:
    with wiring.override(queue.coordinator):
        yield


class Screen(StringIO):
    """A terminal, or with ``terminal=False`` a file, at which somebody presses Ctrl-C after ``number`` screens."""

    def __init__(self, number: int, press: int = signal.SIGINT, *, terminal: bool = True) -> None:
        super().__init__()
        self.left, self.press, self.terminal = number, press, terminal

    def isatty(self) -> bool:
        return self.terminal

    def write(self, text: str) -> int:
        written = super().write(text)
        if "queue" in text:
            self.left -= 1
            if self.left == 0:
                signal.raise_signal(self.press)
        return written


def lanestats(*options: str, out: StringIO | None = None) -> str:
    out = out or StringIO()
    call_command("lanestats", *options, stdout=out)
    return out.getvalue()


def busy(queue: Queue) -> None:
    """Give every figure a value of its own."""
    for lane, number in (("high", 12), ("default", 6), ("low", 2)):
        queue.enqueue(number=number, lane=lane, delay_ms=1000)
    queue.enqueue(number=2, lane="low", delay_ms=60_000)
    queue.clock.advance(1)
    queue.coordinator.promote()
    queue.register("host:1:a", concurrency=10)
    queue.register("host:2:b", lanes=["high"], concurrency=4)
    claims = queue.coordinator.pull("host:1:a", 10)
    queue.coordinator.ack(claims[0])
    queue.coordinator.retry(claims[1], Failure(error="E"), delay_s=60)
    queue.coordinator.bury(claims[2], Failure(error="E"))
    queue.clock.advance(6)
    queue.coordinator.beat("host:1:a", claims[3:])
    queue.coordinator.pause("low", caller="user:4", reason="the bank is \x1b[31mdown", lasts_s=60)


BUSY = """\
queue {namespace} at redis://127.0.0.1:1/0
Trouble: the sweeper has never run, so jobs of a lost worker stay lost
Attention: low is paused by user:4, 1 m left
Attention: the oldest job in high has waited 6.0 s, SLO 1.0 s
Attention: the auditor has never run, 58 audit events wait
Attention: 1 dead letter in 10 min, all E

lane     weight  share  ready  delayed  in flight  oldest  enqueued  acked  retried  buried  reclaimed
high          6  60.0%      6        1          3  6.0 s         12      1        1       1          0
default       3  30.0%      3        0          3  6.0 s          6      0        0       0          0
low           1  10.0%      1        2          1  6.0 s          4      0        0       0          0
low is paused by user:4 since 2027-01-15 08:00:07 UTC until 2027-01-15 08:01:07 UTC: the bank is \\x1b[31mdown

dead letters: 1

worker    slots  last beat  state  lanes
host:1:a  7/10   0.0 s ago  alive  high,default,low
host:2:b  0/4    6.0 s ago  late   high
"""
IDLE = """\
queue {namespace} at redis://127.0.0.1:1/0
Attention: the ticker has never run
Attention: the sweeper has never run

lane     weight  share  ready  delayed  in flight  oldest  enqueued  acked  retried  buried  reclaimed
high          6  -          0        0          0  -              0      0        0       0          0
default       3  -          0        0          0  -              0      0        0       0          0
low           1  -          0        0          0  -              0      0        0       0          0

dead letters: 0

no workers
"""


def test_a_busy_queue_is_shown_in_a_table(queue: Queue) -> None:
    busy(queue)

    assert lanestats() == BUSY.format(namespace=queue.settings.namespace)


def test_an_idle_queue_is_shown_in_a_table(queue: Queue) -> None:
    assert lanestats() == IDLE.format(namespace=queue.settings.namespace)


def test_everything_comes_as_one_json_document(queue: Queue) -> None:
    busy(queue)

    found = json.loads(lanestats("--json"))

    assert found["namespace"] == queue.settings.namespace
    assert list(found["lanes"]) == ["high", "default", "low"]
    measured = {measure: found["lanes"]["low"].pop(measure) for measure in ("wait", "lateness", "run")}
    assert found["lanes"]["low"] == {
        "weight": 1, "ready": 1, "delayed": 2, "in_flight": 1, "oldest_ready_s": 6.0,
        "paused": {
            "caller": "user:4", "reason": "the bank is \x1b[31mdown",
            "since": "2027-01-15T08:00:07+00:00", "until": "2027-01-15T08:01:07+00:00",
        },
        "enqueued": 4, "promoted": 2, "picks": 1, "picks_full": 1, "acked": 0, "retried": 0, "buried": 0,
        "crashed": 0, "released": 0, "reclaimed": 0, "cancelled": 0, "requeued": 0, "purged": 0, "bad_signatures": 0,
        "failed_pushes": 0, "ghosts": 0, "foreign": 0, "share": 0.1,
    }  # fmt: skip
    assert measured["wait"] == measured["lateness"]
    assert {name: value for name, value in measured["wait"].items() if name != "le_ms"} == {
        "count": 1, "sum_ms": 0, "p50_ms": 5, "p95_ms": 5,
    }  # fmt: skip
    assert measured["wait"]["le_ms"]["5"] == 1
    assert measured["run"]["count"] == 0
    assert [worker["state"] for worker in found["workers"]] == ["alive", "late"]
    assert (found["dead"], found["left_behind"]) == (1, {})
    assert found["health"]["level"] == "Trouble"
    assert found["health"]["findings"][1] == {
        "level": "Attention", "text": "low is paused by user:4, 1 m left", "about": "lane:low",
        "caller": "user:4",
    }  # fmt: skip
    assert (found["slots"], found["capacity"], found["utilisation"]) == (7, 14, 0.5)
    assert (found["audit_backlog"], found["late_beats"], found["refused"]) == (len(queue.events()), 0, {})
    assert found["last_turn_s"] == {"ticker": 6.0, "sweeper": None, "auditor": None}


@pytest.mark.parametrize(("silent_s", "state"), [(5, "alive"), (5.1, "late"), (10, "late"), (10.1, "gone")])
def test_a_worker_is_late_after_one_beat_and_gone_after_two(queue: Queue, silent_s: float, state: str) -> None:
    queue.register()
    queue.clock.advance(silent_s)

    (worker,) = json.loads(lanestats("--json"))["workers"]

    assert worker["state"] == state


def test_a_worker_that_drains_is_said_to(queue: Queue) -> None:
    queue.register()
    queue.coordinator.drain("worker", caller="user:1")

    assert "draining" in lanestats()


def test_a_lane_that_was_left_behind_with_jobs_is_warned_of(queue: Queue) -> None:
    before = Queue(queue.client, test_settings(NAMESPACE=queue.settings.namespace, LANES={"old": 1}))
    before.enqueue(number=3, lane="old")

    shown = lanestats()

    assert shown.endswith(
        "no workers\n\nwarning: lane old left the configuration with 3 jobs in it: no worker takes them\n"
    )
    assert json.loads(lanestats("--json"))["left_behind"] == {"old": 3}


def test_watching_redraws_a_screen_of_its_own_and_leaves_the_terminal_as_it_was(queue: Queue) -> None:
    screen = Screen(2)

    lanestats("--watch", out=screen)

    drawn = "".join(f"{line}\x1b[K\n" for line in IDLE.format(namespace=queue.settings.namespace).splitlines())
    once = f"\x1b[H{drawn}\x1b[J"
    assert screen.getvalue() == f"\x1b[?1049h\x1b[?25l{once}{once}\x1b[?25h\x1b[?1049l"


def test_watching_prints_block_after_block_where_there_is_no_terminal(queue: Queue) -> None:
    screen = Screen(2, signal.SIGTERM, terminal=False)

    lanestats("--watch", out=screen)

    assert screen.getvalue() == 2 * (IDLE.format(namespace=queue.settings.namespace) + "\n")


def test_watching_puts_the_signal_handlers_back(queue: Queue) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]

    lanestats("--watch", out=Screen(1))

    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_watching_ends_when_nobody_reads_any_more() -> None:
    class Closed(StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    lanestats("--watch", out=Closed())


def away() -> Coordinator:
    """Return a coordinator whose server is not there."""
    return Coordinator(Redis(port=1), test_settings())


def test_watching_goes_on_while_the_queue_is_away() -> None:
    screen = Screen(2, terminal=False)

    with wiring.override(away()):
        lanestats("--watch", out=screen)

    first, second = screen.getvalue().split("\n\n")[:2]
    assert first == second
    assert first.startswith("the queue did not answer")
    assert first.endswith("asked again each second")


def test_a_queue_that_is_away_is_one_clear_line() -> None:
    with wiring.override(away()), pytest.raises(CommandError) as caught:
        lanestats()

    assert str(caught.value).startswith("the queue did not answer")
    assert "\n" not in str(caught.value)


def test_a_bad_configuration_is_one_clear_line(settings: Any) -> None:
    settings.PRIQUEUE = {"URL": "redis://127.0.0.1:1/0", "LANSE": {}, "CONCURRENCY": 0}

    with wiring.override(None), pytest.raises(CommandError) as caught:  # type: ignore[arg-type]
        lanestats()

    assert str(caught.value).startswith("configuration: ")
    assert "LANSE" in str(caught.value)
    assert "CONCURRENCY" in str(caught.value)
    assert "\n" not in str(caught.value)

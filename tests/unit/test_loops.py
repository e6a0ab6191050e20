"""The loop that every duty shares."""

import threading

import pytest

from priqueue import events
from priqueue.loops import Loop, backoff_s
from tests.support.waiting import until


def test_a_loop_runs_again_at_once_when_there_is_more_to_do() -> None:
    waits = [0.0, 0.0, 0.0]
    loop = Loop("test", lambda: waits.pop() if waits else loop.stop() or 0.0)

    loop.run()

    assert waits == []


def test_a_waiting_loop_stops_at_once() -> None:
    loop = Loop("test", lambda: 60)
    thread = loop.start()

    loop.stop()
    thread.join(2)

    assert not thread.is_alive()


def test_a_waiting_loop_can_be_woken() -> None:
    turns: list[int] = []
    loop = Loop("test", lambda: turns.append(1) or 60.0)
    loop.start()
    until(lambda: turns == [1])

    loop.wake()

    until(lambda: turns == [1, 1])
    loop.stop()


def test_a_knock_before_the_wait_is_not_lost() -> None:
    loop = Loop("test", lambda: 0)
    loop.wake()

    waiting = threading.Thread(target=loop.wait, args=(60,))
    waiting.start()
    waiting.join(2)

    assert not waiting.is_alive()


def test_a_loop_lives_on_after_a_fault_and_says_so() -> None:
    told: list[str] = []

    def hear(loop: str, error: Exception, **_: object) -> None:
        told.append(f"{loop}: {error}")

    events.loop_failed.connect(hear)
    faults = [RuntimeError("second"), RuntimeError("first")]

    def run_once() -> float:
        if faults:
            raise faults.pop()
        loop.stop()
        return 0

    loop = Loop("test", run_once)
    loop.run()

    assert told == ["test: first", "test: second"]


@pytest.mark.parametrize(("failures", "longest_s"), [(1, 0.1), (2, 0.2), (4, 0.8), (5, 1.5), (10_000, 1.5)])
def test_the_wait_after_faults_doubles_up_to_a_second_and_a_half(failures: int, longest_s: float) -> None:
    waits = [backoff_s(failures) for _ in range(100)]

    assert longest_s / 2 <= min(waits) <= max(waits) <= longest_s


def test_a_loop_may_have_a_shorter_longest_wait_after_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    def run_once() -> float:
        raise RuntimeError

    loop = Loop("test", run_once, longest_backoff_s=0.3)
    monkeypatch.setattr(loop, "wait", lambda seconds: waits.append(seconds) or len(waits) < 50 or loop.stop())
    loop.run()

    assert 0.15 <= max(waits[10:]) <= 0.3


def test_a_loop_ends_the_process_when_a_thread_it_needs_is_dead() -> None:
    dead = threading.Thread(target=lambda: None, name="listener")
    dead.start()
    loop = Loop("ticker", lambda: 0)
    loop.needs(dead)

    with pytest.raises(SystemExit) as ending:
        loop.run()

    assert ending.value.code == "ticker ends: the thread listener is dead"


def test_a_loop_goes_on_while_the_threads_it_needs_live() -> None:
    other = Loop("other", lambda: 60)
    loop = Loop("test", lambda: loop.stop() or 0)
    thread = other.start()
    loop.needs(thread)

    loop.run()

    other.stop()
    thread.join(2)
    assert not thread.is_alive()

"""Which thread of a child runs what: quick runs share one, and nothing waits behind a run that takes its time."""

import threading
from collections.abc import Callable

import pytest

from priqueue import runner
from priqueue.executor import Outcome, Verdict
from priqueue.jobs import Claim, Job
from priqueue.runner import Runner
from tests.support.queues import test_settings
from tests.support.waiting import until

QUICK_S, SLOW_S = 0.00001, 0.01


class Stage:
    """A runner of four threads, in which a run does and takes what the test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.gate = threading.Event()
        self.threads: dict[str, str] = {}
        self.run_s = QUICK_S
        self.finished: list[str] = []
        monkeypatch.setattr(runner, "execute", self._execute)
        self.runner = Runner(4, test_settings(), self._finish)
        self.runner.start()
        until(lambda: len(self.runner._idle) == 4)

    def _execute(self, claim: Claim, *_: object) -> Outcome:
        self.threads[claim.job.id] = threading.current_thread().name
        if claim.job.name == "blocks":
            self.gate.wait()
        return Outcome(claim=claim, verdict=Verdict.ACK, run_s=self.run_s)

    def _finish(self, outcome: Outcome) -> None:
        self.finished.append(outcome.claim.job.id)

    def usually(self, run_s: float) -> None:
        """Let many runs have taken so long."""
        self.run_s = run_s
        for number in range(300):
            self.submit(f"before-{number}")
        until(lambda: (self.runner.go(), len(self.finished) == 300)[1])
        until(lambda: len(self.runner._idle) == 4)
        self.threads.clear()
        self.finished.clear()

    def submit(self, *ids: str, name: str = "ends") -> None:
        for job_id in ids:
            self.runner.submit(claim(job_id, name))


def claim(job_id: str, name: str) -> Claim:
    return Claim(
        job=Job(id=job_id, name=name, payload={}), token="t", worker_id="w", lane="default", attempt=1, crashes=0,
        deadline_ms=0, ready_since_ms=0,
    )  # fmt: skip


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(monkeypatch)


def test_quick_runs_that_come_together_are_taken_by_one_thread_in_their_order(stage: Stage) -> None:
    stage.usually(QUICK_S)

    stage.submit("a", "b", "c", "d")
    stage.runner.go()

    until(lambda: stage.finished == ["a", "b", "c", "d"])
    assert len(set(stage.threads.values())) == 1


def test_what_waits_behind_a_run_that_does_not_end_gets_threads_when_its_patience_is_over(stage: Stage) -> None:
    stage.usually(QUICK_S)
    stage.submit("blocked", name="blocks")
    stage.submit("a", "b")

    until(lambda: (stage.runner.go(), sorted(stage.finished) == ["a", "b"])[1])

    assert not stage.runner.waiting
    assert stage.threads["blocked"] not in (stage.threads["a"], stage.threads["b"])
    stage.gate.set()


@pytest.mark.parametrize("order", [Runner.go, Runner.spread], ids=["go", "spread"])
def test_runs_that_take_longer_begin_at_once_each_in_a_thread_of_its_own(
    stage: Stage, order: Callable[[Runner], None]
) -> None:
    stage.usually(SLOW_S)

    stage.submit("a", "b", "c", "d", name="blocks")
    order(stage.runner)

    until(lambda: len(stage.threads) == 4)
    assert len(set(stage.threads.values())) == 4
    stage.gate.set()


def test_spread_runs_quick_ones_in_threads_of_their_own_too(stage: Stage) -> None:
    stage.usually(QUICK_S)

    stage.submit("a", "b", name="blocks")
    stage.runner.spread()

    until(lambda: len(stage.threads) == 2)
    stage.gate.set()


def test_more_than_there_are_threads_for_waits_for_the_first_that_ends(stage: Stage) -> None:
    stage.usually(SLOW_S)
    stage.submit("a", "b", "c", "d", name="blocks")
    stage.submit("e")
    stage.runner.go()
    until(lambda: len(stage.threads) == 4)
    assert stage.runner.waiting

    stage.gate.set()

    until(lambda: sorted(stage.finished) == ["a", "b", "c", "d", "e"])


def test_quick_runs_that_come_one_by_one_leave_the_next_that_come_together_to_one_thread(stage: Stage) -> None:
    stage.usually(QUICK_S)
    for number in range(10):
        stage.submit(f"alone-{number}")
        stage.runner._taken_s = 0  # long ago
        stage.runner.go()
        until(lambda: len(stage.runner._idle) == 4)
    stage.threads.clear()

    stage.submit("a", "b", "c", "d")
    stage.runner.go()

    until(lambda: stage.finished[-4:] == ["a", "b", "c", "d"])
    assert len(set(stage.threads.values())) == 1

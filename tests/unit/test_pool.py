"""The pool's bookkeeping, on children that do nothing by themselves."""

from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from priqueue import crew, pool
from priqueue.ears import Ears
from priqueue.executor import Outcome, Verdict
from priqueue.jobs import Claim, Job
from priqueue.pool import Pool
from priqueue.runner import key_of
from tests.support.queues import test_settings

SIZE = 4


class Child:
    """A process that only notes what it is told."""

    def __init__(self, threads: int, tell: Any, ears: Ears) -> None:
        self.runs: dict[Any, Claim] = {}
        self.ready = False
        self.taken = 0
        self.told: list[str] = []
        self.hears = True
        self._tell = tell

    def submit(self, claim: Claim) -> None:
        self.runs[key_of(claim)] = claim

    def send(self) -> None:
        pass

    def interrupt(self, key: Any) -> None:
        self.told.append("interrupt")
        if self.hears:
            self._tell(self, "interrupted", key)

    def kill(self) -> None:
        self.told.append("kill")

    def cause_of_death(self) -> str:
        return "exit code 7"


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The time, which only the test moves."""
    now = SimpleNamespace(s=1000.0)
    for module in (pool, crew):
        monkeypatch.setattr(module, "monotonic_s", lambda: now.s)
    return now


@pytest.fixture
def slots(monkeypatch: pytest.MonkeyPatch, time: SimpleNamespace) -> Iterator[Pool]:
    """A pool of four slots in one child, which is ready."""
    monkeypatch.setattr(crew, "Child", Child)
    made = Pool(SIZE, 1, test_settings(), Ears())
    made.take()
    ready(made)
    return made


def child(slots: Pool) -> Child:
    return slots._crew.members[0]  # type: ignore[return-value]


def tell(slots: Pool, what: str, value: Any = None) -> None:
    child(slots)._tell(child(slots), what, value)


def ready(slots: Pool) -> None:
    tell(slots, "ready")
    slots.take()


def gone(slots: Pool) -> list[Outcome]:
    tell(slots, "gone")
    return slots.take()


def claims(number: int, timeout: float = 60) -> list[Claim]:
    return [
        Claim(
            job=Job(name="tests.note", payload={}, timeout=timeout), token="t", worker_id="w", lane="default",
            attempt=1, crashes=0, deadline_ms=0, ready_since_ms=0,
        )
        for _ in range(number)
    ]  # fmt: skip


def ended(claim: Claim) -> Outcome:
    return Outcome(claim=claim, verdict=Verdict.ACK, run_s=0)


def done(slots: Pool, claim: Claim) -> None:
    tell(slots, "done", ended(claim))
    assert [outcome.claim for outcome in slots.take()] == [claim]


def test_a_slot_that_is_about_to_be_vacated_is_room(slots: Pool) -> None:
    held = claims(SIZE)
    slots.submit(held)
    done(slots, held[0])

    assert (slots.free(), slots.free(1)) == (0, 1)


def test_no_room_is_offered_while_the_only_child_is_with_a_suspect_so_that_none_is_made_to_wait(slots: Pool) -> None:
    slots.submit(claims(SIZE))
    assert gone(slots) == []
    ready(slots)
    (alone,) = child(slots).runs.values()

    done(slots, alone)

    assert len(child(slots).runs) == 1
    assert (slots.free(), slots.free(1)) == (0, 0)


def test_every_suspect_runs_alone_and_the_child_is_open_to_all_again_after_the_last(slots: Pool) -> None:
    held = claims(SIZE)
    slots.submit(held)
    gone(slots)
    ready(slots)

    for claim in held:
        assert list(child(slots).runs.values()) == [claim]
        done(slots, claim)
        slots.vacate(claim)

    assert slots.free() == SIZE


def test_of_a_child_ended_by_force_all_runs_over_their_time_are_blamed_and_the_others_released(
    slots: Pool, time: SimpleNamespace
) -> None:
    late, later, neighbour = claims(1, timeout=1) + claims(1, timeout=1.5) + claims(1)
    slots.submit([late, later, neighbour])
    for seconds in (1.1, 0.5, 0.6):
        time.s += seconds
        assert slots.take() == []
    assert child(slots).told == ["interrupt", "interrupt", "kill"]

    outcomes = {outcome.claim.job.id: outcome for outcome in gone(slots)}

    verdicts = {
        job_id: (outcome.verdict, outcome.failure and outcome.failure.error) for job_id, outcome in outcomes.items()
    }
    assert verdicts == {
        late.job.id: (Verdict.RETRY, "Timeout"),
        later.job.id: (Verdict.RETRY, "Timeout"),
        neighbour.job.id: (Verdict.RELEASE, None),
    }


def test_of_a_child_that_hears_nothing_nobody_is_blamed_until_it_has_run_alone(
    slots: Pool, time: SimpleNamespace
) -> None:
    child(slots).hears = False
    late, hog = claims(1, timeout=1) + claims(1)
    slots.submit([late, hog])
    for seconds in (1.1, 1.1):
        time.s += seconds
        slots.take()
    assert (child(slots).told, gone(slots)) == (["interrupt", "kill"], [])

    ready(slots)

    assert list(child(slots).runs.values()) == [late]


def test_a_run_that_was_alone_in_a_child_that_died_is_guilty_of_its_death(slots: Pool) -> None:
    (claim,) = claims(1)
    slots.submit([claim])

    (outcome,) = gone(slots)

    assert (outcome.verdict, outcome.crashes, outcome.failure.message) == (  # type: ignore[union-attr]
        Verdict.CRASH, 1, "the process that ran it died: exit code 7"
    )  # fmt: skip


# ── quick runs that were handed over together ──


@pytest.fixture
def quick(slots: Pool) -> Pool:
    """A pool in which all runs were quick lately."""
    for _ in range(300):
        slots._pace.note(0)
    return slots


def waiting_for(slots: Pool, monkeypatch: pytest.MonkeyPatch, *meanwhile: Callable[[], None]) -> list[float]:
    """Let one thing happen in each wait for the child; return the waits, to be looked at afterwards, in s."""
    waits_s: list[float] = []
    happen = iter(meanwhile)
    monkeypatch.setattr(slots._ears, "wait", lambda seconds: (waits_s.append(seconds), next(happen)()))
    return waits_s


def test_the_first_of_some_quick_runs_waits_for_the_others(quick: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    held = claims(3)
    quick.submit(held)
    tell(quick, "done", ended(held[0]))
    rest = [partial(tell, quick, "done", ended(claim)) for claim in held[1:]]
    waits_s = waiting_for(quick, monkeypatch, *rest)

    taken = quick.take()

    assert [outcome.claim for outcome in taken] == held
    assert waits_s == pytest.approx([0.001, 0.001])


def test_quick_runs_wait_no_longer_than_a_millisecond_for_one_that_takes_its_time(
    quick: Pool, time: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = claims(2)
    quick.submit(held)
    tell(quick, "done", ended(held[0]))

    def let_it_be_over() -> None:
        time.s += 0.001

    waiting_for(quick, monkeypatch, let_it_be_over)

    assert [outcome.claim for outcome in quick.take()] == held[:1]


def test_runs_that_take_their_time_wait_for_no_other(slots: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    held = claims(2)
    slots.submit(held)
    tell(slots, "done", ended(held[0]))
    waits_s = waiting_for(slots, monkeypatch)

    assert ([outcome.claim for outcome in slots.take()], waits_s) == (held[:1], [])


def test_nothing_is_waited_for_while_nothing_has_come_back(quick: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    quick.submit(claims(2))
    waits_s = waiting_for(quick, monkeypatch)

    assert (quick.take(), waits_s) == ([], [])

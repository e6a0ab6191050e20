"""What the pool decides when runs end, children die and time passes: with children that the test plays itself."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import Any

import pytest

from priqueue import crew, pool
from priqueue.ears import Ears
from priqueue.executor import Outcome, Verdict
from priqueue.jobs import Claim, Job
from priqueue.pool import Pool
from priqueue.runner import Key, key_of
from tests.support.queues import test_settings


@dataclass(eq=False)
class Played:
    """A child that the test plays: it does nothing by itself, and remembers its orders."""

    size: int
    tell: Callable[[Any, str, Any], None]
    runs: dict[Key, Claim] = field(default_factory=dict)
    ready: bool = False
    taken: int = 0
    orders: list[str] = field(default_factory=list)

    def submit(self, claim: Claim) -> None:
        self.runs[key_of(claim)] = claim
        self.taken += 1
        self.orders.append(f"run {claim.job.id}")

    def send(self) -> None:
        pass

    def interrupt(self, key: Key) -> None:
        self.orders.append(f"interrupt {key[0]}")

    def lose(self, key: Key) -> None:
        self.orders.append(f"lose {key[0]}")

    def dismiss(self) -> None:
        self.orders.append("dismiss")

    def kill(self) -> None:
        self.orders.append("kill")

    def end(self) -> None:
        self.orders.append("end")
        self.tell(self, "gone", None)

    def cause_of_death(self) -> str:
        return "played"

    def becomes_ready(self) -> None:
        self.tell(self, "ready", None)

    def finishes(self, *claims: Claim) -> None:
        for claim in claims:
            self.tell(self, "done", Outcome(claim=claim, verdict=Verdict.ACK, run_s=0))

    def says_interrupted(self, claim: Claim) -> None:
        self.tell(self, "interrupted", key_of(claim))

    def dies(self) -> None:
        self.tell(self, "gone", None)


class Stage:
    """A pool, its played children in the order of their starts, and the time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 1000.0
        self.children: list[Played] = []
        self.starts_fail = False
        monkeypatch.setattr(pool, "monotonic_s", lambda: self.now_s)
        monkeypatch.setattr(crew, "monotonic_s", lambda: self.now_s)
        monkeypatch.setattr(crew, "Child", self._start)

    def _start(self, size: int, tell: Callable[[Any, str, Any], None], ears: Ears) -> Played:
        if self.starts_fail:
            raise BlockingIOError("no more processes")
        self.children.append(Played(size, tell))
        return self.children[-1]

    def pool(self, size: int, processes: int = 1, max_jobs: int | None = None) -> Pool:
        """Return a pool whose children are ready."""
        made = Pool(size, processes, test_settings(), Ears(), max_jobs)
        made.take()
        self.let_start(made)
        return made

    def let_start(self, made: Pool) -> None:
        for child in self.children:
            if not child.ready:
                child.becomes_ready()
        made.take()


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(monkeypatch)


def claims(number: int, first: int = 0, timeout: float = 300, suspect: bool = False) -> list[Claim]:
    return [
        Claim(
            job=Job(id=f"j{n}", name="tests.shop.jobs.note", payload={}, timeout=timeout), token="t", worker_id="w",
            lane="default", attempt=1, crashes=0, deadline_ms=0, ready_since_ms=0, suspect=suspect,
        )
        for n in range(first, first + number)
    ]  # fmt: skip


def told(outcomes: list[Outcome]) -> dict[str, tuple[str, int]]:
    """Return what became of each job: verdict and deaths it is guilty of."""
    return {outcome.claim.job.id: (str(outcome.verdict), outcome.crashes) for outcome in outcomes}


# --- guilt ---


def test_who_was_alone_in_a_child_that_died_is_guilty(stage: Stage) -> None:
    made = stage.pool(4)
    made.submit(claims(1))

    stage.children[0].dies()

    assert told(made.take()) == {"j0": ("crash", 1)}


def test_a_job_that_came_back_before_its_neighbour_died_is_done_and_the_neighbour_guilty(stage: Stage) -> None:
    made = stage.pool(4)
    good, poison = claims(2)
    made.submit([good, poison])

    stage.children[0].finishes(good)
    stage.children[0].dies()

    assert told(made.take()) == {"j0": ("ack", 0), "j1": ("crash", 1)}


def test_neighbours_in_a_child_that_died_run_again_each_alone_and_only_the_guilty_counts_both_deaths(
    stage: Stage,
) -> None:
    made = stage.pool(4)
    good, poison = claims(2)
    made.submit([good, poison])
    stage.children[0].dies()
    assert made.take() == []
    stage.let_start(made)
    second = stage.children[1]
    assert second.orders == ["run j0"]

    second.finishes(good)
    outcomes = made.take()
    second.dies()

    assert told([*outcomes, *made.take()]) == {"j0": ("ack", 0), "j1": ("crash", 2)}


def test_a_claim_that_is_suspected_runs_alone_and_nobody_joins_it(stage: Stage) -> None:
    made = stage.pool(4)

    made.submit(claims(1, suspect=True))

    assert [child.orders for child in stage.children] == [["run j0"]]
    assert made.free() == 0


def test_suspects_get_children_of_their_own_after_a_second_and_these_leave_when_they_are_done(stage: Stage) -> None:
    made = stage.pool(4)
    suspects = claims(2, suspect=True)
    made.submit(suspects)

    stage.now_s += 1
    made.take()
    assert len(stage.children) == 3
    stage.let_start(made)
    assert [child.orders for child in stage.children] == [["run j0"], ["run j1"], []]
    assert made.free() == 2
    for child, claim in zip(stage.children, suspects, strict=False):
        child.finishes(claim)
    made.take()

    assert sum("dismiss" in child.orders for child in stage.children) == 2


def test_a_suspect_whose_lease_is_lost_while_it_waits_is_not_run(stage: Stage) -> None:
    made = stage.pool(4)
    lost, held = claims(2)
    made.submit([lost, held])
    stage.children[0].dies()
    made.take()

    assert made.lose(lost)
    stage.children[1].becomes_ready()

    assert told(made.take()) == {"j0": ("release", 0)}
    assert stage.children[1].orders == ["run j1"]


# --- time ---


def test_a_run_over_its_time_is_asked_to_stop_and_its_child_ended_a_second_later(stage: Stage) -> None:
    made = stage.pool(4)
    (hung,) = claims(1, timeout=10)
    made.submit([hung])

    stage.now_s += 10
    made.take()
    stage.children[0].says_interrupted(hung)
    stage.now_s += 1
    made.take()
    stage.children[0].dies()

    assert stage.children[0].orders == ["run j0", "interrupt j0", "kill"]
    assert told(made.take()) == {"j0": ("retry", 0)}


def test_all_that_are_over_their_time_are_blamed_and_their_neighbour_is_released(stage: Stage) -> None:
    made = stage.pool(4)
    hung, neighbour = claims(2, timeout=10), claims(1, first=2)
    made.submit([*hung, *neighbour])

    stage.now_s += 10
    made.take()
    for claim in hung:
        stage.children[0].says_interrupted(claim)
    stage.now_s += 1
    made.take()
    stage.children[0].dies()

    assert told(made.take()) == {"j0": ("retry", 0), "j1": ("retry", 0), "j2": ("release", 0)}


def test_in_a_child_that_hears_of_nothing_nobody_is_blamed_and_each_runs_again_alone(stage: Stage) -> None:
    made = stage.pool(4)
    (late,), (holds_it_up,) = claims(1, timeout=10), claims(1, first=1)
    made.submit([late, holds_it_up])

    stage.now_s += 10
    made.take()
    stage.now_s += 1
    made.take()
    stage.children[0].dies()
    assert made.take() == []
    stage.let_start(made)
    stage.children[1].finishes(late)

    assert told(made.take()) == {"j0": ("ack", 0)}
    assert stage.children[1].orders == ["run j0", "run j1"]


def test_who_is_over_its_time_alone_is_blamed_though_it_hears_of_nothing(stage: Stage) -> None:
    made = stage.pool(4)
    made.submit(claims(1, timeout=10))

    for _ in range(2):
        stage.now_s += 10
        made.take()
    stage.children[0].dies()

    assert told(made.take()) == {"j0": ("retry", 0)}


def test_a_run_that_ends_as_its_child_is_ended_counts_by_its_own_outcome(stage: Stage) -> None:
    made = stage.pool(4)
    slow, neighbour = claims(1, timeout=10), claims(1, first=1)
    made.submit([*slow, *neighbour])

    stage.now_s += 10
    made.take()
    stage.children[0].says_interrupted(slow[0])
    stage.now_s += 1
    made.take()
    stage.children[0].finishes(*slow)
    stage.children[0].dies()

    assert told(made.take()) == {"j0": ("ack", 0), "j1": ("release", 0)}


def test_what_becomes_due_right_after_a_look_is_looked_at_at_once(stage: Stage) -> None:
    made = stage.pool(4)
    made.submit(claims(1, timeout=10))
    stage.now_s += 9.999
    made.take()

    stage.now_s += 0.002

    assert made.next_look_s() == 0


def test_what_was_looked_at_is_not_looked_at_again(stage: Stage) -> None:
    made = stage.pool(4)
    made.submit(claims(1, suspect=True))

    stage.now_s += 500
    made.take()
    made.take()

    assert made.next_look_s() == 1  # the end of its grace; not the second after which it had a child started


def test_an_idle_pool_has_nothing_to_look_at(stage: Stage) -> None:
    assert stage.pool(4).next_look_s() == inf


# --- room ---


def test_there_is_never_more_room_than_the_living_children_have(stage: Stage) -> None:
    made = stage.pool(8, processes=2)
    stage.children[1].dies()
    made.take()
    running = claims(4)
    made.submit(running)

    stage.children[0].finishes(*running[:2])
    outcomes = made.take()

    assert made.free(len(outcomes)) == 2


def test_a_child_leaves_after_its_share_once_it_is_empty_and_is_replaced_before(stage: Stage) -> None:
    made = stage.pool(2, max_jobs=2)
    running = claims(2)
    made.submit(running)

    made.take()
    assert len(stage.children) == 2
    assert stage.children[0].orders == ["run j0", "run j1"]
    stage.children[0].finishes(*running)
    made.take()

    assert stage.children[0].orders[-1] == "dismiss"


def test_a_child_that_cannot_be_started_holds_up_no_outcome_and_five_in_a_row_are_a_fault(stage: Stage) -> None:
    made = stage.pool(4, processes=2)
    running = claims(2)
    made.submit(running)
    stage.starts_fail = True

    stage.children[1].dies()
    stage.children[0].finishes(running[0])
    outcomes = made.take()
    assert [outcome.claim.job.id for outcome in outcomes if outcome.verdict is Verdict.ACK] == ["j0"]
    for _ in range(4):
        assert made.fault == ""
        stage.now_s += 2
        made.take()

    assert "5 children in a row" in made.fault


def test_a_child_that_is_not_ready_within_a_minute_is_ended_and_another_started(stage: Stage) -> None:
    made = Pool(4, 1, test_settings(), Ears())
    made.take()

    stage.now_s += 60
    made.take()
    assert stage.children[0].orders == []
    stage.now_s += 1
    made.take()
    stage.children[0].dies()
    made.take()
    stage.now_s += 1
    made.take()

    assert [child.orders for child in stage.children] == [["kill"], []]


# --- the end ---


def test_closing_ends_the_children_first_and_releases_what_is_left_in_the_order_it_came(stage: Stage) -> None:
    made = stage.pool(6, processes=2)
    running, waiting = claims(4), claims(1, first=4, suspect=True)
    made.submit([*running, *waiting])

    stage.children[0].finishes(running[0])
    outcomes = made.close()

    assert list(told(outcomes).items()) == [("j0", ("ack", 0)), *((f"j{n}", ("release", 0)) for n in range(1, 5))]
    assert [child.orders for child in stage.children] == [["run j0", "run j2", "end"], ["run j1", "run j3", "end"]]


def test_what_ends_after_it_was_given_up_and_settled_counts_for_nothing(stage: Stage) -> None:
    made = stage.pool(4)
    (late,) = claims(1)
    made.submit([late])
    stage.children[0].finishes(late)
    made.take()
    made.vacate(late)

    stage.children[0].finishes(late)

    assert made.take() == []


# --- claims on their way ---


def test_few_outcomes_are_left_while_claims_are_on_their_way_and_looked_after_at_once(stage: Stage) -> None:
    made = stage.pool(16)
    made._pace._share = 1  # nearly all were quick
    made.submit(claims(4))
    (child,) = stage.children
    child.finishes(*claims(1))

    assert made.take(expecting=True) == []

    assert made.next_look_s() == 0
    stage.now_s += 0.01
    assert told(made.take()) == {"j0": ("ack", 0)}


def test_the_room_that_was_promised_to_claims_on_their_way_is_not_taken_from_them(stage: Stage) -> None:
    made = stage.pool(4, processes=2)
    made.submit(claims(2, suspect=True))
    stage.now_s += 2
    made.take()  # starts one more for each
    stage.let_start(made)
    for child in stage.children[:2]:
        child.finishes(*child.runs.values())

    made.take(expecting=True)

    assert made._crew.room == 8
    made.take()
    assert made._crew.room == 4


def test_a_child_is_given_no_more_runs_than_are_left_to_it(stage: Stage) -> None:
    made = stage.pool(4, max_jobs=6)
    made.submit(claims(4))
    (child,) = stage.children
    child.finishes(*claims(4))
    for outcome in made.take():
        made.vacate(outcome.claim)

    assert made.free() == 2


def test_a_job_that_is_known_to_kill_takes_down_no_child_that_others_need(stage: Stage) -> None:
    made = stage.pool(4)
    made.submit([*claims(1), *claims(1, first=1, suspect=True)])
    (usual,) = stage.children
    usual.finishes(*claims(1))

    made.take()  # the usual child has nothing to do, but its slot is not settled yet: more may come for it

    assert len(stage.children) == 2  # one more, at once
    stage.let_start(made)
    assert sorted(list(child.runs) for child in stage.children) == [[], [("j1", "t")]]


def test_a_job_that_is_known_to_kill_and_is_all_there_is_waits_for_no_further_child(stage: Stage) -> None:
    made = stage.pool(4)

    made.submit(claims(1, suspect=True))

    assert [list(child.runs) for child in stage.children] == [[("j0", "t")]]

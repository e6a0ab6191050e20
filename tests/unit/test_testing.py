"""The queue in memory that projects test with: what it sees, what it runs, and what its assertions say."""

import asyncio
import importlib
import sys
from datetime import UTC, date, datetime, timedelta
from unittest.mock import ANY, patch

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import SimpleTestCase, TestCase, TransactionTestCase, override_settings

import priqueue
from priqueue import handlers, wiring
from priqueue.exceptions import InvalidDelay, InvalidLane, UnknownHandler
from priqueue.testing import QueueMixin, memory_queue
from tests.shop.jobs import note, send_receipt

URL = "redis://127.0.0.1:1/0"
EMAIL = {"order_id": 7, "email": "a@b.c"}


@pytest.fixture
def queue():
    with memory_queue() as made:
        yield made


@pytest.fixture
def declare(monkeypatch):
    """Declare handlers that are forgotten after the test."""
    monkeypatch.setattr(handlers.registry, "_handlers", dict(handlers.registry._handlers))

    def _declare(function, **options):
        return priqueue.job(name=f"shop.{function.__name__}", **options)(function)

    return _declare


def verdicts(outcomes):
    return [str(outcome.verdict) for outcome in outcomes]


def enqueue_and_roll_back():
    with transaction.atomic():
        note.enqueue()
        transaction.set_rollback(True)


# ── enqueued, and run ──


def test_what_is_enqueued_runs_once_and_its_outcome_is_told(queue, declare):
    ran = []
    greet = declare(lambda name: ran.append(name))
    job = greet.enqueue(name="Ada")

    (outcome,) = queue.run_pending()

    assert (ran, outcome.claim.job.id, str(outcome.verdict), outcome.failure) == (["Ada"], job.id, "ack", None)
    assert queue.run_pending() == []
    assert priqueue.get(job.id) is None


def test_a_handler_knows_the_job_that_it_runs(queue, declare):
    seen = []

    def look():
        run = priqueue.current_job()
        seen.append((run.id, run.attempt, run.caller, run.lease_lost))

    job = declare(look).using(caller="user:42").enqueue()
    queue.run_pending()

    assert seen == [(job.id, 1, "user:42", False)]


def test_what_a_handler_enqueues_runs_too_and_comes_from_the_worker(queue, declare):
    second = declare(lambda: None)
    first = priqueue.job(name="shop.first")(lambda: second.enqueue() and None)
    first.enqueue()

    outcomes = queue.run_pending()

    assert [(outcome.claim.job.name, outcome.claim.job.caller) for outcome in outcomes] == [
        ("shop.first", "system"),
        ("shop.<lambda>", "worker:test"),
    ]


def test_an_async_handler_runs_too(queue, declare):
    ran = []

    async def greet(name):
        await asyncio.sleep(0)
        ran.append(name)

    declare(greet).enqueue(name="Ada")
    queue.run_pending()

    assert ran == ["Ada"]


def test_jobs_run_by_the_weights_of_their_lanes(queue):
    for lane in ("low", "default", "high"):
        priqueue.enqueue_many([(note, {})] * 10, lane=lane)

    lanes = [outcome.claim.lane for outcome in queue.run_pending(limit=10)]

    assert lanes == ["high"] * 6 + ["default"] * 3 + ["low"]


def test_one_lane_alone_can_be_run(queue):
    note.enqueue()
    send_receipt.enqueue(**EMAIL)

    assert [outcome.claim.job.name for outcome in queue.run_pending("high")] == [send_receipt.name]
    assert [outcome.claim.job.name for outcome in queue.run_pending()] == [note.name]


def test_an_unknown_lane_is_refused(queue):
    with pytest.raises(InvalidLane, match="hihg"):
        queue.run_pending("hihg")


def test_a_handler_that_enqueues_itself_ends_at_the_limit(queue, declare):
    def again():
        priqueue.enqueue("shop.again")

    declare(again).enqueue()

    assert len(queue.run_pending(limit=5)) == 5
    assert priqueue.stats().lanes["default"].ready == 1


def test_no_worker_is_left_behind(queue):
    note.enqueue()
    queue.run_pending()

    assert priqueue.stats().workers == []


# ── failures, delays and the clock ──


def test_a_failure_is_retried_after_its_wait_and_buried_after_the_last(queue, declare):
    def fail(n):
        raise ValueError(f"no {n}")

    job = declare(fail, max_attempts=2, backoff=60).enqueue(n=1)

    assert verdicts(queue.run_pending()) == ["retry"]
    queue.advance(59)
    assert queue.run_pending() == []
    queue.advance(1)
    (outcome,) = queue.run_pending()
    assert (str(outcome.verdict), outcome.claim.attempt, outcome.failure.message) == ("bury", 2, "no 1")
    assert [(letter.job.id, letter.error, len(letter.trail)) for letter in queue.dead_letters] == [
        (job.id, "ValueError", 2)
    ]


def test_retries_without_a_wait_run_at_once(queue, declare):
    def fail():
        raise ValueError

    declare(fail, max_attempts=3, backoff=0).enqueue()

    assert verdicts(queue.run_pending()) == ["retry", "retry", "bury"]


def test_retry_and_bury_mean_what_they_mean(queue, declare):
    def later():
        raise priqueue.Retry(after=30)

    def never():
        raise priqueue.Bury("card was stolen")

    declare(later).enqueue()
    declare(never).enqueue()

    assert [(str(o.verdict), o.delay_s) for o in queue.run_pending()] == [("retry", 30), ("bury", 0)]


@pytest.mark.parametrize("step", [30, timedelta(seconds=30)])
def test_a_delayed_job_runs_when_the_clock_has_been_moved(queue, step):
    job = priqueue.enqueue(note, {}, delay=30)

    assert queue.run_pending() == []
    queue.advance(step)

    assert priqueue.get(job.id).state == "ready"
    assert verdicts(queue.run_pending()) == ["ack"]


def test_a_job_for_a_moment_runs_when_the_clock_has_been_moved_there(queue):
    priqueue.enqueue(note, {}, run_at=datetime.now(UTC) + timedelta(days=30))

    queue.advance(timedelta(days=29))
    assert queue.run_pending() == []
    queue.advance(timedelta(days=1))

    assert verdicts(queue.run_pending()) == ["ack"]


def test_more_than_one_batch_gets_due(queue):
    priqueue.enqueue_many([(note, {})] * 1001, delay=1)

    queue.advance(1)

    assert priqueue.stats().lanes["default"].ready == 1001


def test_a_pause_holds_a_lane_until_its_time_is_over(queue):
    note.enqueue()
    queue.coordinator.pause("default", caller="test", reason="see", lasts_s=60)

    assert queue.run_pending() == []
    queue.advance(60)

    assert verdicts(queue.run_pending()) == ["ack"]


@pytest.mark.parametrize("seconds", [-1, "5", float("nan")])
def test_the_clock_cannot_be_moved_by_nonsense(queue, seconds):
    with pytest.raises(InvalidDelay, match=r"^seconds: "):
        queue.advance(seconds)


# ── what it is and where ──


def test_each_queue_is_empty_and_the_one_outside_comes_back():
    configured = wiring.coordinator()
    with memory_queue() as outer:
        note.enqueue(n=1)
        with memory_queue() as inner:
            note.enqueue(n=2)
            assert [job.payload for job in inner.enqueued] == [{"n": 2}]
        assert [job.payload for job in outer.enqueued] == [{"n": 1}]

    assert wiring.coordinator() is configured


def test_lanes_and_attempts_are_those_of_the_settings(declare):
    with (
        override_settings(PRIQUEUE={"URL": URL, "LANES": {"only": 1, "default": 1}, "MAX_ATTEMPTS": 1}),
        memory_queue() as queue,
    ):
        declare(lambda: 1 / 0).using(lane="only").enqueue()

        assert verdicts(queue.run_pending("only")) == ["bury"]


def test_what_goes_straight_to_the_coordinator_is_seen_too(queue):
    job = priqueue.jobs.Job(name=note.name, payload={})

    assert [wiring.coordinator().enqueue(job) for _ in range(2)] == [True, False]
    assert queue.enqueued == [job]


@pytest.mark.parametrize("missing", ["fakeredis", "lupa"])
def test_without_its_extra_the_module_says_what_to_install(monkeypatch, missing):
    monkeypatch.delitem(sys.modules, "priqueue.testing")
    monkeypatch.setitem(sys.modules, missing, None)

    with pytest.raises(ImportError, match=r'pip install "priqueue\[testing\]"'):
        importlib.import_module("priqueue.testing")


# ── assertions ──


def test_what_was_enqueued_is_found_by_all_that_is_asked(queue):
    job = priqueue.enqueue(send_receipt, EMAIL, lane="low", delay=30)

    for asked in (
        queue.assert_enqueued(),
        queue.assert_enqueued(send_receipt),
        queue.assert_enqueued("tests.shop.jobs.send_receipt", EMAIL),
        queue.assert_enqueued(send_receipt, {"order_id": 7, "email": ANY}),
        queue.assert_enqueued(send_receipt, EMAIL, lane="low", delay=30, times=1),
        queue.assert_enqueued(send_receipt, delay=timedelta(seconds=30)),
    ):
        assert asked == [job]


def test_a_payload_is_compared_as_it_travels(queue, declare):
    def ship(on: date): ...

    handler = declare(ship)
    handler.enqueue(on=date(2030, 1, 2))

    queue.assert_enqueued(handler, {"on": date(2030, 1, 2)})
    queue.assert_enqueued(handler, {"on": "2030-01-02"})


@pytest.mark.parametrize(
    ("payload", "options"),
    [
        ({"order_id": 7}, {}),
        ({"order_id": 8, "email": "a@b.c"}, {}),
        (None, {"lane": "low"}),
        (None, {"delay": 30}),
        (None, {"times": 2}),
        (None, {"times": 0}),
    ],
)
def test_a_job_that_differs_in_anything_is_another(queue, payload, options):
    send_receipt.enqueue(**EMAIL)

    with pytest.raises(AssertionError):
        queue.assert_enqueued(send_receipt, payload, **options)


def test_a_failed_assertion_says_what_was_asked_and_lists_what_was_enqueued(queue):
    at = datetime(2030, 1, 2, tzinfo=UTC)
    send_receipt.enqueue(**EMAIL)
    priqueue.enqueue(note, {"n": 1}, delay=1.5)
    priqueue.enqueue(note, {}, run_at=at)

    with pytest.raises(AssertionError) as failed:
        queue.assert_enqueued(send_receipt, {"order_id": 8, "email": "a@b.c"}, lane="low", times=2)

    assert str(failed.value) == (
        "expected 2, found 0: name tests.shop.jobs.send_receipt, payload {'order_id': 8, 'email': 'a@b.c'}, lane low\n"
        "enqueued were:\n"
        "  name tests.shop.jobs.send_receipt, payload {'order_id': 7, 'email': 'a@b.c'}, lane high, delay_ms 0\n"
        "  name tests.shop.jobs.note, payload {'n': 1}, lane default, delay_ms 1500\n"
        "  name tests.shop.jobs.note, payload {}, lane default, run_at 2030-01-02 00:00:00+00:00"
    )


def test_a_failed_assertion_about_an_empty_queue_says_so(queue):
    with pytest.raises(AssertionError) as failed:
        queue.assert_enqueued()

    assert str(failed.value) == "expected at least 1, found 0: any job\nenqueued were:\n  none"


def test_what_was_not_enqueued_can_be_asserted(queue):
    queue.assert_not_enqueued()
    note.enqueue(n=1)

    queue.assert_not_enqueued(send_receipt)
    queue.assert_not_enqueued(note, {"n": 2})
    queue.assert_not_enqueued(note, lane="low")
    with pytest.raises(AssertionError, match=r"^expected 0, found 1: name tests\.shop\.jobs\.note"):
        queue.assert_not_enqueued(note)


def test_a_misspelt_handler_is_an_error_and_no_empty_answer(queue):
    with pytest.raises(UnknownHandler, match=r"did you mean 'tests\.shop\.jobs\.note'"):
        queue.assert_not_enqueued("tests.shop.jobs.notes")


# ── transactions ──


class WithoutDatabaseTests(QueueMixin, SimpleTestCase):
    def test_no_database_is_needed(self):
        note.enqueue()

        assert verdicts(self.queue.run_pending()) == ["ack"]


class InATestCaseTests(QueueMixin, TestCase):
    @classmethod
    def setUpTestData(cls):
        note.enqueue(n=0)

    def test_a_job_counts_though_the_commit_of_the_test_never_comes(self):
        with transaction.atomic():
            job = note.enqueue(n=1)

        assert self.queue.assert_enqueued(note, {"n": 1}) == [job]
        assert verdicts(self.queue.run_pending()) == ["ack"]

    def test_it_runs_inside_the_transaction_of_the_test(self):
        def rename(pk: int):
            User.objects.filter(pk=pk).update(username="grace")

        user = User.objects.create(username="ada")
        with patch.object(handlers.registry, "_handlers", {}):
            priqueue.job(rename).enqueue(pk=user.pk)
            self.queue.run_pending()

        user.refresh_from_db()
        assert user.username == "grace"

    def test_a_job_whose_block_was_rolled_back_is_none(self):
        enqueue_and_roll_back()

        self.queue.assert_not_enqueued()

    def test_a_job_whose_block_is_open_waits_and_a_failure_tells_so(self):
        with transaction.atomic():
            note.enqueue()
            assert self.queue.run_pending() == []
            with pytest.raises(AssertionError, match="lane default, delay_ms 0, waits for the commit"):
                self.queue.assert_enqueued(note)

        self.queue.assert_enqueued(note, times=1)

    def test_what_was_enqueued_before_the_test_began_is_left_out(self):
        assert self.queue.enqueued == []

    def test_hooks_that_django_runs_push_once(self):
        with self.captureOnCommitCallbacks(execute=True) as callbacks:
            note.enqueue()
            assert verdicts(self.queue.run_pending()) == ["ack"]

        assert len(callbacks) == 1
        assert self.queue.run_pending() == []

    def test_hooks_that_django_has_run_are_not_run_again(self):
        with self.captureOnCommitCallbacks(execute=True):
            note.enqueue()

        assert verdicts(self.queue.run_pending()) == ["ack"]
        assert len(self.queue.enqueued) == 1

    def test_a_push_at_once_is_seen_at_once(self):
        with transaction.atomic():
            priqueue.enqueue(note, {}, on_commit=False)
            self.queue.assert_enqueued(note)

    def test_the_hooks_of_others_are_left_alone(self):
        ran = []
        transaction.on_commit(lambda: ran.append(1))
        note.enqueue()
        self.queue.run_pending()

        assert (ran, len(connection.run_on_commit)) == ([], 3)


class InATransactionTestCaseTests(QueueMixin, TransactionTestCase):
    def test_a_job_comes_with_the_real_commit_and_once(self):
        with transaction.atomic():
            note.enqueue()
            self.queue.assert_not_enqueued(note)

        assert verdicts(self.queue.run_pending()) == ["ack"]
        assert self.queue.run_pending() == []


def test_it_does_not_matter_whether_the_queue_or_the_database_comes_first(queue, db):
    note.enqueue()

    assert verdicts(queue.run_pending()) == ["ack"]


@pytest.mark.django_db
def test_in_pytests_transaction_a_block_of_the_code_under_test_counts_once_it_is_over(queue):
    with transaction.atomic():
        note.enqueue()
        queue.assert_not_enqueued()
    enqueue_and_roll_back()

    queue.assert_enqueued(note, times=1)


@pytest.mark.django_db(transaction=True)
def test_in_a_real_transaction_of_pytest_a_job_comes_with_its_commit(queue):
    with transaction.atomic():
        note.enqueue()
        queue.assert_not_enqueued()

    assert verdicts(queue.run_pending()) == ["ack"]


def test_async_code_enqueues_into_it(queue):
    async def view():
        await priqueue.aenqueue(note, {"n": 1})
        return await sync_to_async(queue.run_pending)()

    assert verdicts(asyncio.run(view())) == ["ack"]
    assert [job.payload for job in queue.enqueued] == [{"n": 1}]

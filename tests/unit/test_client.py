"""The client: what is accepted and as which job, what is refused, and when a job is handed over."""

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from uuid import UUID

import pytest
from django.db import transaction
from django.test import override_settings
from redis.exceptions import ConnectionError, OutOfMemoryError

import priqueue
from priqueue import callers, client, events, handlers
from priqueue.exceptions import (
    InvalidCaller,
    InvalidDelay,
    InvalidLane,
    InvalidPayload,
    PayloadTooLarge,
    QueueFull,
    QueueUnavailable,
    UnknownHandler,
)
from priqueue.jobs import Failure, State
from priqueue.testing import memory_queue
from tests.shop.jobs import note, send_receipt
from tests.support.queues import Queue

URL = "redis://127.0.0.1:1/0"
EMAIL = {"order_id": 7, "email": "a@b.c"}
RUN_AT = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def coordinator():
    with memory_queue() as memory:
        yield memory.coordinator


@pytest.fixture
def queue(coordinator):
    """What looks behind the queue in memory."""
    return Queue(coordinator.client, coordinator.settings)


@pytest.fixture
def heard(monkeypatch):
    """The events that are sent: (name, what)."""
    names = {signal: name for name, signal in vars(events).items() if isinstance(signal, events.Signal)}
    sent = []
    monkeypatch.setattr(events, "send", lambda signal, **what: sent.append((names[signal], what)))
    return sent


@pytest.fixture
def break_down(coordinator, monkeypatch):
    """Let each call to the server end with this error, at once."""

    def _break_down(error):
        def send(*commands):
            raise error

        monkeypatch.setattr(coordinator._scripts, "_deadline_s", 0)
        monkeypatch.setattr(coordinator._scripts._line, "send", send)

    return _break_down


def claim(coordinator, worker_id="worker"):
    coordinator.register(worker_id, lanes=coordinator.settings.lane_names, concurrency=1)
    (claimed,) = coordinator.pull(worker_id)
    return claimed


# ── what is accepted ──


@pytest.mark.parametrize("handler", [send_receipt, "tests.shop.jobs.send_receipt"])
def test_a_job_has_what_was_asked_and_else_what_handler_and_settings_say(queue, handler):
    job = priqueue.enqueue(handler, EMAIL)

    assert (job.name, job.payload, job.lane, job.delay_ms) == ("tests.shop.jobs.send_receipt", EMAIL, "high", 0)
    assert (job.max_attempts, job.timeout, job.caller, job.correlation_id) == (5, 300, "system", "")
    assert queue.state()["ready"] == {"high": [job.id], "default": [], "low": []}
    assert priqueue.get(job.id).job.payload == EMAIL


def test_the_id_is_a_uuid_of_version_7_and_grows(queue):
    ids = [note.enqueue().id for _ in range(3)]

    assert [UUID(job_id).version for job_id in ids] == [7, 7, 7]
    assert ids == sorted(ids)


def test_what_the_handler_says_of_attempts_and_timeout_goes_before_the_settings(queue, monkeypatch):
    monkeypatch.setattr(handlers.registry, "_handlers", {})
    declared = priqueue.job(name="shop.x", max_attempts=0, timeout=1.5)(lambda: None)

    job = declared.enqueue()

    assert (job.max_attempts, job.timeout) == (0, 1.5)


def test_a_former_name_leads_to_the_handler_and_the_job_has_the_present_one(queue, monkeypatch):
    monkeypatch.setattr(handlers.registry, "_handlers", {})
    priqueue.job(name="shop.new", aliases=["shop.old"])(lambda: None)

    assert priqueue.enqueue("shop.old").name == "shop.new"


def test_no_payload_is_an_empty_one(queue):
    assert priqueue.enqueue(note).payload == {}


def test_the_job_does_not_change_with_what_it_was_made_of(queue, monkeypatch):
    monkeypatch.setattr(handlers.registry, "_handlers", {})
    payload = {"items": [1]}
    job = priqueue.enqueue(priqueue.job(name="shop.x")(lambda items: None), payload)

    payload["items"].append(2)

    assert job.payload == priqueue.get(job.id).job.payload == {"items": [1]}


@pytest.mark.parametrize("lane", ["high", "default", "low"])
def test_a_lane_that_is_given_goes_before_the_handlers(queue, lane):
    job = priqueue.enqueue(send_receipt, EMAIL, lane=lane)

    assert (job.lane, queue.state()["ready"][lane]) == (lane, [job.id])


@pytest.mark.parametrize(
    ("options", "delay_ms"),
    [({"delay": 1.5}, 1500), ({"delay": timedelta(minutes=1)}, 60_000), ({"run_at": RUN_AT}, None)],
)
def test_a_job_for_later_waits_in_its_lane(queue, options, delay_ms):
    job = priqueue.enqueue(note, {}, **options)

    assert job.delay_ms == delay_ms
    assert queue.places() == {job.id: "delayed"}


def test_a_job_for_a_moment_that_is_past_is_ready(queue):
    job = priqueue.enqueue(note, {}, run_at=RUN_AT - timedelta(days=20_000))

    assert queue.places() == {job.id: "ready"}


def test_the_due_time_is_told(queue):
    assert priqueue.get(priqueue.enqueue(note, {}, run_at=RUN_AT).id).run_at == RUN_AT


def test_handlers_and_bound_handlers_enqueue_as_the_client_does(queue):
    plain = note.enqueue(n=1)
    bound = note.using(lane="low", delay=30, caller="user:1", correlation_id="c").enqueue(n=2)

    assert (plain.payload, plain.lane, plain.delay_ms) == ({"n": 1}, "default", 0)
    assert (bound.payload, bound.lane, bound.delay_ms) == ({"n": 2}, "low", 30_000)
    assert (bound.caller, bound.correlation_id) == ("user:1", "c")


# ── who asks ──


def test_caller_and_correlation_id_are_those_of_who_acts(queue):
    with priqueue.acting_as("user:42", correlation_id="request-7"):
        inside = note.enqueue()
    outside = note.enqueue()

    assert (inside.caller, inside.correlation_id) == ("user:42", "request-7")
    assert (outside.caller, outside.correlation_id) == ("system", "")
    assert priqueue.get(inside.id).job == inside


def test_a_caller_that_is_given_goes_before_who_acts(queue):
    with priqueue.acting_as("user:42", correlation_id="request-7"):
        job = priqueue.enqueue(note, {}, caller="key:billing", correlation_id="order-1")

    assert (job.caller, job.correlation_id) == ("key:billing", "order-1")


def test_async_code_enqueues_under_its_own_caller(queue):
    async def view():
        with priqueue.acting_as("user:42", correlation_id="request-7"):
            return await priqueue.aenqueue(note, {"n": 1}, lane="low")

    job = asyncio.run(view())

    assert (job.caller, job.correlation_id, job.lane) == ("user:42", "request-7", "low")
    assert queue.places() == {job.id: "ready"}


# ── what is refused ──

REFUSED = [
    ("a name nobody has", ("tests.shop.jobs.notes",), {}, UnknownHandler),
    ("a name of another case", ("tests.shop.jobs.Note",), {}, UnknownHandler),
    ("a wrong type", (note, {"n": "1"}), {}, InvalidPayload),
    ("an argument too many", (note, {"n": 1, "m": 2}), {}, InvalidPayload),
    ("an argument too few", (send_receipt, {"order_id": 7}), {}, InvalidPayload),
    ("no dict", (note, [("n", 1)]), {}, InvalidPayload),
    ("NaN", (note, {"n": float("nan")}), {}, InvalidPayload),
    ("too much", (send_receipt, {"order_id": 7, "email": "x" * 70_000}), {}, PayloadTooLarge),
    ("a negative delay", (note,), {"delay": -1}, InvalidDelay),
    ("a delay that is text", (note,), {"delay": "5"}, InvalidDelay),
    ("a delay of True", (note,), {"delay": True}, InvalidDelay),
    ("a naive time", (note,), {"run_at": RUN_AT.replace(tzinfo=None)}, InvalidDelay),
    ("delay and time", (note,), {"delay": 1, "run_at": RUN_AT}, InvalidDelay),
    ("a caller with a space", (note,), {"caller": "user 42"}, InvalidCaller),
    ("a correlation id with a quote", (note,), {"correlation_id": 'a"b'}, InvalidCaller),
    *(
        (f"the lane {lane!r}", (note,), {"lane": lane}, InvalidLane)
        for lane in ("High", "HIGH", "high ", " high", "hi", "highs", "high\n", "lane:high", "h*", "hígh", 1, b"high")
    ),
]


@pytest.mark.parametrize(
    ("args", "options", "error"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED]
)
def test_a_refused_call_says_why_and_changes_nothing(queue, heard, args, options, error):
    note.enqueue(n=0)
    before = queue.everything()
    heard.clear()

    with pytest.raises(error):
        priqueue.enqueue(*args, **options)

    assert queue.everything() == before
    assert heard == []


@pytest.mark.parametrize("bad", [("tests.shop.jobs.notes", {}), (note, {"n": "1"})])
def test_one_bad_job_of_many_refuses_all(queue, bad):
    before = queue.everything()

    with pytest.raises((UnknownHandler, InvalidPayload)):
        priqueue.enqueue_many([(note, {"n": 1}), (note, {"n": 2}), bad])

    assert queue.everything() == before


def test_an_unknown_lane_is_told_with_the_known_ones(queue):
    with pytest.raises(InvalidLane, match=r"^lane: 'High' is not one of high, default, low$"):
        priqueue.enqueue(note, lane="High")


def test_the_payload_limit_of_the_settings_holds(coordinator):
    with override_settings(PRIQUEUE={"URL": URL, "MAX_PAYLOAD_BYTES": 8}):
        assert note.enqueue(n=10).payload == {"n": 10}
        with pytest.raises(PayloadTooLarge, match="the limit is 8"):
            note.enqueue(n=100)


# ── many at once ──


def test_many_jobs_are_ready_in_their_order_each_in_its_lane(queue):
    jobs = priqueue.enqueue_many([(note, {"n": 1}), (send_receipt, EMAIL), ("tests.shop.jobs.note", {"n": 2})])

    first, second, third = (job.id for job in jobs)
    assert queue.state()["ready"] == {"high": [second], "default": [first, third], "low": []}


def test_many_jobs_share_their_options(queue):
    jobs = priqueue.enqueue_many([(note, {}), (send_receipt, EMAIL)], lane="low", delay=60, caller="user:1")

    assert {(job.lane, job.delay_ms, job.caller) for job in jobs} == {("low", 60_000, "user:1")}
    assert queue.places() == {job.id: "delayed" for job in jobs}


def test_more_jobs_than_a_batch_keep_their_order(queue):
    jobs = priqueue.enqueue_many((note, {"n": n}) for n in range(250))

    assert queue.state()["ready"]["default"] == [job.id for job in jobs]


def test_no_jobs_are_none(queue):
    assert priqueue.enqueue_many([]) == []
    assert queue.everything() == {}


# ── a queue that does not take them ──


def test_an_unanswered_push_names_its_job(queue, heard, break_down):
    break_down(ConnectionError("refused"))

    with pytest.raises(QueueUnavailable, match="the queue did not answer: ConnectionError: refused") as lost:
        note.enqueue()

    assert UUID(lost.value.job_id).version == 7
    assert lost.value.job_id in str(lost.value)
    assert heard == []


def test_an_unanswered_push_of_many_names_the_first_that_may_be_missing(queue, coordinator, monkeypatch):
    note.enqueue(n=0)  # a fresh server has to be told the scripts
    send, sent = coordinator._scripts._line.send, []

    def break_after_two_batches(*commands):
        sent.append(commands)
        if len(sent) > 2:
            raise ConnectionError("refused")
        return send(*commands)

    monkeypatch.setattr(coordinator._scripts, "_deadline_s", 0)
    monkeypatch.setattr(coordinator._scripts._line, "send", break_after_two_batches)

    with pytest.raises(QueueUnavailable) as lost:
        priqueue.enqueue_many((note, {"n": n}) for n in range(250))

    ready = queue.state()["ready"]["default"]
    assert len(ready) == 1 + 200
    assert lost.value.job_id > ready[-1]


def test_a_full_server_refuses_by_name(queue, heard, break_down):
    break_down(OutOfMemoryError("command not allowed when used memory > 'maxmemory'"))

    with pytest.raises(QueueFull, match="memory limit"):
        note.enqueue()

    assert heard == []


# ── the commit ──


@pytest.mark.django_db(transaction=True)
class TestInATransaction:
    def test_a_job_comes_with_the_commit(self, queue, heard):
        with transaction.atomic():
            job = note.enqueue()
            assert (queue.places(), heard) == ({}, [])

        assert queue.places() == {job.id: "ready"}
        assert heard == [("job_enqueued", {"job": job})]

    def test_a_rollback_takes_all_jobs_with_it(self, queue):
        with transaction.atomic():
            priqueue.enqueue_many([(note, {}), (note, {})])
            transaction.set_rollback(True)

        assert queue.everything() == {}

    def test_a_rolled_back_savepoint_takes_only_its_own(self, queue):
        with transaction.atomic():
            kept = note.enqueue()
            with transaction.atomic():
                note.enqueue()
                transaction.set_rollback(True)

        assert queue.places() == {kept.id: "ready"}

    def test_what_is_wrong_is_refused_at_the_call(self, queue):
        with transaction.atomic(), pytest.raises(InvalidPayload):
            note.enqueue(n="1")

    def test_a_push_at_once_does_not_wait_and_survives_a_rollback(self, queue):
        with transaction.atomic():
            job = priqueue.enqueue(note, {}, on_commit=False)
            assert queue.places() == {job.id: "ready"}
            transaction.set_rollback(True)

        assert queue.places() == {job.id: "ready"}

    def test_the_settings_say_what_is_usual(self, queue):
        with override_settings(PRIQUEUE={"URL": URL, "ENQUEUE_ON_COMMIT": False}), transaction.atomic():
            at_once = note.enqueue()
            later = priqueue.enqueue(note, {}, on_commit=True)
            assert queue.places() == {at_once.id: "ready"}

        assert queue.places() == {at_once.id: "ready", later.id: "ready"}

    def test_a_push_that_fails_after_the_commit_is_told_and_stops_no_other(
        self, queue, heard, coordinator, monkeypatch
    ):
        enqueue_many, tries = coordinator.enqueue_many, []

        def fail_first(jobs):
            tries.append(jobs)
            if len(tries) == 1:
                raise QueueUnavailable("gone", job_id=jobs[0].id)
            enqueue_many(jobs)

        monkeypatch.setattr(coordinator, "enqueue_many", fail_first)
        ran = []

        with transaction.atomic():
            first, second = priqueue.enqueue_many([(note, {"n": 1}), (note, {"n": 2})])
            transaction.on_commit(lambda: ran.append(1))

        assert [(name, what["job"].id) for name, what in heard] == [
            ("push_failed", first.id),
            ("job_enqueued", second.id),
        ]
        assert queue.places() == {second.id: "ready"}
        assert ran == [1]

    def test_the_caller_is_who_acted_at_the_call(self, queue):
        with transaction.atomic(), priqueue.acting_as("user:42"):
            job = note.enqueue()

        assert priqueue.get(job.id).job.caller == "user:42"


def test_another_database_can_be_the_one_to_wait_for(queue, monkeypatch):
    hooks = []
    connections = {"default": SimpleNamespace(in_atomic_block=False), "other": SimpleNamespace(in_atomic_block=True)}
    monkeypatch.setattr(client, "connections", connections)
    monkeypatch.setattr(client.transaction, "on_commit", lambda hook, **options: hooks.append((hook, options)))

    job = priqueue.enqueue(note, {}, database="other")

    assert queue.everything() == {}
    ((hook, options),) = hooks
    assert options == {"using": "other", "robust": True}
    hook()
    assert queue.places() == {job.id: "ready"}


# ── get, cancel, stats ──


def test_get_tells_where_a_job_is(coordinator):
    delayed = priqueue.enqueue(note, {}, delay=60)
    ready = note.enqueue(n=1)
    assert (priqueue.get(delayed.id).state, priqueue.get(ready.id).state) == (State.DELAYED, State.READY)

    claimed = claim(coordinator)
    status = priqueue.get(ready.id)
    assert (status.state, status.worker, status.attempt) == (State.IN_FLIGHT, "worker", 1)

    coordinator.bury(claimed, Failure.of(ValueError("no")))
    status = priqueue.get(ready.id)
    assert (status.state, [attempt.error for attempt in status.trail]) == (State.DEAD, ["ValueError"])


def test_get_knows_nothing_of_a_job_that_is_done_or_never_was(coordinator):
    job = note.enqueue()
    coordinator.ack(claim(coordinator))

    assert (priqueue.get(job.id), priqueue.get("no-such-job")) == (None, None)


@pytest.mark.parametrize("options", [{}, {"delay": 60}, {"lane": "low"}])
def test_a_waiting_job_can_be_cancelled_once_and_leaves_nothing(queue, heard, options):
    job = priqueue.enqueue(note, {}, **options)
    heard.clear()

    assert [priqueue.cancel(job.id), priqueue.cancel(job.id)] == [True, False]
    assert heard == [("job_cancelled", {"job_id": job.id})]
    assert queue.places() == {}


def test_a_job_in_flight_or_dead_is_not_cancelled(queue, coordinator, heard):
    job = note.enqueue()
    claimed = claim(coordinator)
    heard.clear()

    assert priqueue.cancel(job.id) is False
    coordinator.bury(claimed, Failure.of(ValueError("no")))
    assert priqueue.cancel(job.id) is False

    assert queue.places() == {job.id: "dead"}
    assert heard == []


def test_an_unknown_job_is_not_cancelled(queue):
    assert priqueue.cancel("no-such-job") is False
    assert queue.everything() == {}


def test_who_cancels_and_why_goes_along(queue, coordinator, monkeypatch):
    job, told = note.enqueue(), []
    monkeypatch.setattr(coordinator, "cancel", lambda job_id, **options: told.append((job_id, options)))

    with callers.acting_as("user:42", reason="ordered twice"):
        priqueue.cancel(job.id)

    assert told == [(job.id, {"lane": "default", "caller": "user:42", "reason": "ordered twice"})]


def test_stats_count_what_is_there(coordinator):
    priqueue.enqueue_many([(note, {})] * 3)
    priqueue.enqueue(note, {}, lane="low", delay=60)
    coordinator.bury(claim(coordinator), Failure.of(ValueError("no")))
    claim(coordinator)

    figures = priqueue.stats()

    assert {name: (lane.ready, lane.delayed, lane.in_flight) for name, lane in figures.lanes.items()} == {
        "high": (0, 0, 0),
        "default": (1, 0, 1),
        "low": (0, 1, 0),
    }
    assert (figures.dead, [worker.id for worker in figures.workers]) == (1, ["worker"])

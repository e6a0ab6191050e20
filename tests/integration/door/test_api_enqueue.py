"""The HTTP door: jobs come in, are looked at and cancelled, by those whose they are."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from priqueue import events, wiring
from priqueue.jobs import Failure, from_ms
from tests.shop.jobs import note, open_note
from tests.support.door import JOB, Holder, problem
from tests.support.queues import Queue

pytestmark = pytest.mark.django_db


# ── one ──


def test_a_job_that_is_asked_for_is_in_the_queue_as_the_callers(queue: Queue, holder: Holder) -> None:
    answer = holder.enqueue(payload={"n": 7, "text": "é"}, lane="high", headers={"X-Request-ID": "r-1"})

    (job_id,) = queue.state()["ready"]["high"]
    assert (answer.status_code, answer.json()) == (202, {"id": job_id, "job": JOB, "lane": "high", "run_at": None})
    assert (answer["X-Request-ID"], answer["Location"]) == ("r-1", f"/api/jobs/{job_id}")
    job = queue.inspector.job(job_id).job  # type: ignore[union-attr]
    assert (job.name, job.caller, job.correlation_id) == (JOB, "key:billing", "r-1")
    assert job.payload_json == '{"n":7,"text":"é"}'


def test_its_audit_event_says_whose_it_is_and_under_which_id(queue: Queue, holder: Holder) -> None:
    answer = holder.enqueue(payload={"n": 7}, headers={"X-Request-ID": "r-1"})

    told = {"action": "enqueue", "caller": "key:billing", "correlation_id": "r-1", "job": answer.json()["id"]}
    assert told.items() <= queue.event().items()


def test_listeners_hear_of_it_once(holder: Holder) -> None:
    heard: list[Any] = []

    def listen(job: Any, **_: Any) -> None:
        heard.append(job.id)

    events.job_enqueued.connect(listen)
    ids = [holder.enqueue(idempotency_key="k").json()["id"] for _ in range(2)]
    events.job_enqueued.disconnect(listen)

    assert heard == ids[:1]


def test_a_job_for_later_says_when_it_is_due(queue: Queue, holder: Holder) -> None:
    before = datetime.now(UTC)

    answer = holder.enqueue(delay=1.5)

    due = datetime.fromisoformat(answer.json()["run_at"])
    assert before + timedelta(seconds=1.4) < due < before + timedelta(seconds=30)
    assert queue.state()["delayed"]["default"] == {answer.json()["id"]: queue.clock.now_ms + 1_500}


@pytest.mark.parametrize("text", ["2030-06-01T12:00:00Z", "2030-06-01T14:00:00+02:00", "2030-06-01T17:45+05:45"])
def test_a_run_at_is_an_instant_in_any_zone(queue: Queue, holder: Holder, text: str) -> None:
    answer = holder.enqueue(run_at=text)

    due = datetime(2030, 6, 1, 12, tzinfo=UTC)
    assert datetime.fromisoformat(answer.json()["run_at"]) == due
    assert queue.state()["delayed"]["default"] == {answer.json()["id"]: due.timestamp() * 1000}


def test_the_handler_says_the_lane_unless_the_caller_does(queue: Queue, holder: Holder) -> None:
    lanes = [holder.enqueue(**extra).json()["lane"] for extra in ({}, {"lane": None}, {"lane": "low"})]

    assert lanes == ["default", "default", "low"]


def test_it_is_pushed_at_once_whatever_transaction_is_around(queue: Queue, holder: Holder) -> None:
    holder.enqueue()  # inside the test's own transaction, which never commits

    assert len(queue.places()) == 1


# ── many ──


def test_each_item_of_a_batch_is_answered_by_itself(queue: Queue, holder: Holder) -> None:
    items: list[Any] = [
        {"job": JOB, "payload": {"n": 1}}, {"job": JOB, "payload": {"n": "1"}}, {"job": note.name},
        {"job": JOB, "lane": "nowhere"}, {"job": JOB, "delay": -1}, 7, {"job": JOB, "lane": "low", "delay": 5},
    ]  # fmt: skip

    answer = holder.send({"jobs": items}, "jobs/batch")

    results = answer.json()["results"]
    assert answer.status_code == 200
    assert [result["status"] for result in results] == [202, 422, 422, 422, 422, 422, 202]
    fields = [[error["field"] for error in (result["problem"] or {"errors": []})["errors"]] for result in results]
    assert fields == [[], ["payload"], ["job"], ["lane"], ["delay"], ["body"], []]
    places = {results[0]["job"]["id"]: "ready", results[6]["job"]["id"]: "delayed"}
    assert queue.places() == places


def test_a_batch_keeps_its_order_within_each_lane(queue: Queue, holder: Holder) -> None:
    lanes = ["low", "high", "low", "high", "low"] * 20

    results = holder.send({"jobs": [{"job": JOB, "lane": lane} for lane in lanes]}, "jobs/batch").json()["results"]

    ids = [result["job"]["id"] for result in results]
    for lane in ("high", "low"):
        assert queue.state()["ready"][lane] == [job_id for job_id, its in zip(ids, lanes, strict=True) if its == lane]


def test_a_batch_in_which_nothing_is_right_is_answered_and_changes_nothing(queue: Queue, holder: Holder) -> None:
    answer = holder.send({"jobs": [{}] * 3}, "jobs/batch")

    assert [result["status"] for result in answer.json()["results"]] == [422] * 3
    assert queue.everything() == {}


@pytest.mark.parametrize("number", [0, 101])
def test_a_batch_holds_from_one_to_a_hundred(queue: Queue, holder: Holder, number: int) -> None:
    answer = holder.send({"jobs": [{"job": JOB}] * number}, "jobs/batch")

    assert problem(answer) == (422, "invalid-request", ["jobs"])
    assert queue.everything() == {}


# ── looking, cancelling ──


def test_a_caller_looks_at_its_own_job(queue: Queue, holder: Holder) -> None:
    job_id = holder.enqueue(delay=60, headers={"X-Request-ID": "r-1"}).json()["id"]

    found = holder.get(f"jobs/{job_id}").json()

    enqueued_at = found.pop("enqueued_at")
    assert datetime.fromisoformat(enqueued_at).tzinfo is not None
    assert found.pop("run_at") == from_ms(queue.clock.now_ms + 60_000).isoformat().replace("+00:00", "Z")
    assert found == {
        "id": job_id, "job": JOB, "lane": "default", "state": "delayed", "attempt": 1, "correlation_id": "r-1"
    }  # fmt: skip


def test_it_is_seen_in_every_state_without_a_word_of_what_went_wrong(queue: Queue, holder: Holder) -> None:
    job_id = holder.enqueue().json()["id"]
    queue.register()
    (claim,) = queue.coordinator.pull("worker")
    in_flight = holder.get(f"jobs/{job_id}")
    queue.coordinator.bury(claim, Failure(error="ValueError", message="a secret", traceback="a secret"))
    dead = holder.get(f"jobs/{job_id}")

    assert (in_flight.json()["state"], dead.json()["state"]) == ("in flight", "dead")
    assert b"secret" not in dead.content


OTHERS: dict[str, Callable[[Queue], str]] = {
    "another key's": lambda queue: queue.enqueue(caller="key:other")[0].id,
    "a user's": lambda queue: queue.enqueue(caller="user:1")[0].id,
    "the system's": lambda queue: queue.enqueue()[0].id,
    "one that begins alike": lambda queue: queue.enqueue(caller="key:billing2")[0].id,
    "nobody's": lambda queue: "0197f0c2-5a7e-7c1c-8c9b-1f6a5b7d9e01",
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_the_jobs_of_others_are_as_unknown_as_those_that_never_were(
    queue: Queue, holder: Holder, other: Callable[[Queue], str]
) -> None:
    job_id = other(queue)
    before = queue.everything()

    answers = [holder.get(f"jobs/{job_id}"), holder.delete(f"jobs/{job_id}")]

    assert [problem(answer) for answer in answers] == [(404, "not-found", [])] * 2
    assert queue.everything() == before


def test_a_job_that_has_not_been_started_is_cancelled(queue: Queue, holder: Holder) -> None:
    ready, delayed = holder.enqueue().json()["id"], holder.enqueue(delay=60).json()["id"]

    answers = [holder.delete(f"jobs/{job_id}") for job_id in (ready, delayed)]

    assert [(answer.status_code, answer.content) for answer in answers] == [(204, b"")] * 2
    assert queue.places() == {}
    assert queue.events()[-1] == ("cancel", "key:billing", delayed)


def test_a_job_that_has_been_started_is_not(queue: Queue, holder: Holder) -> None:
    job_id = holder.enqueue().json()["id"]
    queue.register()
    queue.coordinator.pull("worker")

    assert problem(holder.delete(f"jobs/{job_id}")) == (409, "not-cancellable", [])
    assert queue.places() == {job_id: "in flight"}


@pytest.mark.parametrize("job_id", ["x", "1", "*", "%00", "a%0d%0ab", "0197f0c2", "%F0%9F%98%80"])
def test_what_is_no_id_is_refused_by_name(queue: Queue, holder: Holder, job_id: str) -> None:
    assert problem(holder.get(f"jobs/{job_id}")) == (422, "invalid-request", ["job_id"])
    assert problem(holder.delete(f"jobs/{job_id}"))[0] == 422


# ── lanes ──


def test_a_caller_sees_the_lanes_it_may_use(queue: Queue) -> None:
    narrow = Holder("narrow", lanes=["high", "low"])
    narrow.enqueue(lane="low")
    narrow.enqueue(lane="low", delay=9)
    queue.coordinator.pause("high", caller="user:1", reason="a secret")

    answer = narrow.get("lanes")

    usual = {"ready": 0, "delayed": 0, "in_flight": 0, "oldest_ready_s": 0.0, "paused": False}
    lanes = answer.json()["lanes"]
    lanes[1]["oldest_ready_s"] = 0.0
    assert lanes == [
        {"name": "high", "weight": 6, **usual, "paused": True},
        {"name": "low", "weight": 1, **usual, "ready": 1, "delayed": 1},
    ]
    assert b"secret" not in answer.content


# ── limits ──


def test_the_door_lets_a_hundred_in_at_once_and_says_what_is_left(queue: Queue, holder: Holder) -> None:
    answers = [holder.enqueue() for _ in range(101)]

    assert [answer.status_code for answer in answers] == [202] * 100 + [429]
    assert (answers[0]["RateLimit"], answers[0]["RateLimit-Policy"]) == ('"default";r=99;t=1', '"default";q=100;w=1')
    assert answers[99]["RateLimit"] == '"default";r=0;t=1'
    assert problem(answers[100]) == (429, "rate-limited", [])
    assert (answers[100]["Retry-After"], answers[100]["RateLimit"]) == ("1", '"default";r=0;t=1')
    assert len(queue.places()) == 100


def test_a_key_s_own_rate_goes_before_all_others(queue: Queue) -> None:
    slow = Holder("slow", rate="2/h burst 2")

    answers = [slow.enqueue() for _ in range(3)]

    assert [answer.status_code for answer in answers] == [202, 202, 429]
    assert answers[2]["Retry-After"] == "1800"
    assert answers[2]["RateLimit-Policy"] == '"default";q=2;w=3600'


def test_in_a_batch_what_is_over_the_rate_is_refused_and_the_rest_is_in(queue: Queue) -> None:
    slow = Holder("slow", rate="2/h burst 2")

    answer = slow.send({"jobs": [{"job": JOB}] * 4}, "jobs/batch")

    assert [result["status"] for result in answer.json()["results"]] == [202, 202, 429, 429]
    assert answer["RateLimit"] == '"default";r=0;t=3600'
    assert len(queue.places()) == 2


def test_what_is_refused_as_wrong_costs_nothing_of_the_rate(queue: Queue) -> None:
    slow = Holder("slow", rate="1/h")

    assert [slow.enqueue(payload={"n": "x"}).status_code for _ in range(5)] == [422] * 5

    assert slow.enqueue().status_code == 202


def test_a_full_lane_is_told_with_when_to_try_again(make_queue: Callable[..., Queue], holder: Holder) -> None:
    queue = make_queue(MAX_READY={"low": 1})
    with wiring.override(queue.coordinator):
        holder.enqueue(lane="low")
        before = queue.state()

        answer = holder.enqueue(lane="low")

        assert problem(answer) == (503, "queue-full", [])
        assert int(answer["Retry-After"]) > 0
        assert queue.state() == before


def test_limits_of_the_settings_hold_at_the_door(make_queue: Callable[..., Queue], holder: Holder) -> None:
    with wiring.override(make_queue(RATE_LIMIT={"key:billing": "1/h"}).coordinator):
        assert [holder.enqueue().status_code for _ in range(2)] == [202, 429]
    with wiring.override(make_queue(RATE_LIMIT={"key:": None}).coordinator):
        assert "RateLimit" not in holder.enqueue()


# ── idempotency ──


def test_the_same_key_and_body_are_the_same_job(queue: Queue, holder: Holder) -> None:
    first = holder.enqueue(payload={"n": 1}, headers={"Idempotency-Key": "k 1".replace(" ", "-")})

    again = holder.enqueue(payload={"n": 1}, headers={"Idempotency-Key": "k-1"})
    in_the_body = holder.enqueue(payload={"n": 1}, idempotency_key="k-1")

    assert [answer.status_code for answer in (first, again, in_the_body)] == [202, 200, 200]
    assert first.json() == again.json() == in_the_body.json()
    assert again["Location"] == first["Location"]
    assert queue.places() == {first.json()["id"]: "ready"}


def test_the_order_of_names_and_other_white_space_is_no_other_body(queue: Queue, holder: Holder) -> None:
    first = holder.send(f'{{"job":"{JOB}","payload":{{"n":1,"text":"a"}},"idempotency_key":"k"}}'.encode())

    again = holder.send(
        f'{{ "idempotency_key": "k", "payload": {{"text":"a", "n":1}}, "job":"{JOB}", "delay": null }}'.encode()
    )

    assert (first.json()["id"], again.status_code) == (again.json()["id"], 200)


CHANGED: list[dict[str, Any]] = [
    {"payload": {"n": 2}}, {"payload": {}}, {"lane": "low"}, {"delay": 1}, {"run_at": "2030-06-01T12:00:00Z"},
    {"payload": {"n": 1, "text": ""}},
]  # fmt: skip


@pytest.mark.parametrize("changed", CHANGED, ids=json.dumps)
def test_the_same_key_with_another_body_is_a_conflict_and_changes_nothing(
    queue: Queue, holder: Holder, changed: dict[str, Any]
) -> None:
    holder.enqueue(payload={"n": 1}, idempotency_key="k")
    before = queue.state()

    answer = holder.enqueue(**{"payload": {"n": 1}, **changed}, idempotency_key="k")

    assert problem(answer) == (409, "idempotency-conflict", ["idempotency_key"])
    assert queue.state() == before


def test_two_callers_may_use_one_key(queue: Queue, holder: Holder) -> None:
    ids = {each.enqueue(idempotency_key="k").json()["id"] for each in (holder, Holder("other"))}

    assert len(ids) == len(queue.places()) == 2


def test_a_delayed_job_is_due_when_it_was_however_late_it_is_asked_for_again(holder: Holder) -> None:
    answers = [holder.enqueue(delay=60, idempotency_key="k") for _ in range(2)]

    first, again = (datetime.fromisoformat(answer.json()["run_at"]) for answer in answers)
    assert abs(first - again) < timedelta(milliseconds=50)


def test_in_a_batch_each_item_has_a_key_of_its_own(queue: Queue, holder: Holder) -> None:
    items = [{"job": JOB, "idempotency_key": key, "payload": {"n": n}} for key, n in (("a", 1), ("b", 1), ("a", 1))]
    items.append({"job": JOB, "idempotency_key": "b", "payload": {"n": 2}})

    results = holder.send({"jobs": items}, "jobs/batch").json()["results"]

    assert [result["status"] for result in results] == [202, 202, 200, 409]
    assert results[2]["job"]["id"] == results[0]["job"]["id"]
    assert len(queue.places()) == 2


@pytest.mark.parametrize("key", ["", "a b", "é", "x" * 256, "a\n", "\ud800", 7])
def test_a_key_is_visible_ascii(queue: Queue, holder: Holder, key: Any) -> None:
    assert problem(holder.enqueue(idempotency_key=key)) == (422, "invalid-request", ["idempotency_key"])
    assert queue.everything() == {}


def test_two_different_keys_in_header_and_body_are_refused(queue: Queue, holder: Holder) -> None:
    answer = holder.enqueue(idempotency_key="a", headers={"Idempotency-Key": "b"})

    assert problem(answer) == (422, "invalid-request", ["idempotency_key"])
    assert queue.everything() == {}


def test_the_key_itself_is_nowhere_in_the_queue(queue: Queue, holder: Holder) -> None:
    holder.enqueue(idempotency_key="a-very-special-key")

    assert "a-very-special-key" not in repr(queue.everything())
    assert open_note.name in repr(queue.everything())

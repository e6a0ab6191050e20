"""The HTTP door: what goes wrong inside is in the log under a correlation id, and outsiders get the id alone."""

import logging
from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client, override_settings

import priqueue
from priqueue import apikeys, handlers, wiring
from priqueue.api import submission, views
from priqueue.exceptions import PriqueueError
from priqueue.logs.lines import escaped
from tests.support.door import JOB, Holder, Stranger, problem
from tests.support.queues import Queue

pytestmark = pytest.mark.django_db
SECRET = "a secret of the inside"


def fail(error: Exception) -> Any:
    def failing(*_: Any, **__: Any) -> Any:
        raise error

    return failing


# ── the id ──


@pytest.mark.parametrize("given", ["r-1", "0197f0c2", "a/b:c=d", "x" * 200])
def test_a_valid_request_id_is_the_id_of_all_of_it(queue: Queue, holder: Holder, given: str) -> None:
    good = holder.enqueue(headers={"X-Request-ID": given})
    bad = holder.enqueue(lane="no", headers={"X-Request-ID": given})

    assert (good["X-Request-ID"], bad["X-Request-ID"]) == (given, given)
    assert queue.event()["correlation_id"] == given


@pytest.mark.parametrize("given", ["", "a b", 'a"b', "a\\b", "x" * 201, "a\tb", "\x1b[31m", "a\x85b"])
def test_any_other_is_not_passed_on(queue: Queue, holder: Holder, given: str) -> None:
    answer = holder.enqueue(headers={"X-Request-ID": given})

    assert len(answer["X-Request-ID"]) == 36
    assert queue.event()["correlation_id"] == answer["X-Request-ID"]


def test_beside_the_middleware_there_is_one_id(queue: Queue, holder: Holder, settings: Any) -> None:
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, "priqueue.middleware.PriqueueMiddleware"]
    heard: list[str] = []

    def listen(job: Any, **_: Any) -> None:
        heard.append(priqueue.callers.correlation_id())

    priqueue.events.job_enqueued.connect(listen)
    answer = holder.enqueue()
    priqueue.events.job_enqueued.disconnect(listen)

    assert heard == [answer["X-Request-ID"]] == [queue.event()["correlation_id"]]
    assert queue.event()["caller"] == "key:billing"


def test_every_answer_has_an_id_and_is_not_to_be_stored(holder: Holder) -> None:
    job_id = holder.enqueue().json()["id"]
    answers = [holder.enqueue(), holder.get("lanes"), holder.get(f"jobs/{job_id}"), holder.delete(f"jobs/{job_id}")]
    answers += [holder.send(b""), holder.get("jobs/x"), holder.send({"jobs": [{}]}, "jobs/batch")]
    answers += [holder.get("openapi.json"), holder.get("nope"), holder.get("jobs")]

    assert all(answer["X-Request-ID"] and answer["Cache-Control"] == "no-store" for answer in answers)


# ── addresses and methods ──

NOWHERE = ["", "nope", "jobs/", "jobs/x/y", "lanes/low", "openapi.json/", "docs", "a%0ab", "%00", "%ff"]
ALLOWED = {
    "jobs": "POST", "jobs/batch": "POST", "jobs/0197f0c2-5a7e-7c1c-8c9b-1f6a5b7d9e01": "DELETE, GET", "lanes": "GET",
    "openapi.json": "GET, HEAD",
}  # fmt: skip
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"]


@pytest.fixture
def checked(holder: Holder) -> Client:
    """Somebody with a key, in a project whose middlewares check for CSRF."""
    return Client(enforce_csrf_checks=True, raise_request_exception=False, headers=holder.headers)


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@pytest.mark.parametrize("debug", [True, False])
@pytest.mark.parametrize("path", NOWHERE)
def test_an_address_where_nothing_is_is_told_as_such(checked: Client, path: str, debug: bool, method: str) -> None:
    with override_settings(DEBUG=debug):
        answer = checked.generic(method, f"/api/{path}", headers={"X-Request-ID": "r-1"})

    assert problem(answer) == (404, "not-found", [])
    assert answer["X-Request-ID"] == "r-1"


@pytest.mark.parametrize(
    ("path", "method"),
    [(path, method) for path in ALLOWED for method in METHODS if method not in ALLOWED[path].split(", ")],
)
def test_a_method_that_an_address_does_not_take_is_told_with_those_it_takes(
    queue: Queue, checked: Client, path: str, method: str
) -> None:
    answer = checked.generic(method, f"/api/{path}", b"{}", "application/json", headers={"X-Request-ID": "r-1"})

    assert problem(answer) == (405, "method-not-allowed", [])
    assert (answer["Allow"], answer["X-Request-ID"]) == (ALLOWED[path], "r-1")
    assert queue.everything() == {}


def test_a_stranger_is_told_no_less(holder: Holder) -> None:
    stranger = Stranger()

    assert problem(stranger.get("nope")) == problem(holder.get("nope"))
    assert problem(stranger.get("jobs")) == problem(holder.get("jobs"))


# ── faults of ours ──

FAULTS = [
    RuntimeError(SECRET), KeyError(SECRET), PriqueueError(SECRET), ValueError(SECRET), RecursionError(SECRET),
    UnicodeError(SECRET), AssertionError(SECRET),
]  # fmt: skip


@pytest.mark.parametrize("debug", [True, False])
@pytest.mark.parametrize("error", FAULTS, ids=lambda error: type(error).__name__)
def test_a_fault_is_told_in_the_log_alone(
    queue: Queue, holder: Holder, error: Exception, debug: bool, monkeypatch: Any, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(submission, "draft", fail(error))

    with override_settings(DEBUG=debug):
        answer = holder.enqueue(headers={"X-Request-ID": "r-1"})

    assert problem(answer) == (500, "internal-error", [])
    assert SECRET.encode() not in answer.content
    assert b"Traceback" not in answer.content
    (record,) = [record for record in caplog.records if record.name == "priqueue.api"]
    assert record.correlation_id == "r-1"
    assert "under r-1" in record.getMessage()
    assert SECRET in record.getMessage()
    assert "Traceback" in record.getMessage()
    assert queue.everything() == {}


def test_a_fault_in_one_item_of_a_batch_is_no_half_answer(queue: Queue, holder: Holder, monkeypatch: Any) -> None:
    monkeypatch.setattr(submission, "draft", fail(RuntimeError(SECRET)))

    assert problem(holder.send({"jobs": [{"job": JOB}]}, "jobs/batch")) == (500, "internal-error", [])
    assert queue.everything() == {}


def test_a_fault_before_the_caller_is_known_is_told_alike(holder: Holder, monkeypatch: Any) -> None:
    monkeypatch.setattr(apikeys, "find", fail(RuntimeError(SECRET)))

    assert problem(holder.get("lanes")) == (500, "internal-error", [])


def test_a_handler_whose_annotations_are_broken_is_a_fault_of_ours(
    queue: Queue, holder: Holder, monkeypatch: Any
) -> None:
    monkeypatch.setattr(handlers.registry, "_handlers", {**handlers.registry._handlers})
    scope: dict[str, Any] = {}
    exec("def broken(n: 'SecretName') -> None: ...", scope)
    priqueue.job(api=True, name="broken")(scope["broken"])

    answer = holder.send({"job": "broken", "payload": {"n": 1}})

    assert problem(answer) == (500, "internal-error", [])
    assert b"SecretName" not in answer.content


def test_a_database_that_does_not_answer_is_told_as_such(holder: Holder, monkeypatch: Any) -> None:
    monkeypatch.setattr(apikeys, "find", fail(OperationalError(SECRET)))

    answer = holder.get("lanes")

    assert problem(answer) == (503, "queue-unavailable", [])
    assert int(answer["Retry-After"]) > 0
    assert SECRET.encode() not in answer.content


def test_a_queue_that_does_not_answer_is_told_as_such_with_when_to_try_again(
    queue: Queue, holder: Holder, caplog: pytest.LogCaptureFixture
) -> None:
    queue.give_up_at_once()
    queue.eat_replies()

    answer = holder.enqueue()

    assert problem(answer) == (503, "queue-unavailable", [])
    assert int(answer["Retry-After"]) > 0
    assert answer["X-Request-ID"] in caplog.text
    assert b"eaten" not in answer.content


def test_a_foreign_value_in_the_queue_is_a_fault_of_ours(queue: Queue, holder: Holder) -> None:
    queue.raw.set(queue.keys.lane("default"), "foreign")

    answer = holder.enqueue()

    assert problem(answer) == (500, "internal-error", [])
    assert b"WRONGTYPE" not in answer.content


# ── log lines ──

FORGED = "x\r\n2030-01-01 00:00:00 ERROR forged\x1b[2J\u2028forged\x85forged\u202edegrof\u2066\u200f\ud800"


def test_no_text_from_outside_makes_a_line_of_its_own(
    holder: Holder, monkeypatch: Any, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(views.submission, "draft", fail(RuntimeError(FORGED)))

    holder.enqueue(headers={"X-Request-ID": "r-1"})

    (record,) = [record for record in caplog.records if record.name == "priqueue.api"]
    lines = record.getMessage().splitlines()
    assert len(lines) > 3
    assert all(line.startswith("  | ") for line in lines[1:])
    assert all(line == escaped(line) for line in lines)
    assert r"forged\u202edegrof\u2066\u200f\ud800" in record.getMessage()


@pytest.mark.parametrize("path", ["jobs/a%0d%0aERROR%20forged", "jobs/%1b%5b2J", "jobs/%e2%80%a8forged", "%0aforged"])
def test_an_address_makes_no_line_of_its_own_either(
    holder: Holder, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        holder.get(path)

    for record in caplog.records:
        assert len(record.getMessage().splitlines()) == 1
        assert "\x1b" not in record.getMessage()


def test_the_door_has_less_patience_than_the_workers() -> None:
    wiring._door_of.cache_clear()
    with override_settings(PRIQUEUE={"URL": "redis://127.0.0.1:1/0"}):
        replaced, wiring._replacement = wiring._replacement, None
        try:
            assert wiring.door().settings.socket_timeout_s == 0.4
            assert wiring.coordinator().settings.socket_timeout_s == 2
        finally:
            wiring._replacement = replaced

"""The HTTP door: who may come in. A key as Authorization: Bearer, or a session with the permission and a CSRF token."""

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from priqueue import apikeys, jobs
from priqueue.limits import AT_THE_DOOR
from priqueue.models import ApiKey
from tests.support.door import JOB, Holder, Stranger, problem
from tests.support.queues import Queue

pytestmark = pytest.mark.django_db
NOBODY = (401, "unauthorized", [])


def turned_away(queue: Queue, answer: Any) -> tuple[int, str, list[str]]:
    assert queue.everything() == {}
    return problem(answer)


# ── keys ──


def test_who_shows_nothing_is_turned_away_and_told_how_to_come_in(queue: Queue) -> None:
    stranger = Stranger()

    for answer in (stranger.enqueue(), stranger.get("lanes"), stranger.get("jobs/x"), stranger.delete("jobs/x")):
        assert turned_away(queue, answer) == NOBODY
        assert answer["WWW-Authenticate"] == 'Bearer realm="priqueue"'


def test_nobody_is_told_anything_of_a_body_before_it_is_known_who_sent_it(queue: Queue) -> None:
    assert turned_away(queue, Stranger().send(b"\xff" * 10**6, Content_Type="x/y")) == NOBODY


WRONG: dict[str, Callable[[str], str]] = {
    "nothing": lambda token: "",
    "no scheme": lambda token: token,
    "another scheme": lambda token: f"Basic {token}",
    "two spaces": lambda token: f"Bearer  {token}",
    "a tab": lambda token: f"Bearer\t{token}",
    "a space behind": lambda token: f"Bearer {token} ",
    "quotes": lambda token: f'Bearer "{token}"',
    "upper case": lambda token: f"Bearer {token.upper()}",
    "no prefix": lambda token: f"Bearer {token[3:]}",
    "the prefix alone": lambda token: f"Bearer {token[:16]}",
    "cut short": lambda token: f"Bearer {token[:-1]}",
    "too long": lambda token: f"Bearer {token}0",
    "another last digit": lambda token: f"Bearer {token[:-1]}{'0' if token[-1] != '0' else '1'}",
    "another prefix": lambda token: f"Bearer pq_{'0' * 12}{token[15:]}",
    "two of them": lambda token: f"Bearer {token}, Bearer {token}",
    "its name": lambda token: "Bearer billing",
    "letters of other scripts": lambda token: f"Bearer {token[:-1]}\u00e9",
    "a megabyte": lambda token: "Bearer pq_" + "0" * 10**6,
    "a pattern": lambda token: "Bearer pq_%_%",
    "no token": lambda token: "Bearer",
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_key_that_is_not_exactly_right_is_no_key(queue: Queue, holder: Holder, wrong: Callable[[str], str]) -> None:
    answer = Stranger(Authorization=wrong(holder.token)).enqueue()

    assert turned_away(queue, answer) == NOBODY
    assert holder.fresh().last_used_at is None


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_scheme_is_read_in_any_case(holder: Holder, scheme: str) -> None:
    assert Stranger(Authorization=f"{scheme} {holder.token}").enqueue().status_code == 202


def test_a_token_anywhere_else_is_not_looked_at(queue: Queue, holder: Holder) -> None:
    token, stranger = holder.token, Stranger(**{"X-API-Key": holder.token, "Cookie": f"token={holder.token}"})

    for path in (f"jobs?token={token}", f"jobs?access_token={token}", f"jobs?authorization=Bearer%20{token}"):
        assert turned_away(queue, stranger.enqueue(path=path)) == NOBODY
    assert turned_away(queue, stranger.send({"job": JOB, "token": token})) == NOBODY


def test_a_revoked_key_is_no_key_from_then_on(queue: Queue, holder: Holder) -> None:
    assert holder.enqueue().status_code == 202

    assert apikeys.revoke([holder.key]) == 1

    assert problem(holder.enqueue()) == NOBODY
    assert apikeys.revoke([holder.key]) == 0
    assert len(queue.places()) == 1


def test_a_key_is_good_until_it_expires(holder: Holder) -> None:
    past, ahead = (jobs.now() + timedelta(seconds=seconds) for seconds in (-1, 60))

    ApiKey.objects.filter(pk=holder.key.pk).update(expires_at=ahead)
    assert holder.enqueue().status_code == 202
    ApiKey.objects.filter(pk=holder.key.pk).update(expires_at=past)
    assert problem(holder.enqueue()) == NOBODY


def test_a_deleted_key_is_no_key(holder: Holder) -> None:
    holder.key.delete()

    assert problem(holder.enqueue()) == NOBODY


def test_its_use_is_noted_at_most_once_a_minute(holder: Holder, django_assert_num_queries: Any) -> None:
    holder.enqueue()
    first = holder.fresh().last_used_at

    with django_assert_num_queries(1):  # the look-up
        holder.enqueue()

    assert holder.fresh().last_used_at == first
    ApiKey.objects.filter(pk=holder.key.pk).update(last_used_at=jobs.now() - timedelta(seconds=61))
    holder.enqueue()
    assert jobs.now() - holder.fresh().last_used_at < timedelta(seconds=30)  # type: ignore[operator]


def test_only_its_hash_is_kept(holder: Holder) -> None:
    stored = repr(vars(holder.fresh()))

    assert holder.token[16:] not in stored
    assert len(bytes(holder.fresh().digest)) == 32


def test_the_whole_token_is_compared_in_constant_time_known_or_not(holder: Holder, monkeypatch: Any) -> None:
    compared: list[tuple[int, int]] = []
    compare = apikeys.hmac.compare_digest
    monkeypatch.setattr(apikeys.hmac, "compare_digest", lambda a, b: compared.append((len(a), len(b))) or compare(a, b))

    for token in (holder.token, f"pq_{'0' * 12}_{'0' * 64}", "nonsense"):
        apikeys.find(token)

    assert compared == [(32, 32)] * 3


def test_a_token_is_in_no_log_line_and_nowhere_in_the_queue(
    queue: Queue, holder: Holder, caplog: pytest.LogCaptureFixture
) -> None:
    secret = holder.token[16:]
    with caplog.at_level(logging.DEBUG):
        holder.enqueue(idempotency_key="k")
        holder.enqueue(lane="nowhere")
        holder.send(b"\xff")
        Stranger(Authorization=f"Bearer {holder.token[:-1]}").enqueue()
        holder.get("jobs/x")

    assert caplog.records
    assert secret[:-1] not in caplog.text + repr([vars(record) for record in caplog.records])
    assert secret[:-1] not in repr(queue.everything())


SPOOFED = {
    "X-Forwarded-For": "10.0.0.{n}", "X-Real-IP": "10.0.0.{n}", "Forwarded": "for=10.0.0.{n}", "User-Agent": "a{n}",
    "X-Client-IP": "10.0.0.{n}", "True-Client-IP": "10.0.0.{n}", "CF-Connecting-IP": "10.0.0.{n}", "X-User": "user:{n}",
    "X-Caller": "key:{n}", "X-Forwarded-User": "u{n}", "Remote-User": "u{n}", "From": "a{n}@b.c", "X-API-Key": "pq_{n}",
    "Idempotency-Key": "k{n}", "X-Request-ID": "r{n}", "Host": "testserver", "Referer": "http://{n}.example/",
    "Origin": "http://{n}.example", "X-Original-URL": "/{n}", "X-HTTP-Method-Override": "GET",
}  # fmt: skip


def test_no_header_but_the_key_changes_who_is_limited(queue: Queue) -> None:
    slow = Holder("slow", rate="3/h burst 3")

    answers = [
        slow.enqueue(headers={name: value.format(n=n) for name, value in SPOOFED.items()}, payload={"n": n})
        for n in range(20)
    ]

    assert [answer.status_code for answer in answers] == [202] * 3 + [429] * 17
    assert {queue.inspector.job(job_id).job.caller for job_id in queue.places()} == {"key:slow"}  # type: ignore[union-attr]
    assert len([key for key in queue.everything() if ":limit:" in key]) == 1


def test_two_keys_are_two_callers(queue: Queue) -> None:
    for name in ("a", "b"):
        assert [Holder(name, rate="1/h").enqueue().status_code for _ in range(1)] == [202]

    assert len([key for key in queue.everything() if ":limit:" in key]) == 2


# ── sessions ──


def person(*permissions: str, **options: Any) -> tuple[User, Stranger]:
    user = User.objects.create_user(f"u{User.objects.count()}", **options)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client = Client(enforce_csrf_checks=True, raise_request_exception=False)
    client.force_login(user)
    token = "a" * 32
    client.cookies["csrftoken"] = token
    return user, Stranger(client, **{"X-CSRFToken": token})


def test_a_session_with_the_permission_comes_in_as_its_user(queue: Queue) -> None:
    user, somebody = person("enqueue_job")

    answer = somebody.enqueue()

    assert answer.status_code == 202
    assert queue.inspector.job(answer.json()["id"]).job.caller == f"user:{user.pk}"  # type: ignore[union-attr]
    assert answer["RateLimit-Policy"].startswith(f'"default";q={AT_THE_DOOR.burst}')
    assert somebody.get(f"jobs/{answer.json()['id']}").status_code == 200
    assert somebody.delete(f"jobs/{answer.json()['id']}").status_code == 204


def test_a_session_without_the_permission_does_not(queue: Queue) -> None:
    _, somebody = person("view_apikey", is_staff=True)

    for answer in (somebody.enqueue(), somebody.get("lanes"), somebody.delete("jobs/x")):
        assert turned_away(queue, answer) == (403, "forbidden", [])


@pytest.mark.parametrize("headers", [{}, {"X-CSRFToken": "b" * 32}, {"X-CSRFToken": ""}])
def test_a_session_without_its_csrf_token_changes_nothing(queue: Queue, headers: dict[str, str]) -> None:
    _, somebody = person("enqueue_job")
    somebody.headers = headers

    for answer in (somebody.enqueue(), somebody.delete("jobs/0197f0c2-5a7e-7c1c-8c9b-1f6a5b7d9e01")):
        assert turned_away(queue, answer) == (403, "forbidden", [])
    assert somebody.get("lanes").status_code == 200


def test_a_form_of_another_site_changes_nothing(queue: Queue) -> None:
    _, somebody = person("enqueue_job")

    answer = somebody.send(b"csrfmiddlewaretoken=" + b"a" * 32, Content_Type="application/x-www-form-urlencoded")

    assert turned_away(queue, answer)[0] == 415


def test_a_key_needs_no_csrf_token_and_a_wrong_key_is_not_saved_by_a_session(queue: Queue, holder: Holder) -> None:
    _, somebody = person("enqueue_job")
    somebody.headers |= {"Authorization": "Bearer wrong"}

    assert turned_away(queue, somebody.enqueue()) == NOBODY
    somebody.headers = {"Authorization": f"Bearer {holder.token}"}
    assert somebody.enqueue().status_code == 202


def test_a_user_that_was_switched_off_does_not_come_in(queue: Queue) -> None:
    user, somebody = person("enqueue_job")
    user.is_active = False
    user.save()

    assert turned_away(queue, somebody.enqueue()) == NOBODY

"""The HTTP door in other surroundings: under ASGI, on PostgreSQL, in a transaction of the request, in users' tests."""

import json
from collections.abc import Iterator
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync
from django.db import connections
from django.test import AsyncClient, Client

from priqueue import apikeys, jobs
from priqueue.models import ApiKey
from priqueue.testing import memory_queue
from tests.shop.jobs import open_note
from tests.support.databases import ALIAS, Postgres
from tests.support.door import JOB, Holder, open_door
from tests.support.queues import Queue
from tests.support.reviewing import with_admin

pytestmark = pytest.mark.django_db


@pytest.fixture
def door(real_queue: Queue) -> Iterator[Queue]:
    with open_door(real_queue):
        yield real_queue


def test_under_asgi_it_takes_jobs_and_refuses_what_has_no_length(door: Queue) -> None:
    holder, client = Holder(), AsyncClient()
    send = async_to_sync(client.post)
    body = json.dumps({"job": JOB})

    good = send("/api/jobs", body, content_type="application/json", headers=holder.headers)
    large = send("/api/jobs", b" " * 10**5, content_type="application/json", headers=holder.headers)
    chunked = send(
        "/api/jobs", body, content_type="application/json", headers={**holder.headers, "Transfer-Encoding": "chunked"}
    )

    assert [answer.status_code for answer in (good, large, chunked)] == [202, 413, 411]
    assert list(door.places()) == [good.json()["id"]]


def test_the_jobs_of_a_users_test_come_into_its_queue_in_memory() -> None:
    with memory_queue() as queue, with_admin("tests.door_urls"):
        answer = Holder().enqueue(payload={"n": 3})

        assert answer.status_code == 202
        queue.assert_enqueued(open_note, {"n": 3}, times=1)
        assert [outcome.verdict for outcome in queue.run_pending()] == ["ack"]


@pytest.mark.parametrize("atomic", [True, False])
def test_a_request_in_a_transaction_pushes_at_once_all_the_same(door: Queue, atomic: bool) -> None:
    holder = Holder()
    connections["default"].settings_dict["ATOMIC_REQUESTS"] = atomic
    try:
        assert holder.enqueue().status_code == 202
    finally:
        connections["default"].settings_dict["ATOMIC_REQUESTS"] = False

    assert len(door.places()) == 1


@pytest.fixture
def on_postgres(audit_postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """API keys on PostgreSQL."""
    monkeypatch.setattr(apikeys.router, "db_for_read", lambda *_, **__: ALIAS)
    monkeypatch.setattr(ApiKey, "objects", ApiKey._base_manager.using(ALIAS))


def test_a_key_on_postgresql_is_found_used_and_revoked(on_postgres: None) -> None:
    key = ApiKey(name="billing", lanes=["low"], handlers=["*"], rate="5/min", expires_at=jobs.now() + timedelta(days=1))
    token = apikeys.furnish(key)
    key.save(using=ALIAS)

    found = apikeys.find(token)

    assert found is not None
    assert (found.name, found.lanes, found.handlers, str(found.limit)) == ("billing", ["low"], ["*"], "5/min burst 1")
    used_at = ApiKey.objects.get().last_used_at
    assert used_at is not None
    assert apikeys.find(token) == found
    assert ApiKey.objects.get().last_used_at == used_at
    assert apikeys.find(token[:-1] + "x") is None
    ApiKey.objects.update(expires_at=jobs.now())
    assert apikeys.find(token) is None
    ApiKey.objects.update(expires_at=None)
    assert apikeys.revoke([key]) == 1
    assert apikeys.find(token) is None


def test_the_document_is_served_without_a_key(door: Queue) -> None:
    assert Client().get("/api/openapi.json").json()["info"]["title"] == "priqueue"

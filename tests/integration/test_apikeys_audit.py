"""The audit log tells who made, changed or revoked which API key, and never a secret."""

import logging
from collections.abc import Callable, Iterator
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test import Client

from priqueue import apikeys, callers, wiring
from priqueue.exceptions import QueueUnavailable
from priqueue.management.sessions import user
from priqueue.models import ApiKey
from tests.support.door import JOB, Holder, open_door
from tests.support.queues import Queue
from tests.support.reviewing import client_of

pytestmark = pytest.mark.django_db
LIST = "/admin/priqueue/apikey/"
FORM = {"name": "billing", "lanes": ["low"], "handlers": [JOB], "rate": "5/min"}
Committing = Callable[..., Any]


@pytest.fixture
def queue(real_queue: Queue) -> Iterator[Queue]:
    """A queue behind a door, in a project with the admin."""
    with open_door(real_queue):
        yield real_queue


@pytest.fixture
def committing(django_capture_on_commit_callbacks: Committing) -> Callable[[], Any]:
    """Return what lets that happen at the end of a block which a commit sets off."""
    return lambda: django_capture_on_commit_callbacks(execute=True)


@pytest.fixture
def root(queue: Queue) -> Client:
    """A superuser's browser, in an admin that can keep its own log."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE django_admin_log (id integer PRIMARY KEY, action_time text, object_id text, object_repr text,"
            " action_flag integer, change_message text, content_type_id integer, user_id integer)"
        )
    return client_of(User.objects.create_superuser("root"))


def told(queue: Queue) -> list[tuple[str, str, str]]:
    """Return what the audit log has of keys: action, outcome and caller."""
    return [(event["action"], event["outcome"], event["caller"]) for event in events(queue)]


def events(queue: Queue) -> list[dict[str, str]]:
    return [event for _, event in queue.raw.xrange(queue.keys.audit)]


def apikey(*options: str) -> str:
    out = StringIO()
    call_command("apikey", *options, stdout=out, stderr=StringIO())
    return out.getvalue().strip()


def test_a_key_that_is_made_and_revoked_by_command_is_noted(queue: Queue, committing: Committing) -> None:
    with committing():
        token = apikey("create", "billing", "--handlers", JOB, "--lanes", "low,high", "--rate", "5/min", "--days", "3")
        apikey("revoke", "billing")

    who, key = f"command:{user()}", ApiKey.objects.get()
    assert told(queue) == [("create", "created", who), ("revoke", "revoked", who)]
    ends = key.expires_at.isoformat(timespec="seconds")  # type: ignore[union-attr]
    about = f"key:billing pq_{key.prefix}, lanes low,high, handlers {JOB}, rate 5/min, expires {ends}"
    assert [event["input"] for event in events(queue)] == [about, about]
    assert token[16:] not in str(events(queue))


def test_what_did_not_come_about_is_not_noted(queue: Queue, committing: Committing) -> None:
    with committing():
        holder = Holder()
        apikeys.revoke([holder.key])
    before = events(queue)

    with committing():
        for options in (["create", "billing", "--handlers", "*"], ["revoke", "billing"], ["revoke", "nobody"]):
            with pytest.raises(CommandError):
                apikey(*options)
        with transaction.atomic():
            apikeys.create("other", lanes=["*"], handlers=["*"])
            transaction.set_rollback(True)

    assert events(queue) == before
    assert [event["action"] for event in before] == ["create", "revoke"]


def test_keys_made_changed_revoked_and_deleted_in_the_admin_are_noted(
    queue: Queue, root: Client, committing: Committing
) -> None:
    with committing():
        root.post(f"{LIST}add/", FORM)
        key = ApiKey.objects.get()
        root.post(f"{LIST}{key.pk}/change/", {**FORM, "lanes": ["high"], "rate": ""})
        root.post(LIST, {"action": "revoke", "_selected_action": [key.pk]})
        root.post(f"{LIST}{key.pk}/delete/", {"post": "yes"})
        others = [Holder("a").key.pk, Holder("b").key.pk]
        root.post(LIST, {"action": "delete_selected", "_selected_action": others, "post": "yes"})

    me = f"user:{User.objects.get().pk}"
    assert not ApiKey.objects.exists()
    assert told(queue) == [
        ("create", "created", me), ("change", "changed", me), ("revoke", "revoked", me), ("revoke", "deleted", me),
        ("create", "created", "system"), ("create", "created", "system"),
        ("revoke", "deleted", me), ("revoke", "deleted", me),
    ]  # fmt: skip
    assert [event["input"].partition(", ")[2] for event in events(queue)[:2]] == [
        f"lanes low, handlers {JOB}, rate 5/min burst 1", f"lanes high, handlers {JOB}",
    ]  # fmt: skip
    assert all(event["correlation_id"] for event in events(queue) if event["caller"] == me)


def test_a_form_that_was_refused_notes_nothing(queue: Queue, root: Client, committing: Committing) -> None:
    with committing():
        root.post(f"{LIST}add/", {**FORM, "rate": "often"})

    assert events(queue) == []


@pytest.mark.parametrize("audit", ["callers", "off"])
def test_the_log_keeps_of_it_what_it_is_set_to_keep(queue: Queue, committing: Committing, audit: str) -> None:
    other = queue.with_settings(AUDIT=audit)
    with wiring.override(other.coordinator), committing(), callers.acting_as("command:ana"):
        Holder()

    assert told(other) == ([("create", "created", "command:ana")] if audit == "callers" else [])


def test_a_key_is_revoked_while_the_queue_is_away_and_the_log_has_it(
    queue: Queue, committing: Committing, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def away(*_: object) -> None:
        raise QueueUnavailable("away")

    holder = Holder()
    monkeypatch.setattr(queue.coordinator, "note", away)

    with committing():
        assert apikey("revoke", "billing") == "revoked billing"

    assert holder.enqueue().status_code == 401
    (record,) = [record for record in caplog.records if record.name == "priqueue.apikeys"]
    assert record.levelno == logging.WARNING
    assert record.getMessage() == (
        f"could not note 'revoked' of command:{user()}: key:billing pq_{holder.key.prefix}, lanes *, handlers *: away"
    )

"""The export of dead letters: a line for each, and in the audit log who took them along, how many, and whether all."""

import json
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.auth.models import User
from django.test import AsyncClient, Client

from priqueue.exceptions import QueueUnavailable
from priqueue.models import AuditEvent
from priqueue.views import exporting, reading
from priqueue.views.review import paired
from tests.support.auditing import auditor
from tests.support.queues import Queue
from tests.support.tending import DEAD, bury
from tests.support.visiting import shown_queue, with_every_right

pytestmark = pytest.mark.django_db
queue, person = shown_queue, with_every_right
ALL_LOW = "lane=low, with payloads"


@pytest.fixture(autouse=True)
def _two_in_a_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporting, "_BATCH", 2)


def exports(queue: Queue) -> list[tuple[str, str]]:
    """Return input and outcome of what was noted of exports."""
    events = [event for _, event in queue.raw.xrange(queue.keys.audit)]
    return [(event["input"], event["outcome"]) for event in events if event["action"] == "export"]


def test_it_has_a_line_for_each_letter_of_the_filter(queue: Queue, person: Client) -> None:
    made = bury(queue, 3, lane="low", payload={"n": "=1+1"})
    bury(queue)

    export = person.get(f"{DEAD}export/?lane=low")

    found = [json.loads(line) for line in b"".join(export).decode().splitlines()]
    assert [letter["id"] for letter in found] == made
    assert (found[0]["payload"], found[0]["trail"][0]["message"]) == ({"n": "=1+1"}, "no")
    assert export["Content-Disposition"].startswith("attachment")
    assert export["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(("number", "told"), [(0, "0 letters"), (1, "1 letter"), (5, "5 letters")])
def test_it_is_noted_before_it_begins_and_when_all_of_it_was_sent(
    queue: Queue, person: Client, number: int, told: str
) -> None:
    bury(queue, number, lane="low")

    export = person.get(f"{DEAD}export/?lane=low")
    before = exports(queue)
    b"".join(export)
    export.close()

    assert before == [(ALL_LOW, "intended")]
    assert exports(queue) == [(ALL_LOW, "intended"), (ALL_LOW, f"exported {told}")]


@pytest.mark.parametrize(("pieces", "told"), [(0, "0 letters"), (2, "4 letters")])
def test_who_goes_away_before_its_end_leaves_it_broken_off(
    queue: Queue, person: Client, pieces: int, told: str
) -> None:
    bury(queue, 5, lane="low")

    export = person.get(f"{DEAD}export/?lane=low")
    for _ in range(pieces):
        next(export.streaming_content)
    export.close()

    assert exports(queue) == [(ALL_LOW, "intended"), (ALL_LOW, f"broken off after {told}")]


def test_who_goes_away_under_asgi_leaves_it_broken_off_as_well(queue: Queue, person: Client) -> None:
    bury(queue, 5, lane="low")
    client = AsyncClient()

    async def one_piece() -> bytes:
        await client.aforce_login(await User.objects.aget())
        export: Any = await client.get(f"{DEAD}export/?lane=low")
        piece = await anext(aiter(export.streaming_content))
        await sync_to_async(export.close)()
        return bytes(piece)

    assert len(async_to_sync(one_piece)().splitlines()) == 2
    assert exports(queue) == [(ALL_LOW, "intended"), (ALL_LOW, "broken off after 2 letters")]


def test_letters_that_cannot_be_read_any_more_break_it_off(
    queue: Queue, person: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    bury(queue, 5, lane="low")
    export = person.get(f"{DEAD}export/?lane=low")
    next(export.streaming_content)
    monkeypatch.setattr(reading.desk().letters, "opened", away)

    with pytest.raises(QueueUnavailable):
        b"".join(export)
    export.close()

    assert exports(queue) == [(ALL_LOW, "intended"), (ALL_LOW, "broken off after 2 letters: QueueUnavailable")]


def away(*_: object) -> None:
    raise QueueUnavailable("away")


def test_an_end_that_cannot_be_noted_is_in_the_log(
    queue: Queue, person: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    export = person.get(f"{DEAD}export/")
    monkeypatch.setattr(reading.desk().coordinator, "note", away)

    assert b"".join(export) == b""

    (user,) = User.objects.all()
    (record,) = [record for record in caplog.records if record.name == "priqueue.views.noting"]
    assert record.getMessage() == (
        f"could not note 'exported 0 letters' of user:{user.pk} at /queue/dead/export/: away"
    )


def test_the_review_shows_it_as_one_row(queue: Queue, person: Client, audit_database: str) -> None:
    bury(queue, 3, lane="low")
    b"".join(person.get(f"{DEAD}export/?lane=low"))
    while auditor(queue).run_once() == 0:
        pass

    rows = paired(AuditEvent.objects.using(audit_database).filter(action="export"))

    assert [(row.event.outcome, row.intent is not None, row.is_open) for row in rows] == [
        ("exported 3 letters", True, False),
    ]  # fmt: skip


def test_to_ask_for_its_head_exports_nothing_and_is_not_audited(queue: Queue, person: Client) -> None:
    bury(queue, 3)
    before = queue.events()

    head = person.head(f"{DEAD}export/")

    assert (head.status_code, head["Content-Type"]) == (200, "application/x-ndjson; charset=utf-8")
    assert b"".join(head) == b""
    assert queue.events() == before


def test_a_filter_that_is_not_understood_is_refused(queue: Queue, person: Client) -> None:
    assert person.get(f"{DEAD}export/?since=x").status_code == 400

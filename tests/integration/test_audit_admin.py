"""The audit log in the admin: to read, by those who may, page by page, and to take along; never to change."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client
from django.test.utils import CaptureQueriesContext

import priqueue
from priqueue.audit import pages
from priqueue.audit.pages import ACTIONS
from tests.support.auditing import by_force, rows
from tests.support.databases import ALIAS
from tests.support.reviewing import LIST, client_of, ids, keep, link, staff, with_admin

MARKER = "<script>alert(1)</script>\"'>{{7*7}}"
VIEW = "view_auditevent"

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _admin(db: None, audit_database: str) -> Iterator[None]:
    with with_admin():
        yield


@pytest.fixture
def reader() -> Client:
    """The browser of somebody who may read the log, and payloads."""
    return client_of(staff("reader", VIEW, "view_payload"))


# ── who may ──

ADDRESSES = [LIST, f"{LIST}1/change/", f"{LIST}export/csv/", f"{LIST}export/jsonl/"]
HANDS = ["add/", "1/change/", "1/delete/", "", "export/csv/"]


@pytest.mark.parametrize("address", ADDRESSES)
def test_only_who_may_view_sees_it(address: str, reader: Client) -> None:
    keep({})

    asked = (Client(), client_of(staff("other", "view_user")), reader, client_of(User.objects.create_superuser("root")))

    assert [client.get(address).status_code for client in asked] == [302, 403, 200, 200]


@pytest.mark.parametrize("address", HANDS)
def test_not_even_a_superuser_changes_anything_by_a_post_made_by_hand(address: str) -> None:
    keep({"reason": "as it was"})
    before = [vars(row) | {"_state": None} for row in rows()]
    by_hand = {
        "reason": "x", "post": "yes", "_save": "Save", "action": "delete_selected", "_selected_action": "1", "index": 0
    }  # fmt: skip

    answer = client_of(User.objects.create_superuser("root")).post(LIST + address, by_hand)

    assert answer.status_code == 403
    assert [vars(row) | {"_state": None} for row in rows()] == before


def test_nothing_to_add_change_or_delete_is_offered() -> None:
    keep({})
    root = client_of(User.objects.create_superuser("root"))

    offered = root.get(LIST).content.decode() + root.get(f"{LIST}1/change/").content.decode()

    assert not re.search(r'auditevent/add/|auditevent/1/delete/|delete_selected|name="_save"|name="_continue"', offered)


# ── what is shown ──

EVENTS = [
    {"action": "enqueue", "caller": "user:1", "job": "a", "lane": "low", "handler": "one", "correlation_id": "r"},
    {"action": "claim", "caller": "worker:w", "job": "a", "lane": "low", "handler": "one", "correlation_id": "r"},
    {"action": "enqueue", "caller": "user:2", "job": "b", "lane": "high", "handler": "two", "correlation_id": "r"},
    {"action": "ack", "caller": "worker:w", "job": "a", "lane": "low", "handler": "one", "correlation_id": "r"},
    {"action": "pause", "caller": "user:1", "job": "", "lane": "low", "handler": ""},
]
SHOWN = [
    ("", [5, 4, 3, 2, 1]),
    ("action=enqueue", [3, 1]),
    ("caller=user:1", [5, 1]),
    ("caller=user", []),
    ("lane=low", [5, 4, 2, 1]),
    ("handler=two", [3]),
    ("lane=low&caller=worker:w", [4, 2]),
    ("since=1970-01-01T00:00:02&until=1970-01-01T00:00:04", [3, 2]),
    ("since=1970-01-01T00:00:02&caller=user:1", [5]),
    ("job=a", [1, 2, 4]),
    ("correlation_id=r", [1, 2, 3, 4]),
    ("job=a&since=1970-01-01T00:00:02", [2, 4]),
    ("job=%25", []),
]


@pytest.mark.parametrize(("query", "shown"), SHOWN)
def test_a_filter_shows_its_rows_newest_first_and_a_life_from_its_beginning(
    query: str, shown: list[int], reader: Client
) -> None:
    keep(*EVENTS)

    assert ids(reader.get(f"{LIST}?{query}")) == shown


@pytest.mark.parametrize(
    "query", ["action=nonsense", "since=yesterday", "before=x", "after=0", "job=%00", "before=1e9"]
)
def test_a_filter_that_is_not_understood_shows_nothing_and_exports_nothing(query: str, reader: Client) -> None:
    keep(*EVENTS)

    page, export = reader.get(f"{LIST}?{query}"), reader.get(f"{LIST}export/csv/?{query}")

    assert ids(page) == []
    assert "is not understood" in page.content.decode()
    assert export.status_code == 400


def test_an_event_leads_to_the_life_of_its_job_and_of_its_request(reader: Client) -> None:
    keep(*[event | {"job": "a/b?c&d", "correlation_id": " r#1 +"} for event in EVENTS[:2]], EVENTS[2])

    event = reader.get(f"{LIST}1/change/")

    for name in ("The job&#x27;s whole life|The job's whole life", "All of this request"):
        assert ids(reader.get(link(event, f"(?:{name})") or "")) == [1, 2]


def test_an_event_is_shown_with_all_that_its_hash_covers(reader: Client) -> None:
    keep(EVENTS[0] | {"input": "the input", "reason": "the reason", "outcome": "the outcome"})
    (row,) = rows()

    shown = reader.get(f"{LIST}1/change/").content.decode()

    said = ("enqueue", "user:1", "the input", "the reason", "the outcome", "1970-01-01 00:00:01.000", "1-0")
    assert [text for text in (*said, bytes(row.hash).hex(), bytes(row.previous).hex()) if text not in shown] == []


def test_a_time_that_no_calendar_has_is_shown_as_its_number(reader: Client) -> None:
    keep({"at": str(2**62)})

    assert f"{2**62} ms" in reader.get(LIST).content.decode()
    assert f"{2**62} ms" in reader.get(f"{LIST}1/change/").content.decode()


def test_markup_in_any_field_is_shown_and_never_obeyed(reader: Client) -> None:
    texts = ("action", "caller", "job", "handler", "lane", "input", "outcome", "reason", "correlation_id")
    keep({name: MARKER[:32] if name == "action" else MARKER for name in texts})
    echoed = dict.fromkeys(("job", "correlation_id", "caller", "lane", "handler", "action", "since"), MARKER)

    answers = [reader.get(LIST), reader.get(f"{LIST}1/change/"), reader.get(LIST, echoed)]

    assert ["<script>alert" in answer.content.decode() for answer in answers] == [False] * 3
    assert ["&lt;script&gt;alert" in answer.content.decode() for answer in answers] == [True] * 3


def test_the_pages_need_no_script_or_style_of_their_own(reader: Client) -> None:
    keep({})

    for address in (LIST, f"{LIST}1/change/", f"{LIST}?action=x"):
        page = reader.get(address).content.decode()
        assert re.findall(r"<style|<script(?![^>]* src=)[^>]*>|\son\w+=|\sstyle=|javascript:", page) == []


def test_the_actions_to_choose_from_are_those_of_the_scripts_and_of_notes() -> None:
    folder = Path(priqueue.__file__).parent / "coordinator" / "lua"
    emitted = {name for file in folder.rglob("*.lua") for name in re.findall(r"emit\('(\w+)'", file.read_text())}

    noted = {"view", "export", "create", "change", "revoke"}  # that are no transition
    assert set(ACTIONS) == emitted | noted | {"archive"}


# ── what was intended, and what came of it ──

NO_JOB = {"job": "", "lane": "", "handler": ""}
ACT = {"action": "purge", "caller": "user:1", "input": "2 letters", "reason": "old", **NO_JOB}
INTENT, OUTCOME = (ACT | {"correlation_id": "act", "outcome": outcome} for outcome in ("intended", "purged 2"))
DONE = ACT | {"job": "a", "handler": "h", "input": "", "correlation_id": "r", "outcome": "gone"}


@pytest.mark.parametrize("query", ["", "correlation_id=act", "action=purge"])
def test_an_outcome_stands_in_one_row_with_its_intent(query: str, reader: Client) -> None:
    keep(INTENT, DONE, OUTCOME)

    page = reader.get(f"{LIST}?{query}")

    assert 1 not in ids(page)
    assert 3 in ids(page)
    assert f'intended <a href="{LIST}1/change/">1970-01-01 00:00:01.000</a>' in page.content.decode()
    assert "no outcome here" not in page.content.decode()


def test_an_intent_without_an_outcome_is_marked(reader: Client) -> None:
    keep(INTENT | {"correlation_id": "other"}, DONE, OUTCOME)

    page = reader.get(LIST)

    assert ids(page) == [3, 2, 1]
    assert page.content.decode().count("no outcome here") == 1


def test_an_act_that_was_stopped_and_gone_on_with_has_both_its_pairs(reader: Client) -> None:
    keep(INTENT, OUTCOME | {"outcome": "stopped: purged 1 of 2"}, INTENT, OUTCOME | {"outcome": "done: purged 2 of 2"})

    page = reader.get(LIST)

    assert ids(page) == [4, 2]
    assert "no outcome here" not in page.content.decode()


# ── a database that is away ──


@pytest.mark.parametrize("path", ["", "1/change/", "export/csv/", "export/jsonl/"])
def test_a_database_that_is_away_is_said_to_be_and_the_rest_of_the_admin_goes_on(path: str, reader: Client) -> None:
    keep({})
    by_force("ALTER TABLE priqueue_auditevent RENAME TO elsewhere")

    page = reader.get(LIST + path)

    assert page.status_code == 503
    assert "Audit log unavailable" in page.content.decode()
    assert "How many events wait in Redis is not known either." in page.content.decode()


# ── page by page ──


def walk(reader: Client, query: str, name: str) -> list[list[int]]:
    """Follow the links of this name from the first page on, to the end."""
    address: str | None = f"{LIST}?{query}"
    found = []
    while address is not None:
        page = reader.get(address)
        found.append(ids(page))
        following = link(page, name)
        address = following and LIST + following
    return found


@pytest.mark.parametrize(
    "query", ["", "caller=worker:w", "since=1970-01-01T00:00:00", "lane=high&since=1970-01-01", "lane=high&action=ack"]
)
@pytest.mark.parametrize("number", [20, 25])
def test_pages_are_complete_and_repeat_nothing_there_and_back(
    query: str, number: int, reader: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "SIZE", 5)
    keep(*[{"at": "1000"}] * number)
    there = walk(reader, query, "Older")

    back = walk(reader, f"{query}&after=1", "Newer")

    assert there == [list(range(top, max(top - 5, 0), -1)) for top in range(number, 0, -5)]
    assert sorted(shown for page in back for shown in page) == list(range(2, number + 1))


def test_a_long_life_is_read_forward_page_by_page(reader: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "SIZE", 5)
    keep(*[{"job": "a"}] * 12)

    assert walk(reader, "job=a", "Newer") == [[1, 2, 3, 4, 5], [6, 7, 8, 9, 10], [11, 12]]
    assert walk(reader, "job=a&before=11", "Older") == [[6, 7, 8, 9, 10], [1, 2, 3, 4, 5]]


def test_pages_by_time_go_by_when_it_happened(reader: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "SIZE", 2)
    keep(*[{"at": at} for at in ("5000", "1000", "4000", "4000", "2000")])

    assert walk(reader, "since=1970-01-01T00:00:01", "Older") == [[1, 4], [3, 5], [2]]


def test_a_row_that_comes_meanwhile_shifts_no_page(reader: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "SIZE", 2)
    keep({}, {}, {}, {})
    first = reader.get(LIST)

    keep(*[{}] * 6)  # of these, two are new

    assert ids(first) == [4, 3]
    assert ids(reader.get(LIST + (link(first, "Older") or ""))) == [2, 1]


@pytest.mark.parametrize("number", [1, 150])
def test_a_list_is_one_query_of_the_log_and_counts_nothing(number: int, reader: Client) -> None:
    keep(*[{}] * number)

    with CaptureQueriesContext(connections[ALIAS]) as queries:
        for query in ("", "lane=high", "job=j", "since=1970-01-01"):
            reader.get(f"{LIST}?{query}")

    statements = [query["sql"] for query in queries]
    assert len(statements) == 4
    assert not any("COUNT" in sql or "DISTINCT" in sql or "LIKE" in sql or "OFFSET" in sql for sql in statements)

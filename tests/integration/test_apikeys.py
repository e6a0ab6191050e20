"""API keys: made, listed and revoked by command and in the admin; the token is shown once and kept nowhere."""

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client

from priqueue import apikeys, jobs
from priqueue.models import ApiKey
from tests.shop.jobs import note
from tests.support.door import JOB, Holder, Stranger, open_door
from tests.support.queues import Queue
from tests.support.reviewing import client_of, staff

pytestmark = pytest.mark.django_db
LIST = "/admin/priqueue/apikey/"
TOKEN = re.compile(r"pq_[0-9a-f]{12}_[0-9a-f]{64}")


@pytest.fixture(autouse=True)
def door(real_queue: Queue) -> Iterator[None]:
    with open_door(real_queue):
        yield


def apikey(*options: str) -> str:
    """Run the command; return what it prints."""
    out = StringIO()
    call_command("apikey", *options, stdout=out, stderr=StringIO())
    return out.getvalue().strip()


def refusal(*options: str) -> str:
    with pytest.raises(CommandError) as caught:
        apikey(*options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# ── in the code ──


def test_a_token_says_which_key_it_is_and_holds_256_bits_nobody_can_guess() -> None:
    tokens = {apikeys.create(f"k{n}", lanes=["*"], handlers=["*"])[1] for n in range(20)}

    assert len(tokens) == 20
    assert all(TOKEN.fullmatch(token) for token in tokens)


@pytest.mark.parametrize("name", ["", "a b", "a:b", "a/b", "a\n", "é", "x" * 101, '"'])
def test_a_name_is_one_word_that_can_stand_in_a_caller(name: str) -> None:
    with pytest.raises(ValidationError) as caught:
        apikeys.create(name, lanes=["*"], handlers=["*"])

    assert caught.value.message_dict.keys() == {"name"}


def test_a_name_is_given_once_also_after_its_key_was_revoked() -> None:
    holder = Holder()
    apikeys.revoke([holder.key])

    with pytest.raises(ValidationError):
        Holder()


# ── by command ──


def test_a_key_that_is_made_by_command_opens_the_door(real_queue: Queue) -> None:
    token = apikey("create", "billing", "--handlers", JOB, "--lanes", "low,high", "--rate", "5/min", "--days", "3")

    answer = Stranger(Authorization=f"Bearer {token}").enqueue(lane="low")
    assert answer.status_code == 202
    key = ApiKey.objects.get()
    assert (key.name, key.lanes, key.handlers, key.rate) == ("billing", ["low", "high"], [JOB], "5/min")
    assert timedelta(days=2.9) < key.expires_at - jobs.now() < timedelta(days=3.1)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--handlers", "nowhere"], "handler nowhere: choose from "),
        (["--handlers", note.name], f"handler {note.name}: choose from "),
        (["--handlers", "*", "--lanes", "High"], "lane High: choose from high, default, low, or *"),
        (["--handlers", "*", "--rate", "often"], "rate: 'often' is no limit"),
        (["--handlers", "*", "--days", "0"], "no whole number of 1 or more"),
        (["--handlers", "*", "--days", "99999999999999999999"], "more than 36500 days"),
        (["--handlers", ","], "name at least one, or *"),
        ([], "required: --handlers"),
    ],
)
def test_a_key_that_could_not_work_is_not_made(options: list[str], told: str) -> None:
    assert told in refusal("create", "billing", *options)
    assert not ApiKey.objects.exists()


def test_a_name_that_is_taken_is_told_in_one_line() -> None:
    apikey("create", "billing", "--handlers", "*")

    assert refusal("create", "billing", "--handlers", "*").startswith("name: ")
    assert refusal("create", "a b", "--handlers", "*").startswith("name: ")


def test_the_list_shows_every_key_and_no_secret() -> None:
    token = apikey("create", "billing", "--handlers", "*")
    apikey("create", "archive", "--handlers", JOB, "--lanes", "low")

    listed, lines = apikey("list"), [json.loads(line) for line in apikey("list", "--json").splitlines()]

    assert [line["name"] for line in lines] == ["archive", "billing"]
    assert lines[0]["lanes"] == ["low"]
    assert listed.index("archive") < listed.index("billing")
    assert token[16:] not in listed + json.dumps(lines)
    assert token[3:15] in listed


def test_an_empty_list_is_no_error() -> None:
    assert apikey("list").split() == [
        "name", "prefix", "lanes", "handlers", "rate", "created_at", "expires_at", "revoked_at", "last_used_at"
    ]  # fmt: skip


def test_a_key_that_is_revoked_by_command_opens_nothing_any_more() -> None:
    holder = Holder()

    assert apikey("revoke", "billing") == "revoked billing"

    assert holder.enqueue().status_code == 401
    assert "revoked already" in refusal("revoke", "billing")
    assert "no key is called" in refusal("revoke", "nobody")


# ── in the admin ──


@pytest.fixture
def root() -> Client:
    """A superuser's browser, in an admin that can keep its own log."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE django_admin_log (id integer PRIMARY KEY, action_time text, object_id text, object_repr text,"
            " action_flag integer, change_message text, content_type_id integer, user_id integer)"
        )
    return client_of(User.objects.create_superuser("root"))


def admin_log() -> str:
    with connection.cursor() as cursor:
        return str(cursor.execute("SELECT * FROM django_admin_log").fetchall())


FORM = {"name": "billing", "lanes": ["low"], "handlers": [JOB], "rate": "5/min"}


def test_a_key_that_is_made_in_the_admin_is_shown_once_and_opens_the_door(root: Client) -> None:
    page = root.post(f"{LIST}add/", FORM)

    (token,) = set(TOKEN.findall(page.content.decode()))
    assert page.status_code == 200
    assert "no-store" in page["Cache-Control"]
    assert Stranger(Authorization=f"Bearer {token}").enqueue(lane="low").status_code == 202
    key = ApiKey.objects.get()
    assert (key.name, key.lanes, key.handlers, key.rate) == ("billing", ["low"], [JOB], "5/min burst 1")
    for address in (LIST, f"{LIST}{key.pk}/change/", f"{LIST}{key.pk}/history/"):
        assert token[16:] not in root.get(address).content.decode()
    sessions = [json.dumps(session.get_decoded()) for session in Session.objects.all()]
    assert "billing" in admin_log()
    assert token[16:] not in "".join(sessions) + str(root.cookies) + admin_log()


@pytest.mark.parametrize(
    "wrong",
    [
        {"rate": "often"}, {"name": "a b"}, {"lanes": ["nowhere"]}, {"handlers": [note.name]}, {"handlers": []},
        {"lanes": []},
    ],
)  # fmt: skip
def test_a_form_that_could_not_work_makes_no_key(root: Client, wrong: dict[str, Any]) -> None:
    page = root.post(f"{LIST}add/", {**FORM, **wrong})

    assert next(iter(wrong)) in page.context["adminform"].form.errors
    assert not ApiKey.objects.exists()


def test_what_a_key_may_use_is_changed_and_its_name_and_secret_are_not(root: Client) -> None:
    holder = Holder(lanes=["low"])
    changed = {"name": "other", "prefix": "0" * 12, "lanes": ["high"], "handlers": ["*"], "rate": ""}

    root.post(f"{LIST}{holder.key.pk}/change/", changed)

    key = holder.fresh()
    assert (key.name, key.prefix, key.lanes) == ("billing", holder.key.prefix, ["high"])
    assert bytes(key.digest) == bytes(holder.key.digest)
    assert holder.enqueue(lane="high").status_code == 202


def test_a_lane_that_is_not_there_any_more_stays_until_it_is_taken_out(root: Client) -> None:
    holder = Holder(lanes=["former"], handlers=["former.handler"])

    page = root.get(f"{LIST}{holder.key.pk}/change/").content.decode()

    assert re.search(r'value="former"[^>]*checked', page)
    assert re.search(r'value="former.handler"[^>]*checked', page)


def test_keys_are_revoked_in_the_admin(root: Client) -> None:
    holders = [Holder("a"), Holder("b"), Holder("c")]
    chosen = [holder.key.pk for holder in holders[:2]]

    root.post(LIST, {"action": "revoke", "_selected_action": chosen})

    assert [holder.enqueue().status_code for holder in holders] == [401, 401, 202]


def test_only_who_may_makes_and_revokes_keys() -> None:
    holder = Holder()
    reader, nobody = client_of(staff("reader", "view_apikey")), client_of(staff("nobody"))

    assert [client.get(LIST).status_code for client in (reader, nobody, Client())] == [200, 403, 302]
    for client in (reader, nobody):
        assert client.post(f"{LIST}add/", FORM).status_code == 403
        client.post(LIST, {"action": "revoke", "_selected_action": [holder.key.pk]})
        assert client.post(f"{LIST}{holder.key.pk}/change/", FORM).status_code == 403
    assert ApiKey.objects.count() == 1
    assert holder.enqueue().status_code == 202


def test_what_a_key_is_called_is_shown_as_text(root: Client) -> None:
    key, _ = apikeys.create("x", lanes=["*"], handlers=["*"])
    ApiKey.objects.filter(pk=key.pk).update(name="<script>alert(1)</script>", rate="<b>", lanes=["<i>"])

    pages = root.get(LIST).content + root.get(f"{LIST}{key.pk}/change/").content

    assert b"<script>alert(1)" not in pages
    assert b"<i>" not in pages
    assert b"&lt;script&gt;" in pages

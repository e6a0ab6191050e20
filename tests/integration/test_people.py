"""The names of the users whom a page tells of: one query for all of them, and never a fault of the page."""

import uuid
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import User
from django.db import OperationalError, connection, models
from django.test.utils import CaptureQueriesContext, isolate_apps

from priqueue.callers import of_user
from priqueue.views import people
from priqueue.views.people import People

pytestmark = pytest.mark.django_db


def met(*callers: str) -> People:
    found = People()
    found.expect(callers)
    return found


def test_a_user_is_told_by_name_with_the_caller_beside_it() -> None:
    ana = User.objects.create_user("ana")

    assert met(f"user:{ana.pk}").told(f"user:{ana.pk}") == f"ana (user:{ana.pk})"


@pytest.mark.parametrize("caller", ["system", "key:billing", "command:ana", "worker:web1:311:x", "", "user:", "person"])
def test_who_is_no_user_is_told_as_it_is_without_a_query(caller: str) -> None:
    with CaptureQueriesContext(connection) as asked:
        assert met(caller).told(caller) == caller

    assert list(asked) == []


def test_all_whom_a_page_expects_cost_one_query_and_nobody_at_all_costs_none() -> None:
    users = [User.objects.create_user(f"user{number}") for number in range(20)]
    callers = [f"user:{user.pk}" for user in users]

    with CaptureQueriesContext(connection) as asked:
        found = met(*callers, *callers)
        found.expect(["key:billing", callers[3]])
        told = [found.told(caller) for caller in callers]

    assert told == [f"{user.username} (user:{user.pk})" for user in users]
    assert len(asked) == 1


def test_whoever_was_not_expected_is_told_as_a_caller_so_that_no_list_asks_row_by_row() -> None:
    ana, ben = User.objects.create_user("ana"), User.objects.create_user("ben")
    found = met(f"user:{ana.pk}")

    with CaptureQueriesContext(connection) as asked:
        told = [found.told(f"user:{user.pk}") for user in (ana, ben)]

    assert (told, len(asked)) == ([f"ana (user:{ana.pk})", f"user:{ben.pk}"], 1)


def test_one_expected_after_the_first_was_told_is_asked_for_by_itself() -> None:
    ana, ben = User.objects.create_user("ana"), User.objects.create_user("ben")
    found = met(f"user:{ana.pk}")
    found.told(f"user:{ana.pk}")

    with CaptureQueriesContext(connection) as asked:
        found.expect([f"user:{ana.pk}", f"user:{ben.pk}"])

        assert found.told(f"user:{ben.pk}") == f"ben (user:{ben.pk})"
    assert len(asked) == 1


def test_a_user_who_was_deleted_is_told_by_the_caller() -> None:
    ana, ben = User.objects.create_user("ana"), User.objects.create_user("ben")
    gone = f"user:{ben.pk}"
    ben.delete()
    found = met(f"user:{ana.pk}", gone)

    assert (found.told(f"user:{ana.pk}"), found.told(gone)) == (f"ana (user:{ana.pk})", gone)


@pytest.mark.parametrize(
    "forged", ["user:x", f"user:{'9' * 40}", "user:-1", "user:%00", "user:1.5", "user:²", "user:\u202e", "user:%ff"]
)
def test_what_can_be_nobodys_key_costs_the_others_nothing(forged: str) -> None:
    ana = User.objects.create_user("ana")
    found = met(forged, f"user:{ana.pk}")

    assert (found.told(forged), found.told(f"user:{ana.pk}")) == (forged, f"ana (user:{ana.pk})")


def test_another_spelling_of_a_key_is_not_the_user() -> None:
    ana = User.objects.create_user("ana")

    assert met(f"user:0{ana.pk}").told(f"user:0{ana.pk}") == f"user:0{ana.pk}"


def test_a_name_that_would_garble_the_page_is_not_told() -> None:
    User.objects.create(username="ana\u202e", pk=1)

    assert met("user:1").told("user:1") == "user:1"


def test_a_page_names_some_hundreds_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(people, "_MOST", 2)
    users = [User.objects.create_user(f"user{number}") for number in range(3)]
    found = met(*(f"user:{user.pk}" for user in users))

    assert [found.told(f"user:{user.pk}") for user in users] == [
        f"user0 (user:{users[0].pk})", f"user1 (user:{users[1].pk})", f"user:{users[2].pk}",
    ]  # fmt: skip


def test_without_the_database_callers_are_told_and_it_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[int] = []

    def fail(*_: Any) -> Iterator[Any]:
        tries.append(1)
        raise OperationalError("no connection")

    monkeypatch.setattr(people, "_rows", fail)
    found = met("user:1", "user:2")

    assert [found.told("user:1"), found.told("user:2"), len(tries)] == ["user:1", "user:2", 1]


# ── users of the project's own ──


@pytest.fixture
def members(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], type[Any]]:
    """Let the project have users of its own, with a key of one's choice, who log in by their address."""

    def made(key: Any) -> type[Any]:
        with isolate_apps("tests.shop"):

            class Member(AbstractBaseUser):
                member = key
                email = models.EmailField()
                USERNAME_FIELD = "email"

                class Meta:
                    app_label = "shop"

        with connection.cursor() as cursor:
            cursor.execute("CREATE TABLE shop_member (member text PRIMARY KEY, email, password, last_login)")
        monkeypatch.setattr(people, "get_user_model", lambda: Member)
        return Member

    return made


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (models.UUIDField(primary_key=True), uuid.UUID("0197a3f2-5b1c-7cc3-98c4-dc0c0c07398f")),
        (models.CharField(primary_key=True, max_length=99), 'a key: "with" blanks/100 %'),
    ],
)  # fmt: skip
def test_users_of_the_projects_own_have_keys_and_names_of_their_own(
    members: Callable[[Any], type[Any]], key: Any, value: Any
) -> None:
    members(key).objects.create(pk=value, email="ana@shop.example")
    caller = of_user(value)

    assert caller == f"user:{quote(str(value), safe='@+:')}"
    assert met(caller, "user:nobody", "user:%00").told(caller) == f"ana@shop.example ({caller})"

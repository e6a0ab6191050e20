"""Who may do what: each role, each address of both mounts, each action, also by a POST made by hand."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from django.contrib.auth.models import User
from django.test import Client

from priqueue.coordinator import Run
from priqueue.coordinator.letters import Filter
from priqueue.views import noting
from priqueue.views.routes import LETTERS, QUEUE, Route
from tests.support.queues import START_MS, Queue
from tests.support.reviewing import LIST, client_of, staff
from tests.support.visiting import ADMIN, EVERYTHING, OWN, pages_of, visitor

pytestmark = pytest.mark.django_db
MOUNTS = {"admin": (ADMIN, "/admin/priqueue/deadletter/"), "own": (OWN, f"{OWN}dead/")}
#: what a page answers that opens: here it is, there is nothing left to do, nobody is there, it is on its way
OPENS = {200, 302, 404, 409}
#: what a form answers to one who may send it, but made it by hand: it lacks its token, or there is nothing to do
UNDONE = {302, 404, 409, 422}


class Place(NamedTuple):
    """An address of one mount, and what it takes."""

    mount: str
    route: Route

    def address(self, names: dict[str, str]) -> str:
        queue, dead = MOUNTS[self.mount]
        path = re.sub(r"<\w+:(\w+)>", lambda found: names[self._key(found[1])], self.route.path)
        return (dead if self.route in LETTERS else queue) + path

    def _key(self, part: str) -> str:
        return self.route.name if part == "run" else part

    @property
    def needs(self) -> set[str]:
        return set(self.route.permissions)


PLACES = [Place(mount, route) for mount in MOUNTS for route in (*QUEUE, *LETTERS)]
every_place = pytest.mark.parametrize("place", PLACES, ids=lambda place: f"{place.mount}-{place.route.name}")

# A role is what somebody holds; each permission by itself, with and without the one that opens the pages.
ROLES: dict[str, set[str]] = {
    "staff without rights": set(),
    "viewer": {"view_queue"},
    **{f"{name} alone": {name} for name in EVERYTHING if name != "view_queue"},
    **{f"viewer and {name}": {"view_queue", name} for name in EVERYTHING if name != "view_queue"},
    "all but view_queue": set(EVERYTHING) - {"view_queue"},
    "all but view_payload": set(EVERYTHING) - {"view_payload"},
    "everything": set(EVERYTHING),
}


@pytest.fixture
def queue(real_queue: Queue) -> Iterator[Queue]:
    """A queue with something in each place, shown by the pages of both mounts."""
    with pages_of(real_queue):
        yield real_queue


@pytest.fixture
def names(queue: Queue) -> dict[str, str]:
    """What addresses may name: a worker, a lane, a dead job, and a run of each kind."""
    queue.register("worker")
    queue.enqueue(lane="low")
    (dead,) = queue.buried()
    for action in ("requeue", "purge"):
        run = Run(id=f"{action}-run", action=action, wanted=Filter(), reason="x", until_ms=START_MS, number=1)
        queue.coordinator.steer(run, "going", caller="user:0")
    return {
        "lane": "low", "worker": "worker", "job": dead.id, "requeue_run": "requeue-run", "purge_run": "purge-run",
    }  # fmt: skip


def anybody() -> dict[str, tuple[Client, set[str] | None]]:
    """Return the browsers of all roles with what they hold; None for those who do not get past the log-in."""
    people: dict[str, tuple[Client, set[str] | None]] = {
        "nobody": (Client(), None),
        "superuser": (client_of(User.objects.create_superuser("root")), set(EVERYTHING)),
    }
    return people | {role: (visitor(*held), held) for role, held in ROLES.items()}


def whole(queue: Queue) -> dict[str, Any]:
    """Return everything but what was noted, and the tokens of forms."""
    kept = (queue.keys.audit, queue.keys.epoch)
    return {key: value for key, value in queue.everything().items() if key not in kept and ":form:" not in key}


@every_place
def test_a_page_opens_to_those_who_hold_all_it_takes_and_to_nobody_else(
    queue: Queue, names: dict[str, str], place: Place
) -> None:
    where, before, wrong = place.address(names), whole(queue), {}

    for role, (client, held) in anybody().items():
        for method in ("get", "head", "post"):
            status = getattr(client, method)(where).status_code
            if status not in expected(place, method, held):
                wrong[role, method] = status

    assert wrong == {}
    assert whole(queue) == before


def expected(place: Place, method: str, held: set[str] | None) -> set[int]:
    if held is None:
        return {302}
    if not place.needs <= held:
        return {403}
    if method == "post":
        return {405} if "POST" not in place.route.methods else UNDONE
    return OPENS


FIELDS = {
    "reason": "by hand", "token": "made:up:token", "until_ms": str(2**50), "payload": '{"n": 1}', "do": "work",
    "end": "900", "counted": "x", "per_s": "0", "confirm": "yes", "post": "yes", "_save": "Save",
    "action": "delete_selected",
}  # fmt: skip
CHANGES = [place for place in PLACES if "POST" in place.route.methods]


@pytest.mark.parametrize("place", CHANGES, ids=lambda place: f"{place.mount}-{place.route.name}")
def test_a_post_made_by_hand_changes_nothing_for_who_may_not_and_the_try_is_noted(
    queue: Queue, names: dict[str, str], place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noting, "wall_ms", lambda: 0)
    where, before = place.address(names), whole(queue)
    denied = [client for client, held in anybody().values() if held is not None and not place.needs <= held]

    answers = {client.post(where, FIELDS).status_code for client in denied}
    answers |= {client.post(where, FIELDS, headers={"Accept": "application/json"}).status_code for client in denied}

    assert answers == {403}
    assert whole(queue) == before
    noted = [event for _, event in queue.raw.xrange(queue.keys.audit) if event["outcome"] == "denied"]
    assert len(noted) == len(denied)  # of the second tries the log tells
    assert {event["action"] for event in noted} == {place.route.action}
    assert all(event["caller"].startswith("user:") for event in noted)


@pytest.mark.parametrize("place", CHANGES, ids=lambda place: f"{place.mount}-{place.route.name}")
@pytest.mark.parametrize("how", ["without a token", "from another site"])
def test_not_even_a_superuser_is_made_to_act_by_a_form_of_somebody_elses(
    queue: Queue, names: dict[str, str], place: Place, how: str
) -> None:
    where, before = place.address(names), whole(queue)
    client = client_of(User.objects.create_superuser("root"), enforce_csrf_checks=True)
    page = client.get(where).content.decode()
    csrf = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
    headers = {"Origin": "https://evil.example"} if how == "from another site" else {}
    fields = FIELDS | ({"csrfmiddlewaretoken": csrf[1]} if csrf and headers else {})

    status = client.post(where, fields, headers=headers).status_code

    assert status == 403
    assert whole(queue) == before


@every_place
def test_other_methods_change_nothing(queue: Queue, names: dict[str, str], place: Place) -> None:
    where, before = place.address(names), whole(queue)
    client = client_of(User.objects.create_superuser("root"))

    for method in ("put", "patch", "delete", "options", "trace"):
        assert getattr(client, method)(where).status_code == 405

    assert whole(queue) == before


@pytest.mark.parametrize("mount", MOUNTS)
def test_somebody_logged_in_who_is_no_staff_needs_the_same_rights(
    queue: Queue, names: dict[str, str], mount: str
) -> None:
    user = User.objects.create_user("ben")
    client = client_of(user)

    statuses = {client.get(place.address(names)).status_code for place in PLACES if place.mount == mount}

    assert statuses == ({302} if mount == "admin" else {403})


def test_ids_that_are_guessed_tell_nothing(queue: Queue, names: dict[str, str]) -> None:
    client = visitor()

    pages = [client.get(f"{OWN}dead/{job}/") for job in (names["job"], "no-such-job")]

    assert [page.status_code for page in pages] == [403, 403]
    bodies = [re.sub(r'name="csrf[^>]*|no-such-job|' + names["job"], "", page.content.decode()) for page in pages]
    assert bodies[0] == bodies[1]


@pytest.mark.parametrize("path", ["", "export/csv/", "export/jsonl/"])
def test_the_audit_log_is_for_those_who_may_view_it_and_nobody_writes(queue: Queue, path: str) -> None:
    people = [Client(), staff_with(), staff_with("view_queue"), staff_with("view_auditevent")]

    assert [client.get(LIST + path).status_code for client in people] == [302, 403, 403, 200]
    assert {client.post(LIST + path, FIELDS).status_code for client in people[1:]} == {403}


def staff_with(*codenames: str) -> Client:
    return client_of(staff(f"staff{User.objects.count()}", *codenames))

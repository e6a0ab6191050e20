"""What the tests of the queue's pages share: a project with both mounts, on one queue, and visitors.

A file of tests says which of the queues is its own: ``queue = shown_queue``.
"""

import html
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client, override_settings

from priqueue import wiring
from priqueue.views import reading
from tests.support.queues import Queue
from tests.support.reviewing import client_of, with_admin

ADMIN, OWN = "/admin/priqueue/queue/", "/queue/"
EVERYTHING = (
    "view_queue", "view_payload", "requeue_letter", "purge_letter", "pause_lane", "cancel_job", "drain_worker",
)  # fmt: skip


@contextmanager
def pages_of(queue: Queue) -> Iterator[None]:
    """Let the pages of both mounts show a queue inside the block."""
    with with_admin(), override_settings(ROOT_URLCONF="tests.page_urls"), wiring.override(queue.coordinator):
        try:
            yield
        finally:
            reading.desk().close()


@pytest.fixture
def shown_queue(real_queue: Queue) -> Iterator[Queue]:
    """A queue on a real server, shown by the pages of both mounts."""
    with pages_of(real_queue):
        yield real_queue


@pytest.fixture
def stored_queue(real_queue: Queue, audit_database: str) -> Iterator[Queue]:
    """The same, with a database to store its audit events in."""
    with pages_of(real_queue):
        yield real_queue


@pytest.fixture
def with_every_right(queue: Queue) -> Client:
    """The browser of a member of the staff who may do everything, to the queue of the test."""
    return visitor(*EVERYTHING)


def visitor(*codenames: str, **options: Any) -> Client:
    """Return the browser of a new member of the staff with these permissions of ours."""
    name = f"visitor{User.objects.count()}"
    user = User.objects.create_user(name, is_staff=True)
    user.user_permissions.set(Permission.objects.filter(content_type__app_label="priqueue", codename__in=codenames))
    return client_of(user, **options)


def token(page: Any) -> str:
    """Return the token of the form on a confirmation page."""
    return html.unescape(re.search(r'name="token" value="([^"]+)"', page.content.decode())[1])


def sent(client: Client, address: str, **fields: str) -> Any:
    """Send the form of a confirmation page, as a person does who has looked at it."""
    return client.post(address, {"token": token(client.get(address)), **fields}, follow=True)


def text(page: Any) -> str:
    """Return what a page shows, without tags, its white space single."""
    body = re.sub(r"(?s)<(script|style)\b.*?</\1>", " ", page.content.decode())
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


def lane_row(page: Any, lane: str) -> dict[str, str]:
    """Return the cells of a lane on the overview by their labels."""
    row = re.search(rf'<tr role="row" data-key="{lane}".*?</tr>', page.content.decode(), re.DOTALL)[0]
    cells = re.findall(r'data-label="([^"]+)"[^>]*>(.*?)</td>', row, re.DOTALL)
    return {label: " ".join(re.sub(r"<[^>]+>", " ", cell).split()) for label, cell in cells}

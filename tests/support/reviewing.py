"""What the tests of the audit log's pages in the admin share: a project with the admin, readers, and events to read."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import md5
from typing import Any

from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.db import connections
from django.test import Client, override_settings

from priqueue.audit.store import store
from priqueue.coordinator import Batch, Entry
from priqueue.models import AuditEvent
from tests.support.auditing import by_force
from tests.support.databases import ALIAS

LIST = "/admin/priqueue/auditevent/"
START_MS = 1_700_000_000_000
_APPS = ("django.contrib.admin", "django.contrib.messages", "django.contrib.staticfiles")
_MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
_PROCESSORS = [
    "django.template.context_processors.request",
    "django.contrib.auth.context_processors.auth",
    "django.contrib.messages.context_processors.messages",
]


@contextmanager
def with_admin(urls: str = "tests.admin_urls") -> Iterator[None]:
    """Let the project have the admin inside the block."""
    with override_settings(
        INSTALLED_APPS=[*settings.INSTALLED_APPS, *_APPS], MIDDLEWARE=_MIDDLEWARE, ROOT_URLCONF=urls,
        STATIC_URL="/static/", TIME_ZONE="UTC", TEMPLATES=[{
            "BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True,
            "OPTIONS": {"context_processors": _PROCESSORS},
        }],
    ):  # fmt: skip
        yield


def client_of(user: User, **options: Any) -> Client:
    """Return a browser in which a user is logged in."""
    client = Client(**options)
    client.force_login(user)
    return client


def staff(name: str, *permissions: str) -> User:
    """Return a new member of the staff with these permissions."""
    user = User.objects.create_user(name, is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    return user


def keep(*events: dict[str, str]) -> None:
    """Store events with these fields, numbered from 1, a second apart."""
    usual = {"action": "ack", "caller": "worker:w", "lane": "high", "handler": "h", "job": "j"}
    entries = [
        Entry(f"{number}-0", {**usual, "at": str(number * 1000), **fields}) for number, fields in enumerate(events, 1)
    ]
    store(ALIAS, "n", Batch("e", entries))


def ids(page: Any) -> list[int]:
    """Return the events that a list shows, in its order."""
    return [int(found) for found in re.findall(r'<th scope="row"><a href="[^"]*">(\d+)</a>', page.content.decode())]


def link(page: Any, name: str) -> str | None:
    """Return where a link of a list leads."""
    found = re.search(rf'<a href="([^"]*)">{name}</a>', page.content.decode())
    return found and found[1].replace("&amp;", "&")


def fill(number: int) -> None:
    """Fill the log on PostgreSQL, by force: jobs of four events, 100 ms apart, and what only its oldest part has.

    The oldest hundredth has an action, a lane, a handler and a caller of its own: what a planner who takes rows to be
    evenly spread looks for from the wrong end. The oldest quarter has a handler of its own, the newest tenth a request.
    """
    old, bulk = number // 100, number // 10 * 9
    indexes = list(AuditEvent._meta.indexes)
    with connections[ALIAS].schema_editor() as editor:
        for index in indexes:
            editor.remove_index(AuditEvent, index)
    by_force(f"""
        INSERT INTO priqueue_auditevent
        SELECT n, {START_MS} + n * 100, {START_MS} + n * 100, 'priqueue', 'e', n || '-0',
          CASE WHEN n <= {old} THEN 'purge' ELSE (ARRAY['enqueue', 'promote', 'claim', 'ack'])[n % 4 + 1] END,
          CASE WHEN n <= {old} THEN 'user:old' WHEN n % 4 = 0 THEN 'user:' || n % 1000 ELSE 'worker:w' || n % 50 END,
          md5((n / 4)::text),
          CASE WHEN n <= {old} THEN 'old.handler' WHEN n <= {number // 4} THEN 'former.handler'
            ELSE 'shop.jobs.handler' || n % 40 END,
          CASE WHEN n <= {old} THEN 'old' WHEN n % 10 = 0 THEN 'low' WHEN n % 10 < 4 THEN 'default' ELSE 'high' END,
          '{{"order_id": 7}}', 'done', '',
          CASE WHEN n > {bulk} THEN 'bulk' ELSE md5((n / 8)::text) END,
          '', sha256(n::text::bytea), sha256((n + 1)::text::bytea)
        FROM generate_series(1, {number}) n
    """)
    with connections[ALIAS].schema_editor() as editor:
        for index in indexes:
            editor.add_index(AuditEvent, index)
    with connections[ALIAS].cursor() as cursor:
        cursor.execute("VACUUM ANALYZE priqueue_auditevent")  # as the server does by itself, as rows come


def views(number: int) -> dict[str, str]:
    """Return query strings that readers of a filled log ask for, by what they are."""
    old, middle = number // 100, number // 2
    job, request = (md5(str(middle // part).encode()).hexdigest() for part in (4, 8))
    begin, end = f"since={_time(old // 2)}", f"until={_time(old // 2 + 2000)}"
    return {
        "first page": "", "middle page": f"before={middle}", "last page": "after=1",
        "a frequent action": "action=ack", "a middle page of it": f"action=ack&before={middle}",
        "an action of old": "action=purge", "a caller of old": "caller=user:old", "a caller": "caller=worker:w7",
        "a lane": "lane=low", "a lane of old": "lane=old", "a handler": "handler=shop.jobs.handler7",
        "a handler of old": "handler=old.handler", "a handler of the oldest quarter": "handler=former.handler",
        "its middle page": f"handler=former.handler&before={number // 8}",
        "that handler in a lane": "handler=former.handler&lane=default",
        "an action of old in a lane": "action=purge&lane=high", "a lane of old with an action": "action=ack&lane=old",
        "a job": f"job={job}", "a request": f"correlation_id={request}",
        "a request of a tenth of all": "correlation_id=bulk",
        "a middle page of that": f"correlation_id=bulk&after={number // 100 * 95}",
        "since long ago": begin, "until long ago": end, "a short time, long ago": f"{begin}&{end}",
        "its second page": f"{begin}&{end}&before={old // 2 + 1500}", "since the middle": f"since={_time(middle)}",
        "an action in a short time": f"{begin}&{end}&action=purge", "a lane since long ago": f"{begin}&lane=low",
        "lane and handler": "lane=low&handler=shop.jobs.handler10", "lane and action": "lane=high&action=ack",
        "no job of this name": "job=nobody", "an action until long ago": f"{end}&action=ack",
    }  # fmt: skip


def _time(row_id: int) -> str:
    return f"{datetime.fromtimestamp(START_MS // 1000 + row_id // 10, UTC):%Y-%m-%dT%H:%M:%S}"

"""What the tests of the audit log's pages in the admin share: a project with the admin, readers, and events to read."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.test import Client, override_settings

from priqueue.audit.store import store
from priqueue.coordinator import Batch, Entry
from tests.support.databases import ALIAS

LIST = "/admin/priqueue/auditevent/"
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
def with_admin() -> Iterator[None]:
    """Let the project have the admin inside the block."""
    with override_settings(
        INSTALLED_APPS=[*settings.INSTALLED_APPS, *_APPS], MIDDLEWARE=_MIDDLEWARE, ROOT_URLCONF="tests.admin_urls",
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

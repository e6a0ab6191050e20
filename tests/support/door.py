"""The HTTP door for tests: a project that has one, callers with keys of their own, and what they send."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.http import HttpResponse
from django.test import Client

from priqueue import apikeys, wiring
from priqueue.api.problems import MEDIA_TYPE
from priqueue.models import ApiKey
from tests.shop.jobs import open_note
from tests.support.queues import Queue
from tests.support.reviewing import with_admin

JOB = open_note.name


@contextmanager
def open_door(queue: Queue) -> Iterator[None]:
    """Let the project have the admin and the door to a queue inside the block."""
    with with_admin("tests.door_urls"), wiring.override(queue.coordinator):
        yield


class Stranger:
    """Somebody who knocks, with the headers that are given."""

    def __init__(self, client: Client | None = None, **headers: str) -> None:
        self.client = client or Client(raise_request_exception=False)
        self.headers = headers

    def send(self, body: object = None, path: str = "jobs", **headers: str) -> Any:
        """Post a body: bytes as they are, all else as JSON."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"Content-Type": "application/json", **self.headers, **_named(headers)}
        content_type = sent.pop("Content-Type")
        return self.client.post(f"/api/{path}", raw, content_type=content_type, headers=sent)

    def enqueue(self, *, path: str = "jobs", headers: dict[str, str] | None = None, **fields: Any) -> Any:
        """Ask for a job of the handler that is open, with these fields."""
        return self.send({"job": JOB, **fields}, path, **(headers or {}))

    def get(self, path: str, **headers: str) -> Any:
        return self.client.get(f"/api/{path}", headers={**self.headers, **_named(headers)})

    def delete(self, path: str, **headers: str) -> Any:
        return self.client.delete(f"/api/{path}", headers={**self.headers, **_named(headers)})


class Holder(Stranger):
    """Somebody with an API key."""

    def __init__(self, name: str = "billing", **options: Any) -> None:
        self.key, self.token = apikeys.create(name, **{"lanes": ["*"], "handlers": ["*"], **options})
        self.caller = f"key:{name}"
        super().__init__(Authorization=f"Bearer {self.token}")

    def fresh(self) -> ApiKey:
        """Return the key as it is stored now."""
        return ApiKey.objects.get(pk=self.key.pk)


def problem(answer: HttpResponse) -> tuple[int, str, list[str]]:
    """Return an answer's status, its word and the fields at fault; fail unless it is a whole problem."""
    body = json.loads(answer.content)
    assert answer["Content-Type"] == MEDIA_TYPE
    assert body.keys() == {"type", "title", "status", "detail", "errors", "correlation_id"}
    assert body["status"] == answer.status_code
    assert body["correlation_id"] == answer["X-Request-ID"]
    word = body["type"].removeprefix("urn:priqueue:problem:")
    return body["status"], word, [error["field"] for error in body["errors"]]


def _named(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}

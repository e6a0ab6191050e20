"""Whatever stands in a job, an error or a reason is shown as text: a crawl over all pages, markers in every field."""

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.contrib.auth.models import User
from django.test import Client

from priqueue.coordinator import Note, Run
from priqueue.coordinator.letters import Filter
from priqueue.jobs import Failure, Job
from tests.support import databases
from tests.support.auditing import auditor
from tests.support.databases import audited
from tests.support.queues import Queue
from tests.support.reviewing import LIST, client_of
from tests.support.visiting import ADMIN, OWN, pages_of, token

pytestmark = pytest.mark.django_db
DEAD = {ADMIN: "/admin/priqueue/deadletter/", OWN: f"{OWN}dead/"}
OURS = (OWN, "/admin/priqueue/")
# One for each field, so that a field that is shown nowhere is seen. Words of an envelope hold no blank and no quote.
FIELDS = ("id", "name", "caller", "correlation", "worker", "error", "message", "trace", "payload", "reason", "lane")
RAW = re.compile(r"<(img|svg|script)[^>]*(onerror|onload|alert)|<script>alert|href=.javascript:", re.IGNORECASE)


def word(field: str) -> str:
    return f"<img/src={field}/onerror=alert(1)>{{{{7*7}}}}"


def free(field: str) -> str:
    return f"</script><script>alert(1)</script>\"'><svg onload=alert(1)>{word(field)}javascript:alert(1)"


@pytest.fixture
def queue(real_queue: Queue, tmp_path: Path, django_db_blocker: Any) -> Iterator[Queue]:
    """A queue on a real server with a marker in each field, shown by the pages of both mounts."""
    fill(real_queue)
    with audited(databases.sqlite(tmp_path)), django_db_blocker.unblock(), pages_of(real_queue):
        databases.migrate()
        while auditor(real_queue).run_once() == 0:
            pass
        yield real_queue


@pytest.fixture
def root(queue: Queue) -> Client:
    return client_of(User.objects.create_superuser("root"))


def job(field: str = "id", **options: Any) -> Job:
    about = {"name": word("name"), "caller": word("caller"), "correlation_id": word("correlation")}
    return Job(id=f"{word(field)}-{options.get('lane', '')}", payload={free("payload"): [free("payload")]},
               **about, **options)  # fmt: skip


def fill(queue: Queue) -> None:
    """Put jobs into every place, each with markers wherever somebody from outside could write."""
    c, worker = queue.coordinator, word("worker")
    failure = Failure(error=word("error"), message=free("message"), traceback=trace())
    c.register(worker, lanes=["high"], concurrency=9, version=free("worker"), host=free("worker"), pid=free("worker"))
    c.enqueue_many([job(lane="high"), job("second", lane="high")])
    buried, held = c.pull(worker, 2)
    c.bury(buried, failure)
    c.enqueue_many([job(lane="low"), job(lane="default", delay_ms=60_000)])
    c.pause("low", caller=word("caller"), reason=free("reason"))
    c.note(Note(action="purge", caller=word("caller"), outcome=free("reason")[:200], reason=free("reason"),
                input=free("payload")))  # fmt: skip
    run = Run(id="run", action="purge", wanted=Filter(lane=free("lane")), reason=free("reason"), until_ms=0, number=1)
    c.steer(run, "going", caller=word("caller"))
    letter = {"lane": free("lane"), "cause": free("error"), "handler": word("name"), "caller": word("caller"),
              "buried_at_ms": queue.clock.now_ms, "replaced_by": word("id")}  # fmt: skip
    queue.raw.hset(queue.keys.letters, "foreign", json.dumps(letter))
    queue.raw.hset(queue.keys.jobs, "foreign", "not an envelope")
    queue.raw.lpush(queue.keys.dead, "foreign")
    queue.raw.hset(queue.keys.causes, free("error"), 1)
    queue.raw.hset(queue.keys.counters, f"enqueued:{word('lane')}", 1)
    queue.raw.rpush(queue.keys.lane(word("lane")), "x")
    assert held.job.id in queue.state()["in flight"]


def trace() -> str:
    frame = f'  File "/srv/{free("trace")}.py", line 1, in {free("trace")}\n    {free("trace")}\n'
    return f"Traceback (most recent call last):\n{frame}{frame.replace('/srv/', '/lib/python3/')}{free('trace')}\n"


def crawl(client: Client, *starts: str, most: int = 150) -> dict[str, str]:
    """Return the pages that can be reached by links, with what they say."""
    left, found = list(starts), {}
    while left and len(found) < most:
        where = left.pop(0)
        if where in found:
            continue
        page = client.get(where, follow=True)
        body = b"".join(page).decode() if page.streaming else page.content.decode()
        found[where] = "" if page["Content-Type"].startswith(("application/x-ndjson", "text/csv")) else body
        links = [html.unescape(link) for link in re.findall(r'href="([^"#]+)', found[where])]
        left += [link for link in (absolute(link, where) for link in links) if link.startswith(OURS)]
    return {where: body for where, body in found.items() if body}


def absolute(link: str, where: str) -> str:
    return where.partition("?")[0] + link if link.startswith("?") else link


def shown(pages: dict[str, str]) -> set[str]:
    """Return the fields whose marker is shown, as text."""
    whole = html.unescape("".join(pages.values()))
    return {field for field in FIELDS if f"img/src={field}/onerror" in whole}


@pytest.mark.parametrize("mount", [ADMIN, OWN])
def test_no_page_that_can_be_reached_obeys_what_it_shows(queue: Queue, root: Client, mount: str) -> None:
    dead = DEAD[mount]
    starts = [mount, dead, f"{mount}workers/", f"{mount}jobs/", f"{dead}purge/run/"]
    starts += [f"{mount}lanes/{name}/" for name in ("high", "low", "default", quote(word("lane"), safe=""))]
    starts += [f"{mount}jobs/?id={quote(word('id') + '-' + lane)}" for lane in ("high", "low", "default")]
    starts += [f"{dead}{quote(word('id') + '-high')}/"]

    pages = crawl(root, *starts, LIST)

    assert len(pages) > 25
    assert {where: RAW.findall(body)[:1] for where, body in pages.items() if RAW.search(body)} == {}
    assert shown(pages) == set(FIELDS)


@pytest.mark.parametrize("mount", [ADMIN, OWN])
def test_what_a_visitor_asks_for_is_echoed_as_text(queue: Queue, root: Client, mount: str) -> None:
    dead, marker = DEAD[mount], free("id")
    names = ("lane", "cause", "handler", "caller", "since", "until", "older", "newer", "at", "oldest", "counted", "id")
    asked = [
        *((dead, {name: marker}) for name in names), (dead, dict.fromkeys(names, marker)),
        *((f"{dead}purge/", {name: marker}) for name in names), (f"{mount}jobs/", {"id": marker}),
        (f"{mount}jobs/", {"id": word("correlation")}), (f"{mount}data/", {"since": marker}),
        (f"{dead}{quote(marker, safe='')}/", {}), (f"{mount}lanes/{quote(marker, safe='')}/", {}),
        (f"{dead}purge/{quote(word('id'), safe='')}/", {}), (LIST, dict.fromkeys(names, marker)),
    ]  # fmt: skip

    for where, query in asked:
        page = root.get(where, query, follow=True)
        assert page.status_code < 500, where
        assert not RAW.search(page.content.decode()), (where, query)


@pytest.mark.parametrize("mount", [ADMIN, OWN])
def test_what_is_said_after_an_act_is_text(queue: Queue, root: Client, mount: str) -> None:
    dead, job_id, reason = DEAD[mount], quote(word("id") + "-high"), free("reason")
    bodies = []

    def send(where: str, **fields: str) -> None:
        page = root.post(where, {"token": token(root.get(where)), "reason": reason, **fields}, follow=True)
        bodies.append(page.content.decode())

    send(f"{dead}{job_id}/edit/", payload=free("payload"))
    send(f"{dead}{job_id}/edit/", payload=json.dumps({free("payload"): 1}))
    send(f"{mount}lanes/high/pause/", end="900")
    send(f"{mount}lanes/high/resume/")
    send(f"{mount}workers/{quote(word('worker'), safe='')}/drain/")
    send(f"{mount}jobs/{quote(word('id') + '-low', safe='')}/cancel/")
    send(f"{dead}{job_id}/purge/", until_ms=str(queue.clock.now_ms))

    assert [body for body in bodies if RAW.search(body)] == []
    assert sum("img/src=reason/onerror" in body for body in bodies) >= 5
    assert queue.inspector.job(word("id") + "-high") is None


def test_a_document_for_scripts_holds_markup_as_text(queue: Queue, root: Client) -> None:
    document = root.get(f"{OWN}data/")

    assert document["Content-Type"] == "application/json"
    assert [part for part in document.json()["parts"].values() if RAW.search(part)] == []


def test_an_export_is_a_file_that_nobody_shows(queue: Queue, root: Client) -> None:
    export = root.get(f"{OWN}dead/export/")

    assert export["Content-Disposition"].startswith("attachment")
    assert export["X-Content-Type-Options"] == "nosniff"
    lines = [json.loads(line) for line in b"".join(export).decode().splitlines()]
    assert {line["caller"] for line in lines} == {word("caller")}

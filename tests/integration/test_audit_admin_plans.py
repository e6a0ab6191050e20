"""The audit log's pages on PostgreSQL are read off indexes, under ASGI too; without the admin there are none."""

import subprocess
import sys
from collections.abc import Iterator
from hashlib import md5
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connections
from django.test import AsyncClient, Client
from django.test.utils import CaptureQueriesContext

from priqueue.audit import pages
from tests.support.databases import ALIAS, Postgres
from tests.support.reviewing import LIST, client_of, fill, keep, staff, views, with_admin

NUMBER = 40_000
#: rows that may be read for a page of a hundred: what is asked for by two filters is met by chance
READ = NUMBER // 10

pytestmark = pytest.mark.django_db


@pytest.fixture
def reader(db: None, audit_postgres: Postgres) -> Iterator[Client]:
    """The browser of somebody who may read the log."""
    with with_admin():
        yield client_of(staff("reader", "view_auditevent"))


def plan(sql: str) -> dict[str, Any]:
    """Run a statement and return what the server did for it."""
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}")
        found: dict[str, Any] = cursor.fetchone()[0][0]["Plan"]
        return found


def nodes(top: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield top
    for below in top.get("Plans", ()):
        yield from nodes(below)


def scans(queries: CaptureQueriesContext) -> dict[str, float]:
    """Return the ways in which rows were read for a page, and how many were by the most of them.

    How often a text is there is asked beside, up to a number that is larger than this log.
    """
    found: dict[str, float] = {}
    statements = [query["sql"] for query in queries if "COUNT" not in query["sql"]]
    for node in (node for sql in statements for node in nodes(plan(sql)) if "Scan" in node["Node Type"]):
        if node["Node Type"] != "Bitmap Index Scan":  # which reads no row
            way = node.get("Index Name", node["Node Type"])
            found[way] = max(found.get(way, 0), node["Actual Rows"] + node.get("Rows Removed by Filter", 0))
    return found


def test_each_page_reads_few_rows_and_by_an_index(reader: Client) -> None:
    fill(NUMBER)
    found = {}
    for name, query in views(NUMBER).items():
        with CaptureQueriesContext(connections[ALIAS]) as queries:
            reader.get(f"{LIST}?{query}")
        found[name] = scans(queries)

    assert {name: ways for name, ways in found.items() if "Seq Scan" in ways or max(ways.values()) > READ} == {}


def test_who_took_letters_away_is_read_off_an_index(db: None, audit_postgres: Postgres) -> None:
    fill(NUMBER)
    jobs = [md5(str(number * 50).encode()).hexdigest() for number in range(100)]

    with CaptureQueriesContext(connections[ALIAS]) as queries:
        found = [
            pages.newest("priqueue", "purge", "done"), pages.newest("priqueue", "ack", "nothing"),
            pages.newest("priqueue", "requeue", "ready"),
        ]  # fmt: skip
        rows = pages.of_jobs(jobs, ["claim", "purge"])

    assert [row and row.id for row in found] == [NUMBER // 100, None, None]
    assert len({row.job for row in rows}) == 100
    ways = scans(queries)
    assert ("Seq Scan" in ways, max(ways.values()) <= 500) == (False, True), ways


@pytest.mark.parametrize("query", ["", "lane=low", "since=2023-11-14T22:00:00", "job=x"])
def test_each_batch_of_an_export_is_read_off_an_index(query: str, reader: Client) -> None:
    fill(NUMBER)

    with CaptureQueriesContext(connections[ALIAS]) as queries:
        list(reader.get(f"{LIST}export/jsonl/?{query}").streaming_content)

    assert "Seq Scan" not in scans(queries)


def test_under_asgi_an_export_comes_bit_by_bit_too(reader: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "BATCH", 3)
    keep(*[{}] * 30)
    client = AsyncClient()
    client.cookies = reader.cookies

    async def begin() -> list[int]:
        answer = await client.get(f"{LIST}export/jsonl/")
        pieces = answer.streaming_content
        return [(await anext(pieces)).count(b"\n") for _ in range(2)]

    with CaptureQueriesContext(connections[ALIAS]) as queries:
        taken = async_to_sync(begin)()

    assert (taken, len(queries)) == ([3, 3], 3)


def test_a_project_without_the_admin_never_imports_our_pages() -> None:
    code = (
        "import sys, django; django.setup(); from django.core.management import call_command;"
        " call_command('check'); print(sorted({'priqueue.admin', 'django.contrib.admin'} & set(sys.modules)))"
    )

    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert out.splitlines()[-1] == "[]"

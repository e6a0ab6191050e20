"""Row C9: the audit log's pages in the admin on five million rows, each filter, search and page within its time."""

import statistics
from collections.abc import Callable, Iterator
from itertools import islice

import pytest
from django.db import connections
from django.test import Client

from priqueue.clock import monotonic_s
from tests.support.databases import ALIAS
from tests.support.reviewing import LIST, client_of, fill, ids, staff, views, with_admin

NUMBER, TURNS, BOUND_MS = 5_000_000, 5, 300

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(900), pytest.mark.django_db]


@pytest.fixture
def reader(db: None, audit_postgres: object) -> Iterator[Client]:
    """The browser of somebody who may read a log of five million rows."""
    with with_admin():
        fill(NUMBER)
        yield client_of(staff("reader", "view_auditevent"))


def took_ms(call: Callable[[], object]) -> float:
    """Return how long a call takes at the median of some turns, on a machine that has other things to do too."""
    spans = []
    for _ in range(TURNS):
        began_s = monotonic_s()
        call()
        spans.append((monotonic_s() - began_s) * 1000)
    return statistics.median(spans)


def test_c9_each_page_of_five_million_events_is_there_at_once(reader: Client, figure: Callable[..., None]) -> None:
    for name, query in views(NUMBER).items():
        span_ms = took_ms(lambda query=query: reader.get(f"{LIST}?{query}"))
        shown = len(ids(reader.get(f"{LIST}?{query}")))
        figure("C9", f"{name}: {shown} events shown, ms", span_ms, f"≤ {BOUND_MS}", span_ms <= BOUND_MS)

    event_ms = took_ms(lambda: reader.get(f"{LIST}{NUMBER // 2}/change/"))
    figure("C9", "one event, ms", event_ms, f"≤ {BOUND_MS}", event_ms <= BOUND_MS)

    for query in ("", "lane=low", "since=2023-11-15"):
        first_ms = took_ms(
            lambda query=query: list(islice(reader.get(f"{LIST}export/csv/?{query}").streaming_content, 2))
        )
        figure(
            "C9",
            f"first 1,000 rows of an export of {query or 'all'}, ms",
            first_ms,
            f"≤ {BOUND_MS}",
            first_ms <= BOUND_MS,
        )

    with connections[ALIAS].cursor() as cursor:
        cursor.execute("SELECT pg_total_relation_size('priqueue_auditevent')")
        size = cursor.fetchone()[0] // NUMBER
    figure("C9", "a row with all indexes, bytes", size, "≤ 1000", size <= 1000)

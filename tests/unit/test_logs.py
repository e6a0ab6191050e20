"""logs: one harmless record per event, with fields that never change, and without secrets."""

import hashlib
import json
import logging
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.test import override_settings
from pythonjsonlogger.json import JsonFormatter

from priqueue import callers, events
from priqueue.executor import execute
from priqueue.handlers import job
from priqueue.jobs import Claim, Failure, Job, from_ms
from priqueue.logs import JobFilter, LineFormatter
from priqueue.logs.listener import _LISTENERS
from tests.support.queues import HANDLER, test_settings

HARMFUL = "x\r\ny\x1b[31m\u202eevil\u2028z\x00\ud800\x85"
DIGEST = hashlib.sha256(b'{"n":1}').hexdigest()[:16]


@job(name="tests.unit.logs.chatty")
def chatty(n: int) -> None:
    """Write a record of its own."""
    logging.getLogger("shop").warning("working on %d", n)


@job(name="tests.unit.logs.about_another")
def about_another(n: int) -> None:
    """Write a record that says which job it is about."""
    logging.getLogger("shop").warning("about another", extra={"job_id": "other"})


class Kept(logging.Handler):
    """Keeps records, as a handler with a filter and a formatter would write them."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []
        self.addFilter(JobFilter())

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def fields(self) -> dict[str, Any]:
        """Return what the one record says beyond what every record of Python says."""
        (record,) = self.records
        plain = logging.makeLogRecord({}).__dict__
        return {name: value for name, value in record.__dict__.items() if name not in {*plain, "message", "asctime"}}


@pytest.fixture
def kept() -> Iterator[Kept]:
    logger, handler = logging.getLogger(), Kept()
    ours, level = logging.getLogger("priqueue"), logging.getLogger("priqueue").level
    logger.addHandler(handler)
    ours.setLevel(logging.DEBUG)
    yield handler
    ours.setLevel(level)
    logger.removeHandler(handler)


def claim(**job: Any) -> Claim:
    made = Job(**{"name": HANDLER, "payload": {"n": 1}, "caller": "user:7", "correlation_id": "request-9", **job})
    return Claim(
        job=made, token="t", worker_id="w:1:a", lane="high", attempt=2, crashes=0, deadline_ms=20_000,
        ready_since_ms=9_500, run_ms=31,
    )  # fmt: skip


def about(of: Claim) -> dict[str, Any]:
    return {
        "queue": "priqueue", "lane": "high", "job_id": of.job.id, "handler": HANDLER, "attempt": 2, "worker": "w:1:a",
        "caller": "user:7", "correlation_id": "request-9", "input": DIGEST, "run_ms": 31,
    }  # fmt: skip


def test_a_claim_says_how_long_the_job_waited_by_the_servers_clock_alone(kept: Kept) -> None:
    of = replace(claim(), run_ms=None)

    events.send(events.jobs_claimed, claims=[of])

    fields = about(of) | {"action": "claim", "outcome": "in flight", "wait_ms": 500}
    del fields["run_ms"]
    assert kept.fields() == fields
    assert kept.records[0].getMessage() == f"claimed {HANDLER} {of.job.id} from high, attempt 2, after 500 ms"


def test_an_ack_says_how_long_it_ran(kept: Kept) -> None:
    of = claim()

    events.send(events.jobs_acked, claims=[of])

    assert kept.fields() == about(of) | {"action": "ack", "outcome": "done"}


def test_a_filter_that_raises_for_one_of_many_keeps_no_other_from_being_written(
    kept: Kept, caplog: pytest.LogCaptureFixture
) -> None:
    one, bad, other = claim(), claim(), claim()

    def raise_for_the_bad_one(record: logging.LogRecord) -> bool:
        if record.__dict__.get("job_id") == bad.job.id:
            raise KeyError("no")
        return True

    logging.getLogger("priqueue").addFilter(raise_for_the_bad_one)
    try:
        events.send(events.jobs_acked, claims=[one, bad, other])
    finally:
        logging.getLogger("priqueue").removeFilter(raise_for_the_bad_one)

    ours = [record.__dict__["job_id"] for record in kept.records if record.name == "priqueue"]
    assert ours == [one.job.id, other.job.id]
    assert "_acked" in caplog.text  # what raised is told


def test_a_failure_says_what_it_was_and_what_follows(kept: Kept) -> None:
    of = claim()

    events.send(events.job_retried, claim=of, failure=Failure(error="KeyError", message="no"), delay_s=2, note="")

    assert kept.fields() == about(of) | {"action": "retry", "outcome": "delayed", "reason": "KeyError", "delay_s": 2}
    assert kept.records[0].levelno == logging.WARNING


def test_a_burial_says_what_it_was(kept: Kept) -> None:
    of = claim()

    events.send(events.job_buried, claim=of, failure=Failure(error="KeyError", message="no"))

    assert kept.fields() == about(of) | {"action": "bury", "outcome": "dead", "reason": "KeyError"}


@pytest.mark.parametrize(("later_ms", "outcome"), [(0, "ready"), (5, "delayed")])
def test_an_enqueued_job_is_ready_or_delayed(kept: Kept, later_ms: int, outcome: str) -> None:
    job = Job(name=HANDLER, payload={"n": 1}, enqueued_at=from_ms(1_000), run_at=from_ms(1_000 + later_ms))

    events.send(events.job_enqueued, job=job)

    assert kept.fields() == {
        "action": "enqueue", "queue": "priqueue", "lane": "default", "job_id": job.id, "handler": HANDLER,
        "caller": "system", "correlation_id": job.id, "input": DIGEST, "outcome": outcome,
    }  # fmt: skip


SAMPLES: dict[str, Any] = {
    "job": Job(name=HANDLER, payload={"n": 1}), "claim": claim(), "claims": [claim()],
    "error": OSError(HARMFUL), "number": 3,
    "failure": Failure(error=HARMFUL, message=HARMFUL), "delay_s": 2.0, "note": HARMFUL, "deaths": 1,
    "reason": HARMFUL, "job_id": HARMFUL, "job_ids": [HARMFUL], "lane": HARMFUL, "caller": HARMFUL,
    "copy": Job(name=HANDLER, payload={"n": 1}), "worker_id": HARMFUL, "lanes": [HARMFUL], "concurrency": 1,
    "in_flight": 1, "fault": HARMFUL, "loop": HARMFUL, "wait_s": 1.0, "rows": [],
}  # fmt: skip


@pytest.mark.parametrize("listener", _LISTENERS.values(), ids=lambda listener: listener.__name__)
def test_whatever_comes_from_outside_every_record_is_one_line_in_both_formats(listener: Any, kept: Kept) -> None:
    listener(**SAMPLES)

    for record in kept.records:
        for formatter in (LineFormatter(), JsonFormatter("%(message)s")):
            line = formatter.format(record)
            assert line.isprintable(), repr(line)
            assert "\u202e" not in line


def test_a_record_as_json_says_every_field(kept: Kept) -> None:
    of = claim()

    events.send(events.jobs_acked, claims=[of])

    document = json.loads(JsonFormatter("%(levelname)s %(message)s").format(kept.records[0]))
    assert document.items() >= (about(of) | {"action": "ack", "outcome": "done"}).items()


def test_a_forged_line_in_an_applications_own_message_stays_inside_its_line() -> None:
    record = logging.LogRecord("shop", logging.INFO, "", 0, "paid\n2026-01-01 INFO forged", None, None)

    line = LineFormatter("%(levelname)s %(message)s").format(record)

    assert line == "INFO paid\\x0a2026-01-01 INFO forged"


def test_a_traceback_follows_in_lines_that_no_record_begins_with() -> None:
    try:
        raise ValueError("no\n2026-01-01 INFO forged\x1b[2J")
    except ValueError:
        record = logging.LogRecord("shop", logging.ERROR, "", 0, "failed", None, sys.exc_info())

    first, *block = LineFormatter("%(levelname)s %(message)s").format(record).split("\n")

    assert first == "ERROR failed"
    assert all(line.startswith("    ") and line.isprintable() for line in block)
    assert block[-1] == "    2026-01-01 INFO forged\\x1b[2J"


@pytest.mark.parametrize("payload", [{"n": 1, "card": "4111-1111"}, {"n": 1, "card": {"number": "4111-1111"}}])
def test_what_the_audit_log_redacts_is_masked_where_an_error_quotes_it(kept: Kept, payload: dict[str, Any]) -> None:
    redacting = {"URL": "redis://127.0.0.1:1/0", "AUDIT_REDACT": ["card"]}
    with override_settings(PRIQUEUE=redacting):
        failure = Failure(error="CardDeclined", message="4111-1111 was refused, 1 time")
        events.send(events.job_buried, claim=claim(payload=payload), failure=failure)

    assert kept.records[0].getMessage().endswith("CardDeclined: *** was refused, 1 time")


def test_a_short_redacted_value_is_masked_as_a_word_and_not_inside_others(kept: Kept) -> None:
    with override_settings(PRIQUEUE={"URL": "redis://127.0.0.1:1/0", "AUDIT_REDACT": ["pin"]}):
        failure = Failure(error="E", message="pin 12 is wrong; order 4123")
        events.send(events.job_buried, claim=claim(payload={"pin": 12}), failure=failure)

    assert kept.records[0].getMessage().endswith("E: pin *** is wrong; order 4123")


def test_the_settings_passwords_are_masked_wherever_an_error_quotes_them(kept: Kept) -> None:
    url = "redis://:p%40ss-word@127.0.0.1:1/0"
    with override_settings(PRIQUEUE={"URL": url, "METRICS_TOKEN": "scrape-me"}):
        events.send(events.loop_failed, loop="worker", error=OSError(f"{url} p@ss-word scrape-me"), wait_s=1)

    message = kept.records[0].getMessage()
    assert not [secret for secret in ("p@ss-word", "p%40ss-word", "scrape-me") if secret in message]
    assert "redis://:***@127.0.0.1:1/0 *** ***" in message


def test_records_made_inside_a_handler_carry_the_job_and_others_do_not(kept: Kept) -> None:
    of = claim(name=chatty.name)

    execute(of, test_settings())
    logging.getLogger("shop").warning("between jobs")

    inside, outside = kept.records
    assert inside.__dict__.items() >= {
        "job_id": of.job.id, "handler": of.job.name, "lane": "high", "attempt": 2, "worker": "w:1:a",
        "caller": "user:7", "correlation_id": "request-9", "queue": "priqueue",
    }.items()  # fmt: skip
    assert not hasattr(outside, "job_id")


def test_what_a_record_says_by_itself_stays(kept: Kept) -> None:
    execute(claim(name=about_another.name), test_settings())

    assert kept.records[0].job_id == "other"  # type: ignore[attr-defined]


def test_a_record_of_a_request_carries_its_correlation_id_and_nobody_is_asked_who_acts(kept: Kept) -> None:
    def refuse() -> str:
        raise AssertionError("asked")

    with callers.acting_when_asked(refuse, correlation_id="request-3"):
        logging.getLogger("shop").warning("a page")

    assert kept.records[0].correlation_id == "request-3"  # type: ignore[attr-defined]


def test_a_level_that_is_switched_off_costs_no_record(kept: Kept) -> None:
    logging.getLogger("priqueue").setLevel(logging.CRITICAL)

    for listener in _LISTENERS.values():
        listener(**SAMPLES)

    assert {record.levelno for record in kept.records} == {logging.CRITICAL}

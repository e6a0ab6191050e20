"""deadletters: what a person sees of the dead letters, and does with them."""

import getpass
import json
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from redis import Redis

from priqueue import dead_letters, wiring
from priqueue.coordinator import Coordinator
from priqueue.jobs import Failure
from tests.support.queues import Queue, test_settings

NOTE = "tests.shop.jobs.note"
CAUSE = f"ValueError {NOTE}"


@pytest.fixture(autouse=True)
def configured(queue: Queue) -> Iterator[None]:
    with wiring.override(queue.coordinator):
        yield


class Person(StringIO):
    """A terminal with somebody who answers."""

    def isatty(self) -> bool:
        return True


def deadletters(*options: str, stderr: StringIO | None = None) -> str:
    """Run the command; return what it prints."""
    out = StringIO()
    call_command("deadletters", *options, stdout=out, stderr=stderr or StringIO())
    return out.getvalue()


def refusal(*options: str) -> str:
    with pytest.raises(CommandError) as caught:
        deadletters(*options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def bury(queue: Queue, number: int = 1, **options: Any) -> list[str]:
    """Bury jobs, one second apart; return their ids, newest first."""
    ids: list[str] = []
    for _ in range(number):
        ids.insert(0, queue.buried(**options)[0].id)
        queue.clock.advance(1)
    return ids


def documents(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


# ── list ──


def test_letters_are_listed_newest_first(queue: Queue) -> None:
    second, first = bury(queue, 2, caller="user:1")

    assert deadletters("list") == (
        "id                                    buried at                lane     caller  cause\n"
        f"{second}  2027-01-15 08:00:01 UTC  default  user:1  {CAUSE}\n"
        f"{first}  2027-01-15 08:00:00 UTC  default  user:1  {CAUSE}\n"
    )


def test_no_letters_are_said_to_be_none() -> None:
    assert deadletters("list") == "no letters\n"
    assert deadletters("list", "--json") == ""


def test_letters_come_as_lines_of_json(queue: Queue) -> None:
    (job_id,) = bury(queue, caller="user:1", lane="low")

    assert documents(deadletters("list", "--json")) == [
        {
            "id": job_id, "handler": NOTE, "lane": "low", "cause": CAUSE, "caller": "user:1",
            "buried_at": "2027-01-15T08:00:00+00:00", "replaced_by": "",
        }
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--lane", "low"], [0]),
        (["--cause", "KeyError tests.shop.jobs.note"], [1]),
        (["--caller", "user:9"], [2]),
        (["--handler", NOTE], [2, 1, 0]),
        (["--handler", NOTE, "--lane", "high"], []),
        (["--since", "2027-01-15T08:00:01Z"], [2, 1]),
        (["--until", "2027-01-15T08:00:01+00:00", "--lane", "default"], [1]),
        (["--until", "1s"], []),
        (["--since", "7d", "--limit", "1"], [2]),
    ],
)
def test_filters_and_the_limit_say_which(queue: Queue, options: list[str], expected: list[int]) -> None:
    made = [
        *bury(queue, lane="low"),
        *bury(queue, failure=Failure(error="KeyError")),
        *bury(queue, caller="user:9"),
    ]

    found = documents(deadletters("list", "--json", *options))

    assert [letter["id"] for letter in found] == [made[at] for at in expected]


def test_a_long_list_is_cut_and_says_so(queue: Queue) -> None:
    queue.buried(number=51)

    lines = deadletters("list").splitlines()

    assert (len(lines), lines[-1]) == (52, "and older ones: --limit shows more than 50")
    assert len(deadletters("list", "--limit", "51").splitlines()) == 52


# ── show ──


def test_a_letter_is_shown_with_its_payload_and_its_trail(queue: Queue) -> None:
    failure = Failure(error="ValueError", message="bad\x1b[2J\nword", traceback="File x\n  line \x07 1\n")
    (job_id,) = bury(queue, payload={"n": 7}, failure=failure, caller="user:1")
    opened = queue.inspector.job(job_id)
    assert opened is not None

    assert deadletters("show", job_id) == (
        f"letter:      {job_id}\n"
        f"handler:     {NOTE}\n"
        "lane:        default\n"
        f"cause:       {CAUSE}\n"
        "buried at:   2027-01-15 08:00:00 UTC\n"
        f"enqueued at: {opened.job.enqueued_at:%Y-%m-%d %H:%M:%S} UTC\n"
        "caller:      user:1\n"
        f"correlation: {job_id}\n"
        "attempts:    1 of 5\n"
        "crashes:     0\n"
        "payload:\n"
        "    {\n"
        '      "n": 7\n'
        "    }\n"
        "attempt 1, 2027-01-15 08:00:00 UTC, worker: ValueError: bad\\x1b[2J\\nword\n"
        "    File x\n"
        "      line \\x07 1\n"
    )


def test_a_letter_is_shown_as_a_line_of_json(queue: Queue) -> None:
    (job_id,) = bury(queue, payload={"n": 7}, correlation_id="c-1")

    (found,) = documents(deadletters("show", job_id, "--json"))

    assert (found["id"], found["payload"], found["correlation_id"]) == (job_id, {"n": 7}, "c-1")
    assert (found["error"], found["attempts"], found["crashes"], found["max_attempts"]) == ("ValueError", 1, 0, 5)
    assert found["trail"] == [
        {
            "error": "ValueError", "message": "no", "traceback": "here", "worker": "worker", "attempt": 1,
            "crash": False, "at": "2027-01-15T08:00:00+00:00",
        }
    ]  # fmt: skip


def test_letters_are_shown_by_a_filter_too(queue: Queue) -> None:
    bury(queue, lane="high")
    low = bury(queue, 2, lane="low")

    found = documents(deadletters("show", "--lane", "low", "--json"))

    assert [letter["id"] for letter in found] == low[::-1]


def test_ids_of_no_letter_fail_after_the_others_were_shown(queue: Queue) -> None:
    (job_id,) = bury(queue)
    out = StringIO()

    with pytest.raises(CommandError, match=r"^no dead letter: x\\x1b, y$"):
        call_command("deadletters", "show", "x\x1b", job_id, "y", "--json", stdout=out)

    assert [letter["id"] for letter in documents(out.getvalue())] == [job_id]


# ── requeue and purge ──


def test_a_requeue_by_id_says_what_it_did_and_who_it_was(queue: Queue) -> None:
    second, first = bury(queue, 2)

    said = deadletters("requeue", first, "--reason", "fixed", "--yes")

    assert said == "requeue: done for 1 of 1 letters\n"
    assert queue.places() == {first: "ready", second: "dead"}
    assert queue.events()[-1] == ("requeue", f"command:{getpass.getuser()}", first)


def test_a_purge_by_filter_takes_what_fits(queue: Queue) -> None:
    bury(queue, lane="low")
    (high,) = bury(queue, lane="high")

    said = deadletters("purge", "--lane", "low", "--reason", "old", "--yes", "--json")

    assert documents(said) == [{"action": "purge", "selected": 1, "done": 1}]
    assert queue.places() == {high: "dead"}


def test_all_means_all_and_the_oldest_goes_first(queue: Queue) -> None:
    made = bury(queue, 3)

    deadletters("requeue", "--all", "--reason", "fixed", "--yes")

    assert queue.state()["ready"]["default"] == made[::-1]


def test_the_limit_takes_the_newest(queue: Queue) -> None:
    made = bury(queue, 3)

    deadletters("purge", "--all", "--limit", "2", "--reason", "old", "--yes")

    assert queue.places() == {made[2]: "dead"}


def test_ids_of_no_letter_are_an_error_after_the_others_were_done(queue: Queue) -> None:
    (job_id,) = bury(queue)

    assert refusal("purge", job_id, "x", "--reason", "old", "--yes") == "1 of the ids are of no dead letter"

    assert queue.places() == {}


def test_a_filter_that_nothing_fits_is_no_error(queue: Queue) -> None:
    assert deadletters("purge", "--lane", "low", "--reason", "old", "--yes") == ("purge: done for 0 of 0 letters\n")


@pytest.mark.parametrize("answer", ["y\n", "YES\n"])
def test_on_a_terminal_a_person_is_asked_first(queue: Queue, monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    (job_id,) = bury(queue)
    monkeypatch.setattr("sys.stdin", Person(answer))
    stderr = StringIO()

    deadletters("requeue", "--all", "--reason", "fixed", stderr=stderr)

    where = f"queue {queue.settings.namespace} at redis://127.0.0.1:1/0"
    assert stderr.getvalue() == f"requeue 1 letters of {where}? [y/N] "
    assert queue.places() == {job_id: "ready"}


@pytest.mark.parametrize("answer", ["n\n", "\n", "", "yo\n"])
def test_anything_but_a_yes_changes_nothing(queue: Queue, monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    (job_id,) = bury(queue)
    monkeypatch.setattr("sys.stdin", Person(answer))

    assert refusal("purge", "--all", "--reason", "old") == "nothing was changed"

    assert queue.places() == {job_id: "dead"}


def test_a_bar_is_drawn_on_a_terminal(queue: Queue) -> None:
    queue.buried(number=100)
    queue.buried(number=100)
    terminal = Person()

    deadletters("purge", "--all", "--reason", "old", "--yes", stderr=terminal)

    assert terminal.getvalue() == (f"\r[{'#' * 15}{'.' * 15}]  50 % of 200\r[{'#' * 30}] 100 % of 200\n")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["purge", "--reason", "r", "--yes"], "which letters? give ids, a filter or --all"),
        (["show"], "which letters? give ids, a filter"),
        (["purge", "--all", "--reason", "r"], "nobody is here to be asked: use --yes"),
        (["purge", "--all", "--reason", " ", "--yes"], "--reason: say why; it is kept with the change"),
        (["purge", "--all", "--lane", "low", "--reason", "r", "--yes"], "give one of these, not more"),
        (["purge", "x", "--lane", "low", "--reason", "r", "--yes"], "give one of these, not more"),
        (["purge", "x", "--all", "--reason", "r", "--yes"], "give one of these, not more"),
        (["purge", "--all", "--yes"], "--reason"),
        (["purge", "--all", "--reason", "r", "--yes", "--limit", "0"], "no whole number"),
        (["list", "--since", "soon"], "'soon' is no time"),
        (["list", "--since", "2027-13-01"], "is no time"),
        (["keep"], "invalid choice: 'keep'"),
    ],
)
def test_what_is_not_clear_is_refused_before_anything_is_done(
    queue: Queue, monkeypatch: pytest.MonkeyPatch, options: list[str], why: str
) -> None:
    monkeypatch.setattr("sys.stdin", StringIO())
    bury(queue, lane="low")
    before = queue.state()

    assert why in refusal(*options)

    assert queue.state() == before


def test_a_queue_that_is_away_is_one_clear_line() -> None:
    with wiring.override(Coordinator(Redis(port=1), test_settings())):
        assert refusal("list").startswith("the queue did not answer")


# ── causes, and edited copies ──


def test_causes_are_counted_the_most_frequent_first(queue: Queue) -> None:
    bury(queue, 2)
    bury(queue, failure=Failure(error="KeyError"))

    assert deadletters("causes") == f"letters  cause\n      2  {CAUSE}\n      1  KeyError {NOTE}\n"
    assert documents(deadletters("causes", "--json")) == [
        {"cause": CAUSE, "letters": 2}, {"cause": f"KeyError {NOTE}", "letters": 1}
    ]  # fmt: skip


def test_no_causes_are_said_to_be_none() -> None:
    assert deadletters("causes") == "no letters\n"


def test_a_replaced_letter_says_so_in_a_list_and_by_itself_and_cannot_be_requeued(queue: Queue) -> None:
    (job_id,) = bury(queue)
    dead_letters.replace(job_id, {"n": 2}, reason="a typo", caller="user:1", copy_id="copy")

    assert deadletters("list").splitlines()[0].endswith("replaced by")
    assert deadletters("list").splitlines()[1].endswith("  copy")
    assert "replaced by: copy" in deadletters("show", job_id)
    assert documents(deadletters("show", "--json", job_id))[0]["replaced_by"] == "copy"
    assert "replaced" in refusal("requeue", job_id, "--reason", "x", "--yes")
    assert queue.places() == {job_id: "dead", "copy": "ready"}

"""Dead letters: listing, reading, requeue and purge, as people use them."""

import json
from collections.abc import Iterator
from datetime import timedelta
from itertools import count

import pytest

from priqueue import callers, dead_letters, events, wiring
from priqueue.coordinator import Letters, letters, order
from priqueue.dead_letters import Filter, Letter, Page
from priqueue.exceptions import InvalidCaller, InvalidPayload, UnknownHandler
from priqueue.jobs import Failure, Job, from_ms
from tests.support.queues import START_MS, Queue


@pytest.fixture(autouse=True)
def configured(queue: Queue) -> Iterator[Queue]:
    with wiring.override(queue.coordinator):
        yield queue


@pytest.fixture(autouse=True)
def _in_no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a page look as far as it may, however busy the machine is."""
    monkeypatch.setattr(letters, "_PAGE_S", 60)
    monkeypatch.setattr(letters, "_COUNT_S", 60)


def bury(queue: Queue, number: int = 1, error: str = "ValueError", **options: object) -> list[str]:
    """Bury jobs, one second apart; return their ids, newest first."""
    ids: list[str] = []
    for _ in range(number):
        (job,) = queue.buried(failure=Failure(error=error, message="no", traceback="here"), **options)
        ids.insert(0, job.id)
        queue.clock.advance(1)
    return ids


def ids(found: Iterator[Letter] | Page) -> list[str]:
    return [letter.id for letter in (found.letters if isinstance(found, Page) else found)]


def test_letters_come_newest_first_with_what_a_list_shows(queue: Queue) -> None:
    first, second = (queue.buried(caller="user:1", lane="low")[0] for _ in range(2))

    found = list(dead_letters.scan())

    about = {
        "lane": "low", "cause": "ValueError tests.shop.jobs.note", "handler": "tests.shop.jobs.note",
        "caller": "user:1", "buried_at": from_ms(START_MS),
    }  # fmt: skip
    assert found == [Letter(id=second.id, **about), Letter(id=first.id, **about)]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Filter(lane="high"), [0]),
        (Filter(handler="tests.shop.jobs.send_receipt"), [1]),
        (Filter(cause="KeyError tests.shop.jobs.note"), [2]),
        (Filter(caller="user:9"), [3]),
        (Filter(caller="user:9", lane="high"), []),
        (Filter(cause="no such cause"), []),
        (Filter(since=from_ms(START_MS + 3000)), [3]),
        (Filter(until=from_ms(START_MS + 1000)), [1, 0]),
        (Filter(since=from_ms(START_MS + 1000), until=from_ms(START_MS + 2000)), [2, 1]),
        (Filter(), [3, 2, 1, 0]),
    ],
)
def test_a_filter_gives_what_fits_all_of_it(queue: Queue, wanted: Filter, expected: list[int]) -> None:
    made = [
        *bury(queue, lane="high"),
        *bury(queue, name="tests.shop.jobs.send_receipt"),
        *bury(queue, error="KeyError"),
        *bury(queue, caller="user:9"),
    ]

    assert ids(dead_letters.scan(wanted)) == [made[at] for at in expected]


@pytest.mark.parametrize("cause", [None, "ValueError tests.shop.jobs.note"])
def test_pages_follow_each_other_while_letters_come_and_go(queue: Queue, cause: str | None) -> None:
    made = bury(queue, 7)
    wanted = Filter(cause=cause)

    first = dead_letters.page(wanted, size=3)
    bury(queue)
    dead_letters.purge(dead_letters.noted([made[0], made[4]]), reason="test")
    queue.coordinator.trim()
    second = dead_letters.page(wanted, first.older, size=3)

    assert ids(first) == made[:3]
    assert ids(second) == [made[3], made[5], made[6]]
    assert second.older == ""


def test_a_page_that_ends_with_the_last_letter_is_the_last(queue: Queue) -> None:
    made = bury(queue, 2)

    page = dead_letters.page(size=2)

    assert (ids(page), page.older) == (made, "")


@pytest.mark.parametrize("cursor", ["x", "1", "1-", "-1-1-a", "1-2", "1-2-", "٣-٣-a", "9" * 50 + "-1-a"])
def test_a_cursor_that_no_letter_gave_is_refused(cursor: str) -> None:
    with pytest.raises(ValueError, match="cursor"):
        dead_letters.page(cursor=cursor)


def test_a_letter_that_died_again_is_listed_once_at_its_newest_place(queue: Queue) -> None:
    made = bury(queue, 3)
    dead_letters.requeue(dead_letters.noted([made[2]]), reason="test")
    queue.coordinator.bury(queue.coordinator.pull("worker")[0], Failure(error="ValueError"))

    assert ids(dead_letters.scan()) == [made[2], made[0], made[1]]
    first = dead_letters.page(size=2)
    assert (ids(first), ids(dead_letters.page(cursor=first.older))) == ([made[2], made[0]], [made[1]])


def test_a_letter_is_read_with_its_payload_and_its_trail(queue: Queue) -> None:
    (job,) = queue.buried(payload={"n": 7}, failure=Failure(error="E", message="m", traceback="t"))

    opened = dead_letters.read(job.id)

    assert opened is not None
    assert opened.letter == next(dead_letters.scan())
    assert (opened.job.payload, opened.job.payload_text()) == ({"n": 7}, '{"n":7}')
    assert (opened.error, opened.attempts, opened.crashes) == ("E", 1, 0)
    (attempt,) = opened.trail
    assert (attempt.message, attempt.traceback, attempt.attempt, attempt.at) == ("m", "t", 1, from_ms(START_MS))


def test_what_is_not_dead_is_no_letter(queue: Queue) -> None:
    (ready,) = queue.enqueue()

    assert dead_letters.read(ready.id) is None
    assert dead_letters.read("nobody") is None


def test_causes_are_counted_the_most_frequent_first(queue: Queue) -> None:
    bury(queue, error="KeyError")
    bury(queue, 2)

    assert list(dead_letters.causes().items()) == [
        ("ValueError tests.shop.jobs.note", 2),
        ("KeyError tests.shop.jobs.note", 1),
    ]


def test_requeue_makes_the_selected_ready_again_the_oldest_first(queue: Queue) -> None:
    made = bury(queue, 3)
    told: list[int] = []

    with callers.acting_as("user:5"):
        done = dead_letters.requeue(dead_letters.select(), reason=" fixed ", progress=told.append)

    assert (done, told) == (3, [3])
    assert queue.state()["ready"]["default"] == made[::-1]
    assert queue.events()[-3:] == [("requeue", "user:5", job_id) for job_id in reversed(made)]
    (*_, (_, event)) = queue.raw.xrange(queue.keys.audit)
    assert event["reason"] == "fixed"


def test_purge_deletes_the_selected_and_nothing_else(queue: Queue) -> None:
    low, high = bury(queue, lane="low"), bury(queue, lane="high")

    done = dead_letters.purge(dead_letters.select(Filter(lane="low")), reason="test", caller="user:6")

    assert done == 1
    assert queue.places() == {high[0]: "dead"}
    assert queue.events()[-1] == ("purge", "user:6", low[0])


def test_a_limit_takes_the_newest_of_the_selection(queue: Queue) -> None:
    made = bury(queue, 3)

    assert dead_letters.select(limit=2).ids == [made[1], made[0]]


def test_many_letters_go_in_batches_that_are_told(queue: Queue) -> None:
    queue.buried(number=100)
    queue.buried(number=50)
    told: list[int] = []
    sent: list[int] = []

    def heard(job_ids: list[str], reason: str, **_: object) -> None:
        sent.append(len(job_ids))

    events.jobs_purged.connect(heard)
    try:
        done = dead_letters.purge(dead_letters.select(), reason="test", progress=told.append)
    finally:
        events.jobs_purged.disconnect(heard)

    assert (done, told, sent) == (150, [100, 150], [100, 50])
    assert queue.places() == {}


def test_a_requeue_while_letters_die_again_ends_and_takes_each_once(queue: Queue) -> None:
    queue.buried(number=100)
    queue.buried(number=100)
    queue.clock.advance(1)
    rounds = count()

    def die_again(_behind: int) -> None:
        next(rounds)
        queue.clock.advance(1)
        for claim in queue.coordinator.pull("worker", 100):
            queue.coordinator.bury(claim, Failure(error="ValueError"))

    done = dead_letters.requeue(dead_letters.select(), reason="test", progress=die_again)

    assert (done, next(rounds)) == (200, 2)
    assert set(queue.places().values()) == {"dead"}


def test_what_was_buried_after_the_selection_is_left_alone(queue: Queue) -> None:
    (job_id,) = bury(queue)
    selection = dead_letters.select()
    queue.coordinator.requeue([job_id], caller="user:1", reason="test")
    queue.clock.advance(1)
    queue.coordinator.bury(queue.coordinator.pull("worker")[0], Failure(error="ValueError"))

    assert dead_letters.purge(selection, reason="test") == 0

    assert queue.places() == {job_id: "dead"}


def test_ids_named_twice_or_unknown_are_done_once_or_not(queue: Queue) -> None:
    (job_id,) = bury(queue)

    done = dead_letters.purge(dead_letters.noted([job_id, "unknown", job_id]), reason="test")

    assert (done, queue.places()) == (1, {})


@pytest.mark.parametrize("reason", ["", "  \n"])
def test_a_change_without_a_reason_is_refused(queue: Queue, reason: str) -> None:
    bury(queue)
    before = queue.state()

    with pytest.raises(ValueError, match="reason"):
        dead_letters.purge(dead_letters.select(), reason=reason)

    assert queue.state() == before


def test_a_caller_that_is_no_word_is_refused(queue: Queue) -> None:
    bury(queue)
    before = queue.state()

    with pytest.raises(InvalidCaller, match="caller"):
        dead_letters.requeue(dead_letters.select(), reason="test", caller="some body")

    assert queue.state() == before


def test_old_letters_are_not_read_when_only_new_ones_are_meant(queue: Queue) -> None:
    made: list[Job] = []
    for _ in range(12):
        made = queue.buried(number=100)
        queue.clock.advance(60)

    since = from_ms(queue.clock.now_ms) - timedelta(seconds=60)

    assert set(ids(dead_letters.scan(Filter(since=since)))) == {job.id for job in made}


# ── from any place, in both directions ──


def walk(newer: bool, size: int = 3, wanted: Filter = dead_letters.EVERYTHING) -> list[list[str]]:
    """Follow the pages from one end to the other."""
    page = dead_letters.page(wanted, size=size, newer=newer)
    found = [ids(page)]
    while cursor := page.newer if newer else page.older:
        page = dead_letters.page(wanted, cursor, size=size, newer=newer)
        found.append(ids(page))
    return found


@pytest.mark.parametrize("wanted", [Filter(), Filter(cause="ValueError tests.shop.jobs.note"), Filter(lane="low")])
def test_pages_from_the_oldest_to_newer_ones_have_what_those_the_other_way_have(queue: Queue, wanted: Filter) -> None:
    made = bury(queue, 8, lane="low")

    assert walk(newer=False, wanted=wanted) == [made[0:3], made[3:6], made[6:8]]
    assert walk(newer=True, wanted=wanted) == [made[5:8], made[2:5], made[0:2]]


def test_a_page_knows_its_neighbours(queue: Queue) -> None:
    made = bury(queue, 6)
    first = dead_letters.page(size=2)
    second = dead_letters.page(cursor=first.older, size=2)

    assert (first.newer, ids(second)) == ("", made[2:4])
    assert ids(dead_letters.page(cursor=second.newer, size=2, newer=True)) == made[0:2]
    assert ids(dead_letters.page(cursor=second.older, size=2)) == made[4:6]
    oldest = dead_letters.page(size=2, newer=True)
    assert (ids(oldest), oldest.older) == (made[4:6], "")
    assert ids(dead_letters.page(cursor=oldest.newer, size=2, newer=True)) == made[2:4]


@pytest.mark.parametrize("cause", [None, "ValueError tests.shop.jobs.note"])
def test_pages_to_newer_ones_miss_nothing_while_letters_come_go_and_are_trimmed(
    queue: Queue, cause: str | None
) -> None:
    made = bury(queue, 9)
    wanted = Filter(cause=cause)

    first = dead_letters.page(wanted, size=3, newer=True)
    dead_letters.purge(dead_letters.noted([made[6], made[7], made[8], made[4]]), reason="test")
    while queue.coordinator.trim() or queue.raw.exists(queue.keys.trim):
        pass
    bury(queue)
    second = dead_letters.page(wanted, first.newer, size=3, newer=True)

    assert (ids(first), ids(second)) == (made[6:9], [made[2], made[3], made[5]])


def test_a_letter_that_died_again_is_met_once_at_its_newest_place_on_the_way_to_newer_ones(queue: Queue) -> None:
    made = bury(queue, 4)
    dead_letters.requeue(dead_letters.noted([made[3]]), reason="test")
    queue.coordinator.bury(queue.coordinator.pull("worker")[0], Failure(error="ValueError"))

    assert walk(newer=True, size=2) == [made[1:3], [made[3], made[0]]]


def test_a_page_among_letters_that_all_died_again_has_each_once(queue: Queue) -> None:
    made = bury(queue, 5)
    dead_letters.requeue(dead_letters.noted(made[::-1]), reason="test")
    for claim in queue.coordinator.pull("worker", 5):
        queue.coordinator.bury(claim, Failure(error="ValueError"))
        queue.clock.advance(1)

    pages = walk(newer=True, size=2)

    assert [job_id for page in pages for job_id in page[::-1]] == made[::-1]


@pytest.mark.parametrize("cause", [None, "ValueError tests.shop.jobs.note"])
@pytest.mark.parametrize("second", [0, 1, 2500, 4999, 6000])
def test_a_page_of_a_time_begins_with_what_was_buried_then_or_before(
    queue: Queue, monkeypatch: pytest.MonkeyPatch, cause: str | None, second: int
) -> None:
    monkeypatch.setattr(order, "BATCH", 20)
    monkeypatch.setattr(order, "_MARGIN", 20)
    made = five_thousand(queue)

    cursor = reader(queue).at(Filter(cause=cause), from_ms(START_MS + 1000 * second))
    page = dead_letters.page(Filter(cause=cause), cursor, size=3)

    last = min(second, 4999)
    assert ids(page) == [made[at] for at in range(last, max(last - 3, -1), -1)]


def five_thousand(queue: Queue) -> list[str]:
    """Write letters as bury would have left them, one second apart, the oldest first, every seventh of them a hole."""
    made = [f"{at:05}" for at in range(5_000)]
    about = {"lane": "low", "cause": "ValueError tests.shop.jobs.note", "handler": "h", "caller": "c"}
    letters = {job_id: json.dumps({**about, "buried_at_ms": START_MS + 1000 * at}) for at, job_id in enumerate(made)}
    queue.raw.hset(queue.keys.letters, mapping=letters)
    queue.raw.zadd(queue.keys.cause(about["cause"]), {made[at]: START_MS + 1000 * at for at in range(5_000)})
    queue.raw.lpush(queue.keys.kept, *made[:3_000])
    queue.raw.lpush(queue.keys.dead, *[entry for at in range(3_000, 5_000) for entry in (made[at], f"hole{at}")])
    return made


def reader(queue: Queue) -> Letters:
    return Letters(queue.raw, queue.settings, queue.clock)


def test_a_bound_in_time_is_found_without_reading_what_is_newer(queue: Queue) -> None:
    made = five_thousand(queue)
    wanted = Filter(since=from_ms(START_MS + 100_000), until=from_ms(START_MS + 104_000))

    page = dead_letters.page(wanted, size=50)
    from_below = dead_letters.page(wanted, size=50, newer=True)

    assert ids(page) == ids(from_below) == made[104:99:-1]
    assert page.looked < 4_000


def test_a_page_that_finds_little_says_how_far_it_looked_and_goes_on(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(letters, "_LOOKED_AT_BY_A_PAGE", 2_000)
    five_thousand(queue)
    wanted = Filter(handler="nobody")
    page, looked, pages = dead_letters.page(wanted), 0, 1

    while page.older:
        assert (page.letters, page.looked) == ([], 2_000)
        page, looked, pages = dead_letters.page(wanted, page.older), looked + page.looked, pages + 1

    assert (looked + page.looked, pages) == (7_000, 4)


def test_letters_are_counted_in_steps(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(letters, "_LOOKED_AT_BY_A_COUNT", 3_000)
    five_thousand(queue)
    wanted = Filter(until=from_ms(START_MS + 1000 * 4_899))

    first = reader(queue).count(wanted)
    second = reader(queue).count(wanted, first.cursor)
    third = reader(queue).count(wanted, second.cursor)

    assert first.number + second.number + third.number == 4_900
    assert third.cursor == ""


# ── an edited copy ──


def test_a_copy_is_checked_by_its_handler_and_linked_to_its_letter(queue: Queue) -> None:
    (job_id,) = bury(queue, lane="low")

    with callers.acting_as("user:5"):
        copy_id = dead_letters.replace(job_id, {"n": 9}, reason=" a typo ")

    assert copy_id
    opened, (claim,) = dead_letters.read(job_id), queue.coordinator.pull("worker")
    assert opened
    assert opened.letter.replaced_by == copy_id
    assert next(dead_letters.scan()).replaced_by == copy_id
    job = claim.job
    assert (job.id, job.replaces, job.payload, job.lane, job.caller) == (copy_id, job_id, {"n": 9}, "low", "user:5")
    assert job.correlation_id == job_id
    assert ("replace", "user:5", job_id) in queue.events()


@pytest.mark.parametrize("payload", [{"n": "7"}, {"m": 1}, {"n": "x" * 100_000}])
def test_a_copy_that_its_handler_would_not_take_is_refused(queue: Queue, payload: dict[str, object]) -> None:
    (job_id,) = bury(queue)
    before = queue.everything()

    with pytest.raises(InvalidPayload):
        dead_letters.replace(job_id, payload, reason="test")

    assert queue.everything() == before


def test_a_copy_of_a_job_without_a_handler_is_refused(queue: Queue) -> None:
    (job_id,) = bury(queue, name="no.such.handler")

    with pytest.raises(UnknownHandler):
        dead_letters.replace(job_id, {}, reason="test")

    assert queue.places() == {job_id: "dead"}


def test_a_copy_without_a_reason_is_refused_and_one_of_no_letter_is_none(queue: Queue) -> None:
    (job_id,) = bury(queue)

    with pytest.raises(ValueError, match="reason"):
        dead_letters.replace(job_id, {"n": 1}, reason=" ")
    assert dead_letters.replace("nobody", {"n": 1}, reason="test") is None

    assert queue.places() == {job_id: "dead"}


def test_of_two_who_edit_the_second_hears_by_which_it_is_replaced(queue: Queue) -> None:
    (job_id,) = bury(queue)
    heard: list[str] = []

    def hear(copy: Job, **_: object) -> None:
        heard.append(copy.id)

    events.job_replaced.connect(hear)
    try:
        first = dead_letters.replace(job_id, {"n": 1}, reason="test", copy_id="first")
        second = dead_letters.replace(job_id, {"n": 2}, reason="test", copy_id="second")
    finally:
        events.job_replaced.disconnect(hear)

    assert (first, second, heard) == ("first", "first", ["first"])
    assert queue.places() == {job_id: "dead", "first": "ready"}


def test_requeue_of_everything_leaves_out_what_was_replaced(queue: Queue) -> None:
    other, replaced = bury(queue, 2)
    dead_letters.replace(replaced, {"n": 1}, reason="test", copy_id="copy")

    assert dead_letters.requeue(dead_letters.select(), reason="test") == 1

    assert queue.places() == {replaced: "dead", "copy": "ready", other: "ready"}
    assert ids(dead_letters.scan(Filter(replaced=True))) == [replaced]
    assert ids(dead_letters.scan(Filter(replaced=False))) == []


@pytest.mark.parametrize("newer", [False, True])
def test_a_trim_in_the_middle_of_a_walk_gives_nothing_twice_and_misses_nothing(
    queue: Queue, monkeypatch: pytest.MonkeyPatch, newer: bool
) -> None:
    monkeypatch.setattr(order, "BATCH", 10)
    monkeypatch.setattr(order, "_MARGIN", 10)
    made = bury(queue, 60)
    holes = made[45:] + made[:5]
    found: list[str] = []

    for stretch in reader(queue).walk(Filter(), newer=newer):
        found += [letter.id for letter in stretch.letters]
        if len(found) == 10:
            queue.coordinator.purge(holes, caller="user:1", reason="others")
            while queue.coordinator.trim() or queue.raw.exists(queue.keys.trim):
                pass

    left = [job_id for job_id in (made[::-1] if newer else made) if job_id not in holes or job_id in found]
    assert found == left


def test_a_page_without_time_still_ends_where_the_letters_end(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(letters, "_PAGE_S", -1)
    monkeypatch.setattr(letters, "_COUNT_S", -1)
    bury(queue, 3)

    for newer in (False, True):
        page = dead_letters.page(Filter(lane="high"), newer=newer)
        assert (page.letters, page.older, page.newer, page.looked) == ([], "", "", 3)
    assert reader(queue).count(Filter()).cursor == ""

"""Dead letters and a server's clock that was set back: those from before the step are found as all others are."""

from collections.abc import Iterator

import pytest

from priqueue import dead_letters, wiring
from priqueue.coordinator import Letters, letters, order
from priqueue.coordinator.runs import Run, Runs
from priqueue.dead_letters import Filter
from priqueue.jobs import from_ms
from tests.support.queues import CAUSE, FAILURE, START_MS, Queue

AN_HOUR_S = 3_600
WHY = {"caller": "user:1", "reason": "test"}


@pytest.fixture(autouse=True)
def configured(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(letters, "_PAGE_S", 60)
    monkeypatch.setattr(letters, "_COUNT_S", 60)
    with wiring.override(queue.coordinator):
        yield


@pytest.fixture
def in_short_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order, "BATCH", 10)
    monkeypatch.setattr(order, "_MARGIN", 10)


@pytest.fixture
def made(queue: Queue) -> list[str]:
    """Bury sixty letters, set the clock back by an hour, and bury sixty more; return the ids, newest first."""
    before = bury(queue, 60)
    queue.clock.advance(-AN_HOUR_S)
    return bury(queue, 60) + before


def bury(queue: Queue, number: int) -> list[str]:
    ids: list[str] = []
    for _ in range(number):
        ids.insert(0, queue.buried()[0].id)
        queue.clock.advance(1)
    return ids


def reader(queue: Queue) -> Letters:
    return Letters(queue.raw, queue.settings, queue.clock)


def walked(queue: Queue, wanted: Filter, cursor: str = "", *, newer: bool = False) -> list[str]:
    stretches = reader(queue).walk(wanted, cursor, newer=newer)
    return [letter.id for stretch in stretches for letter in stretch.letters]


def trim(queue: Queue) -> None:
    while queue.coordinator.trim() or queue.raw.exists(queue.keys.trim):
        pass


@pytest.mark.parametrize("cause", [None, CAUSE])
@pytest.mark.parametrize("newer", [False, True])
def test_pages_go_on_over_the_step(queue: Queue, made: list[str], newer: bool, cause: str | None) -> None:
    page = dead_letters.page(Filter(cause=cause), newer=newer)
    sizes, found = [len(page.letters)], {letter.id for letter in page.letters}
    while cursor := page.newer if newer else page.older:
        page = dead_letters.page(Filter(cause=cause), cursor, newer=newer)
        sizes, found = [*sizes, len(page.letters)], found | {letter.id for letter in page.letters}

    assert (sizes, found) == ([50, 50, 20], set(made))


@pytest.mark.usefixtures("in_short_stretches")
def test_walks_counts_and_selections_have_them_all(queue: Queue, made: list[str]) -> None:
    assert walked(queue, Filter()) == made
    assert walked(queue, Filter(), newer=True) == made[::-1]
    assert reader(queue).count(Filter()).number == 120
    assert dead_letters.select().ids == made[::-1]


@pytest.mark.usefixtures("in_short_stretches")
@pytest.mark.parametrize("cause", [None, CAUSE])
def test_a_bound_in_time_has_what_fits_on_either_side_of_what_does_not(
    queue: Queue, made: list[str], cause: str | None
) -> None:
    till_now = Filter(cause=cause, until=from_ms(queue.clock.now_ms))
    from_then = Filter(cause=cause, since=from_ms(START_MS + 1000 * 30))
    queue.clock.advance(AN_HOUR_S)
    later = bury(queue, 40)

    for newer in (False, True):
        assert sorted(walked(queue, till_now, newer=newer)) == sorted(made[:60])
        assert sorted(walked(queue, from_then, newer=newer)) == sorted(later + made[60:90])


@pytest.mark.usefixtures("in_short_stretches")
def test_a_run_has_before_it_what_was_buried_since_the_step(queue: Queue, made: list[str]) -> None:
    runs = Runs(queue.raw, queue.settings, queue.clock)
    run = Run(id="r", action="purge", wanted=Filter(), reason="test", until_ms=queue.clock.now_ms, number=60)

    assert [job_id for some, _ in runs.ahead(run) for job_id in some] == made[:60][::-1]


@pytest.mark.usefixtures("in_short_stretches")
def test_what_was_buried_just_after_the_step_is_till_now_however_few_it_is(queue: Queue) -> None:
    bury(queue, 400)
    queue.clock.advance(-AN_HOUR_S)
    few = bury(queue, 3)
    till_now = Filter(until=from_ms(queue.clock.now_ms))

    assert walked(queue, till_now) == walked(queue, till_now, newer=True)[::-1] == few


@pytest.mark.usefixtures("in_short_stretches")
@pytest.mark.parametrize("newer", [False, True])
def test_a_mark_that_a_trim_has_shifted_misses_nothing(queue: Queue, made: list[str], newer: bool) -> None:
    way = made[::-1] if newer else made
    first = dead_letters.page(Filter(), size=30, newer=newer)
    queue.coordinator.purge([*made[85:], *way[20:30]], **WHY)
    trim(queue)

    found = walked(queue, Filter(), first.newer if newer else first.older, newer=newer)

    gone = {*made[85:], *way[:30]}
    assert [job_id for job_id in found if job_id not in way[:20]] == [each for each in way if each not in gone]


@pytest.mark.usefixtures("in_short_stretches")
@pytest.mark.parametrize("newer", [False, True])
def test_a_shifted_mark_gives_nothing_twice_where_the_clock_only_went_on(queue: Queue, newer: bool) -> None:
    made = bury(queue, 300)
    way = made[::-1] if newer else made
    first = dead_letters.page(Filter(), size=100, newer=newer)
    queue.coordinator.purge([*made[-60:-40], *way[99:101]], **WHY)
    trim(queue)

    found = walked(queue, Filter(), first.newer if newer else first.older, newer=newer)

    assert found == [each for each in way[101:] if each not in made[-60:-40]]


@pytest.mark.usefixtures("in_short_stretches")
def test_a_page_of_a_time_that_gave_up_before_it_goes_on_to_it(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(letters, "_PAGE_S", -1)
    made = bury(queue, 60)
    moment = from_ms(START_MS + 1000 * 5)

    page = dead_letters.page(Filter(), reader(queue).at(Filter(), moment), size=3)
    while not page.letters:
        page = dead_letters.page(Filter(), page.older, size=3)

    assert (page.letters[0].id, page.letters[0].buried_at) == (made[-6], moment)


@pytest.mark.usefixtures("in_short_stretches")
def test_letters_that_died_again_before_the_step_are_in_a_walk_from_the_newest(queue: Queue) -> None:
    twice = bury(queue, 30)
    queue.coordinator.requeue(twice, **WHY)
    queue.register()
    again = [claim for _ in range(30) for claim in queue.coordinator.pull("worker", 1)]
    for claim in again:
        queue.coordinator.bury(claim, FAILURE)
        queue.clock.advance(1)
    queue.clock.advance(-AN_HOUR_S)
    made = bury(queue, 30)

    assert walked(queue, Filter()) == [*made, *(claim.job.id for claim in reversed(again))]

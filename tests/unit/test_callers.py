"""Who acts, why, and under which correlation id."""

import asyncio
import contextvars

import pytest

from priqueue.callers import Acting, acting, acting_as, acting_when_asked, check_word
from priqueue.exceptions import InvalidCaller


def test_outside_of_everything_the_system_acts():
    assert acting() == Acting(caller="system", reason="", correlation_id="")


def test_inside_a_block_its_caller_acts_and_outside_again_the_former():
    with acting_as("user:42", reason="refund", correlation_id="c1"):
        inside = acting()

    assert inside == Acting("user:42", "refund", "c1")
    assert acting() == Acting()


def test_an_inner_block_keeps_the_correlation_id_and_not_the_reason():
    with acting_as("user:42", reason="refund", correlation_id="c1"), acting_as("command:alice"):
        assert acting() == Acting("command:alice", "", "c1")


def test_a_block_that_raises_is_left_all_the_same():
    with pytest.raises(KeyError), acting_as("user:42"):
        raise KeyError

    assert acting() == Acting()


@pytest.mark.parametrize(
    "word", ["system", "user:42", "key:billing", "worker:host:1:ab", "ü", "a" * 200, "<b>", "user:%20", "🐍"]
)
def test_a_word_without_spaces_quotes_and_controls_is_right(word):
    assert check_word("caller", word) == word


@pytest.mark.parametrize(
    "word",
    [
        "",
        " ",
        "a b",
        "a\n",
        "\na",
        "a\x00",
        "a\x7f",
        "a\x85",
        "a\u2028",
        "a\u00a0b",
        'a"',
        "a\\",
        "\ud800",
        "a" * 201,
        "a" * 10**6,
        None,
        42,
        b"system",
        ["system"],
    ],
    ids=lambda word: f"{word!r:.20}",
)
@pytest.mark.parametrize("field", ["caller", "correlation_id"])
def test_any_other_word_is_refused_naming_the_field(field, word):
    with pytest.raises(InvalidCaller, match=rf"^{field}: .{{0,60}} is not 1 to 200 characters"):
        check_word(field, word)


@pytest.mark.parametrize(
    ("caller", "correlation_id", "field"), [("a b", "", "caller"), ("user:42", "a b", "correlation_id")]
)
def test_a_bad_word_is_refused_before_the_block_begins(caller, correlation_id, field):
    with pytest.raises(InvalidCaller, match=f"^{field}: "), acting_as(caller, correlation_id=correlation_id):
        pytest.fail("the block began")

    assert acting() == Acting()


def test_who_acts_is_asked_each_time_and_never_before():
    names = iter(["user:1", "user:2"])
    asked = []

    def who():
        asked.append(next(names))
        return asked[-1]

    with acting_when_asked(who, correlation_id="c1"):
        before = list(asked)
        seen = [acting(), acting()]

    assert before == []
    assert seen == [Acting("user:1", "", "c1"), Acting("user:2", "", "c1")]
    assert acting() == Acting()


def test_an_inner_block_inherits_the_correlation_id_without_asking_who():
    with acting_when_asked(lambda: pytest.fail("asked"), correlation_id="c1"), acting_as("worker:w"):
        assert acting() == Acting("worker:w", "", "c1")


def test_a_lazy_block_keeps_the_outer_correlation_id():
    with acting_as("system", correlation_id="c1"), acting_when_asked(lambda: "user:1"):
        assert acting() == Acting("user:1", "", "c1")


def test_a_bad_caller_that_is_found_out_late_is_refused_by_name():
    with acting_when_asked(lambda: "a b"), pytest.raises(InvalidCaller, match=r"^caller: 'a b'"):
        acting()


def test_a_bad_correlation_id_is_refused_before_a_lazy_block_begins():
    with (
        pytest.raises(InvalidCaller, match=r"^correlation_id: "),
        acting_when_asked(lambda: "a", correlation_id=" "),
    ):
        pytest.fail("the block began")


def test_concurrent_coroutines_do_not_see_each_others_caller():
    async def act(caller):
        with acting_as(caller):
            await asyncio.sleep(0)
            return acting().caller

    async def both():
        return await asyncio.gather(act("user:1"), act("user:2"))

    assert asyncio.run(both()) == ["user:1", "user:2"]


def test_a_fresh_context_starts_as_the_system():
    with acting_as("user:42"):
        assert contextvars.Context().run(acting) == Acting()

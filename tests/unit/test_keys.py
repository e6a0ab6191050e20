"""keys: the names of everything that is stored."""

import pytest
from redis.crc import key_slot

from priqueue.coordinator import keys as module
from priqueue.coordinator.keys import FIXED, Keys

NAMESPACES = ["priqueue", "a", "shop:jobs", "a.b_c-d", ":", "x" * 64, "9"]


def _all(keys: Keys) -> list[str]:
    """Return a key of every kind."""
    return [
        *keys.fixed, *keys.of_lanes(["high", "low"]), keys.trail("id"), keys.cause("ValueError {odd}"),
        keys.series(1), keys.run("id"), keys.wake_ticker, keys.limit("user:{1}"), keys.once("user:{1}", "a:b"),
    ]  # fmt: skip


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_all_keys_of_a_namespace_share_one_slot(namespace: str) -> None:
    slots = {key_slot(key.encode()) for key in _all(Keys(namespace))}

    assert slots == {key_slot(namespace.encode())}


def test_two_namespaces_share_no_key_though_one_begins_like_the_other() -> None:
    assert not set(_all(Keys("shop"))) & set(_all(Keys("shop:")))
    assert not any(key.startswith(Keys("shop").prefix) for key in _all(Keys("shop2")))


def test_no_two_names_are_one_key() -> None:
    keys = _all(Keys("shop"))

    assert len(set(keys)) == len(keys) - 1  # the ticker's token is a fixed key, too


def test_a_fixed_key_is_known_by_its_name() -> None:
    assert Keys("shop").inflight == "{shop}:inflight"


def test_a_name_that_is_no_key_is_refused() -> None:
    with pytest.raises(AttributeError, match="inflght"):
        _ = Keys("shop").inflght


def test_lanes_come_as_lane_delayed_and_wake_for_each() -> None:
    assert Keys("s").of_lanes(["a", "b"]) == [
        "{s}:lane:a", "{s}:delayed:a", "{s}:wake:a", "{s}:lane:b", "{s}:delayed:b", "{s}:wake:b",
    ]  # fmt: skip


def test_no_lanes_are_no_keys() -> None:
    assert Keys("s").of_lanes([]) == []


@pytest.mark.parametrize(
    ("at_ms", "bucket"), [(0, 0), (9_999, 0), (10_000, 10_000), (1_800_000_012_345, 1_800_000_010_000)]
)
def test_a_series_covers_ten_seconds(at_ms: int, bucket: int) -> None:
    assert Keys("s").series(at_ms) == f"{{s}}:series:{bucket}"


def test_every_fixed_key_is_told_in_the_head_of_the_module() -> None:
    told = {line.split()[0] for line in (module.__doc__ or "").splitlines() if line.startswith("    ")}

    assert set(FIXED) <= told


def test_a_caller_and_its_key_are_told_apart_and_neither_is_told() -> None:
    keys = Keys("s")

    assert keys.once("a", "b:c") != keys.once("a:b", "c")
    assert "billing" not in keys.limit("key:billing") + keys.once("key:billing", "billing")
    assert len(keys.limit("x" * 10**6)) == len(keys.limit("x"))

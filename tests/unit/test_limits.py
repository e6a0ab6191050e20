"""limits: what a limit says, and whose it is."""

import pytest

from priqueue.limits import AT_THE_DOOR, Limit, Policy, Rule, rule_for

FIVE, TEN = Limit.parse("5/s"), Limit.parse("10/s")


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("100/s", Limit(100, 1, 100)),
        ("1/s", Limit(1, 1, 1)),
        ("100/min", Limit(100, 60, 1)),
        ("600/min", Limit(600, 60, 10)),
        ("30/h", Limit(30, 3600, 1)),
        ("100/s burst 500", Limit(100, 1, 500)),
        ("100/min burst 100", Limit(100, 60, 100)),
        ("999999/s burst 999999", Limit(999_999, 1, 999_999)),
    ],
)
def test_a_limit_is_a_number_of_jobs_in_a_time_and_a_burst_of_one_second_unless_given(text, limit):
    assert Limit.parse(text) == limit


@pytest.mark.parametrize(
    "text",
    [
        "", "100", "0/s", "-1/s", "1.5/s", "100/day", "100 / s", " 100/s", "100/s ", "100/s\n", "100/s burst 0",
        "100/s burst", "1000000/s", "100/s burst 1000000", "1e3/s", "1\u0663/s", "100/S", None, 100, True, b"1/s",
        ["1/s"],
    ],
)  # fmt: skip
def test_what_is_no_limit_is_refused_with_how_to_write_one(text):
    with pytest.raises(ValueError, match='is no limit; use a text such as "100/s"'):
        Limit.parse(text)


@pytest.mark.parametrize("text", ["100/s burst 100", "7/min burst 3", "1/h burst 1"])
def test_a_limit_prints_as_it_is_written(text):
    assert str(Limit.parse(text)) == text


def test_the_interval_is_the_time_from_job_to_job():
    assert Limit.parse("100/s").interval_us == 10_000
    assert Limit.parse("30/min").interval_us == 2_000_000


def test_a_text_limits_everybody_but_what_the_system_does_by_itself():
    policy = Policy.parse("5/s")

    for caller in ("user:1", "key:a", "anybody", "*"):
        assert policy.rule_of(caller) == Rule("all", FIVE)
    for caller in ("system", "command:alice", "worker:host:1:ab"):
        assert policy.rule_of(caller) is None


def test_the_more_a_name_says_the_more_it_counts():
    policy = Policy.parse({"*": "1/s", "user:": "5/s", "user:7": "10/s"})

    assert policy.rule_of("user:7") == Rule("named", TEN)
    assert policy.rule_of("user:8") == Rule("user", FIVE)
    assert policy.rule_of("key:a") == Rule("all", Limit.parse("1/s"))


def test_what_the_system_does_is_limited_where_it_is_named():
    policy = Policy.parse({"system": "5/s", "worker:": "10/s"})

    assert policy.rule_of("system") == Rule("named", FIVE)
    assert policy.rule_of("worker:a") == Rule("worker", TEN)
    assert policy.rule_of("command:alice") is None


def test_none_lifts_a_limit():
    policy = Policy.parse({"*": "1/s", "key:trusted": None, "user:": None})

    assert policy.rule_of("key:trusted") == Rule("named", None)
    assert policy.rule_of("user:1") == Rule("user", None)


@pytest.mark.parametrize("name", ["", ":", None, 1])
def test_a_name_that_can_be_no_caller_s_is_refused(name):
    with pytest.raises(ValueError, match="names no caller"):
        Policy.parse({name: "1/s"})


@pytest.mark.parametrize("caller", ["user:1", "key:a"])
def test_the_door_limits_keys_and_users_that_nothing_else_limits(caller):
    assert rule_for(caller, None, at_door=True) == Rule("door", AT_THE_DOOR)
    assert rule_for(caller, Policy.parse({"other:": "1/s"}), at_door=True) == Rule("door", AT_THE_DOOR)
    assert rule_for(caller, Policy.parse("5/s"), at_door=True) == Rule("all", FIVE)
    assert rule_for(caller, Policy.parse({caller: None}), at_door=True) == Rule("named", None)


def test_elsewhere_nobody_is_limited_without_a_setting():
    assert rule_for("user:1", None) is None
    assert rule_for("system", None, at_door=True) is None


def test_a_limit_of_one_s_own_goes_before_every_other():
    assert rule_for("key:a", Policy.parse({"key:a": "5/s"}), own=TEN, at_door=True) == Rule("own", TEN)


@pytest.mark.parametrize("caller", ["user:1", "key:a", "system", "x"])
def test_a_policy_s_word_never_names_the_caller(caller):
    policies = [
        Policy.parse({caller: "1/s"}),
        Policy.parse("1/s"),
        Policy.parse({caller.partition(":")[0] + ":": "1/s"}),
    ]

    words = {rule.policy for policy in policies if (rule := rule_for(caller, policy, at_door=True))}

    assert caller not in words - {"system", "x"}
    assert words <= {"named", "all", "door", caller.partition(":")[0]}

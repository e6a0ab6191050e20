"""The PRIQUEUE dict: what is accepted, and how everything that is wrong is told at once, without a secret."""

import hmac
import math
import pickle
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import pytest

from priqueue.conf import Sentinel, Settings, Slo, Tls
from priqueue.exceptions import ConfigurationError
from priqueue.lanes import Lane
from priqueue.limits import Limit, Policy

URL = "redis://127.0.0.1:6379/0"


def parse(**options):
    return Settings.parse({"URL": URL, **options})


def faults_of(mapping):
    with pytest.raises(ConfigurationError) as caught:
        Settings.parse(mapping)
    return str(caught.value).splitlines()


def fault_of(**options):
    (fault,) = faults_of({"URL": URL, **options})
    return fault


def test_a_url_is_all_that_is_needed():
    assert parse() == Settings(url=URL)


def test_the_defaults_are_those_of_the_documentation():
    settings = parse()

    assert settings.lanes == (Lane("high", 6), Lane("default", 3), Lane("low", 1))
    assert settings.lane_names == ("high", "default", "low")
    assert settings.lease_s == 10
    assert settings.slo == Slo(
        throughput_per_s=None,
        error_rate=0.01,
        utilisation=0.85,
        wait_s={"high": 1, "default": 30, "low": 300},
    )


def test_every_setting_has_a_parser_that_takes_its_default():
    plain = Settings(url=URL)
    given = {
        option.name.upper(): getattr(plain, option.name)
        for option in fields(Settings)
        if option.name not in {"lanes", "slo", "tls"}
    }

    assert Settings.parse(given) == plain


def test_values_are_taken_as_they_are_given():
    settings = parse(
        NAMESPACE="shop:eu",
        LANES={"urgent": 5, "bulk": 2},
        HEARTBEAT_S=7,
        BACKOFF_S=0.5,
        SHUTDOWN_GRACE_S=0,
        CONCURRENCY=1000,
        ENQUEUE_ON_COMMIT=False,
        AUDIT="callers",
        AUDIT_REDACT=["card", "email"],
    )

    assert settings == Settings(
        url=URL,
        namespace="shop:eu",
        lanes=(Lane("urgent", 5), Lane("bulk", 2)),
        heartbeat_s=7.0,
        backoff_s=0.5,
        shutdown_grace_s=0,
        concurrency=1000,
        enqueue_on_commit=False,
        audit="callers",
        audit_redact=("card", "email"),
    )


def test_lanes_keep_the_order_in_which_they_are_given():
    assert parse(LANES={"low": 1, "high": 6}).lane_names == ("low", "high")


def test_settings_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        parse().heartbeat_s = 1


def test_settings_travel_to_another_process():
    settings = parse(SIGNING_KEYS=["k"], PASSWORD="p")

    assert pickle.loads(pickle.dumps(settings)) == settings


# ── faults ──


@pytest.mark.parametrize("mapping", [None, "redis://127.0.0.1", [], 3])
def test_a_missing_dict_says_exactly_what_to_add(mapping):
    assert faults_of(mapping) == [
        'PRIQUEUE: missing, or not a dict; add PRIQUEUE = {"URL": "redis://127.0.0.1:6379/0"}'
    ]


def test_a_missing_url_says_exactly_what_to_add():
    assert faults_of({}) == ['PRIQUEUE[\'URL\']: missing; add "URL": "redis://127.0.0.1:6379/0"']


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("HEARTBEATS", "HEARTBEAT_S"),
        ("url", "URL"),
        ("CONCURENCY", "CONCURRENCY"),
        ("max_attempts", "MAX_ATTEMPTS"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest_valid_one(wrong, right):
    assert fault_of(**{wrong: 1}) == f"PRIQUEUE['{wrong}']: unknown; did you mean {right}?"


def test_a_name_that_resembles_none_is_refused_with_all_of_them():
    (fault,) = faults_of({"URL": URL, 3: 3})

    assert fault.startswith("PRIQUEUE[3]: unknown; valid are URL, USERNAME, PASSWORD, TLS, ")


def test_all_faults_are_told_together():
    assert faults_of({"HEARTBEATS": 3, "SWEEP_S": 0, "AUDIT": "some", "BACKOFF_S": 700}) == [
        "PRIQUEUE['HEARTBEATS']: unknown; did you mean HEARTBEAT_S?",
        'PRIQUEUE[\'URL\']: missing; add "URL": "redis://127.0.0.1:6379/0"',
        "PRIQUEUE['SWEEP_S']: should be greater than or equal to 0.01, not 0",
        "PRIQUEUE['AUDIT']: should be 'all', 'callers' or 'off', not 'some'",
        "PRIQUEUE['BACKOFF_S']: above BACKOFF_MAX_S; lower it, or raise that",
    ]


SECONDS = [
    "HEARTBEAT_S",
    "SWEEP_S",
    "TICK_S",
    "PULL_TIMEOUT_S",
    "SOCKET_TIMEOUT_S",
    "BACKOFF_S",
    "BACKOFF_MAX_S",
]
SECONDS += ["TIMEOUT_S", "SHUTDOWN_GRACE_S"]
NUMBERS = ["CONCURRENCY", "MAX_ATTEMPTS", "MAX_CRASHES", "MAX_PAYLOAD_BYTES"]


@pytest.mark.parametrize("name", SECONDS + NUMBERS)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1, True, False, None, "5", [5], 10**400])
def test_a_number_that_is_none_is_refused(name, value):
    assert fault_of(**{name: value}).startswith(f"PRIQUEUE['{name}']: ")


@pytest.mark.parametrize("name", [*SECONDS[:-1], *NUMBERS])
def test_zero_is_refused_where_something_has_to_happen(name):
    assert fault_of(**{name: 0}).startswith(f"PRIQUEUE['{name}']: should be greater than or equal to ")


@pytest.mark.parametrize("name", NUMBERS)
def test_a_fraction_is_no_whole_number(name):
    assert fault_of(**{name: 8.5}) == f"PRIQUEUE['{name}']: should be a valid integer, not 8.5"


@pytest.mark.parametrize(
    ("weights", "told"),
    [
        ({}, "not a dict of weights by lane"),
        (["high"], "not a dict of weights by lane"),
        ({"high": 0}, "weight of lane 'high'"),
        ({"high": True}, "weight of lane 'high'"),
        ({"high": 6.0}, "weight of lane 'high'"),
        ({"high": "6"}, "weight of lane 'high'"),
        ({"High": 6}, "lane name 'High'"),
        ({3: 6}, "lane name 3"),
    ],
)
def test_a_bad_lane_is_named(weights, told):
    assert fault_of(LANES=weights).startswith(f"PRIQUEUE['LANES']: {told}")


def test_every_bad_lane_is_named():
    fault = fault_of(LANES={"High": 1, "low": 0})

    assert "lane name 'High'" in fault
    assert "weight of lane 'low'" in fault


@pytest.mark.parametrize(
    "options",
    [
        {"NAMESPACE": ""},
        {"NAMESPACE": "{x}"},
        {"NAMESPACE": "a b"},
        {"NAMESPACE": "x\n"},
        {"ENQUEUE_ON_COMMIT": 1},
        {"ENQUEUE_ON_COMMIT": "no"},
        {"AUDIT": True},
        {"AUDIT_DATABASE": ""},
        {"AUDIT_REDACT": "card"},
        {"AUDIT_REDACT": [""]},
        {"SIGNING_KEYS": "a key"},
        {"SIGNING_KEYS": [""]},
        {"SIGNING_KEYS": [3]},
        {"SENTINEL": "host:26379"},
        {"TLS": True},
        {"SLO": None},
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_by_name(options):
    (name,) = options

    assert fault_of(**options).startswith(f"PRIQUEUE['{name}']")


@pytest.mark.parametrize("value", [-1, 65, True, False, "0", None, 0.5])
def test_a_number_of_children_is_a_whole_number_from_0_to_64(value):
    assert fault_of(PROCESSES=value).startswith("PRIQUEUE['PROCESSES']: ")


@pytest.mark.parametrize("value", [1, 10**9, {"low": 5}, {"low": 5, "high": 1}, {}])
def test_a_most_of_ready_jobs_is_a_number_for_each_lane_or_one_by_lane(value):
    settings = parse(MAX_READY=value)

    assert settings.max_ready_of("low") == (value if isinstance(value, int) else value.get("low"))
    assert settings.max_ready_of("default") == (value if isinstance(value, int) else None)


@pytest.mark.parametrize("value", [0, -1, True, 1.5, "100", [1], {"low": 0}, {"low": "5"}, {"low": None}])
def test_a_most_of_ready_jobs_that_is_no_number_is_refused(value):
    assert fault_of(MAX_READY=value).startswith("PRIQUEUE['MAX_READY']: not a number of jobs")


def test_a_most_of_ready_jobs_for_a_lane_that_does_not_exist_is_refused():
    assert fault_of(MAX_READY={"urgent": 5}) == (
        "PRIQUEUE['MAX_READY']: names a lane that LANES does not have; use the names in LANES"
    )


def test_a_rate_limit_is_a_text_or_a_dict_by_caller():
    assert parse(RATE_LIMIT="100/s").rate_limit == Policy.parse({"*": "100/s"})
    assert parse(RATE_LIMIT={"key:": "5/s", "user:7": None}).rate_limit == Policy(
        {"key:": Limit.parse("5/s"), "user:7": None}
    )
    assert parse().rate_limit is None


@pytest.mark.parametrize("value", ["100", 100, "", {"key:": "often"}, {"": "1/s"}, {1: "1/s"}, ["1/s"]])
def test_a_rate_limit_that_says_nothing_is_refused(value):
    assert fault_of(RATE_LIMIT=value).startswith("PRIQUEUE['RATE_LIMIT']: ")


def test_a_socket_timeout_leaves_time_to_repeat_a_beat():
    assert fault_of(SOCKET_TIMEOUT_S=5, HEARTBEAT_S=5) == (
        "PRIQUEUE['SOCKET_TIMEOUT_S']: not below HEARTBEAT_S, so one slow beat costs a lease; lower it, or raise that"
    )


def test_a_rule_is_not_blamed_for_a_value_that_is_at_fault_itself():
    assert faults_of({"URL": URL, "HEARTBEAT_S": -1, "SOCKET_TIMEOUT_S": 10}) == [
        "PRIQUEUE['HEARTBEAT_S']: should be greater than or equal to 0.01, not -1"
    ]


# ── URL and credentials ──


@pytest.mark.parametrize(
    "url",
    [
        "redis://localhost",
        "redis://localhost:6379",
        "redis://localhost/",
        "redis://user:p%23a%2Fs%40s%2525@localhost:6379/15",
        "redis://:p@ss@localhost/0",
        "redis://[::1]:6379/0",
        "redis://localhost?db=3",
        "rediss://localhost:6380/0?ssl_cert_reqs=none&ssl_check_hostname=false",
        "unix:///run/redis.sock",
        "unix://user:pw@/run/redis.sock?db=2",
    ],
)
def test_a_well_formed_url_is_taken(url):
    assert Settings.parse({"URL": url}).url == url


@pytest.mark.parametrize(
    "url",
    [
        "redis://:geheim#1@localhost:6379/0",
        "redis://:geheim/1@localhost:6379/0",
        "redis://user:12/geheim@localhost:6379/0",
        "redis://user:12?geheim@localhost:6379/0",
        "redis://:geheim?1@localhost:6379/0",
        "redis://:geheim[1@localhost:6379/0",
        "redis://:geheim\u2100@localhost:6379/0",
        "redis://:geheim 1@localhost:6379/0",
        "redis://:geheim@localhost:6379/0\n",
        "redis://:geheim@localhost:99999/0",
        "redis://:geheim@localhost:0/0",
        "redis://:geheim@localhost:6379/zero",
        "redis://:geheim@localhost:6379/0/1",
        "redis://:geheim@localhost:6379?db=one",
        "redis://:geheim@localhost:6379?socket_timeout=9",
        "unix://user:12/geheim@/run/redis.sock",
        "unix://",
        "http://:geheim@localhost:6379/0",
        "geheim",
        "",
        b"redis://:geheim@localhost",
        None,
        3,
    ],
)
def test_a_malformed_url_is_refused_without_a_word_of_the_password(url):
    (fault,) = faults_of({"URL": url})

    assert fault.startswith("PRIQUEUE['URL']: malformed; use redis://")
    assert "geheim" not in fault


def test_no_error_that_led_to_the_refusal_holds_the_password():
    with pytest.raises(ConfigurationError) as caught:
        Settings.parse({"URL": "redis://:geheim#1@localhost:6379/0"})

    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


def test_a_url_without_a_host_is_refused():
    assert faults_of({"URL": "redis:///0"}) == [
        'PRIQUEUE[\'URL\']: holds no host; use "URL": "redis://127.0.0.1:6379/0"'
    ]


def test_credentials_belong_into_one_place():
    assert faults_of({"URL": "redis://u:p@localhost", "USERNAME": "u", "PASSWORD": "geheim"}) == [
        "PRIQUEUE['USERNAME']: the URL holds one too; keep one of them",
        "PRIQUEUE['PASSWORD']: the URL holds one too; keep one of them",
    ]


def test_a_user_name_may_stand_beside_a_url_that_holds_the_password():
    assert Settings.parse({"URL": "redis://:p@localhost", "USERNAME": "u"}).username == "u"


@pytest.mark.parametrize("nothing", [None, ""])
def test_an_empty_credential_is_none(nothing):
    assert parse(USERNAME=nothing, PASSWORD=nothing) == Settings(url=URL)


def test_a_password_of_the_wrong_kind_is_not_shown():
    assert fault_of(PASSWORD=12345) == "PRIQUEUE['PASSWORD']: should be a valid string"


def test_no_secret_is_shown():
    settings = Settings.parse(
        {
            "URL": "redis://user:geheim1@localhost:6379/0",
            "SENTINEL": {"hosts": ["s1:26379"], "service": "queue", "password": "geheim2"},
            "SIGNING_KEYS": ["geheim3"],
        }
    )
    raw = parse(PASSWORD="geheim4")

    assert "geheim" not in f"{settings!r} {settings} {raw!r} {settings.address} {raw.address}"


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("redis://user:p%40@localhost:6379/0", "redis://localhost:6379/0"),
        ("rediss://localhost?ssl_cert_reqs=none", "rediss://localhost"),
        ("unix://u:p@/run/redis.sock", "unix:///run/redis.sock"),
    ],
)
def test_the_address_holds_no_credentials(url, address):
    assert Settings(url=url).address == address


# ── TLS ──


def test_tls_verifies_by_default():
    tls = Settings.parse({"URL": "rediss://localhost"}).tls

    assert (tls, tls.verified) == (Tls(), True)


def test_tls_options_of_the_url_and_of_the_dict_merge(tmp_path):
    authority = tmp_path / "ca.pem"
    authority.touch()
    settings = Settings.parse(
        {
            "URL": f"rediss://localhost?ssl_ca_certs={authority}&ssl_check_hostname=false",
            "TLS": {"cert_reqs": "required"},
        }
    )

    assert settings.tls == Tls(ca_certs=Path(authority), cert_reqs="required", check_hostname=False)


def test_the_dict_has_the_last_word_on_tls():
    settings = Settings.parse({"URL": "rediss://localhost?ssl_cert_reqs=none", "TLS": {"cert_reqs": "required"}})

    assert settings.tls == Tls()


@pytest.mark.parametrize("options", [{"cert_reqs": "none"}, {"check_hostname": False}])
def test_tls_that_was_told_not_to_verify_says_so(options):
    assert not Settings.parse({"URL": "rediss://localhost", "TLS": options}).tls.verified


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"cert_reqs": None}, "['cert_reqs']: should be 'required' or 'none', not None"),
        ({"cert_reqs": "CERT_NONE"}, "['cert_reqs']: should be 'required' or 'none', not 'CERT_NONE'"),
        ({"ca_cert": "x"}, "['ca_cert']: unknown; did you mean ca_certs?"),
        ({"ca_certs": "/nowhere.pem"}, "['ca_certs']: Path does not point to a file, not '/nowhere.pem'"),
    ],
)
def test_a_bad_tls_option_is_named(options, told):
    assert faults_of({"URL": "rediss://localhost", "TLS": options}) == [f"PRIQUEUE['TLS']{told}"]


def test_tls_options_need_a_tls_url():
    assert fault_of(TLS={"cert_reqs": "none"}) == "PRIQUEUE['TLS']: options for a URL without TLS; use rediss://"


# ── sentinel, SLO ──


@pytest.mark.parametrize(
    "hosts", [["s1:26379", "s2:26380"], [("s1", 26379), ["s2", 26380]], (("s1", 26379), "s2:26380")]
)
def test_sentinels_are_given_as_pairs_or_texts(hosts):
    settings = Settings.parse({"URL": "redis:///3", "SENTINEL": {"hosts": hosts, "service": "queue"}})

    assert settings.sentinel == Sentinel(hosts=(("s1", 26379), ("s2", 26380)), service="queue")
    assert settings.address == "sentinel service queue"


@pytest.mark.parametrize(
    ("sentinel", "place"),
    [
        ({"service": "q"}, "['hosts']: missing"),
        ({"hosts": ["s1:26379"]}, "['service']: missing"),
        ({"hosts": [], "service": "q"}, "['hosts']"),
        ({"hosts": ["s1"], "service": "q"}, "['hosts'][0]"),
        ({"hosts": ["s1:x"], "service": "q"}, "['hosts'][0][1]"),
        (
            {"hosts": ["s1:1"], "service": "q", "pasword": "geheim"},
            "['pasword']: unknown; did you mean password?",
        ),
    ],
)
def test_a_bad_sentinel_is_told_by_its_place(sentinel, place):
    faults = faults_of({"URL": URL, "SENTINEL": sentinel})

    assert all(fault.startswith("PRIQUEUE['SENTINEL']") and "geheim" not in fault for fault in faults)
    assert f"PRIQUEUE['SENTINEL']{place}" in "\n".join(faults)


def test_a_unix_socket_has_no_sentinels():
    assert faults_of({"URL": "unix:///x", "SENTINEL": {"hosts": ["s:1"], "service": "q"}}) == [
        "PRIQUEUE['SENTINEL']: a unix:// socket has no sentinels; use redis:// or rediss://"
    ]


def test_an_slo_line_is_changed_switched_off_or_left():
    slo = parse(SLO={"throughput_per_s": 50, "error_rate": None, "wait_s": {"high": 2, "low": None}}).slo

    assert slo == Slo(throughput_per_s=50, error_rate=None, utilisation=0.85, wait_s={"high": 2, "default": 30})


def test_all_waits_may_be_switched_off():
    assert parse(SLO={"wait_s": {"high": None, "default": None, "low": None}}).slo == Slo(wait_s={})


@pytest.mark.parametrize(
    ("slo", "told"),
    [
        ({"error_rat": 1}, "['error_rat']: unknown; did you mean error_rate?"),
        ({"error_rate": 2}, "['error_rate']: should be less than or equal to 1, not 2"),
        ({"utilisation": math.nan}, "['utilisation']: should be "),
        ({"wait_s": 3}, "['wait_s']: should be a valid"),
        ({"wait_s": {"high": True}}, "['wait_s']['high']: should be a valid number"),
        (
            {"wait_s": {"hihg": 1}},
            "['wait_s']: names a lane that LANES does not have; use the names in LANES",
        ),
    ],
)
def test_a_bad_slo_line_is_named(slo, told):
    assert fault_of(SLO=slo).startswith(f"PRIQUEUE['SLO']{told}")


def test_a_lane_of_the_default_slo_may_be_missing():
    assert parse(LANES={"only": 1}).slo == Slo()


# ── signing keys ──


def test_signing_keys_are_derived_from_the_secrets_under_a_domain_of_their_own():
    settings = Settings.parse({"URL": URL}, secrets=["new", b"old", ""])

    assert settings.signing_keys == tuple(
        hmac.digest(secret, b"priqueue.signing", "sha256") for secret in (b"new", b"old")
    )


def test_given_signing_keys_are_used_as_they_are():
    assert Settings.parse({"URL": URL, "SIGNING_KEYS": ["é", b"b"]}, secrets=["x"]).signing_keys == (
        "é".encode(),
        b"b",
    )


def test_an_empty_list_switches_signing_off():
    assert Settings.parse({"URL": URL, "SIGNING_KEYS": []}, secrets=["x"]).signing_keys == ()

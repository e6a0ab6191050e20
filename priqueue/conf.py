"""Settings: the PRIQUEUE dict, parsed once into a frozen value.

1. every value is held to the type of its field; an unknown name is a fault
2. rules that span several settings are checked on what came out
3. all faults are raised together, one a line: ``PRIQUEUE['NAME']: what is wrong; what to do``

Nothing here reads Django's settings, opens a connection, or prints a password.
"""

import hmac
import reprlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from re import compile as regex
from typing import Annotated, Any, Literal, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from pydantic import BeforeValidator, ConfigDict, Field, FilePath, TypeAdapter, ValidationError

from priqueue.exceptions import ConfigurationError
from priqueue.lanes import Lane
from priqueue.limits import Policy, most_ready

_URL = regex(r"(rediss?|unix)://[^\s#]+")
_SOCKET = regex(r"/[^@]+")
_DATABASE = regex(r"(/\d{0,5})?")
_MALFORMED = (
    "malformed; use redis://user:password@host:port/database, rediss://… or unix://…, and percent-encode"
    " the password ('#' is %23) or give it as PASSWORD"
)
_EXAMPLE = '"URL": "redis://127.0.0.1:6379/0"'
_SECRET = {"url", "username", "password", "sentinel", "signing_keys", "metrics_token"}
_WAITS_S = {"high": 1, "default": 30, "low": 300}


def _check_url(url: Any) -> Any:
    """Refuse a URL that two clients could read differently. Any part of it may be a password: quote none."""
    try:
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        well_formed = _URL.fullmatch(url) and parts.port != 0 and options.get("db", "0").isdecimal()
    except (AttributeError, TypeError, ValueError):
        raise ValueError(_MALFORMED) from None
    placed = (_SOCKET if parts.scheme == "unix" else _DATABASE).fullmatch(parts.path)
    if not well_formed or not placed or not options.keys() <= {"db", *_TLS_OPTIONS}:
        raise ValueError(_MALFORMED)
    return url


def _lanes(weights: Any) -> Any:
    if not isinstance(weights, Mapping) or not weights:
        raise ValueError('not a dict of weights by lane; use {"high": 6, "default": 3, "low": 1}')
    lanes, faults = [], []
    for name, weight in weights.items():
        try:
            lanes.append(Lane(name, weight))
        except ValueError as fault:
            faults.append(str(fault))
    if faults:
        raise ValueError("; ".join(faults))
    return tuple(lanes)


def _waits(given: Any) -> Any:
    if not isinstance(given, Mapping):
        return given
    return {lane: wait_s for lane, wait_s in (_WAITS_S | dict(given)).items() if wait_s is not None}


def _key(key: str | bytes) -> bytes:
    return key.encode() if isinstance(key, str) else key


def _keys(keys: Any) -> tuple[bytes, ...]:
    if not isinstance(keys, list | tuple) or not all(isinstance(key, str | bytes) and key for key in keys):
        raise ValueError("not a list of keys; use texts or bytes that are not empty")
    return tuple(_key(key) for key in keys)


# An unset variable of the environment often arrives as the empty text.
_Text: TypeAlias = Annotated[str | None, BeforeValidator(lambda text: None if text == "" else text)]
_Name: TypeAlias = Annotated[str, Field(min_length=1)]
_Loop: TypeAlias = Annotated[float, Field(strict=True, ge=0.01, le=3600)]
_Long: TypeAlias = Annotated[float, Field(strict=True, ge=0.01, le=365 * 24 * 3600)]
_Share: TypeAlias = Annotated[float, Field(strict=True, gt=0, le=1)]
_Count: TypeAlias = Annotated[int, Field(strict=True, ge=1, le=1000)]
_Host: TypeAlias = Annotated[
    tuple[_Name, Annotated[int, Field(ge=1, le=65535)]],
    BeforeValidator(lambda host: host.rsplit(":", 1) if isinstance(host, str) else host),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """How a ``rediss://`` connection proves itself. What is None is left to redis-py, which verifies."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    ca_certs: FilePath | None = None
    certfile: FilePath | None = None
    keyfile: FilePath | None = None
    cert_reqs: Literal["required", "none"] = "required"
    check_hostname: bool = True

    @property
    def verified(self) -> bool:
        """Whether the client makes sure of who answers."""
        return self.cert_reqs == "required" and self.check_hostname


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentinel:
    """The sentinels that know where the server is now, and the name they know it by."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    hosts: Annotated[tuple[_Host, ...], Field(min_length=1)]
    service: _Name
    username: _Text = None
    password: _Text = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slo:
    """The threshold lines of charts and alerts; None draws none."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    throughput_per_s: Annotated[float, Field(strict=True, gt=0, le=1e9)] | None = None
    error_rate: _Share | None = 0.01
    utilisation: _Share | None = 0.85
    #: lane → the longest wait in seconds
    wait_s: Annotated[Mapping[str, _Long], BeforeValidator(_waits)] = field(default_factory=_WAITS_S.copy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The PRIQUEUE dict, checked. ``docs/settings.md`` says what each is for."""

    url: Annotated[str, BeforeValidator(_check_url)] = field(repr=False)
    username: _Text = None
    password: _Text = field(default=None, repr=False)
    tls: Tls = Tls()
    sentinel: Sentinel | None = None
    namespace: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:-]{1,64}$")] = "priqueue"
    lanes: Annotated[tuple[Lane, ...], BeforeValidator(_lanes)] = (
        Lane("high", 6),
        Lane("default", 3),
        Lane("low", 1),
    )
    heartbeat_s: _Loop = 5
    sweep_s: _Loop = 1
    tick_s: _Loop = 1
    pull_timeout_s: _Loop = 5
    socket_timeout_s: _Loop = 2
    concurrency: _Count = 8
    processes: Annotated[int, Field(strict=True, ge=0, le=64)] = 1
    max_attempts: _Count = 5
    max_crashes: _Count = 3
    backoff_s: _Long = 2
    backoff_max_s: _Long = 600
    timeout_s: _Long = 300
    shutdown_grace_s: Annotated[float, Field(strict=True, ge=0, le=3600)] = 25
    max_payload_bytes: Annotated[int, Field(strict=True, ge=2, le=16 * 1024**2)] = 65536
    max_ready: Annotated[int | Mapping[str, int], BeforeValidator(most_ready)] | None = None
    enqueue_on_commit: Annotated[bool, Field(strict=True)] = True
    rate_limit: Annotated[Policy, BeforeValidator(Policy.parse)] | None = None
    audit: Literal["all", "callers", "off"] = "all"
    audit_database: _Name = "default"
    audit_redact: tuple[_Name, ...] = ()
    signing_keys: Annotated[tuple[bytes, ...], BeforeValidator(_keys)] = field(default=(), repr=False)
    metrics_token: _Text = field(default=None, repr=False)
    slo: Slo = field(default_factory=Slo)

    @property
    def lease_s(self) -> float:
        """How long a lease lasts unless it is beaten: two beats."""
        return 2 * self.heartbeat_s

    @property
    def lane_names(self) -> tuple[str, ...]:
        """The lanes' names, in priority order."""
        return tuple(lane.name for lane in self.lanes)

    def max_ready_of(self, lane: str) -> int | None:
        """Return how many ready jobs a lane may hold when jobs come in; None for any number."""
        return self.max_ready.get(lane) if isinstance(self.max_ready, Mapping) else self.max_ready

    @property
    def address(self) -> str:
        """Where the server is, without credentials: to be shown and logged."""
        if self.sentinel:
            return f"sentinel service {self.sentinel.service}"
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    @classmethod
    def parse(cls, mapping: object, *, secrets: Sequence[str | bytes] = ()) -> "Settings":
        """Return the settings that a PRIQUEUE dict describes.

        ``secrets`` are what signing keys are made of when there is no SIGNING_KEYS, the newest first.
        Raises ConfigurationError with every fault, one a line.
        """
        if not isinstance(mapping, Mapping):
            raise ConfigurationError(f"PRIQUEUE: missing, or not a dict; add PRIQUEUE = {{{_EXAMPLE}}}")
        names = {option.name.upper(): option.name for option in fields(cls)}
        unknown = [f"[{name!r}]: unknown; {_nearest(name, names)}" for name in mapping if name not in names]
        given = {names[name]: value for name, value in mapping.items() if name in names}
        settings, faults = _validated(_completed(given, secrets))
        if unknown or faults:
            raise ConfigurationError("\n".join(f"PRIQUEUE{fault}" for fault in unknown + faults))
        return settings


_ADAPTER = TypeAdapter(Settings)
_INNER = {kind.__name__.lower(): [option.name for option in fields(kind)] for kind in (Tls, Sentinel, Slo)}
_TLS_OPTIONS = {f"ssl_{name}" for name in _INNER["tls"]}


def _completed(given: dict[str, Any], secrets: Sequence[str | bytes]) -> dict[str, Any]:
    """Return what was given, with the TLS options of the URL and signing keys made of the secrets."""
    tls, keys = given.get("tls") or {}, given.get("signing_keys")
    if isinstance(tls, Mapping):
        tls = _url_tls(given.get("url")) | dict(tls)
    if keys is None:
        # Hashed, so that a key reveals nothing of the secret, nor of what else is made of that.
        keys = [hmac.digest(_key(secret), b"priqueue.signing", "sha256") for secret in secrets if secret]
    return given | {"tls": tls, "signing_keys": keys}


def _url_tls(url: object) -> dict[str, str]:
    """Return the TLS options in a URL's query, by their names in TLS."""
    query = str(url).partition("?")[2]
    return {name[4:]: value for name, value in parse_qsl(query) if name in _TLS_OPTIONS}


def _validated(given: dict[str, Any]) -> tuple[Settings, list[str]]:
    """Return the settings and all faults; what is at fault has its default in the settings."""
    try:
        settings, found = _ADAPTER.validate_python(given), []
    except ValidationError as error:
        found = error.errors(include_url=False)
    wrong = {str(fault["loc"][0]) for fault in found}
    if found:
        sound = {name: value for name, value in given.items() if name not in wrong}
        settings = _ADAPTER.validate_python({"url": "redis://unknown"} | sound)
    # A rule over a value that is at fault already would only echo it.
    broken = [fault for names, is_broken, fault in _RULES if wrong.isdisjoint(names) and is_broken(settings)]
    return settings, [_told(fault) for fault in found] + broken


def _told(fault: Any) -> str:
    """Return one fault as ``['NAME']['inner']: what is wrong``, without a value that may be a secret."""
    name, *inner = fault["loc"]
    place = f"['{name.upper()}']" + "".join(f"[{key!r}]" for key in inner)
    if fault["type"] == "missing":
        return f"{place}: missing" + (f"; add {_EXAMPLE}" if name == "url" else "")
    if fault["type"] == "unexpected_keyword_argument":
        return f"{place}: unknown; {_nearest(inner[-1], _INNER[name])}"
    if fault["type"] == "value_error":
        return f"{place}: {fault['ctx']['error']}"
    wrong = fault["msg"].replace("Input should", "should")
    shown = _SECRET.isdisjoint(fault["loc"]) and isinstance(fault["input"], str | int | float | None)
    return f"{place}: {wrong}, not {reprlib.repr(fault['input'])}" if shown else f"{place}: {wrong}"


def _nearest(name: object, names: Collection[str]) -> str:
    """Return a question after the valid name closest to a wrong one, in whatever case that was written."""
    valid = {known.upper(): known for known in names}
    close = get_close_matches(str(name).upper(), valid, n=1)
    return f"did you mean {valid[close[0]]}?" if close else f"valid are {', '.join(names)}"


# ── rules that span several settings: the fields each reads, whether it is broken, the fault ──

_Rule: TypeAlias = tuple[set[str], Callable[[Settings], object], str]
_RULES: tuple[_Rule, ...] = (
    ({"url", "username"}, lambda s: s.username and urlsplit(s.url).username,
     "['USERNAME']: the URL holds one too; keep one of them"),
    ({"url", "password"}, lambda s: s.password and urlsplit(s.url).password,
     "['PASSWORD']: the URL holds one too; keep one of them"),
    ({"url", "tls"}, lambda s: s.tls != Tls() and not s.url.startswith("rediss://"),
     "['TLS']: options for a URL without TLS; use rediss://"),
    ({"url", "sentinel"}, lambda s: s.sentinel and s.url[:7] == "unix://",
     "['SENTINEL']: a unix:// socket has no sentinels; use redis:// or rediss://"),
    ({"url", "sentinel"}, lambda s: not (s.sentinel or s.url[:7] == "unix://" or urlsplit(s.url).hostname),
     f"['URL']: holds no host; use {_EXAMPLE}"),
    ({"socket_timeout_s", "heartbeat_s"}, lambda s: s.socket_timeout_s >= s.heartbeat_s,
     "['SOCKET_TIMEOUT_S']: not below HEARTBEAT_S, so one slow beat costs a lease; lower it, or raise that"),
    ({"backoff_s", "backoff_max_s"}, lambda s: s.backoff_s > s.backoff_max_s,
     "['BACKOFF_S']: above BACKOFF_MAX_S; lower it, or raise that"),
    ({"slo", "lanes"}, lambda s: not s.slo.wait_s.keys() <= {*s.lane_names, *_WAITS_S},
     "['SLO']['wait_s']: names a lane that LANES does not have; use the names in LANES"),
    ({"max_ready", "lanes"}, lambda s: isinstance(s.max_ready, Mapping) and s.max_ready.keys() - set(s.lane_names),
     "['MAX_READY']: names a lane that LANES does not have; use the names in LANES"),
)  # fmt: skip

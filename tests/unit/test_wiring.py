"""The one place that reads Django's settings."""

import multiprocessing
import os

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings
from fakeredis import FakeRedis

from priqueue import wiring
from priqueue.conf import Settings
from priqueue.coordinator import Coordinator
from priqueue.exceptions import ConfigurationError

URL = "redis://127.0.0.1:1/0"


@pytest.fixture(autouse=True)
def _fresh():
    """Let no test see what another has cached."""
    wiring._forget(setting="PRIQUEUE")
    yield
    wiring._forget(setting="PRIQUEUE")


def test_the_settings_are_djangos_parsed_with_its_secrets():
    with override_settings(PRIQUEUE={"URL": URL}, SECRET_KEY="new", SECRET_KEY_FALLBACKS=["old"]):
        assert wiring.settings() == Settings.parse({"URL": URL}, secrets=["new", "old"])


def test_the_settings_are_parsed_once():
    assert wiring.settings() is wiring.settings()


@pytest.mark.parametrize(
    ("changed", "read"),
    [
        ({"PRIQUEUE": {"URL": URL, "HEARTBEAT_S": 9}}, lambda settings: settings.heartbeat_s),
        ({"SECRET_KEY": "another"}, lambda settings: settings.signing_keys),
        ({"SECRET_KEY_FALLBACKS": ["older"]}, lambda settings: settings.signing_keys),
    ],
)
def test_a_changed_setting_is_read_anew_and_so_is_its_old_value(changed, read):
    before = read(wiring.settings())
    with override_settings(**changed):
        during = read(wiring.settings())

    assert during != before
    assert read(wiring.settings()) == before


def test_another_setting_changes_nothing():
    before = wiring.coordinator()
    with override_settings(USE_TZ=False):
        assert wiring.coordinator() is before


@pytest.mark.parametrize("missing", [None, {}])
def test_a_missing_setting_says_what_to_add(missing):
    with (
        override_settings(PRIQUEUE=missing),
        pytest.raises(ConfigurationError, match=r'add .*"URL": "redis://'),
    ):
        wiring.coordinator()


def test_a_project_without_the_setting_is_told_too():
    with override_settings():
        del wiring.django_settings.PRIQUEUE
        with pytest.raises(ConfigurationError, match="PRIQUEUE: missing"):
            wiring.settings()


def test_a_project_without_a_secret_is_refused_by_django():
    with override_settings(SECRET_KEY=""), pytest.raises(ImproperlyConfigured):
        wiring.settings()


def test_a_fault_is_told_each_time_it_is_met():
    with override_settings(PRIQUEUE={}):
        for _ in range(2):
            with pytest.raises(ConfigurationError):
                wiring.settings()


def test_the_coordinator_is_made_once_and_of_the_settings():
    coordinator = wiring.coordinator()

    assert wiring.coordinator() is coordinator
    assert coordinator.settings is wiring.settings()


def test_a_changed_setting_makes_a_new_coordinator():
    before = wiring.coordinator()
    with override_settings(PRIQUEUE={"URL": URL, "NAMESPACE": "other"}):
        assert wiring.coordinator().settings.namespace == "other"

    assert wiring.coordinator() is not before


def test_a_forked_process_gets_a_coordinator_of_its_own():
    parents = wiring.coordinator()
    receiver, sender = multiprocessing.Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        sender.send(wiring.coordinator() is parents)
        os._exit(0)
    os.waitpid(child, 0)

    assert receiver.recv() is False
    assert wiring.coordinator() is parents


def test_a_replacement_stands_in_for_the_coordinator_inside_the_block():
    usual = wiring.coordinator()
    outer, inner = (Coordinator(FakeRedis(), wiring.settings()) for _ in range(2))
    seen = []
    with wiring.override(outer) as given:
        seen.append(wiring.coordinator())
        with wiring.override(inner):
            seen.append(wiring.coordinator())
        seen.append(wiring.coordinator())

    assert given is outer
    assert [*seen, wiring.coordinator()] == [outer, inner, outer, usual]


def test_a_replacement_goes_away_with_an_error():
    usual = wiring.coordinator()
    with pytest.raises(RuntimeError), wiring.override(Coordinator(FakeRedis(), wiring.settings())):
        raise RuntimeError

    assert wiring.coordinator() is usual

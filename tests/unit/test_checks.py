"""System checks, and what the app does when Django starts."""

from unittest.mock import patch

import pytest
from django.apps import apps
from django.core import checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.test import override_settings

from priqueue import handlers
from priqueue.apps import PriqueueConfig
from priqueue.checks import check_configuration, check_handlers

URL = "redis://127.0.0.1:1/0"
LONG = "k" * 32


def codes_of(**options):
    with override_settings(PRIQUEUE={"URL": URL, **options}):
        return [message.id for message in check_configuration()]


def test_a_sound_configuration_has_no_findings():
    assert codes_of() == []


def test_each_fault_is_an_error_of_its_own_with_its_remedy():
    with override_settings(PRIQUEUE={"URL": URL, "HEARTBEATS": 3, "SWEEP_S": -1}):
        assert check_configuration() == [
            checks.Error("PRIQUEUE['HEARTBEATS']: unknown", hint="did you mean HEARTBEAT_S?", id="priqueue.E001"),
            checks.Error(
                "PRIQUEUE['SWEEP_S']: should be greater than or equal to 0.01, not -1",
                hint="docs/settings.md describes every setting.",
                id="priqueue.E001",
            ),
        ]


def test_a_missing_setting_is_an_error_that_says_what_to_add():
    with override_settings(PRIQUEUE=None):
        (error,) = check_configuration()

    assert (error.msg, error.hint) == (
        "PRIQUEUE: missing, or not a dict",
        'add PRIQUEUE = {"URL": "redis://127.0.0.1:6379/0"}',
    )


def test_unsigned_jobs_are_warned_of():
    assert codes_of(SIGNING_KEYS=[]) == ["priqueue.W001"]


@pytest.mark.parametrize("options", [{"cert_reqs": "none"}, {"check_hostname": False}])
def test_tls_that_verifies_nothing_is_warned_of(options):
    assert codes_of(URL="rediss://127.0.0.1:1/0", TLS=options) == ["priqueue.W002"]


def test_tls_switched_off_in_the_url_is_warned_of_too():
    assert codes_of(URL="rediss://127.0.0.1:1/0?ssl_cert_reqs=none") == ["priqueue.W002"]


@pytest.mark.parametrize(("keys", "codes"), [([LONG, "short"], ["priqueue.W003"]), ([LONG, LONG[:16]], [])])
def test_a_key_that_can_be_guessed_is_warned_of(keys, codes):
    assert codes_of(SIGNING_KEYS=keys) == codes


def test_the_check_runs_with_djangos_own():
    with override_settings(PRIQUEUE={"URL": URL, "HEARTBEATS": 3}):
        with pytest.raises(SystemCheckError, match=r"priqueue\.E001"):
            call_command("check")
        with pytest.raises(SystemCheckError, match=r"priqueue\.E001"):
            call_command("check", "--tag", "priqueue")


def test_no_finding_shows_a_secret():
    with override_settings(
        PRIQUEUE={"URL": "redis://:geheim#@127.0.0.1", "PASSWORD": 3, "SIGNING_KEYS": ["geheim", 3]}
    ):
        found = check_configuration()

    assert len(found) == 3
    assert "geheim" not in "".join(f"{message}{message.hint}" for message in found)


# ── handlers ──


class Opaque:
    """A type that no JSON becomes."""


def unknown_name(order: "Order"): ...  # noqa: F821


def unknown_type(order: Opaque): ...


def sound(order: int, note: str = ""): ...


@pytest.fixture
def declare(monkeypatch):
    """Let these be all the handlers there are."""
    monkeypatch.setattr(handlers.registry, "_handlers", {})
    return lambda *functions: [handlers.job(function) for function in functions]


def test_sound_handlers_have_no_findings(declare):
    declare(sound)

    assert check_handlers() == []


def test_each_handler_with_a_broken_annotation_is_an_error_that_names_it(declare):
    named, typed, _ = declare(unknown_name, unknown_type, sound)
    fault = f"{named.name}: the handler's annotations cannot be used: name 'Order' is not defined"
    hint = f"Annotate the parameters of {named.name} with types that pydantic knows, imported where it stands."

    first, second = check_handlers()

    assert first == checks.Error(fault, hint=hint, id="priqueue.E002")
    assert second.id == "priqueue.E002"
    assert second.msg.startswith(f"{typed.name}: the handler's annotations cannot be used: ")
    assert "Opaque" in second.msg


@pytest.mark.parametrize("annotation", ["datetime.Nope", "datetime.", "Nope[int]"])
def test_an_annotation_whose_text_means_nothing_is_an_error_too(declare, annotation):
    (handler,) = declare(sound)
    with patch.dict(handler.function.__annotations__, order=annotation):
        (error,) = check_handlers()

    assert (error.id, error.msg.partition(":")[0]) == ("priqueue.E002", handler.name)


def test_a_broken_annotation_fails_the_check_command(declare):
    declare(unknown_name)

    with pytest.raises(SystemCheckError, match=r"priqueue\.E002"):
        call_command("check", "--tag", "priqueue")


# ── the app ──


def test_the_app_is_configured_under_its_own_name():
    config = apps.get_app_config("priqueue")

    assert isinstance(config, PriqueueConfig)
    assert config.default_auto_field == "django.db.models.BigAutoField"


def test_the_handlers_of_installed_apps_are_known_after_the_start():
    assert handlers.registry.get("tests.shop.jobs.note").name == "tests.shop.jobs.note"


def test_a_broken_jobs_module_stops_the_start(monkeypatch, tmp_path):
    package = tmp_path / "broken_shop"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "jobs.py").write_text("import no_such_module_anywhere\n")
    monkeypatch.syspath_prepend(tmp_path)

    installed = override_settings(INSTALLED_APPS=["broken_shop", "priqueue"])

    with pytest.raises(ModuleNotFoundError, match="no_such_module_anywhere"):
        installed.enable()

    assert apps.is_installed("tests.shop")

"""The audit table in a user's project: migrate, sqlmigrate, flush and tests with transactions go on as before."""

import re
from io import StringIO
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.core.management import call_command
from django.db import DatabaseError, connections, transaction
from django.test import TransactionTestCase, override_settings

from priqueue import checks
from priqueue.audit.store import store
from priqueue.models import AuditEvent
from priqueue.routers import AuditRouter
from tests.support.auditing import batch, rows
from tests.support.databases import ALIAS, Postgres, migrate, placed

TABLE = "priqueue_auditevent"


def test_the_migration_can_be_taken_back_and_made_again(audit_database: str) -> None:
    call_command("migrate", "priqueue", "zero", database=audit_database, verbosity=0)
    assert TABLE not in connections[audit_database].introspection.table_names()

    migrate()

    assert len(store(audit_database, "n", batch(1))) == 1
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic(using=audit_database):
        AuditEvent.objects.using(audit_database).update(reason="x")


def test_the_sql_of_the_migration_is_shown_with_the_triggers(audit_database: str) -> None:
    out = StringIO()

    call_command("sqlmigrate", "priqueue", "0001", database=audit_database, stdout=out)

    vendor = connections[audit_database].vendor
    assert len(re.findall("CREATE TRIGGER", out.getvalue())) == {"postgresql": 3, "sqlite": 2}[vendor]


@pytest.mark.parametrize("change", ["update", "delete"])
def test_the_orm_cannot_change_a_row(audit_database: str, change: str) -> None:
    store(audit_database, "n", batch(1, 2))
    events = AuditEvent.objects.using(audit_database)

    with pytest.raises(DatabaseError, match="append-only"):
        events.update(reason="x") if change == "update" else events.all().delete()

    assert [row.reason for row in rows()] == ["", ""]


def test_an_empty_log_is_flushed_with_all_other_tables(audit_database: str) -> None:
    call_command("migrate", database=audit_database, verbosity=0)

    call_command("flush", database=audit_database, interactive=False, verbosity=0)

    assert rows() == []


def test_a_log_with_rows_stops_a_flush(audit_database: str) -> None:
    store(audit_database, "n", batch(1))

    with pytest.raises(Exception, match="flush"):
        call_command("flush", database=audit_database, interactive=False, verbosity=0)

    connections[audit_database].close()
    assert len(rows()) == 1


def test_a_users_test_with_transactions_is_set_up_and_torn_down(audit_database: str) -> None:
    class Users(TransactionTestCase):
        databases = {audit_database}

        def runTest(self) -> None:
            assert AuditEvent.objects.using(audit_database).count() == 0

    result = Users().run()

    assert (result.testsRun, result.errors, result.failures) == (1, [], [])


@pytest.mark.usefixtures("audit_postgres")
def test_a_users_test_database_is_made_with_its_own_audit_table(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = connections[ALIAS]
    name = connection.settings_dict["NAME"]
    monkeypatch.setitem(django_settings.DATABASES, ALIAS, connection.settings_dict)

    connection.creation.create_test_db(verbosity=0)

    try:
        assert connection.settings_dict["NAME"] == f"test_{name}"
        assert TABLE in connection.introspection.table_names()
    finally:
        connection.creation.destroy_test_db(name, verbosity=0)


def test_the_router_keeps_the_table_on_its_database_alone(audit_database: str) -> None:
    router = AuditRouter()

    assert router.db_for_read(AuditEvent) == router.db_for_write(AuditEvent) == audit_database
    assert [router.allow_migrate(alias, "priqueue", "auditevent") for alias in (audit_database, "default")] == [
        True,
        False,
    ]
    assert router.allow_migrate("default", "auth", "user") is None


def test_the_owner_migrates_by_an_alias_of_its_own(audit_postgres: Postgres) -> None:
    same = audit_postgres.settings(connections[ALIAS].settings_dict["NAME"], USER="other")
    with placed(same, "owner"):
        assert AuditRouter().allow_migrate("owner", "priqueue", "auditevent") is True


def codes(**options: Any) -> list[str]:
    with override_settings(PRIQUEUE={"URL": "redis://127.0.0.1:1/0", **options}):
        return [str(message.id) for message in checks.check_audit()]


def test_a_sound_set_up_has_no_findings(audit_database: str) -> None:
    assert codes(AUDIT_DATABASE=audit_database) == []


def test_an_alias_that_is_none_is_an_error() -> None:
    assert codes(AUDIT_DATABASE="nowhere") == ["priqueue.E003"]


def test_a_missing_router_is_an_error(audit_database: str) -> None:
    with override_settings(DATABASE_ROUTERS=[]):
        assert codes(AUDIT_DATABASE=audit_database) == ["priqueue.E005"]


def test_a_database_that_cannot_keep_it_is_an_error_unless_it_is_off() -> None:
    with placed({"ENGINE": "django.db.backends.dummy"}, "other"):
        assert codes(AUDIT_DATABASE="other") == ["priqueue.E004"]
        assert codes(AUDIT_DATABASE="other", AUDIT="off") == []


def test_a_missing_table_is_warned_of_once_anything_was_migrated(audit_database: str) -> None:
    call_command("migrate", "priqueue", "zero", database=audit_database, verbosity=0)

    (warning,) = checks.check_audit_database(databases=[audit_database])

    assert warning.id == "priqueue.W005"
    with connections[audit_database].cursor() as cursor:
        cursor.execute("DROP TABLE django_migrations")
    assert checks.check_audit_database(databases=[audit_database]) == []


def test_the_database_is_not_asked_unless_it_is_to_be(audit_database: str) -> None:
    connections[audit_database].close()

    assert checks.check_audit_database(databases=None) == checks.check_audit_database(databases=["default"]) == []

    assert connections[audit_database].connection is None

"""A role that auditgrants made fit adds to the log and reads it. Whatever else it tries fails or has no effect."""

from collections.abc import Iterator
from io import StringIO
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connections
from psycopg import errors

from priqueue import checks
from priqueue.audit import chain, rights
from priqueue.audit.store import store
from priqueue.audit.verify import verify
from priqueue.clock import wall_ms
from tests.support.auditing import batch, rows
from tests.support.databases import ALIAS, Postgres, placed

COLUMNS = ", ".join(chain.PARTS[3:])
VALUES = "1, 'n', 'e', '9-9', 'purge', 'user:1', '', '', '', '', '', '', '', ''"
ROLE = "runtime"


@pytest.fixture
def role(audit_postgres: Postgres) -> Iterator[str]:
    """A role that may log in."""
    audit_postgres.run(f"CREATE ROLE {ROLE} LOGIN")
    yield ROLE
    name = connections[ALIAS].settings_dict["NAME"]
    audit_postgres.run(f"DROP OWNED BY {ROLE}", name=name)
    audit_postgres.run(f"DROP ROLE {ROLE}")


@pytest.fixture
def fit(role: str) -> str:
    """The role, made fit."""
    call_command("auditgrants", "--role", role, "--apply", stdout=StringIO())
    return role


@pytest.fixture
def attacker(audit_postgres: Postgres, fit: str) -> Iterator["psycopg.Connection[Any]"]:
    """A plain connection of that role, to a log of three rows."""
    store(ALIAS, "n", batch(1, 2, 3))
    with audit_postgres.connect(connections[ALIAS].settings_dict["NAME"], user=fit) as connection:
        yield connection


def contents() -> list[tuple[Any, ...]]:
    return [(row.id, row.stream_id, row.caller, bytes(row.hash)) for row in rows()]


@pytest.mark.parametrize(
    "attempt",
    [
        "UPDATE priqueue_auditevent SET caller = 'nobody'",
        "UPDATE priqueue_auditevent SET caller = 'nobody' WHERE false",
        "DELETE FROM priqueue_auditevent",
        "TRUNCATE priqueue_auditevent",
        "DROP TRIGGER priqueue_audit_append ON priqueue_auditevent",
        "DROP TRIGGER priqueue_audit_refuse ON priqueue_auditevent",
        "ALTER TABLE priqueue_auditevent DISABLE TRIGGER ALL",
        "ALTER TABLE priqueue_auditevent DISABLE TRIGGER priqueue_audit_append",
        "ALTER TABLE priqueue_auditevent ADD COLUMN x int",
        "ALTER TABLE priqueue_auditevent RENAME TO gone",
        "DROP TABLE priqueue_auditevent",
        "SET session_replication_role = replica",
        "CREATE OR REPLACE FUNCTION priqueue_audit_append() RETURNS trigger LANGUAGE sql AS ''",
        "ALTER FUNCTION priqueue_audit_append() RESET ALL",
        "CREATE TRIGGER z BEFORE INSERT ON priqueue_auditevent EXECUTE FUNCTION priqueue_audit_refuse()",
        "CREATE RULE r AS ON INSERT TO priqueue_auditevent DO INSTEAD NOTHING",
        "INSERT INTO priqueue_auditevent SELECT * FROM priqueue_auditevent WHERE id = 1"
        " ON CONFLICT (id) DO UPDATE SET caller = 'nobody'",
        "MERGE INTO priqueue_auditevent t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
        "SELECT * FROM priqueue_auditevent FOR UPDATE",
        "LOCK TABLE priqueue_auditevent IN ACCESS EXCLUSIVE MODE",
    ],
)
def test_what_would_change_the_log_is_refused(attacker: "psycopg.Connection[Any]", attempt: str) -> None:
    before = contents()

    with pytest.raises(
        (errors.InsufficientPrivilege, errors.WrongObjectType, errors.NoActiveSqlTransaction, errors.UniqueViolation)
    ):
        attacker.execute(attempt)

    assert contents() == before


def test_an_id_a_time_and_hashes_that_are_chosen_have_no_effect(attacker: "psycopg.Connection[Any]") -> None:
    attacker.execute(
        f"INSERT INTO priqueue_auditevent (id, stored_ms, previous, hash, {COLUMNS})"
        f" VALUES (77, 5, '\\x00', '\\x00', {VALUES})"
    )

    assert [row.id for row in rows()] == [1, 2, 3, 4]
    assert abs(rows()[-1].stored_ms - wall_ms()) < 60_000
    assert verify(ALIAS).broken is None


def test_a_table_of_the_same_name_before_it_on_the_path_fools_nobody(attacker: "psycopg.Connection[Any]") -> None:
    attacker.execute("CREATE TEMP TABLE priqueue_auditevent (id bigint, hash bytea)")
    attacker.execute("INSERT INTO priqueue_auditevent VALUES (500, '\\x01')")

    attacker.execute(f"INSERT INTO public.priqueue_auditevent ({COLUMNS}) VALUES ({VALUES})")

    assert [row.id for row in rows()] == [1, 2, 3, 4]
    assert verify(ALIAS).broken is None


def test_the_runtime_stores_and_reads_as_that_role(audit_postgres: Postgres, fit: str) -> None:
    name = connections[ALIAS].settings_dict["NAME"]
    with placed(audit_postgres.settings(name, USER=fit)):
        store(ALIAS, "n", batch(1, 2, 3))

        assert [row.id for row in rows()] == [1, 2, 3]
        assert checks.check_audit_database(databases=[ALIAS]) == []


def test_the_owner_is_refused_too_while_the_triggers_stand(audit_postgres: Postgres) -> None:
    store(ALIAS, "n", batch(1))
    name = connections[ALIAS].settings_dict["NAME"]

    for attempt in (
        "UPDATE priqueue_auditevent SET mark = 'x'",
        "DELETE FROM priqueue_auditevent",
        "TRUNCATE priqueue_auditevent",
    ):
        with audit_postgres.connect(name) as owner, pytest.raises(errors.InsufficientPrivilege, match="append-only"):
            owner.execute(attempt)


def test_the_statements_are_printed_and_nothing_is_done(role: str) -> None:
    out = StringIO()

    call_command("auditgrants", "--role", role, stdout=out)

    assert out.getvalue() == (
        'REVOKE ALL ON TABLE "public".priqueue_auditevent FROM PUBLIC;\n'
        'REVOKE ALL ON TABLE "public".priqueue_auditevent FROM "runtime";\n'
        'GRANT USAGE ON SCHEMA "public" TO "runtime";\n'
        'GRANT SELECT, INSERT ON TABLE "public".priqueue_auditevent TO "runtime";\n'
    )


@pytest.mark.parametrize(
    ("name", "why"), [("nobody", "there is no role nobody"), ("postgres", "postgres is a superuser")]
)
def test_a_role_that_no_grant_holds_back_is_refused(role: str, name: str, why: str) -> None:
    with pytest.raises(CommandError, match=why):
        call_command("auditgrants", "--role", name)


def test_the_owner_of_the_table_is_refused_as_the_runtimes_role(audit_postgres: Postgres, role: str) -> None:
    name = connections[ALIAS].settings_dict["NAME"]
    audit_postgres.run(f"ALTER TABLE priqueue_auditevent OWNER TO {role}", name=name)

    with pytest.raises(CommandError, match="owns the table"):
        call_command("auditgrants", "--role", role)

    audit_postgres.run("ALTER TABLE priqueue_auditevent OWNER TO postgres", name=name)


@pytest.mark.parametrize(
    ("right", "told"),
    [
        ("UPDATE", "may UPDATE"),
        ("UPDATE (caller)", "may UPDATE"),
        ("DELETE", "may DELETE"),
        ("TRUNCATE", "may TRUNCATE"),
        ("TRIGGER", "may add triggers"),
    ],
)
def test_each_right_too_many_is_warned_of(audit_postgres: Postgres, fit: str, right: str, told: str) -> None:
    name = connections[ALIAS].settings_dict["NAME"]
    audit_postgres.run(f"GRANT {right} ON priqueue_auditevent TO {fit}", name=name)

    with placed(audit_postgres.settings(name, USER=fit)):
        (warning,) = checks.check_audit_database(databases=[ALIAS])

    assert (warning.id, told in warning.msg) == ("priqueue.W004", True)


def test_a_superuser_is_warned_of(audit_postgres: Postgres) -> None:
    assert rights.too_many(ALIAS) == ["is a superuser"]


def test_a_member_of_the_owner_is_warned_of(audit_postgres: Postgres, fit: str) -> None:
    name = connections[ALIAS].settings_dict["NAME"]
    audit_postgres.run(
        "CREATE ROLE owner", f"GRANT owner TO {fit}", "ALTER TABLE priqueue_auditevent OWNER TO owner", name=name
    )

    with placed(audit_postgres.settings(name, USER=fit)):
        found = rights.too_many(ALIAS)

    audit_postgres.run(
        "ALTER TABLE priqueue_auditevent OWNER TO postgres", f"REVOKE owner FROM {fit}", "DROP ROLE owner", name=name
    )
    assert found[0] == "owns the table"


def test_a_database_without_roles_is_refused(tmp_path) -> None:
    with pytest.raises(CommandError):
        call_command("auditgrants", "--role", "x", "--database", "default")

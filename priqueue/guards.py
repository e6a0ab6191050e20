"""Guards: what makes the audit table append-only, by database vendor.

On PostgreSQL triggers refuse UPDATE, DELETE and TRUNCATE, and set id, time and hashes of what is inserted. On SQLite
they refuse UPDATE and DELETE, and whoever inserts sets the rest. A later migration that makes Django rebuild the table
on SQLite loses the triggers there, and has to add ``Guard`` again.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

TABLE = "priqueue_auditevent"
VENDORS = ("postgresql", "sqlite")
_DROP = {
    "postgresql": (
        f"DROP TRIGGER IF EXISTS priqueue_audit_append ON {TABLE}",
        f"DROP TRIGGER IF EXISTS priqueue_audit_refuse ON {TABLE}",
        f"DROP TRIGGER IF EXISTS priqueue_audit_refuse_truncate ON {TABLE}",
        "DROP FUNCTION IF EXISTS priqueue_audit_append()",
        "DROP FUNCTION IF EXISTS priqueue_audit_refuse()",
    ),
    "sqlite": (
        "DROP TRIGGER IF EXISTS priqueue_audit_no_update",
        "DROP TRIGGER IF EXISTS priqueue_audit_no_delete",
    ),
}


def statements(vendor: str) -> list[str]:
    """Return the statements that guard the table; none for a vendor that is not supported, which a check refuses."""
    if vendor not in VENDORS:
        return []
    text = (resources.files("priqueue") / "sql" / f"{vendor}.sql").read_text(encoding="utf-8")
    return [statement.strip() for statement in text.split("\n\n")]


class Guard(Operation):
    """Migration operation: guards the audit table. It follows on the table's own."""

    reduces_to_sql = True
    reversible = True

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """Models do not change."""

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        """Add the triggers."""
        if self._is_here(app_label, schema_editor.connection, to_state):
            for statement in statements(schema_editor.connection.vendor):
                schema_editor.execute(statement, params=None)

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        """Take the triggers away."""
        if self._is_here(app_label, schema_editor.connection, from_state):
            for statement in _DROP.get(schema_editor.connection.vendor, ()):
                schema_editor.execute(statement, params=None)

    def describe(self) -> str:
        """Say what it does."""
        return "Make the audit log append-only"

    def _is_here(self, app_label: str, connection: BaseDatabaseWrapper, state: ProjectState) -> bool:
        return self.allow_migrate_model(connection.alias, state.apps.get_model(app_label, "AuditEvent"))


@contextmanager
def lifted(alias: str) -> Iterator[None]:
    """Let rows be deleted inside the block; for the table's owner, in a transaction, where it shows to nobody else."""
    connection = connections[alias]
    postgres = connection.vendor == "postgresql"
    with connection.cursor() as cursor:
        for statement in (
            (f"ALTER TABLE {TABLE} DISABLE TRIGGER priqueue_audit_refuse",) if postgres else _DROP["sqlite"]
        ):
            cursor.execute(statement)
        yield
        back = [f"ALTER TABLE {TABLE} ENABLE TRIGGER priqueue_audit_refuse"] if postgres else statements("sqlite")
        for statement in back:
            cursor.execute(statement)

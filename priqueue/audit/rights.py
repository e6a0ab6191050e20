"""Rights: what a role may do to the audit table on PostgreSQL, and what makes it insert and read only."""

from collections.abc import Iterator

from django.db import connections

from priqueue.guards import TABLE

_ASKED = """
    SELECT pg_has_role(current_user, c.relowner, 'MEMBER'),
           has_any_column_privilege(c.oid, 'UPDATE'), has_table_privilege(c.oid, 'DELETE'),
           has_table_privilege(c.oid, 'TRUNCATE'), has_table_privilege(c.oid, 'TRIGGER'),
           (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)
      FROM pg_class c WHERE c.oid = to_regclass(%s)
"""
_TOLD = ("owns the table", "may UPDATE", "may DELETE", "may TRUNCATE", "may add triggers", "is a superuser")


def too_many(alias: str) -> list[str]:
    """Return what the role of an alias may do that the runtime needs not; nothing where there is no table."""
    with connections[alias].cursor() as cursor:
        cursor.execute(_ASKED, [TABLE])
        found = cursor.fetchone() or ()
    # A superuser has every other right by that alone.
    rights = [told for told, has in zip(_TOLD, found, strict=False) if has]
    return rights[-1:] if "is a superuser" in rights else rights


def has_table(alias: str) -> bool:
    """Return whether the audit table is there."""
    return TABLE in connections[alias].introspection.table_names()


def is_migrated(alias: str) -> bool:
    """Return whether anything was ever migrated there."""
    return "django_migrations" in connections[alias].introspection.table_names()


def grants(alias: str, role: str) -> Iterator[str]:
    """Yield the statements that make a role insert and read only."""
    quote = connections[alias].ops.quote_name
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT current_schema()")
        schema = quote(cursor.fetchone()[0])
    named, table = quote(role), f"{schema}.{TABLE}"
    yield f"REVOKE ALL ON TABLE {table} FROM PUBLIC"
    yield f"REVOKE ALL ON TABLE {table} FROM {named}"
    yield f"GRANT USAGE ON SCHEMA {schema} TO {named}"
    yield f"GRANT SELECT, INSERT ON TABLE {table} TO {named}"


def refusal(alias: str, role: str) -> str | None:
    """Return why grants could not hold this role back; None when they can."""
    with connections[alias].cursor() as cursor:
        cursor.execute(
            "SELECT rolsuper, pg_has_role(r.oid, c.relowner, 'MEMBER')"
            "  FROM pg_roles r, pg_class c WHERE r.rolname = %s AND c.oid = to_regclass(%s)",
            [role, TABLE],
        )
        found = cursor.fetchone()
    if found is None:
        return f"there is no role {role}, or no table {TABLE}: CREATE ROLE … LOGIN PASSWORD '…', and migrate first"
    if found[0]:
        return f"{role} is a superuser, whom no grant holds back; use another role"
    return f"{role} owns the table, or is a member of the role that does; use another role" if found[1] else None

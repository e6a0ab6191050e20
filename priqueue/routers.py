"""Routers: keep the audit log on AUDIT_DATABASE, and its table out of every other database."""

from typing import Any

from django.db import connections
from django.db.models import Model

from priqueue import wiring

_MODEL = "auditevent"


class AuditRouter:
    """For DATABASE_ROUTERS, when AUDIT_DATABASE is not the default database."""

    def db_for_read(self, model: type[Model], **_: Any) -> str | None:
        """Return AUDIT_DATABASE for the audit log."""
        return wiring.settings().audit_database if _is_audit(model) else None

    def db_for_write(self, model: type[Model], **_: Any) -> str | None:
        """Return AUDIT_DATABASE for the audit log."""
        return wiring.settings().audit_database if _is_audit(model) else None

    def allow_migrate(self, db: str, app_label: str, model_name: str | None = None, **_: Any) -> bool | None:
        """Allow the table in the one database, by whatever alias: the one with the owner's role may be another."""
        if app_label != "priqueue" or model_name != _MODEL:
            return None
        return is_same_database(db, wiring.settings().audit_database)


def _is_audit(model: type[Model]) -> bool:
    return model._meta.label_lower == f"priqueue.{_MODEL}"


def is_same_database(one: str, other: str) -> bool:
    """Return whether two aliases lead to one database, maybe with different roles."""
    if one == other:
        return True
    mine, others = connections[one].settings_dict, connections[other].settings_dict
    same_server = all(str(mine[name]) == str(others[name]) for name in ("ENGINE", "HOST", "PORT"))
    # While a test database is made, the one alias has its new name already and the other has not.
    return same_server and bool(_names(mine) & _names(others))


def _names(settings: dict[str, Any]) -> set[str]:
    name = str(settings["NAME"])
    return {name, str(settings.get("TEST", {}).get("NAME") or f"test_{name}")}

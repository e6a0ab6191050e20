"""People: the names of the users whom a page tells of, beside the callers that the queue knows them by.

A page says first whom it will tell of; the first of them to be told costs one query for all. Nobody else is asked for,
so that no list asks row by row. Who is not found stays a caller: deleted since, made up, or in a database that does not
answer. No page fails for want of a name.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import unquote

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db import DatabaseError, models

from priqueue.callers import of_user

_PREFIX = "user:"
#: a page shows no more rows than this
_MOST = 500


class People:
    """The users whom one page tells of."""

    def __init__(self) -> None:
        self._expected: dict[str, None] = {}
        self._names: dict[str, str] = {}

    def expect(self, callers: Iterable[str]) -> None:
        """Say whom the page will tell of. Asks nothing yet."""
        new = (caller for caller in callers if caller.startswith(_PREFIX) and caller not in self._names)
        self._expected |= dict.fromkeys(new)

    def told(self, caller: str) -> str:
        """Return a caller as a page tells it: ``ana (user:7)`` for a user who was expected and is known."""
        if caller in self._expected:
            asked, self._expected = list(self._expected)[:_MOST], {}
            self._names |= dict.fromkeys(asked, "") | _names(asked)
        name = self._names.get(caller)
        return f"{name} ({caller})" if name else caller


def _names(callers: Sequence[str]) -> dict[str, str]:
    """Return caller → name of those who are users."""
    users = get_user_model()
    try:
        keys = list(_keys(users._meta.pk, callers))
        found = list(_rows(users, keys)) if keys else []
    except (DatabaseError, ValueError, OverflowError):  # whatever a driver has against a key
        return {}
    return {of_user(key): str(name) for key, name in found if str(name).isprintable()}


def _keys(field: Any, callers: Iterable[str]) -> Iterator[Any]:
    """Give the users' keys, without those that can be nobody's: one of them would spoil the query for all."""
    while field.remote_field:
        field = field.target_field
    for caller in callers:
        text = unquote(caller.removeprefix(_PREFIX))
        try:
            key = field.to_python(text) if text.isprintable() else None
            field.run_validators(key)
        except ValidationError:
            continue
        if key is not None:
            yield key


def _rows(users: type[models.Model], keys: Sequence[Any]) -> Iterable[tuple[Any, Any]]:
    name: str = users.USERNAME_FIELD  # type: ignore[attr-defined]
    return users._default_manager.filter(pk__in=keys).values_list("pk", name)

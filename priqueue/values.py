"""Values: Python values as plain JSON, and whether they arrive as what they were.

One rule: **an argument is plain JSON, or a Python value that arrives equal and of its own type.** Plain JSON
is None, bool, int, finite float, str, and lists and dicts (with text as keys) of these. So for an argument
``when: datetime`` a text in ISO format and a datetime are both right; for ``when: str`` a datetime is wrong.

    datetime, date, time, timedelta     travel as text in ISO 8601
    Decimal, UUID, Path                 travel as text
    Enum                                travels as its value
    tuple, set, frozenset               travel as a list
    dataclass, pydantic model           travel as an object

Subclasses of str (safe strings) travel as their text. Bytes, lazy strings, model instances and all other
objects are refused, never turned into whatever ``str`` makes of them.
"""

import dataclasses
import json
import sys
import typing
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID

from pydantic import BaseModel
from pydantic_core import to_json, to_jsonable_python

from priqueue.exceptions import InvalidPayload, PayloadTooLarge

MAX_DEPTH = 100
_MAX_PARTS = 65_536  # of a payload that goes the fast way: what contains itself has to stop somewhere
_PLAIN_LEAVES = frozenset({type(None), bool, int, float, str})
_MAX_INT_BITS = 14_000  # what Python still writes as text; beyond it, to write one takes seconds
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")).encode


def plain_text(payload: Mapping[str, Any], max_bytes: int) -> str | None:
    """Return the text of a payload of plain JSON; None if it takes a closer look."""
    if type(payload) is not dict or not _is_plain(payload, min(max_bytes, _MAX_PARTS)):
        return None
    try:
        encoded = to_json(payload)  # five times as fast as the standard library's
    except ValueError:  # a lone surrogate: the closer look finds where
        return None
    # NaN as a number, or inside a text: the closer look tells. Some floats are longer than as the other writes them.
    if b"NaN" in encoded or b"Infinity" in encoded or len(encoded) > max_bytes:
        return None
    return encoded.decode()


def _is_plain(value: Any, room: int) -> bool:
    """Say whether a value is plain JSON of at most ``room`` parts. False only means: look closely.

    It goes level by level: no recursion, and a value that contains itself runs out of levels or of room.
    """
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        below: list[Any] = []
        for part in level:
            kind = type(part)
            if kind in _PLAIN_LEAVES:
                if kind is int and part.bit_length() > _MAX_INT_BITS:
                    return False
                continue
            if kind is dict and all(type(key) is str for key in part):
                items = part.values()
            elif kind is list:
                items = part
            else:
                return False
            room -= len(items)
            if room < 0:
                return False
            below += items
        if not below:
            return True
        level = below
    return False


def converted_text(payload: Mapping[str, Any], max_bytes: int) -> str:
    """Return the text of a payload of more than plain JSON. Raises InvalidPayload and PayloadTooLarge."""
    if not isinstance(payload, Mapping):
        raise InvalidPayload(f"the payload is a {type(payload).__name__}; use a dict of arguments")
    text = _encode(_Conversion(max_bytes).object(payload, "", ()))
    size = len(text.encode())
    if size > max_bytes:
        raise PayloadTooLarge(f"the payload has {size:,} bytes of JSON, the limit is {max_bytes:,}")
    return text


def check_arrival(given: Any, arrived: Any, where: str) -> None:
    """Check that an argument is plain JSON, or arrived equal and as its own type. Raises InvalidPayload."""
    if not _is_plain(given, sys.maxsize):
        _compare(given, arrived, where)


class _Conversion:
    """Turns Python values into plain JSON, at most as many as could fit into ``max_bytes``."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.room = max_bytes

    def plain(self, value: Any, where: str, above: tuple[int, ...]) -> Any:
        """Return the value as plain JSON. ``above`` holds the ids of all that it is inside of."""
        self.room -= 1
        if self.room < 0:
            raise PayloadTooLarge(f"{where}: the payload exceeds the limit of {self.max_bytes:,} bytes of JSON")
        if isinstance(value, Enum):
            return self.plain(value.value, where, above)
        if isinstance(value, bool | int | float | str | None):
            return _leaf(value, where)
        if (text := _text(value)) is not None:
            return _leaf(text, where)
        if id(value) in above:
            raise InvalidPayload(f"{where}: contains itself")
        if len(above) >= MAX_DEPTH:
            raise InvalidPayload(f"{where[:200]}…: nested deeper than {MAX_DEPTH}")
        inside = (*above, id(value))
        if isinstance(value, list | tuple | set | frozenset):
            return [self.plain(item, f"{where}.{index}", inside) for index, item in enumerate(value)]
        return self.object(_members(value, where), f"{where}.", inside)

    def object(self, members: Mapping[Any, Any], prefix: str, inside: tuple[int, ...]) -> dict[str, Any]:
        """Return a mapping as a JSON object. Raises InvalidPayload."""
        for key in members:
            if not isinstance(key, str):
                raise InvalidPayload(f"{prefix}{key!r:.60}: a key that is no text")
            _leaf(key, f"{prefix}{key[:60]!a} (a key)")
        return {str(key): self.plain(value, f"{prefix}{key}", inside) for key, value in members.items()}


def _leaf(value: Any, where: str) -> Any:
    """Return a number, text or None if JSON can say it. Raises InvalidPayload."""
    try:
        _encode(value).encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidPayload(f"{where}: holds a lone surrogate, which is no text") from None
    except ValueError:
        raise InvalidPayload(f"{where}: a number that JSON cannot hold (NaN, infinite, or too long)") from None
    return value


def _text(value: Any) -> str | None:
    """Return the text that stands for a value of these types, exactly; None for other types."""
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return typing.cast(str, to_jsonable_python(value))
    return str(value) if isinstance(value, Decimal | UUID | PurePath) else None


def _members(value: Any, where: str) -> Mapping[Any, Any]:
    """Return what an object of a known kind consists of. Raises InvalidPayload."""
    if isinstance(value, dict):
        return value
    if isinstance(value, BaseModel):
        return value.model_dump(by_alias=True, round_trip=True)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
    raise InvalidPayload(f"{where}: {_refusal(value)}")


def _refusal(value: Any) -> str:
    kind = type(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return f"{kind.__name__} cannot travel as JSON; pass text, for example base64"
    if hasattr(kind, "_meta") and hasattr(kind, "pk"):
        return f"a model instance ({kind.__name__}); pass its pk and load it in the handler"
    if hasattr(kind, "__html__") or kind.__name__ == "__proxy__":
        return "a lazy string or an object that renders itself; pass str(value)"
    return f"{kind.__module__}.{kind.__qualname__} cannot travel as JSON"


def _state(value: Any) -> dict[str, Any]:
    if isinstance(value, BaseModel):
        return dict(value)
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def _compare(given: Any, arrived: Any, where: str) -> None:
    if isinstance(given, list | tuple) and isinstance(given, type(arrived)) and len(given) == len(arrived):
        for index, (item, other) in enumerate(zip(given, arrived, strict=True)):
            _compare(item, other, f"{where}.{index}")
    elif isinstance(given, dict) and isinstance(arrived, dict) and given.keys() == arrived.keys():
        for key, item in given.items():
            _compare(item, arrived[key], f"{where}.{key}")
    elif type(given) is type(arrived) and (isinstance(given, BaseModel) or dataclasses.is_dataclass(given)):
        _compare(_state(given), _state(arrived), where)
    elif not (_is_kin(given, arrived) and _key(given) == _key(arrived)):
        raise InvalidPayload(
            f"{where}: a {type(given).__name__} would arrive as {type(arrived).__name__} or changed;"
            " annotate the parameter with its type, or pass plain JSON"
        )


def _is_kin(given: Any, arrived: Any) -> bool:
    return type(given) in _PLAIN_LEAVES or isinstance(given, type(arrived))


def _key(value: Any) -> Any:
    """Return what decides whether two values are the same.

    Inside a repeated hour two datetimes of different zones are never equal, by Python's rule; texts are.
    """
    if isinstance(value, datetime | time):
        return value.isoformat(), value.tzinfo is None
    return {_key(item) for item in value} if isinstance(value, set | frozenset) else value

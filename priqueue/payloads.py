"""Payloads: a handler's arguments as the JSON text that travels, and back.

1. ``accept`` makes the text (``values`` says of what) and holds it to the signature, before it is enqueued;
2. ``arguments`` makes the function's arguments of the text, for one run, when a worker has it.

The check is pydantic's and the same in both places, on the text and strict: no ``"5"`` and no ``True`` for an
int; an int is fine for a float, and text in ISO format for a datetime. Parameters without annotation take any
plain JSON. The defaults of the signature apply when the function is called; they never travel.
"""

import inspect
import json
import math
import typing
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Annotated, Any

from pydantic import ConfigDict, GetPydanticSchema, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import ErrorDetails, SchemaValidator, core_schema, from_json

from priqueue import values
from priqueue.exceptions import InvalidPayload

_MAX_FAULTS = 5  # shown of one payload
_REASONS = {"missing": "is missing", "extra_forbidden": "is no argument of this handler"}


class Signature:
    """The parameters of a function, as the payload sees them."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.parameters = inspect.signature(function).parameters
        for parameter in self.parameters.values():
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
                raise TypeError(f"{parameter}: a payload names its arguments; use one that can be given by name")

    @cached_property
    def validator(self) -> SchemaValidator:
        """The check of the annotations. Built at first use, when forward references can be resolved."""
        try:
            hints = typing.get_type_hints(self.function, include_extras=True)
            form = Annotated[dict[str, Any], GetPydanticSchema(lambda _, handler: self._schema(hints, handler))]
            adapter = TypeAdapter(form, config=ConfigDict(allow_inf_nan=False))
            return typing.cast(SchemaValidator, adapter.validator)
        except (PydanticUserError, NameError, AttributeError, SyntaxError, TypeError) as fault:
            raise InvalidPayload(f"the handler's annotations cannot be used: {fault}") from fault

    def _schema(self, hints: Mapping[str, Any], handler: Callable[[Any], Any]) -> core_schema.CoreSchema:
        fields, extras = {}, None
        for name, parameter in self.parameters.items():
            schema = handler(hints.get(name, Any))
            if parameter.kind is parameter.VAR_KEYWORD:
                extras = schema
            else:
                required = parameter.default is parameter.empty
                fields[name] = core_schema.typed_dict_field(schema, required=required)
        return core_schema.typed_dict_schema(
            fields, extras_schema=extras, extra_behavior="forbid" if extras is None else "allow"
        )

    def accept(self, payload: Mapping[str, Any], max_bytes: int) -> str:
        """Return the JSON text that will travel. Raises InvalidPayload and PayloadTooLarge."""
        text = values.plain_text(payload, max_bytes)
        if text is not None:
            with suppress(InvalidPayload):  # the closer look says best what is wrong
                self.arguments(text)
                return text
        return self._accept_values(payload, max_bytes)

    def _accept_values(self, payload: Mapping[str, Any], max_bytes: int) -> str:
        text = values.converted_text(payload, max_bytes)
        arrived = self.arguments(text)
        for name, value in payload.items():
            values.check_arrival(value, arrived[name], name)
        return text

    def arguments(self, text: str) -> dict[str, Any]:
        """Return fresh arguments in the annotated types. Raises InvalidPayload."""
        try:
            return typing.cast(dict[str, Any], self.validator.validate_json(text, strict=True))
        except ValidationError as fault:
            raise InvalidPayload(_explain(fault)) from None


def loads(text: str) -> Any:
    """Return the plain JSON of a text that ``accept`` made."""
    return from_json(text)


def loads_strict(text: str | bytes) -> Any:
    """Return what a JSON text from outside says. Raises InvalidPayload.

    Refused: duplicate keys, NaN, Infinity, numbers beyond a float, trailing data, bytes that are no UTF-8,
    and nesting that exhausts the parser.
    """
    try:
        decoded = text if isinstance(text, str) else text.decode("utf-8")
        return json.loads(decoded, object_pairs_hook=_unique, parse_constant=_refuse_constant, parse_float=_finite)
    except InvalidPayload:
        raise
    except RecursionError:
        raise InvalidPayload("not JSON that can be read: nested too deeply") from None
    except ValueError as fault:
        raise InvalidPayload(f"not JSON: {fault}") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidPayload(f"{twice[:60]!a} is given twice")
    return unique


def _refuse_constant(name: str) -> float:
    raise InvalidPayload(f"{name} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise InvalidPayload(f"{digits[:60]} is beyond the largest float")
    return number


def _explain(fault: ValidationError) -> str:
    faults = fault.errors(include_url=False, include_context=False, include_input=False)
    said = [_reason(details) for details in faults[:_MAX_FAULTS]]
    more = [f"and {len(faults) - _MAX_FAULTS} more"] if len(faults) > _MAX_FAULTS else []
    return "; ".join(said + more)


def _reason(details: ErrorDetails) -> str:
    where = ".".join(str(part)[:60] for part in details["loc"][:20]) or "the payload"
    if details["type"] in _REASONS:
        return f"{where} {_REASONS[details['type']]}"
    return f"{where}: {details['msg'][:300]}"

"""Values of extensions under Kafka Connect's schemas: checked, and converted to JSON.

A schema has the form in which the JSON converter shows it: `{"type": "string", "optional": true, …}`. Values that the
connector itself produces never come here.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from decimal import Context, Decimal, DecimalException, Inexact, InvalidOperation
from typing import Any, cast

from mssql_cdc.errors import placed
from mssql_cdc.records.encodings import unscaled_text
from mssql_cdc.records.json_texts import json_text

Schema = Mapping[str, Any]
DECIMAL = "org.apache.kafka.connect.data.Decimal"
_INTEGERS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}
_PLAIN: Mapping[str, type] = {"boolean": bool, "string": str}
_NESTED = {"struct": "fields", "array": "items", "map": "values"}
_EXACT = Context(prec=1_000, traps=[Inexact, InvalidOperation])
"""Raises an error where it would have to round."""
_MEMBERS = ("name", "version", "doc", "parameters")


class UnfitValueError(ValueError):
    """What an extension made of a value does not fit its schema. The message has no value: rows never enter a log."""


def without_values(error: Exception) -> str:
    """Return what to say about a conversion error: only messages of `UnfitValueError` are known to quote no value."""
    return str(error) if isinstance(error, UnfitValueError) else placed(error)


def check_schema(schema: object) -> None:
    """Raise ValueError unless this is a schema that values can be checked against."""
    found: Schema = cast("Schema", schema) if isinstance(schema, Mapping) else {}
    kind = found.get("type")
    known = {*_INTEGERS, *_PLAIN, *_NESTED, "float", "double", "bytes"}
    if kind not in known:
        raise ValueError(f"the schema has the type {kind!r}, expected one of {', '.join(sorted(known))}")
    if kind == "struct":
        for one in cast("Sequence[Schema]", found.get("fields", ())):
            if not one.get("field"):
                raise ValueError("each of a struct's fields needs its name as 'field'")
            check_schema(one)
    elif kind in _NESTED:
        check_schema(found.get(_NESTED[kind]))


def field_schema(schema: Schema, *, optional: bool, default: Any = None) -> dict[str, Any]:
    """Return the schema of a field, with its members in the converter's order, without the field's name.

    Args:
        schema: The schema without `optional` and `default`.
        optional: Whether it can be null.
        default: Its default as JSON; None: it has none.
    """
    kind = schema["type"]
    found: dict[str, Any] = {"type": kind}
    if kind in _NESTED:
        found[_NESTED[kind]] = schema[_NESTED[kind]]
    if kind == "map":
        found["keys"] = {"type": "string", "optional": False}
    found["optional"] = optional
    found |= {name: schema[name] for name in _MEMBERS if name in schema}
    return found if default is None else {**found, "default": default}


def to_json(schema: Schema, value: Any, *, numeric: bool = False) -> Any:
    """Return a Python value as JSON.

    Args:
        schema: Its schema.
        value: The value. Bytes become base64, and so does a Decimal unless `numeric`.
        numeric: Show Connect's decimals as numbers.

    Raises:
        UnfitValueError: The value does not fit the schema.
    """
    if value is None:
        if not schema.get("optional", False):
            raise UnfitValueError("found None for a value that cannot be null")
        return None
    kind = schema["type"]
    if kind == "bytes":
        return _bytes(schema, value, numeric=numeric)
    if kind == "array" and isinstance(value, list | tuple):
        return [to_json(schema["items"], one, numeric=numeric) for one in cast("Sequence[Any]", value)]
    if kind == "map" and isinstance(value, Mapping):
        entries = cast("Mapping[Any, Any]", value)
        return {str(name): to_json(schema["values"], one, numeric=numeric) for name, one in entries.items()}
    if kind == "struct" and isinstance(value, Mapping):
        return _struct(schema, cast("Mapping[str, Any]", value), numeric=numeric)
    _require_plain(kind, value)
    return float(value) if kind in {"float", "double"} and not isinstance(value, Decimal) else value


def check_json(schema: Schema, value: Any, path: str = "") -> None:
    """Raise ValueError unless this JSON is what the converter would show for a value.

    Args:
        schema: Its schema.
        value: The JSON, with numbers as int or Decimal.
        path: Where it is, for the error message.
    """
    kind = schema["type"]
    try:
        if value is None:
            to_json(schema, None)
        elif kind == "struct" and isinstance(value, dict):
            members = cast("dict[str, Any]", value)
            known = {one["field"]: one for one in schema["fields"]}
            if set(members) != set(known):
                raise UnfitValueError(f"has the fields {sorted(members)}, expected {sorted(known)}")
            for name, one in members.items():
                check_json(known[name], one, f"{path}.{name}" if path else name)
        elif kind in {"array", "map"} and isinstance(value, list | dict):
            nested = cast("list[Any] | dict[str, Any]", value)
            for one in nested.values() if isinstance(nested, dict) else nested:
                check_json(schema[_NESTED[kind]], one, path)
        elif kind == "bytes":
            number = schema.get("name") == DECIMAL and isinstance(value, int | Decimal)
            if not isinstance(value, str) and not number:
                raise UnfitValueError(f"found {_kind(value)}, expected base64")
        else:
            _require_plain(kind, value)
    except _PathError:
        raise
    except ValueError as error:
        raise _PathError(f"{path or 'the value'}: {error}") from None


def dumped(value: Any) -> str:
    """Return JSON as text; a Decimal keeps its digits."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return f"{{{','.join(f'{json_text(name)}:{dumped(one)}' for name, one in members.items())}}}"
    if isinstance(value, list):
        return f"[{','.join(dumped(one) for one in cast('list[Any]', value))}]"
    return json_text(value)


class _PathError(UnfitValueError):
    """An error whose message says where it is."""


def _struct(schema: Schema, value: Mapping[str, Any], *, numeric: bool) -> dict[str, Any]:
    known = {one["field"]: one for one in schema["fields"]}
    if unknown := set(value) - set(known):
        raise UnfitValueError(f"found the fields {sorted(unknown)}, expected {sorted(known)}")
    return {name: to_json(one, value.get(name), numeric=numeric) for name, one in known.items()}


def _bytes(schema: Schema, value: Any, *, numeric: bool) -> Any:
    if schema.get("name") == DECIMAL:
        if not isinstance(value, Decimal):
            raise UnfitValueError(f"found {_kind(value)}, expected a Decimal")
        scale = int(schema.get("parameters", {}).get("scale", 0))
        unscaled = _unscaled(value, scale)
        return value if numeric else unscaled_text(unscaled)
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    raise UnfitValueError(f"found {_kind(value)}, expected bytes")


def _unscaled(value: Decimal, scale: int) -> int:
    """Return the number without its decimal point. Python's default context has 28 digits and rounds longer numbers."""
    try:
        whole = value.scaleb(scale, context=_EXACT).quantize(Decimal(1), context=_EXACT)
    except Inexact:
        raise UnfitValueError(f"found a Decimal with more than {scale} digits after the decimal point") from None
    except DecimalException:
        raise UnfitValueError(f"found a Decimal that is no number of at most {_EXACT.prec} digits") from None
    return int(whole)


def _require_plain(kind: str, value: Any) -> None:
    bits = _INTEGERS.get(kind)
    if bits is not None:
        fits = isinstance(value, int) and not isinstance(value, bool) and -(2**bits) <= value < 2**bits
    elif kind in {"float", "double"}:
        fits = isinstance(value, int | float | Decimal) and not isinstance(value, bool) and math.isfinite(value)
    else:
        fits = kind in _PLAIN and isinstance(value, _PLAIN[kind])
    if not fits:
        raise UnfitValueError(f"found {_kind(value)}, expected {kind}")


def _kind(value: Any) -> str:
    """What a value is, without the value; of an int also how large it is."""
    size = f" of {value.bit_length()} bits" if type(value) is int else ""
    return f"{'an' if type(value).__name__[0] in 'aeiou' else 'a'} {type(value).__name__}{size}"

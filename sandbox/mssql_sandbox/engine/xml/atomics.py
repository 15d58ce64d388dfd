"""Atomic values: those of nodes, conversions between them, their text, sums.

An xs:string is a str, an untyped value an `Untyped`, xs:decimal and integers a Decimal, xs:double a float, xs:boolean a
bool. A value that cannot be converted is an empty sequence (None), as in the server.
"""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation
from typing import Any

from mssql_sandbox.engine.xml.tree import Document, Node


class Untyped(str):
    """xdt:untypedAtomic: takes the type of the value it is combined with."""

    __slots__ = ()


Atomic = str | Decimal | float | bool
Item = Node | Atomic
_DECIMALS = frozenset({
    "decimal", "integer", "int", "long", "short", "byte", "nonNegativeInteger", "positiveInteger", "negativeInteger",
    "nonPositiveInteger", "unsignedInt", "unsignedLong", "unsignedShort", "unsignedByte",
})  # fmt: skip


def atomized(item: Item) -> Atomic:
    """The value of an item: a node's is untyped unless a schema declares its type."""
    if not isinstance(item, Node):
        return item
    text = item.string_value()
    top = item.top()
    kind = top.types(item) if isinstance(top, Document) and top.types is not None else None
    if kind is None:
        return Untyped(text)
    value = converted(text, kind)
    return Untyped(text) if value is None else value


def converted(value: Atomic, kind: str) -> Atomic | None:
    """A value as an xs: type, by its local name; None if it has no such value."""
    if kind in _DECIMALS:
        number = number_of(value)
        if number is None or not math.isfinite(number):
            return None
        exact = Decimal(str(number)) if isinstance(number, float) else number
        return exact if kind == "decimal" else Decimal(int(exact))
    if kind in ("double", "float"):
        number = number_of(value)
        return None if number is None else float(number)
    if kind == "boolean":
        if isinstance(value, str):
            return {"true": True, "1": True, "false": False, "0": False}.get(value.strip())
        return bool(value)
    return shown(value)


def number_of(value: Atomic) -> Decimal | float | None:
    """A value as a number: Decimal if it is written without exponent."""
    if isinstance(value, bool):
        return Decimal(int(value))
    if not isinstance(value, str):
        return value
    text = value.strip()
    try:
        return float(text) if "e" in text.lower() or text in ("INF", "-INF", "NaN") else Decimal(text)
    except (ValueError, InvalidOperation):
        return None


def shown(value: Atomic) -> str:
    """The text of a value, in canonical form."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Decimal):
        plain = format(value, "f")
        return plain.rstrip("0").rstrip(".") if "." in plain else plain
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "INF" if value > 0 else "-INF"
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return repr(value).upper().replace("E+", "E")


def calculate(sign: str, left: Atomic, right: Atomic) -> Atomic | None:
    """A sum or difference; untyped values count as xs:double. Values that are not numbers give an empty result."""
    numbers = [number_of(side) for side in (left, right)]
    if any(isinstance(side, (Untyped, float)) for side in (left, right)):
        numbers = [None if number is None else float(number) for number in numbers]
    a: Any = numbers[0]
    b: Any = numbers[1]
    if a is None or b is None:
        return None
    return a + b if sign == "+" else a - b

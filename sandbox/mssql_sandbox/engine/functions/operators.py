"""Arithmetic, bitwise and concatenation operators as functions of values, with result types.

What does not belong here: comparison (engine/comparison.py) and logic.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal
from functools import lru_cache
from typing import Any

from mssql_sandbox.engine.conversion import converter
from mssql_sandbox.engine.conversion_numbers import RANGES, unit
from mssql_sandbox.engine.precedence import RANK, arithmetic, as_decimal, concatenation
from mssql_sandbox.engine.ticks import OutOfRangeError, from_moment, moment
from mssql_sandbox.engine.types import (
    BINARIES,
    EXACT,
    INT,
    INTEGERS,
    MAX,
    MONEY,
    STRINGS,
    SqlType,
    reported_name,
)  # fmt: skip
from mssql_sandbox.errors import error

Binary = Callable[[Any, Any], Any]
_WIDE = Context(prec=80)
_BITWISE: dict[str, Callable[[int, int], int]] = {"&": int.__and__, "|": int.__or__, "^": int.__xor__}


@lru_cache(maxsize=4096)
def binary_operator(operator: str, left: SqlType, right: SqlType) -> tuple[SqlType, Binary]:
    """Result type and function of non-NULL operands for + - * / % & | ^.

    Errors 402, 8117, 206 for the types; the function raises 8134 and 8115 for values.
    """
    if operator in _BITWISE:
        return _bitwise(operator, left, right)
    if operator == "+" and left.name in STRINGS | BINARIES and right.name in STRINGS | BINARIES:
        return _concatenate(left, right)
    result = arithmetic(operator, left, right)  # type: ignore[arg-type]
    if result.name in INTEGERS:
        function = _integers(operator, result)
    elif result.name in {"float", "real"}:
        function = _floats(operator, result)
    elif result.name in {"datetime", "smalldatetime"}:
        function = _dates(operator, result)
    else:
        return result, _decimals(operator, left, right, result)
    a, b = converter(left, result), converter(right, result)
    if left == result and right == result:
        return result, function
    return result, lambda x, y: function(a(x), b(y))


def negation(type_: SqlType) -> Callable[[Any], Any]:
    """Unary minus; errors 8117 for types without it, 8115 for the smallest integer."""
    if type_.name not in INTEGERS | EXACT | MONEY | {"float", "real"} or type_.name == "bit":
        raise error(8117, type=reported_name(type_), operator="minus")
    if type_.name in EXACT | MONEY:
        # Not `-value`: that rounds to the 28 digits of Python's default context.
        return lambda value: value.copy_negate() if value else value
    if type_.name not in RANGES:
        return lambda value: -value
    low, high = RANGES[type_.name]

    def negate(value: int) -> int:
        if not low <= -value <= high:
            raise error(8115, source="expression", target=type_.name)
        return -value

    return negate


def _integers(operator: str, type_: SqlType) -> Binary:
    low, high = RANGES[type_.name]

    def divide(a: int, b: int) -> int:
        if b == 0:
            raise error(8134)
        quotient = abs(a) // abs(b)
        return quotient if (a < 0) == (b < 0) else -quotient

    def modulo(a: int, b: int) -> int:
        return a - b * divide(a, b)

    plain: dict[str, Binary] = {
        "+": int.__add__, "-": int.__sub__, "*": int.__mul__, "/": divide, "%": modulo,
    }  # fmt: skip
    compute = plain[operator]

    def apply(a: int, b: int) -> int:
        result = compute(a, b)
        if low <= result <= high:
            return result
        raise error(8115, source="expression", target=type_.name)

    return apply


def _floats(operator: str, type_: SqlType) -> Binary:
    def apply(a: float, b: float) -> float:
        if operator == "/" and b == 0:
            raise error(8134)
        result = {"+": a + b, "-": a - b, "*": a * b}[operator] if operator != "/" else a / b
        if result in {float("inf"), float("-inf")} or result != result:
            raise error(8115, source="expression", target=type_.name)
        return result

    if type_.name == "float":
        return apply
    single = converter(SqlType("float", precision=53), type_)
    return lambda a, b: single(apply(a, b))


def _decimals(operator: str, left: SqlType, right: SqlType, result: SqlType) -> Binary:
    money = result.name in MONEY
    quantum = unit(4 if money else result.scale)
    # Money arithmetic computes in money; decimal operands keep their own scales until the result is rounded.
    a = converter(left, result if money else _own_decimal(left))
    b = converter(right, result if money else _own_decimal(right))
    limit = (
        (Decimal(2**63) if result.name == "money" else Decimal(2**31)).scaleb(-4)
        if money
        else Decimal(10) ** (result.precision - result.scale)
    )
    name = result.name if money else "numeric"

    def apply(x: Any, y: Any) -> Decimal:
        p, q = a(x), b(y)
        if operator in "/%" and not q:
            raise error(8134)
        if operator == "/":
            # Division truncates the digits after the result's scale.
            value = _WIDE.divide(p, q).quantize(quantum, ROUND_DOWN, _WIDE)
        else:
            exact = {"+": _WIDE.add, "-": _WIDE.subtract, "*": _WIDE.multiply, "%": _WIDE.remainder}[operator](p, q)
            value = exact.quantize(quantum, ROUND_HALF_UP, _WIDE)
        if not -limit <= value < limit:
            raise error(8115, source="expression" if money else "numeric", target=name)
        return value

    return apply


def _own_decimal(type_: SqlType) -> SqlType:
    if type_.name in EXACT | INTEGERS | MONEY:
        return as_decimal(type_)
    return SqlType("numeric", precision=38, scale=10)


def _dates(operator: str, type_: SqlType) -> Binary:
    def apply(a: int, b: int) -> int:
        result = a + b if operator == "+" else a - b
        try:
            from_moment(moment(result, type_), type_)
        except (OutOfRangeError, ValueError):
            raise error(8115, source="expression", target=type_.name) from None
        return result

    return apply


def _concatenate(left: SqlType, right: SqlType) -> tuple[SqlType, Binary]:
    if left.name in BINARIES and right.name in BINARIES:
        total = MAX if MAX in (left.length, right.length) else min(8000, left.length + right.length)
        return SqlType("varbinary", total), lambda a, b: (a + b) if total == MAX else (a + b)[:total]
    if left.name in BINARIES or right.name in BINARIES:
        raise error(402, left=reported_name(left), right=reported_name(right), operator="add")
    result = concatenation(left, right)
    if result.length == MAX:
        return result, lambda a, b: a + b
    limit = 4000 if result.name.startswith("n") else 8000
    if left.length + right.length <= limit:
        return result, lambda a, b: a + b
    return result, lambda a, b: (a + b)[:limit]


def _bitwise(operator: str, left: SqlType, right: SqlType) -> tuple[SqlType, Binary]:
    names = {"&": "&", "|": "|", "^": "^"}
    kinds = INTEGERS | {"binary", "varbinary"}
    both_binary = left.name in {"binary", "varbinary"} and right.name in {"binary", "varbinary"}
    if left.name not in kinds or right.name not in kinds or both_binary:
        shown = f"'{names[operator]}'"
        raise error(402, left=reported_name(left), right=reported_name(right), operator=shown)
    if left.name in INTEGERS and right.name in INTEGERS:
        result = left if RANK[left.name] <= RANK[right.name] else right
    else:
        result = left if left.name in INTEGERS else right
    a, b = converter(left, result), converter(right, result)
    compute = _BITWISE[operator]
    return result, lambda x, y: compute(a(x), b(y))


def complement(type_: SqlType) -> Callable[[int], int]:
    """Unary ~; error 8117 for types that are not integers."""
    if type_.name not in INTEGERS:
        raise error(8117, type=reported_name(type_), operator="'~'")
    if type_.name == "bit":
        return lambda value: 1 - value
    if type_.name == "tinyint":
        return lambda value: 255 - value
    return lambda value: ~value


__all__ = ["INT", "binary_operator", "complement", "negation"]

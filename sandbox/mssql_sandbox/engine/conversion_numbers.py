"""Conversion to numeric types: overflow, truncation and rounding by SQL Server's rules."""

from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

from mssql_sandbox.engine import parsing
from mssql_sandbox.engine.ticks import DATETIME_DAY
from mssql_sandbox.engine.types import APPROXIMATE, EXACT, INTEGERS, MONEY, STRINGS, SqlType, reported_name
from mssql_sandbox.errors import SqlError, error

Converter = Callable[[Any], Any]
RANGES = {
    "tinyint": (0, 255),
    "smallint": (-(2**15), 2**15 - 1),
    "int": (-(2**31), 2**31 - 1),
    "bigint": (-(2**63), 2**63 - 1),
}
_MONEY_RANGES = {"money": (-(2**63), 2**63 - 1), "smallmoney": (-(2**31), 2**31 - 1)}
_CONTEXT = Context(prec=80)
_MONEY_UNIT = Decimal("0.0001")
_NARROW = {"tinyint": "INT1", "smallint": "INT2"}


@lru_cache(maxsize=64)
def unit(scale: int) -> Decimal:
    """10 to the minus `scale`: the quantum of a decimal type."""
    return Decimal(1).scaleb(-scale)


def to_number(source: SqlType, target: SqlType) -> Converter | None:
    """The function to a numeric type."""
    if source.name in STRINGS:
        return _from_text(source, target)
    if source.name in {"datetime", "smalldatetime"}:
        return _from_datetime(source, target)
    if source.name not in INTEGERS | EXACT | MONEY | APPROXIMATE:
        return None
    if target.name == "bit":
        return lambda value: int(value != 0)
    if target.name in INTEGERS:
        return _to_integer(source, target)
    if target.name in EXACT:
        return _to_decimal(source, target)
    if target.name in MONEY:
        return _to_money(source, target)
    return to_float(target)


def _to_integer(source: SqlType, target: SqlType) -> Converter:
    low, high = RANGES[target.name]
    size = {"bit": 0, **{name: place for place, name in enumerate(("tinyint", "smallint", "int", "bigint"), 1)}}
    if source.name in INTEGERS and (size[source.name] < size[target.name]) and source.name != target.name:
        return lambda value: value

    def convert(value: Any) -> int:
        if source.name in MONEY:
            result = int(value.quantize(Decimal(1), ROUND_HALF_UP))
        else:
            try:
                result = int(value)
            except (OverflowError, ValueError):
                raise _integer_overflow(value, source, target) from None
        if not low <= result <= high:
            raise _integer_overflow(value, source, target)
        return result

    return convert


def _integer_overflow(value: Any, source: SqlType, target: SqlType) -> SqlError:
    if source.name in APPROXIMATE:
        return error(232, type=target.name, value=f"{value:.6f}")
    if target.name in _NARROW and source.name in INTEGERS:
        return error(220, type=target.name, value=value)
    shown = "expression" if source.name in INTEGERS | MONEY else "numeric"
    return error(8115, source=shown, target=target.name)


def _to_decimal(source: SqlType, target: SqlType) -> Converter:
    quantum, limit = unit(target.scale), Decimal(10) ** (target.precision - target.scale)
    name = "numeric" if source.name in EXACT else reported_name(source)
    quantize = _CONTEXT.quantize
    if source.name in EXACT and source.scale == target.scale and source.precision <= target.precision:
        return lambda value: value

    def convert(value: Any) -> Decimal:
        try:
            exact = _float_digits(value) if isinstance(value, float) else Decimal(value)
            result = (
                quantize(exact, quantum)
                if exact == exact.to_integral_value()
                else exact.quantize(quantum, ROUND_HALF_UP, _CONTEXT)
            )
        except (InvalidOperation, OverflowError, ValueError):
            raise error(8115, source=name, target="numeric", state=6) from None
        if not -limit < result < limit:
            raise error(8115, source=name, target="numeric", state=8)
        return result or abs(result)

    return convert


def _float_digits(value: float) -> Decimal:
    """A float as decimal: 17 significant digits, as in the server."""
    return Decimal(f"{value:.17g}")


def _to_money(source: SqlType, target: SqlType) -> Converter:
    low, high = (Decimal(bound).scaleb(-4) for bound in _MONEY_RANGES[target.name])
    if source.name == target.name or (source.name == "smallmoney" and target.name == "money"):
        return lambda value: value
    name = "numeric" if source.name in EXACT else "expression" if source.name in INTEGERS | MONEY else source.name

    def convert(value: Any) -> Decimal:
        try:
            exact = _float_digits(value) if isinstance(value, float) else Decimal(value)
            result = exact.quantize(_MONEY_UNIT, ROUND_HALF_UP, _CONTEXT)
        except InvalidOperation:
            raise error(8115, source=name, target=target.name) from None
        if not low <= result <= high:
            raise error(8115, source=name, target=target.name)
        return result

    return convert


def to_float(target: SqlType) -> Converter:
    """The function from a number to float or real; real keeps 24 bits."""
    if target.name == "float":
        return float

    def single(value: Any) -> float:
        try:
            return struct.unpack("<f", struct.pack("<f", float(value)))[0]
        except OverflowError:
            raise error(232, type="real", value=f"{float(value):f}") from None

    return single


def _from_text(source: SqlType, target: SqlType) -> Converter:
    name = reported_name(source)
    if target.name == "bit":
        return lambda value: _bit(value, name)
    if target.name in INTEGERS:
        return lambda value: _integer(value, name, target)
    if target.name in EXACT:
        exact = _to_decimal(SqlType("varchar"), target)

        def decimal_of(value: str) -> Decimal:
            try:
                parsed = parsing.parse_decimal(value)
            except ValueError:
                raise error(8114, source=name, target="numeric") from None
            try:
                return exact(parsed)
            except SqlError:
                raise error(8115, source=name, target="numeric", state=8) from None

        return decimal_of
    if target.name in MONEY:
        money = _to_money(SqlType("decimal", precision=38, scale=10), target)

        def money_of(value: str) -> Decimal:
            try:
                return money(parsing.parse_money(value))
            except ValueError:
                raise error(235) from None

        return money_of
    number = to_float(target)

    def float_of(value: str) -> float:
        try:
            return number(parsing.parse_float(value))
        except ValueError:
            raise error(8114, source=name, target=target.name) from None

    return float_of


def _bit(value: str, source: str) -> int:
    body = value.strip().lower()
    if body in {"true", "false"}:
        return int(body == "true")
    try:
        return int(parsing.parse_integer(value) != 0)
    except ValueError:
        raise error(245, source=source, value=value, target="bit") from None


def _integer(value: str, source: str, target: SqlType) -> int:
    low, high = RANGES[target.name]
    try:
        result = parsing.parse_integer(value)
    except ValueError:
        if target.name == "bigint":
            raise error(8114, source=source, target="bigint") from None
        raise error(245, source=source, value=value, target=target.name) from None
    if low <= result <= high:
        return result
    if target.name == "bigint":
        raise error(8115, source="expression", target="bigint")
    if target.name == "int":
        raise error(248, source=source, value=value)
    raise error(244, source=source, value=value, target=_NARROW[target.name])


def _from_datetime(source: SqlType, target: SqlType) -> Converter:
    per_day = DATETIME_DAY if source.name == "datetime" else 1440
    if target.name in APPROXIMATE:
        number = to_float(target)
        return lambda value: number(value / per_day)
    if target.name in INTEGERS and target.name != "bit":
        low, high = RANGES[target.name]

        def whole(value: int) -> int:
            result = (2 * value + per_day) // (2 * per_day)
            if not low <= result <= high:
                raise error(8115, source="expression", target=target.name)
            return result

        return whole
    exact = to_number(SqlType("decimal", precision=38, scale=20), target)
    assert exact is not None
    return lambda value: exact((Decimal(value) / per_day).quantize(unit(20), ROUND_DOWN))


def half_up(value: float, digits: int) -> Decimal:
    """A float as decimal with `digits` digits after the point, rounded half away from zero."""
    exact = _float_digits(value)
    wide = Context(prec=exact.adjusted() + digits + 2) if exact.adjusted() + digits + 2 > _CONTEXT.prec else _CONTEXT
    return exact.quantize(unit(digits), ROUND_HALF_UP, wide)

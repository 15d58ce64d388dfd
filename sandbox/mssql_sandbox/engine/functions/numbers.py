"""Mathematical functions with SQL Server's result types.

What does not belong here: operators (operators.py) and aggregates (aggregates.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal
from typing import Any

from mssql_sandbox.engine.conversion_numbers import RANGES, unit
from mssql_sandbox.engine.functions.definition import Call, Registry, refuse
from mssql_sandbox.engine.types import (
    APPROXIMATE,
    EXACT,
    FLOAT,
    INT,
    INTEGERS,
    MONEY,
    MONEY_TYPE,
    NUMBERS,
    STRINGS,
    SqlType,
)  # fmt: skip
from mssql_sandbox.errors import error

registry = Registry()
add = registry.add
_WIDE = Context(prec=76)
_MOST_DIGITS = 325
"""The number of digits of a float before the point, or after it."""
_FLOATS = Context(prec=2 * _MOST_DIGITS)


def _numeric(call: Call, place: int = 0) -> SqlType:
    """The type in which a numeric argument is computed: small integers as int, text and real as float."""
    type_ = call.types[place]
    if type_.name in {"tinyint", "smallint", "int", "bit"}:
        return INT
    if type_.name in STRINGS | APPROXIMATE:
        return FLOAT
    if type_.name == "smallmoney":
        return MONEY_TYPE
    if type_.name not in NUMBERS:
        refuse(call, place, "numeric")
    return type_


def _checked(value: Any, type_: SqlType) -> Any:
    if type_.name in RANGES:
        low, high = RANGES[type_.name]
        if not low <= value <= high:
            raise error(8115, source="expression", target=type_.name)
    return value


@add("ABS", 1, result=_numeric)
def _abs(call: Call) -> Callable[..., Any]:
    type_ = _numeric(call)
    number = call.to(0, type_)
    return lambda value: _checked(abs(number(value)), type_)


@add("SIGN", 1, result=_numeric)
def _sign(call: Call) -> Callable[..., Any]:
    type_ = _numeric(call)
    number = call.to(0, type_)

    def sign(value: Any) -> Any:
        n = number(value)
        result = (n > 0) - (n < 0)
        if type_.name in EXACT | MONEY:
            return Decimal(result).quantize(unit(type_.scale))
        return float(result) if type_.name == "float" else result

    return sign


def _whole(call: Call) -> SqlType:
    type_ = _numeric(call)
    return SqlType(type_.name, precision=type_.precision, scale=0) if type_.name in EXACT else type_


def _round_to_whole(mode: str, function: Callable[[float], float]) -> Callable[[Call], Callable[..., Any]]:
    def bind(call: Call) -> Callable[..., Any]:
        type_ = _numeric(call)
        number = call.to(0, type_)
        if type_.name in INTEGERS:
            return number
        if type_.name == "float":
            return lambda value: float(function(number(value)))
        scale = unit(4) if type_.name in MONEY else unit(0)
        return lambda value: number(value).quantize(Decimal(1), mode, _WIDE).quantize(scale, context=_WIDE)

    return bind


add("CEILING", 1, result=_whole)(_round_to_whole(ROUND_CEILING, math.ceil))
add("FLOOR", 1, result=_whole)(_round_to_whole(ROUND_FLOOR, math.floor))


def _rounded(number: Decimal, places: int, mode: str) -> Decimal:
    if abs(places) > _MOST_DIGITS:
        return number if places > 0 else Decimal(0)
    return number.quantize(Decimal(1).scaleb(-places), mode, _FLOATS)


@add("ROUND", 2, 3, result=_numeric)
def _round(call: Call) -> Callable[..., Any]:
    type_ = _numeric(call)
    number, places = call.to(0, type_), call.to(1, INT)

    def round_(value: Any, digits: Any, function: Any = 0) -> Any:
        mode = ROUND_HALF_UP if not function else ROUND_DOWN
        n, wanted = number(value), places(digits)
        exact = Decimal(repr(n)) if isinstance(n, float) else Decimal(n)
        result = _rounded(exact, wanted, mode)
        if type_.name in INTEGERS:
            return _checked(int(result), type_)
        if type_.name == "float":
            return float(result)
        kept = unit(4 if type_.name in MONEY else type_.scale)
        if wanted >= -kept.as_tuple().exponent:  # type: ignore[operator]
            return exact
        if abs(result) >= Decimal(10) ** (type_.precision - type_.scale):
            raise error(8115, source="expression", target="numeric")
        return result.quantize(kept, context=_WIDE)

    return round_


@add("POWER", 2, result=_numeric)
def _power(call: Call) -> Callable[..., Any]:
    type_ = _numeric(call)
    number, exponent = call.to(0, type_), call.to(1, FLOAT)

    def power(value: Any, by: Any) -> Any:
        n = number(value)
        try:
            result = float(n) ** exponent(by)
        except ZeroDivisionError:
            raise error(3623) from None
        except OverflowError:
            raise error(8115, source="expression", target=type_.name) from None
        if isinstance(result, complex):
            raise error(3623)
        if type_.name in INTEGERS:
            exact = n ** int(exponent(by)) if exponent(by).is_integer() and exponent(by) >= 0 else int(result)
            low, high = RANGES[type_.name]
            if not low <= exact <= high:
                raise error(232, type=type_.name, value=f"{exact}.000000")
            return exact
        if type_.name == "float":
            return result
        return Decimal(repr(result)).quantize(unit(4 if type_.name in MONEY else type_.scale), ROUND_HALF_UP, _WIDE)

    return power


def _float_function(name: str, function: Callable[[float], float]) -> None:
    def bind(call: Call) -> Callable[..., Any]:
        number = call.to(0, FLOAT)

        def apply(value: Any) -> float:
            try:
                return function(number(value))
            except (ValueError, ZeroDivisionError):
                raise error(3623) from None
            except OverflowError:
                raise error(8115, source="expression", target="float") from None

        return apply

    add(name, 1, result=FLOAT)(bind)


for _name, _function in (
    ("SIN", math.sin), ("COS", math.cos), ("TAN", math.tan), ("ASIN", math.asin), ("ACOS", math.acos),
    ("ATAN", math.atan), ("COT", lambda x: 1 / math.tan(x)), ("EXP", math.exp), ("SQRT", math.sqrt),
    ("LOG10", math.log10), ("SQUARE", lambda x: x * x),
):  # fmt: skip
    _float_function(_name, _function)


@add("LOG", 1, 2, result=FLOAT)
def _log(call: Call) -> Callable[..., Any]:
    number = call.to(0, FLOAT)
    base = call.to(1, FLOAT) if len(call.types) > 1 else None

    def log(value: Any, by: Any = None) -> float:
        try:
            return math.log(number(value)) if base is None else math.log(number(value), base(by))
        except (ValueError, ZeroDivisionError):
            raise error(3623) from None

    return log


@add("ATN2", 2, result=FLOAT)
def _atn2(call: Call) -> Callable[..., Any]:
    y, x = call.to(0, FLOAT), call.to(1, FLOAT)
    return lambda a, b: math.atan2(y(a), x(b))


@add("PI", 0, result=FLOAT)
def _pi(call: Call) -> Callable[..., Any]:  # noqa: ARG001 - every binder takes the call
    return lambda: math.pi


def _angle(factor: float) -> Callable[[Call], Callable[..., Any]]:
    def bind(call: Call) -> Callable[..., Any]:
        type_ = _numeric(call)
        number = call.to(0, FLOAT)
        back = Call((FLOAT,)).to(0, type_)
        return lambda value: back(number(value) * factor)

    return bind


add("DEGREES", 1, result=_numeric)(_angle(180 / math.pi))
add("RADIANS", 1, result=_numeric)(_angle(math.pi / 180))


@add("RAND", 0, 1, result=FLOAT, environment=True, deterministic=False)
def _rand(call: Call) -> Callable[..., Any]:
    seed = call.to(0, INT) if call.types else None

    def rand(env: Any, value: Any = None) -> float:
        if seed is not None:
            env.random.seed(seed(value))
        return env.random.random()

    return rand

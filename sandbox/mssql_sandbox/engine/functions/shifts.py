"""LEFT_SHIFT and RIGHT_SHIFT."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mssql_sandbox.engine.functions.definition import Call, Registry, refuse
from mssql_sandbox.engine.types import BIGINT, INTEGERS, SqlType

registry = Registry()
add = registry.add
_WIDTHS = {"bit": 1, "tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}


def _width(call: Call, function: str) -> int:
    type_ = call.types[0]
    if type_.name in INTEGERS:
        return _WIDTHS[type_.name]
    if type_.name in ("binary", "varbinary") and type_.length > 0:
        return 8 * type_.length
    refuse(call, 0, function)
    raise AssertionError


def _as_number(value: Any, width: int) -> int:
    return int.from_bytes(value, "big") if isinstance(value, bytes) else value & ((1 << width) - 1)


def _as_value(number: int, type_: SqlType, width: int) -> Any:
    """Bits back to a value of the type: two's complement, or the same number of bytes."""
    if type_.name in ("binary", "varbinary"):
        return number.to_bytes(width // 8, "big")
    signed = type_.name not in ("bit", "tinyint") and number >> (width - 1)
    return number - (1 << width) if signed else number


def _same(call: Call) -> SqlType:
    return call.types[0]


def _shift(name: str, direction: int) -> None:
    def bind(call: Call) -> Callable[..., Any]:
        width, type_ = _width(call, name), call.types[0]

        def shift(value: Any, count: int) -> Any:
            number, moved = _as_number(value, width), direction * count
            if abs(moved) >= width:
                return _as_value(0, type_, width)
            shifted = number << moved if moved >= 0 else number >> -moved
            return _as_value(shifted & ((1 << width) - 1), type_, width)

        return shift

    add(name, 2, result=_same, takes={1: BIGINT})(bind)


_shift("LEFT_SHIFT", 1)
_shift("RIGHT_SHIFT", -1)

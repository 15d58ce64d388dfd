"""Bit functions of SQL Server 2022, and random bytes."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

from mssql_sandbox.engine.functions.definition import Call, Registry, refuse
from mssql_sandbox.engine.types import BIGINT, BIT, INT, INTEGERS, SqlType, varbinary
from mssql_sandbox.errors import SqlError

registry = Registry()
add = registry.add
_WIDTHS = {"bit": 1, "tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_MOST_RANDOM_BYTES = 8000


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
    """Bits back to a value of the type: two's complement, or as many bytes."""
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


def _check_offset(offset: int, width: int) -> None:
    if not 0 <= offset < width:
        raise SqlError(9840, f"The bit offset {offset} is out of range: it must be between 0 and {width - 1}.")


@add("GET_BIT", 2, result=BIT, takes={1: BIGINT})
def _get_bit(call: Call) -> Callable[..., Any]:
    width = _width(call, "get_bit")

    def get_bit(value: Any, offset: int) -> int:
        _check_offset(offset, width)
        return _as_number(value, width) >> offset & 1

    return get_bit


@add("SET_BIT", 2, 3, result=_same, takes={1: BIGINT, 2: BIGINT})
def _set_bit(call: Call) -> Callable[..., Any]:
    width, type_ = _width(call, "set_bit"), call.types[0]

    def set_bit(value: Any, offset: int, bit: int = 1) -> Any:
        _check_offset(offset, width)
        number = _as_number(value, width) & ~(1 << offset)
        return _as_value(number | (int(bool(bit)) << offset), type_, width)

    return set_bit


@add("CRYPT_GEN_RANDOM", 1, 2, result=varbinary(8000), deterministic=False, takes={0: INT})
def _crypt_gen_random(call: Call) -> Callable[..., Any]:  # noqa: ARG001 - every binder takes the call
    def random_bytes(length: int, _seed: Any = None) -> bytes | None:
        return secrets.token_bytes(length) if 0 < length <= _MOST_RANDOM_BYTES else None

    return random_bytes

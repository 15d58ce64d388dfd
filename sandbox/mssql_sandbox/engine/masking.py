"""Dynamic data masking: the functions of MASKED WITH, the columns they apply to, and the values they produce.

Which principals see masked values is decided elsewhere. Evidence: Microsoft's documentation of dynamic data masking;
messages, lower-case letters and short values were measured on SQL Server 2025 [pub].
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.conversion import convert
from mssql_sandbox.engine.types import SqlType
from mssql_sandbox.errors import SqlError

Conceal = Callable[[Any, Random], Any]
DEFAULT = "default()"
_CALL = re.compile(r'(?P<name>[^(]*)\((?P<inside>(?:[^")]|"[^"]*")*)\)$', re.DOTALL)
_ARGUMENT = re.compile(r'\s*("[^"]*"|[^,"]*)\s*(?:,|$)')
_TEXTS = frozenset({"char", "varchar", "nchar", "nvarchar", "text", "ntext"})
_DAYS = frozenset({"date", "datetime", "smalldatetime", "datetime2", "datetimeoffset", "time"})
_NUMBERS = t.INTEGERS | t.EXACT | {"money", "smallmoney", "float", "real"}
_TAKES = {"default": None, "email": _TEXTS, "partial": _TEXTS, "random": _NUMBERS, "datetime": _DAYS}
_ARGUMENTS = {"default": 0, "email": 0, "partial": 3, "random": 2, "datetime": 1}
_UNITS: dict[str, Callable[[datetime], datetime]] = {
    "Y": lambda moment: moment.replace(year=2000),
    "M": lambda moment: moment.replace(month=1),
    "D": lambda moment: moment.replace(day=1),
    "h": lambda moment: moment.replace(hour=0),
    "m": lambda moment: moment.replace(minute=0),
    "s": lambda moment: moment.replace(second=0),
}
"""The values by which `datetime("Y")` and similar masks replace a part; all of them clear fractions of seconds."""


@dataclass(frozen=True, slots=True)
class Mask:
    """A masking function with its arguments as written, without quotes."""

    name: str
    arguments: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The text that the catalogue shows."""
        quoted = {"partial": (1,), "datetime": (0,)}.get(self.name, ())
        shown = (f'"{one}"' if place in quoted else one for place, one in enumerate(self.arguments))
        return f"{self.name}({', '.join(shown)})"


def parse_mask(text: str, column: str, type_: SqlType) -> Mask:
    """The function that a text specifies, for a column of this type.

    Raises:
        SqlError: 16002 no such function, 16003 not for the type, 16004 number of arguments, 16005 an argument.
    """
    call = _CALL.match(text)
    name = (call["name"] if call else "").lower()
    if call is None or name.strip() not in _TAKES or name != name.lstrip():
        raise _refused(16002, f"Invalid data masking function in column '{column}'.")
    name, takes = name.strip(), _TAKES[name.strip()]
    if takes is not None and type_.name not in takes:
        raise _refused(16003, f"The data type of column '{column}' does not support data masking function '{name}'.")
    inside = call["inside"].strip()
    arguments = tuple(one.strip() for one in _ARGUMENT.findall(inside))[: inside.count(",") + 1] if inside else ()
    if len(arguments) != _ARGUMENTS[name]:
        raise _refused(
            16004, f"Incorrect number of parameters for data masking function '{call['name']}' for column '{column}'."
        )
    mask = Mask(name, tuple(one.strip('"') for one in arguments))
    if not _sound(mask):
        raise _refused(16005, f"Invalid argument for data masking function '{name}' for column '{column}'.")
    return mask


def _refused(number: int, text: str) -> SqlError:
    return SqlError(number, text, state=0)


def _sound(mask: Mask) -> bool:
    """Whether the function accepts the arguments."""
    given = mask.arguments
    if mask.name == "partial":
        return given[0].isdecimal() and given[2].isdecimal()
    if mask.name == "random":
        try:
            return Decimal(given[0]) <= Decimal(given[1])
        except ArithmeticError:
            return False
    return mask.name != "datetime" or given[0] in _UNITS


def conceal(text: str, type_: SqlType) -> Conceal:
    """The masked form of a type's values, except NULL; a function that does not apply to the type is the default."""
    call = _CALL.match(text)
    mask = Mask(DEFAULT[:-2]) if call is None else parse_mask(text, "", type_)
    return _CONCEALERS[mask.name](mask, type_)


def _default(_mask: Mask, type_: SqlType) -> Conceal:
    value = _default_value(type_)
    return lambda _value, _random: value


def _default_value(type_: SqlType) -> Any:
    if type_.name in _TEXTS:
        return _fitting("xxxx", type_)
    if type_.name == "xml":
        return "<masked />"
    if type_.name in ("binary", "varbinary", "image"):
        return b"0"
    if type_.name == "sql_variant":
        return (t.varchar(4), "xxxx")
    if type_.name in _NUMBERS:
        return convert(0, t.INT, type_)
    if type_.name in _DAYS:
        return convert("1900-01-01", t.varchar(10), type_)
    if type_.name == "uniqueidentifier":
        return convert("00000000-0000-0000-0000-000000000000", t.varchar(36), type_)
    return None


def _fitting(text: str, type_: SqlType) -> str:
    """Text truncated to the type's length; types of fixed length are not padded [pub]."""
    return text if type_.length < 0 or type_.name in ("text", "ntext") else text[: type_.length]


def _email(_mask: Mask, type_: SqlType) -> Conceal:
    return lambda value, _random: _fitting(f"{value[0]}XXX@XXXX.com" if value.strip() else "xxxx", type_)


def _partial(mask: Mask, type_: SqlType) -> Conceal:
    prefix, suffix, padding = int(mask.arguments[0]), int(mask.arguments[2]), mask.arguments[1]

    def show(value: str, _random: Random) -> str:
        if len(value) <= prefix + suffix:
            return _fitting(padding, type_)
        return _fitting(value[:prefix] + padding + value[len(value) - suffix :], type_)

    return show


def _random(mask: Mask, type_: SqlType) -> Conceal:
    low, high = (Decimal(one) for one in mask.arguments)

    def show(_value: Any, random: Random) -> Any:
        if type_.name in t.INTEGERS:
            return random.randint(int(low), int(high))
        return convert(float(low) + random.random() * float(high - low), t.FLOAT, type_)

    return show


def _datetime(mask: Mask, type_: SqlType) -> Conceal:
    whole = t.make_type("datetime2", 7)
    masked = _UNITS[mask.arguments[0]]

    def show(value: Any, _random: Random) -> Any:
        ticks = convert(value, type_, whole)
        moment = masked(datetime(1, 1, 1) + timedelta(seconds=ticks // 10**7))  # noqa: DTZ001
        return convert(moment.isoformat(sep=" "), t.varchar(30), type_)

    return show


_CONCEALERS: dict[str, Callable[[Mask, SqlType], Conceal]] = {
    "default": _default, "email": _email, "partial": _partial, "random": _random, "datetime": _datetime,
}  # fmt: skip

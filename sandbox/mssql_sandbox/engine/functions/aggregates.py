"""Aggregate functions: result types, and which accumulator computes them.

What does not belong here: grouping, DISTINCT, windows (the executor feeds accumulators).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mssql_sandbox.engine.comparison import sort_key
from mssql_sandbox.engine.conversion import converter
from mssql_sandbox.engine.functions.accumulators import (
    Accumulator,
    ChecksumAgg,
    Count,
    Deviation,
    Distinct,
    Extreme,
    Join,
    Sum,
)
from mssql_sandbox.engine.functions.definition import Call, string_type
from mssql_sandbox.engine.types import (
    BIGINT,
    EXACT,
    FLOAT,
    INT,
    INTEGERS,
    LEGACY_LOBS,
    MAX,
    MONEY,
    MONEY_TYPE,
    NATIONAL,
    NUMBERS,
    SqlType,
    reported_name,
)  # fmt: skip
from mssql_sandbox.errors import error


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate: result type and a factory of accumulators for given argument types.

    COUNT(*) is called without arguments and fed any non-NULL value; STRING_AGG is fed (text, separator) pairs.
    """

    name: str
    result: Callable[[Call], SqlType]
    accumulator: Callable[[Call], Callable[[], Accumulator]]
    minimum: int = 1
    maximum: int = 1


def _numeric(call: Call, name: str) -> SqlType:
    type_ = call.types[0]
    if type_.name not in NUMBERS or type_.name == "bit":
        raise error(8117, type=reported_name(type_), operator=name.lower())
    return type_


def _sum_type(name: str) -> Callable[[Call], SqlType]:
    def rule(call: Call) -> SqlType:
        type_ = _numeric(call, name)
        if type_.name in INTEGERS:
            return BIGINT if type_.name == "bigint" else INT
        if type_.name in EXACT:
            scale = max(type_.scale, 6) if name == "AVG" else type_.scale
            return SqlType(type_.name, precision=38, scale=scale)
        return MONEY_TYPE if type_.name in MONEY else FLOAT

    return rule


def _sum(name: str) -> Aggregate:
    rule = _sum_type(name)

    def make(call: Call) -> Callable[[], Accumulator]:
        source, type_ = call.types[0], rule(call)
        return lambda: Sum(source, type_, average=name == "AVG")

    return Aggregate(name, rule, make)


def _extreme(name: str) -> Aggregate:
    def rule(call: Call) -> SqlType:
        type_ = call.types[0]
        if type_.name in LEGACY_LOBS | {"xml", "bit"}:
            raise error(8117, type=reported_name(type_), operator=name.lower())
        return type_

    def make(call: Call) -> Callable[[], Accumulator]:
        key = sort_key(rule(call))
        return lambda: Extreme(key, greatest=name == "MAX")

    return Aggregate(name, rule, make)


def _join_type(call: Call) -> SqlType:
    type_ = string_type(call.types[0], call.collation)
    national = type_.name in NATIONAL or call.types[0].name not in {"char", "varchar", "text"}
    name, limit = ("nvarchar", 4000) if national else ("varchar", 8000)
    return SqlType(name, MAX if type_.length == MAX else limit, collation=type_.collation or call.collation)


def _join(call: Call) -> Callable[[], Accumulator]:
    type_ = _join_type(call)
    text = converter(call.types[0], SqlType(type_.name, MAX, collation=type_.collation))

    class Converting(Join):
        __slots__ = ()

        def add(self, value: Any) -> None:
            content, separator = value
            super().add((None if content is None else text(content), separator))

    return lambda: Converting(type_.length, national=type_.name == "nvarchar")


def _checksum_type(call: Call) -> SqlType:
    type_ = call.types[0]
    if type_.name not in INTEGERS:
        raise error(8117, type=reported_name(type_), operator="checksum_agg")
    return INT


def _deviation(name: str, *, population: bool, root: bool) -> Aggregate:
    def rule(call: Call) -> SqlType:
        _numeric(call, name)
        return FLOAT

    return Aggregate(name, rule, lambda _: lambda: Deviation(population=population, root=root))


AGGREGATES: dict[str, Aggregate] = {
    "COUNT": Aggregate("COUNT", lambda _: INT, lambda _: Count, 0),
    "COUNT_BIG": Aggregate("COUNT_BIG", lambda _: BIGINT, lambda _: Count, 0),
    "SUM": _sum("SUM"),
    "AVG": _sum("AVG"),
    "MIN": _extreme("MIN"),
    "MAX": _extreme("MAX"),
    "STRING_AGG": Aggregate("STRING_AGG", _join_type, _join, 2, 2),
    "CHECKSUM_AGG": Aggregate("CHECKSUM_AGG", _checksum_type, lambda _: ChecksumAgg),
    "VAR": _deviation("VAR", population=False, root=False),
    "VARP": _deviation("VARP", population=True, root=False),
    "STDEV": _deviation("STDEV", population=False, root=True),
    "STDEVP": _deviation("STDEVP", population=True, root=True),
    "APPROX_COUNT_DISTINCT": Aggregate(
        "APPROX_COUNT_DISTINCT", lambda _: BIGINT, lambda call: lambda: Distinct(sort_key(call.types[0]))
    ),
}

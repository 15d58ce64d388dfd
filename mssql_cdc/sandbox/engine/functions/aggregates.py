"""Aggregate functions: result types and accumulators.

NULLs are passed over by the caller's choice: accumulators ignore them and tell through `saw_null`, for warning 8153.
What does not belong here: grouping, DISTINCT, windows (the executor feeds accumulators).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_DOWN, Context, Decimal
from typing import Any

from mssql_cdc.sandbox.engine.comparison import sort_key
from mssql_cdc.sandbox.engine.conversion import converter
from mssql_cdc.sandbox.engine.conversion_numbers import RANGES, unit
from mssql_cdc.sandbox.engine.functions.definition import Call, string_type
from mssql_cdc.sandbox.engine.types import (
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
from mssql_cdc.sandbox.errors import error

_WIDE = Context(prec=76)


class Accumulator:
    """State of one aggregate over one group: `add` per row, `result` at the end."""

    __slots__ = ("saw_null",)

    def __init__(self) -> None:
        self.saw_null = False

    def add(self, value: Any) -> None:
        """Take a row's value; None is NULL."""
        raise NotImplementedError

    def result(self) -> Any:
        """The aggregate in storage form."""
        raise NotImplementedError


class _Count(Accumulator):
    __slots__ = ("count",)

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def add(self, value: Any) -> None:
        if value is None:
            self.saw_null = True
        else:
            self.count += 1

    def result(self) -> int:
        return self.count


class _Sum(Accumulator):
    __slots__ = ("average", "count", "source", "total", "type")

    def __init__(self, source: SqlType, type_: SqlType, *, average: bool) -> None:
        super().__init__()
        self.source, self.type, self.average = source, type_, average
        self.total: Any = 0
        self.count = 0

    def add(self, value: Any) -> None:
        if value is None:
            self.saw_null = True
        else:
            self.total = _WIDE.add(self.total, value) if isinstance(value, Decimal) else self.total + value
            self.count += 1

    def result(self) -> Any:
        if not self.count:
            return None
        name, total = self.type.name, self.total
        if name in RANGES:
            low, high = RANGES[name]
            if not low <= total <= high:
                raise error(8115, source="expression", target=name)
            if not self.average:
                return total
            quotient = abs(total) // self.count
            return quotient if total >= 0 else -quotient
        if name == "float":
            return float(total) / self.count if self.average else float(total)
        value = _WIDE.divide(total, Decimal(self.count)) if self.average else total
        result = value.quantize(unit(4 if name == "money" else self.type.scale), ROUND_DOWN, _WIDE)
        if name in EXACT and abs(result) >= Decimal(10) ** (self.type.precision - self.type.scale):
            raise error(8115, source="expression", target="numeric")
        return result


class _Extreme(Accumulator):
    __slots__ = ("best", "best_key", "greatest", "key")

    def __init__(self, key: Callable[[Any], Any] | None, *, greatest: bool) -> None:
        super().__init__()
        self.key, self.greatest = key, greatest
        self.best: Any = None
        self.best_key: Any = None

    def add(self, value: Any) -> None:
        if value is None:
            self.saw_null = True
            return
        key = value if self.key is None else self.key(value)
        if self.best is None or (self.best_key < key if self.greatest else key < self.best_key):
            self.best, self.best_key = value, key

    def result(self) -> Any:
        return self.best


class _Join(Accumulator):
    __slots__ = ("limit", "national", "parts", "separator")

    def __init__(self, limit: int, *, national: bool) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.separator = ""
        self.limit, self.national = limit, national

    def add(self, value: Any) -> None:
        """Takes (text, separator)."""
        text, separator = value
        if text is None:
            self.saw_null = True
            return
        self.parts.append(text)
        self.separator = separator or ""

    def result(self) -> str | None:
        if not self.parts:
            return None
        joined = self.separator.join(self.parts)
        if self.limit != MAX and len(joined) > self.limit:
            raise error(9829)
        return joined


class _Deviation(Accumulator):
    """Variance by Welford's method."""

    __slots__ = ("count", "mean", "population", "root", "squares")

    def __init__(self, *, population: bool, root: bool) -> None:
        super().__init__()
        self.population, self.root = population, root
        self.count, self.mean, self.squares = 0, 0.0, 0.0

    def add(self, value: Any) -> None:
        if value is None:
            self.saw_null = True
            return
        self.count += 1
        delta = float(value) - self.mean
        self.mean += delta / self.count
        self.squares += delta * (float(value) - self.mean)

    def result(self) -> float | None:
        divisor = self.count if self.population else self.count - 1
        if divisor < 1:
            return None
        variance = self.squares / divisor
        return math.sqrt(variance) if self.root else variance


class _ChecksumAgg(Accumulator):
    __slots__ = ("count", "total")

    def __init__(self) -> None:
        super().__init__()
        self.total, self.count = 0, 0

    def add(self, value: Any) -> None:
        if value is None:
            self.saw_null = True
        else:
            self.count += 1
            self.total ^= int(value)

    def result(self) -> int | None:
        return self.total if self.count else None


class _Distinct(Accumulator):
    __slots__ = ("key", "seen")

    def __init__(self, key: Callable[[Any], Any] | None) -> None:
        super().__init__()
        self.key = key
        self.seen: set[Any] = set()

    def add(self, value: Any) -> None:
        if value is None:
            self.saw_null = True
        else:
            self.seen.add(value if self.key is None else self.key(value))

    def result(self) -> int:
        return len(self.seen)


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
        return lambda: _Sum(source, type_, average=name == "AVG")

    return Aggregate(name, rule, make)


def _extreme(name: str) -> Aggregate:
    def rule(call: Call) -> SqlType:
        type_ = call.types[0]
        if type_.name in LEGACY_LOBS | {"xml", "bit"}:
            raise error(8117, type=reported_name(type_), operator=name.lower())
        return type_

    def make(call: Call) -> Callable[[], Accumulator]:
        key = sort_key(rule(call))
        return lambda: _Extreme(key, greatest=name == "MAX")

    return Aggregate(name, rule, make)


def _join_type(call: Call) -> SqlType:
    type_ = string_type(call.types[0], call.collation)
    national = type_.name in NATIONAL or call.types[0].name not in {"char", "varchar", "text"}
    name, limit = ("nvarchar", 4000) if national else ("varchar", 8000)
    return SqlType(name, MAX if type_.length == MAX else limit, collation=type_.collation or call.collation)


def _join(call: Call) -> Callable[[], Accumulator]:
    type_ = _join_type(call)
    text = converter(call.types[0], SqlType(type_.name, MAX, collation=type_.collation))

    class Join(_Join):
        __slots__ = ()

        def add(self, value: Any) -> None:
            content, separator = value
            super().add((None if content is None else text(content), separator))

    return lambda: Join(type_.length, national=type_.name == "nvarchar")


def _deviation(name: str, *, population: bool, root: bool) -> Aggregate:
    def rule(call: Call) -> SqlType:
        _numeric(call, name)
        return FLOAT

    return Aggregate(name, rule, lambda _: lambda: _Deviation(population=population, root=root))


AGGREGATES: dict[str, Aggregate] = {
    "COUNT": Aggregate("COUNT", lambda _: INT, lambda _: _Count, 0),
    "COUNT_BIG": Aggregate("COUNT_BIG", lambda _: BIGINT, lambda _: _Count, 0),
    "SUM": _sum("SUM"),
    "AVG": _sum("AVG"),
    "MIN": _extreme("MIN"),
    "MAX": _extreme("MAX"),
    "STRING_AGG": Aggregate("STRING_AGG", _join_type, _join, 2, 2),
    "CHECKSUM_AGG": Aggregate("CHECKSUM_AGG", lambda _: INT, lambda _: _ChecksumAgg),
    "VAR": _deviation("VAR", population=False, root=False),
    "VARP": _deviation("VARP", population=True, root=False),
    "STDEV": _deviation("STDEV", population=False, root=True),
    "STDEVP": _deviation("STDEVP", population=True, root=True),
    "APPROX_COUNT_DISTINCT": Aggregate(
        "APPROX_COUNT_DISTINCT", lambda _: BIGINT, lambda call: lambda: _Distinct(sort_key(call.types[0]))
    ),
}

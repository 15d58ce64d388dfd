"""GROUP BY and aggregates as an operator; what each aggregate computes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from decimal import Context as DecimalContext
from typing import Any

from mssql_cdc.sandbox.engine import types as t
from mssql_cdc.sandbox.engine.comparison import sort_key
from mssql_cdc.sandbox.engine.types import SqlType
from mssql_cdc.sandbox.errors import error
from mssql_cdc.sandbox.exec.context import Context
from mssql_cdc.sandbox.exec.expressions.base import Expr, Fn, coerce
from mssql_cdc.sandbox.exec.query.operators import Operator, Slice, Slices, Whole
from mssql_cdc.sandbox.exec.query.sorting import SortKey, sort_rows
from mssql_cdc.sandbox.exec.scope import Field

_WIDE = DecimalContext(prec=120)
NAMES = frozenset(
    [
        "count",
        "count_big",
        "sum",
        "avg",
        "min",
        "max",
        "stdev",
        "stdevp",
        "var",
        "varp",
        "string_agg",
        "checksum_agg",
        "approx_count_distinct",
        "grouping",
    ]
)
Compute = Callable[[list[Any]], Any]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate: the argument's value per row (None for COUNT(*)), and the result of a group's values.

    The values a group hands over are without NULL; DISTINCT ones are already single. `order` sorts STRING_AGG's rows.
    """

    type: SqlType
    argument: Fn | None
    compute: Compute
    distinct: Callable[[Any], Any] | None = None
    nullable: bool = True
    order: tuple[SortKey, ...] = ()


def aggregate(
    name: str, argument: Expr | None, *, distinct: bool = False, separator: Expr | None = None,
    order: tuple[SortKey, ...] = (),
) -> Aggregate:  # fmt: skip
    """The aggregate function `name` over an argument; 8117 for types it cannot take."""
    if argument is None:
        kind = t.BIGINT if name == "count_big" else t.INT
        return Aggregate(kind, None, len, nullable=False)
    type_, compute = _rule(name, argument, separator)
    argument = coerce(argument, t.INT) if argument.type.name == "bit" and name in ("sum", "avg") else argument
    same = (sort_key(argument.type) or _same) if distinct or name == "approx_count_distinct" else None
    counted = name in ("count", "count_big", "approx_count_distinct")
    return Aggregate(type_, argument.fn, compute, same, not counted, order)


def _same(value: Any) -> Any:
    return value


def _rule(name: str, argument: Expr, separator: Expr | None) -> tuple[SqlType, Compute]:
    type_ = argument.type
    if name in ("count", "approx_count_distinct"):
        return (t.INT if name == "count" else t.BIGINT), len
    if name == "count_big":
        return t.BIGINT, len
    if name in ("min", "max"):
        return replace(type_), _extreme(name, type_)
    if name == "string_agg":
        return _string_agg(type_, separator)
    if name == "checksum_agg":
        return t.INT, _checksum
    if type_.name not in t.NUMBERS:
        raise error(8117, type=t.reported_name(type_), operator=name)
    if name in ("sum", "avg"):
        return _sum(type_) if name == "sum" else _average(type_)
    return t.FLOAT, _deviation(name)


def _extreme(name: str, type_: SqlType) -> Compute:
    if type_.name in t.LEGACY_LOBS or type_.name in ("xml", "bit"):
        raise error(8117, type=t.reported_name(type_), operator=name)
    key = sort_key(type_)
    pick = min if name == "min" else max
    return lambda values: pick(values, key=key) if values else None


def _string_agg(type_: SqlType, separator: Expr | None) -> tuple[SqlType, Compute]:
    national = type_.name in t.NATIONAL
    length = t.MAX if type_.length == t.MAX else 4000 if national else 8000
    between = separator.value if separator is not None and separator.value is not None else ""
    result = SqlType(
        "nvarchar" if national or type_.name not in t.STRINGS else "varchar", length, collation=type_.collation
    )
    return result, lambda values: str(between).join(str(value) for value in values) if values else None


def _checksum(values: list[Any]) -> int | None:
    result = 0
    for value in values:
        result ^= int(value)
    return result if values else None


def _sum(type_: SqlType) -> tuple[SqlType, Compute]:
    if type_.name in t.INTEGERS:
        result = t.BIGINT if type_.name == "bigint" else t.INT
        bound = 2**63 if result is t.BIGINT else 2**31

        def whole(values: list[Any]) -> int | None:
            total = sum(values)
            if not -bound <= total < bound:
                raise error(8115, source="expression", target=result.name)
            return total if values else None

        return result, whole
    if type_.name in t.APPROXIMATE:
        return t.FLOAT, lambda values: math.fsum(values) if values else None
    result = t.MONEY_TYPE if type_.name in t.MONEY else replace(type_, precision=38)

    def exact(values: list[Any]) -> Decimal | None:
        total = Decimal(0)
        for value in values:
            total = _WIDE.add(total, value)
        return total if values else None

    return result, exact


def _average(type_: SqlType) -> tuple[SqlType, Compute]:
    if type_.name in t.INTEGERS:
        result = t.BIGINT if type_.name == "bigint" else t.INT

        def whole(values: list[Any]) -> int | None:
            if not values:
                return None
            total = sum(values)
            quotient = abs(total) // len(values)
            return quotient if total >= 0 else -quotient

        return result, whole
    if type_.name in t.APPROXIMATE:
        return t.FLOAT, lambda values: math.fsum(values) / len(values) if values else None
    scale = 4 if type_.name in t.MONEY else max(type_.scale, 6)
    quantum = Decimal(1).scaleb(-scale)
    result = t.MONEY_TYPE if type_.name in t.MONEY else replace(type_, precision=38, scale=scale)
    rounding = ROUND_HALF_UP if type_.name in t.MONEY else ROUND_DOWN

    def exact(values: list[Any]) -> Decimal | None:
        if not values:
            return None
        total = Decimal(0)
        for value in values:
            total = _WIDE.add(total, value)
        return _WIDE.divide(total, Decimal(len(values))).quantize(quantum, rounding=rounding, context=_WIDE)

    return result, exact


def _deviation(name: str) -> Compute:
    sample = not name.endswith("p")

    def compute(values: list[Any]) -> float | None:
        count = len(values)
        if not count or (sample and count < 2):
            return None
        mean = math.fsum(float(value) for value in values) / count
        spread = math.fsum((float(value) - mean) ** 2 for value in values) / (count - 1 if sample else count)
        return math.sqrt(spread) if name.startswith("stdev") else spread

    return compute


def result_of(spec: Aggregate, rows: Slice, context: Context) -> Any:
    """An aggregate over the rows of one group."""
    if spec.argument is None:
        return len(rows)
    if spec.order:
        rows = sort_rows(rows, spec.order, context)
    argument = spec.argument
    values = [value for row in rows if (value := argument(row, context)) is not None]
    if spec.distinct is not None:
        values = list({spec.distinct(value): value for value in reversed(values)}.values())
    return spec.compute(values)


class Group:
    """One row per group: key values, then aggregates. Without keys there is exactly one row."""

    __slots__ = ("_aggregates", "_equal", "_keys", "_source", "fields", "order")

    def __init__(
        self, source: Operator, keys: Sequence[Fn], equal: Callable[[tuple], tuple], aggregates: Sequence[Aggregate],
        fields: Sequence[Field],
    ) -> None:  # fmt: skip
        self._source = source
        self._keys = tuple(keys)
        self._equal = equal
        self._aggregates = aggregates
        self.fields = fields
        self.order: Sequence[tuple[int, bool]] = ()

    def open(self, context: Context) -> Slices:
        """Groups at the first `next`."""
        return Whole(lambda: self._grouped(context))

    def _grouped(self, context: Context) -> Slice:
        specs = self._aggregates
        if not self._keys:
            if all(spec.argument is None for spec in specs):
                count = sum(len(rows) for rows in self._source.open(context))
                return [(count,) * len(specs)]
            rows = [row for slice_ in self._source.open(context) for row in slice_]
            return [tuple([result_of(spec, rows, context) for spec in specs])]
        groups: dict[tuple, tuple[tuple, Slice]] = {}
        keys, equal = self._keys, self._equal
        for slice_ in self._source.open(context):
            for row in slice_:
                values = tuple([key(row, context) for key in keys])
                groups.setdefault(equal(values), (values, []))[1].append(row)
        return [values + tuple([result_of(spec, rows, context) for spec in specs]) for values, rows in groups.values()]

"""GROUP BY as an operator, and aggregates over its groups; the aggregate functions belong to the engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.comparison import sort_key
from mssql_sandbox.engine.functions.aggregates import AGGREGATES
from mssql_sandbox.engine.functions.definition import Call
from mssql_sandbox.engine.types import SqlType
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions.base import Expr, Fn
from mssql_sandbox.exec.plans import Operator, Slice, Slices
from mssql_sandbox.exec.query.operators import Whole
from mssql_sandbox.exec.query.sorting import SortKey, sort_rows
from mssql_sandbox.exec.scope import Field

_COUNTS = {"count": t.INT, "count_big": t.BIGINT, "approx_count_distinct": t.BIGINT}
NAMES = frozenset(name.lower() for name in AGGREGATES) | _COUNTS.keys()
Compute = Callable[[list[Any]], Any]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate: the argument's value per row (None for COUNT(*)), and the result of a group's values.

    The values a group hands over are without NULL; DISTINCT ones are already single. `order` sorts STRING_AGG's rows.
    `first` is (place, descending) of an order of rows in which the first value that is not NULL is the result.
    """

    type: SqlType
    argument: Fn | None
    compute: Compute
    distinct: Callable[[Any], Any] | None = None
    nullable: bool = True
    order: tuple[SortKey, ...] = ()
    first: tuple[int, bool] | None = None


def aggregate(
    name: str, argument: Expr | None, *, distinct: bool = False, separator: Expr | None = None,
    order: tuple[SortKey, ...] = (),
) -> Aggregate:  # fmt: skip
    """The aggregate function `name` over an argument; 8117 for types it cannot take."""
    if argument is None:
        return Aggregate(_COUNTS[name], None, len, nullable=False)
    single = distinct or name == "approx_count_distinct"
    same = (sort_key(argument.type) or _same) if single else None
    if name in _COUNTS:
        return Aggregate(_COUNTS[name], argument.fn, len, same, nullable=False)
    parts = [argument] if separator is None else [argument, separator]
    call = Call(tuple(part.type for part in parts), tuple(part.value for part in parts), argument.type.collation)
    rule = AGGREGATES[name.upper()]
    make = rule.accumulator(call)

    def compute(values: list[Any]) -> Any:
        accumulator = make()
        for value in values:
            accumulator.add(value)
        return accumulator.result()

    fed = argument.fn if separator is None else _paired(argument.fn, separator.fn)
    extreme = name in ("min", "max") and argument.column >= 0
    first = (argument.column, name == "max") if extreme else None
    return Aggregate(rule.result(call), fed, compute, same, order=order, first=first)


def _paired(argument: Fn, separator: Fn) -> Fn:
    """STRING_AGG takes each value with the separator of its row."""

    def fn(row: tuple, context: Context) -> Any:
        value = argument(row, context)
        return None if value is None else (value, separator(row, context))

    return fn


def _same(value: Any) -> Any:
    return value


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
            if (
                len(specs) == 1
                and specs[0].first is not None
                and specs[0].first == next(iter(self._source.order), None)
            ):
                return [(_first_value(self._source.open(context), specs[0].first[0]),)]
            rows = [row for slice_ in self._source.open(context) for row in slice_]
            return [tuple([result_of(spec, rows, context) for spec in specs])]
        groups: dict[tuple, tuple[tuple, Slice]] = {}
        keys, equal = self._keys, self._equal
        for slice_ in self._source.open(context):
            for row in slice_:
                values = tuple([key(row, context) for key in keys])
                groups.setdefault(equal(values), (values, []))[1].append(row)
        return [values + tuple([result_of(spec, rows, context) for spec in specs]) for values, rows in groups.values()]


def _first_value(slices: Slices, place: int) -> Any:
    return next((row[place] for rows in slices for row in rows if row[place] is not None), None)


class GroupingSets:
    """One row per group of every set: key values (NULL outside the set), their mask, aggregates.

    Rows come ordered by the keys, each subtotal after its details, as in a ROLLUP.
    """

    __slots__ = ("_aggregates", "_equal", "_keys", "_order", "_sets", "_source", "fields", "order")

    def __init__(
        self, source: Operator, keys: Sequence[Fn], equal: Callable[[tuple], tuple], aggregates: Sequence[Aggregate],
        fields: Sequence[Field], sets: Sequence[frozenset[int]], order: Sequence[Fn],
    ) -> None:  # fmt: skip
        self._source = source
        self._keys = tuple(keys)
        self._equal = equal
        self._aggregates = aggregates
        self._sets = sets
        self._order = order
        self.fields = fields
        self.order: Sequence[tuple[int, bool]] = ()

    def open(self, context: Context) -> Slices:
        """Groups at the first `next`."""
        return Whole(lambda: self._grouped(context))

    def _grouped(self, context: Context) -> Slice:
        rows = [row for slice_ in self._source.open(context) for row in slice_]
        values = [tuple([key(row, context) for key in self._keys]) for row in rows]
        found: Slice = []
        for members in self._sets:
            mask = sum(1 << place for place in range(len(self._keys)) if place not in members)
            groups: dict[tuple, tuple[tuple, Slice]] = {}
            for row, cells in zip(rows, values, strict=True):
                kept = tuple([cell if place in members else None for place, cell in enumerate(cells)])
                groups.setdefault(self._equal(kept), (kept, []))[1].append(row)
            if not members and not groups:
                groups[()] = ((None,) * len(self._keys), [])
            for kept, inside in groups.values():
                found.append((*kept, mask, *[result_of(spec, inside, context) for spec in self._aggregates]))
        width = len(self._keys)
        found.sort(
            key=lambda row: [(row[width] >> place & 1, key(row, context)) for place, key in enumerate(self._order)]
        )
        return found

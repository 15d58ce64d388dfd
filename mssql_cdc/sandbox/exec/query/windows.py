"""Window functions: ranking, LAG/LEAD, FIRST/LAST_VALUE, aggregates over frames."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mssql_cdc.sandbox.engine import types as t
from mssql_cdc.sandbox.engine.types import SqlType
from mssql_cdc.sandbox.errors import SqlError, error
from mssql_cdc.sandbox.exec.context import Context
from mssql_cdc.sandbox.exec.expressions.base import NULL, Fn, coerce
from mssql_cdc.sandbox.exec.query.grouping import NAMES as AGGREGATES
from mssql_cdc.sandbox.exec.query.grouping import Aggregate, result_of
from mssql_cdc.sandbox.exec.query.operators import Operator, Slice, Slices, Whole, gather
from mssql_cdc.sandbox.exec.query.sorting import SortKey, order_key
from mssql_cdc.sandbox.exec.scope import Field, Scope
from mssql_cdc.sandbox.tsql import ast

if TYPE_CHECKING:
    from mssql_cdc.sandbox.exec.compiler import Compiler

# rows of one partition in order, their sort keys, context -> one value per row
Compute = Callable[[Slice, list[Any], Context], Sequence[Any]]


@dataclass(frozen=True, slots=True)
class WindowFunction:
    """A window function: how rows are parted and ordered, and what is computed."""

    type: SqlType
    nullable: bool
    partition: tuple[Fn, ...]
    order: tuple[SortKey, ...]
    compute: Compute


class Window:
    """Appends the values of window functions to each row; rows come out in the order of the last window."""

    __slots__ = ("_functions", "_source", "fields", "order")

    def __init__(self, source: Operator, functions: Sequence[WindowFunction], fields: Sequence[Field]) -> None:
        self._source = source
        self._functions = functions
        self.fields = fields
        self.order: Sequence[tuple[int, bool]] = ()

    def open(self, context: Context) -> Slices:
        """All rows at the first `next`."""
        return Whole(lambda: self._rows(context))

    def _rows(self, context: Context) -> Slice:
        rows = gather(self._source.open(context))
        columns: list[list[Any]] = []
        sequence = list(range(len(rows)))
        for function in self._functions:
            values: list[Any] = [None] * len(rows)
            parts: dict[Any, list[int]] = {}
            for place in sequence:
                row = rows[place]
                parts.setdefault(tuple([key(row, context) for key in function.partition]), []).append(place)
            sequence = []
            for key in sorted(parts) if function.partition else parts:
                places = parts[key]
                keys = _ordered(places, rows, function.order, context)
                found = function.compute([rows[place] for place in places], keys, context)
                for place, value in zip(places, found, strict=True):
                    values[place] = value
                sequence.extend(places)
            columns.append(values)
        return [rows[place] + tuple([values[place] for values in columns]) for place in sequence]


def _ordered(places: list[int], rows: Slice, order: Sequence[SortKey], context: Context) -> list[Any]:
    """Sort the places of a partition; the sort keys of each, in order."""
    for key, descending in reversed(order):
        places.sort(key=lambda place: key(rows[place], context), reverse=descending)
    return [tuple([key(rows[place], context) for key, _ in order]) for place in places]


def window_function(compiler: Compiler, node: ast.Function, scope: Scope) -> WindowFunction:
    """Compile a call with OVER; 4113 for functions that take none."""
    assert node.over is not None
    over, name = node.over, node.name[-1].lower()
    partition = tuple(order_key(compiler.value(part, scope)) for part in over.partition)
    order = tuple((order_key(compiler.value(item.expression, scope)), item.descending) for item in over.order)
    if name in _RANKING:
        if not order:
            raise error(4112, name=name)
        type_, compute = t.BIGINT, _RANKING[name]
        if name == "ntile":
            compute = _ntile(coerce(compiler.value(node.arguments[0], scope), t.BIGINT).fn)
        elif name in ("percent_rank", "cume_dist"):
            type_ = t.FLOAT
        return WindowFunction(type_, False, partition, order, compute)
    if name in ("lag", "lead"):
        return _shifted(compiler, node, scope, partition, order)
    if name in ("first_value", "last_value"):
        return _edge(compiler, node, scope, partition, order)
    if name in AGGREGATES:
        from mssql_cdc.sandbox.exec.query.select import compile_aggregate

        plain = ast.Function(node.name, node.arguments, node.distinct, node.star)
        spec = compile_aggregate(compiler, plain, scope)
        bounds = _frame(compiler, over, scope)
        return WindowFunction(spec.type, spec.nullable, partition, order, _aggregate(spec, bounds, bool(order)))
    raise SqlError(
        4113, f"The function '{name}' is not a valid windowing function, and cannot be used with the OVER clause."
    )


def _row_number(rows: Slice, _keys: list[Any], _context: Context) -> Sequence[int]:
    return range(1, len(rows) + 1)


def _rank(_rows: Slice, keys: list[Any], _context: Context) -> list[int]:
    result: list[int] = []
    for number, key in enumerate(keys, 1):
        result.append(result[-1] if result and key == keys[number - 2] else number)
    return result


def _dense_rank(_rows: Slice, keys: list[Any], _context: Context) -> list[int]:
    result: list[int] = []
    for number, key in enumerate(keys):
        result.append(1 if not result else result[-1] + (key != keys[number - 1]))
    return result


def _percent_rank(rows: Slice, keys: list[Any], context: Context) -> list[float]:
    count = len(rows)
    return [(rank - 1) / (count - 1) if count > 1 else 0.0 for rank in _rank(rows, keys, context)]


def _cume_dist(_rows: Slice, keys: list[Any], _context: Context) -> list[float]:
    last = {key: number for number, key in enumerate(keys, 1)}
    return [last[key] / len(keys) for key in keys]


def _ntile(count: Fn) -> Compute:
    def compute(rows: Slice, _keys: list[Any], context: Context) -> list[int]:
        buckets = count((), context)
        size, extra = divmod(len(rows), buckets)
        result: list[int] = []
        for bucket in range(1, buckets + 1):
            result.extend([bucket] * (size + (bucket <= extra)))
        return result

    return compute


_RANKING: dict[str, Compute] = {
    "row_number": _row_number,
    "rank": _rank,
    "dense_rank": _dense_rank,
    "percent_rank": _percent_rank,
    "cume_dist": _cume_dist,
    "ntile": _row_number,
}


def _shifted(
    compiler: Compiler, node: ast.Function, scope: Scope, partition: tuple[Fn, ...], order: tuple[SortKey, ...]
) -> WindowFunction:
    """LAG and LEAD (value, offset, default)."""
    value = compiler.value(node.arguments[0], scope)
    offset = coerce(compiler.value(node.arguments[1], scope), t.BIGINT).fn if len(node.arguments) > 1 else None
    default = coerce(compiler.value(node.arguments[2], scope) if len(node.arguments) > 2 else NULL, value.type).fn
    direction = -1 if node.name[-1].lower() == "lag" else 1
    inner = value.fn

    def compute(rows: Slice, _keys: list[Any], context: Context) -> list[Any]:
        result = []
        for place, row in enumerate(rows):
            other = place + direction * (1 if offset is None else offset(row, context))
            result.append(inner(rows[other], context) if 0 <= other < len(rows) else default(row, context))
        return result

    return WindowFunction(value.type, True, partition, order, compute)


def _edge(
    compiler: Compiler, node: ast.Function, scope: Scope, partition: tuple[Fn, ...], order: tuple[SortKey, ...]
) -> WindowFunction:
    """FIRST_VALUE and LAST_VALUE over the frame."""
    assert node.over is not None
    value = compiler.value(node.arguments[0], scope)
    bounds = _frame(compiler, node.over, scope)
    first, inner = node.name[-1].lower() == "first_value", value.fn

    def compute(rows: Slice, keys: list[Any], context: Context) -> list[Any]:
        result = []
        for place in range(len(rows)):
            low, high = bounds(place, keys, context)
            inside = rows[low:high]
            result.append(inner(inside[0 if first else -1], context) if inside else None)
        return result

    return WindowFunction(value.type, True, partition, order, compute)


Bounds = Callable[[int, list[Any], Context], tuple[int, int]]


def _frame(compiler: Compiler, over: ast.Over, scope: Scope) -> Bounds:
    """Start and end (exclusive) of the frame of a row; the default is everything, or RANGE up to the current row."""
    frame = over.frame
    if frame is None:
        if not over.order:
            return lambda _place, keys, _context: (0, len(keys))
        frame = ast.Frame("RANGE", ("unbounded preceding", None), ("current", None))
    rows = frame.unit == "ROWS"
    counts = [
        coerce(compiler.value(count, scope), t.BIGINT).fn if count is not None else None
        for _, count in (frame.start, frame.end)
    ]
    if not rows and any(counts):
        raise SqlError(4194, "RANGE is only supported with UNBOUNDED and CURRENT ROW window frame delimiters.")

    def edge(kind: str, count: Fn | None, place: int, keys: list[Any], context: Context, *, end: bool) -> int:
        if kind == "unbounded preceding":
            return 0
        if kind == "unbounded following":
            return len(keys)
        if kind == "current":
            if rows:
                return place + end
            peer = place
            while end and peer + 1 < len(keys) and keys[peer + 1] == keys[place]:
                peer += 1
            while not end and peer > 0 and keys[peer - 1] == keys[place]:
                peer -= 1
            return peer + end
        assert count is not None
        distance = count((), context)
        at = place - distance if kind == "preceding" else place + distance
        return max(0, min(len(keys), at + end))

    def bounds(place: int, keys: list[Any], context: Context) -> tuple[int, int]:
        return (
            edge(frame.start[0], counts[0], place, keys, context, end=False),
            edge(frame.end[0], counts[1], place, keys, context, end=True),
        )

    return bounds


def _aggregate(spec: Aggregate, bounds: Bounds, ordered: bool) -> Compute:  # noqa: FBT001
    def compute(rows: Slice, keys: list[Any], context: Context) -> list[Any]:
        if not ordered:
            return [result_of(spec, rows, context)] * len(rows)
        known: dict[tuple[int, int], Any] = {}
        result = []
        for place in range(len(rows)):
            frame = bounds(place, keys, context)
            if frame not in known:
                known[frame] = result_of(spec, rows[frame[0] : frame[1]], context)
            result.append(known[frame])
        return result

    return compute

"""Computing window functions over the ordered rows of a partition: ranks, neighbours, frames, percentiles."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.types import SqlType
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions.base import NULL, Fn, coerce
from mssql_sandbox.exec.plans import Slice
from mssql_sandbox.exec.query.aggregation import compile_aggregate
from mssql_sandbox.exec.query.grouping import NAMES as AGGREGATES
from mssql_sandbox.exec.query.grouping import Aggregate, result_of
from mssql_sandbox.exec.query.sorting import SortKey, order_key
from mssql_sandbox.exec.scope import Scope
from mssql_sandbox.tsql import ast

# rows of one partition in order, their sort keys, context -> one value per row
Compute = Callable[[Slice, list[Any], Context], Sequence[Any]]


@dataclass(frozen=True, slots=True)
class WindowFunction:
    """A window function: its partitions, order and computation."""

    type: SqlType
    nullable: bool
    partition: tuple[Fn, ...]
    order: tuple[SortKey, ...]
    compute: Compute


def window_function(compiler: Compiler, node: ast.Function | ast.NextValueFor, scope: Scope) -> WindowFunction:
    """Compile a call with OVER; 4113 for functions that take none."""
    assert node.over is not None
    over = node.over
    partition = tuple(order_key(compiler.value(part, scope)) for part in over.partition)
    order = tuple((order_key(compiler.value(item.expression, scope)), item.descending) for item in over.order)
    if isinstance(node, ast.NextValueFor):
        taken = compiler.value(ast.NextValueFor(node.sequence), scope)
        return WindowFunction(
            taken.type, False, partition, order, lambda rows, _keys, context: [taken.fn(row, context) for row in rows]
        )
    name = node.name[-1].lower()
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
    if name in ("percentile_cont", "percentile_disc"):
        return percentile(compiler, node, scope, partition)
    if name in AGGREGATES:
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
    inner, skips = value.fn, node.ignore_nulls

    def compute(rows: Slice, _keys: list[Any], context: Context) -> list[Any]:
        found = [inner(row, context) for row in rows]
        result = []
        for place, row in enumerate(rows):
            distance = 1 if offset is None else offset(row, context)
            if skips and distance:
                others = found[:place][::-1] if direction < 0 else found[place + 1 :]
                present = [one for one in others if one is not None]
                result.append(present[distance - 1] if distance <= len(present) else default(row, context))
                continue
            other = place + direction * distance
            result.append(found[other] if 0 <= other < len(rows) else default(row, context))
        return result

    return WindowFunction(value.type, True, partition, order, compute)


def _edge(
    compiler: Compiler, node: ast.Function, scope: Scope, partition: tuple[Fn, ...], order: tuple[SortKey, ...]
) -> WindowFunction:
    """FIRST_VALUE and LAST_VALUE over the frame."""
    assert node.over is not None
    value = compiler.value(node.arguments[0], scope)
    bounds = _frame(compiler, node.over, scope)
    first, inner, skips = node.name[-1].lower() == "first_value", value.fn, node.ignore_nulls

    def compute(rows: Slice, keys: list[Any], context: Context) -> list[Any]:
        found = [inner(row, context) for row in rows]
        result = []
        for place in range(len(rows)):
            low, high = bounds(place, keys, context)
            inside = [one for one in found[low:high] if one is not None] if skips else found[low:high]
            result.append(inside[0 if first else -1] if inside else None)
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


def percentile(compiler: Compiler, node: ast.Function, scope: Scope, partition: tuple[Fn, ...]) -> WindowFunction:
    """PERCENTILE_CONT (interpolated, float) and PERCENTILE_DISC (an existing value) of a partition."""
    name = node.name[-1].lower()
    if len(node.arguments) != 1 or len(node.within) != 1:
        raise error(174, name=name, count=1)
    share = coerce(compiler.value(node.arguments[0], scope), t.FLOAT).fn
    item = node.within[0]
    value = compiler.value(item.expression, scope)
    between = name == "percentile_cont"
    source = coerce(value, t.FLOAT) if between else value
    order = ((order_key(source), item.descending),)
    inner = source.fn

    def compute(rows: Slice, _keys: list[Any], context: Context) -> list[Any]:
        found = [one for row in rows if (one := inner(row, context)) is not None]
        wanted = share(rows[0], context)
        if wanted is None or not 0 <= wanted <= 1:
            raise SqlError(10751, f"The ORDER BY in WITHIN GROUP clause of '{name}' function needs a percentile "
                           "between 0 and 1.")  # fmt: skip
        if not found:
            return [None] * len(rows)
        if not between:
            return [found[max(math.ceil(wanted * len(found)) - 1, 0)]] * len(rows)
        place = wanted * (len(found) - 1)
        low, high = found[math.floor(place)], found[math.ceil(place)]
        return [low + (high - low) * (place - math.floor(place))] * len(rows)

    return WindowFunction(source.type, True, partition, order, compute)

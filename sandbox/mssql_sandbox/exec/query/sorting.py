"""Sorting, DISTINCT, set operations, TOP: operators on whole rows or on all rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mssql_sandbox.engine.comparison import sort_key
from mssql_sandbox.engine.types import SqlType
from mssql_sandbox.errors import error
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions.base import Expr, Fn
from mssql_sandbox.exec.plans import Operator, Slice, Slices
from mssql_sandbox.exec.query.operators import Limit, Stage, Whole, gather
from mssql_sandbox.exec.scope import Field

SortKey = tuple[Callable[[tuple, Context], Any], bool]


def order_key(expr: Expr) -> Fn:
    """A key that sorts NULL first."""
    key = sort_key(expr.type)
    inner = expr.fn
    if not expr.nullable:
        if key is None:
            return inner
        return lambda row, context: key(inner(row, context))

    def nulls_first(row: tuple, context: Context) -> tuple:
        value = inner(row, context)
        return () if value is None else (value if key is None else key(value),)

    return nulls_first


def sort_rows(rows: Slice, keys: Sequence[SortKey], context: Context) -> Slice:
    """A sorted copy; the last key first, since sorting is stable."""
    rows = list(rows)
    for key, descending in reversed(keys):
        rows.sort(key=lambda row: key(row, context), reverse=descending)
    return rows


class Sort:
    """All rows of a source in order."""

    __slots__ = ("_keys", "_source", "fields", "order")

    def __init__(self, source: Operator, keys: Sequence[SortKey], order: Sequence[tuple[int, bool]] = ()) -> None:
        self._source = source
        self._keys = tuple(keys)
        self.fields = source.fields
        self.order = order

    def open(self, context: Context) -> Slices:
        """Sorts at the first `next`."""
        return Whole(lambda: sort_rows(gather(self._source.open(context)), self._keys, context))


class Top:
    """TOP (n) [PERCENT] [WITH TIES] and OFFSET … FETCH; `count` and `skip` are compiled expressions."""

    __slots__ = ("_count", "_keys", "_percent", "_skip", "_source", "fields", "order")

    def __init__(
        self, source: Operator, count: Fn | None, *, skip: Fn | None = None, percent: bool = False,
        ties: Sequence[SortKey] | None = None,
    ) -> None:  # fmt: skip
        self._source = source
        self._count = count
        self._skip = skip
        self._percent = percent
        self._keys = ties
        self.fields = source.fields
        self.order = source.order

    def open(self, context: Context) -> Slices:
        """The first rows."""
        count = None if self._count is None else self._count((), context)
        skip = 0 if self._skip is None else self._skip((), context)
        if self._count is not None and (count is None or count < 0):
            raise error(1060 if count is None else 127) if not self._skip else error(10744)
        if skip is None or skip < 0:
            raise error(10742)
        if self._percent or self._keys is not None:
            return Whole(lambda: self._whole(context, count))
        if count == 0:
            return Probe(self._source.open(context))
        return Limit(self._source.open(context), None if count is None else int(count), int(skip))

    def _whole(self, context: Context, count: Any) -> Slice:
        rows = gather(self._source.open(context))
        number = int(count)
        if self._percent:
            if not 0 <= count <= 100:
                raise error(1031)
            number = -int(-(len(rows) * float(count)) // 100)
        if self._keys is not None and 0 < number < len(rows):
            last = [key(rows[number - 1], context) for key, _ in self._keys]
            while number < len(rows) and [key(rows[number], context) for key, _ in self._keys] == last:
                number += 1
        return rows[:number]


class Probe:
    """TOP (0): no rows, but the table's locks are taken."""

    __slots__ = ("_done", "_source")

    def __init__(self, source: Slices) -> None:
        self._source = source
        self._done = False

    def __iter__(self) -> Slices:
        return self

    def __next__(self) -> Slice:
        if not self._done:
            next(self._source, None)
            self._done = True
        raise StopIteration


def row_key(types: Sequence[SqlType]) -> Callable[[tuple], tuple]:
    """A hashable key for equality in DISTINCT, GROUP BY and set operations (NULL equals NULL)."""
    keys = [sort_key(type_) for type_ in types]
    if all(key is None for key in keys):
        return lambda row: row
    parts = tuple(keys)

    def made(row: tuple) -> tuple:
        return tuple(
            [value if key is None or value is None else key(value) for key, value in zip(parts, row, strict=True)]
        )

    return made


class Distinct:
    """Each row once, in order of first appearance."""

    __slots__ = ("_source", "fields", "order")

    def __init__(self, source: Operator) -> None:
        self._source = source
        self.fields = source.fields
        self.order = source.order

    def open(self, context: Context) -> Slices:
        """Streams; remembers the keys of previous rows."""
        key = row_key([field.type for field in self.fields])
        seen: set[tuple] = set()

        def fresh(rows: Slice) -> Slice:
            out = []
            for row in rows:
                value = key(row)
                if value not in seen:
                    seen.add(value)
                    out.append(row)
            return out

        return Stage(self._source.open(context), fresh)


class Difference:
    """EXCEPT (`keep` False) and INTERSECT (`keep` True)."""

    __slots__ = ("_keep", "_left", "_right", "fields", "order")

    def __init__(self, left: Operator, right: Operator, fields: Sequence[Field], *, keep: bool) -> None:
        self._left = left
        self._right = right
        self._keep = keep
        self.fields = fields
        self.order: Sequence[tuple[int, bool]] = ()

    def open(self, context: Context) -> Slices:
        """All rows at once."""
        return Whole(lambda: self._rows(context))

    def _rows(self, context: Context) -> Slice:
        key = row_key([field.type for field in self.fields])
        other = {key(row) for row in gather(self._right.open(context))}
        out: dict[tuple, tuple] = {}
        for row in gather(self._left.open(context)):
            value = key(row)
            if (value in other) is self._keep:
                out.setdefault(value, row)
        return list(out.values())

"""Operators: how slices of rows flow.

An operator is opened for one execution and gives an iterator of slices. Every iterator may raise `MustWait` from `next`
and be called again afterwards: `Stage` keeps the slice that it could not finish, `Whole` restarts its work. So a
statement that has already returned rows never has to start over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from mssql_sandbox.engine.rows import row_getter
from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions.base import Expr
from mssql_sandbox.exec.plans import SLICE, Operator, Slice, Slices
from mssql_sandbox.exec.query.columnwise import FEW_ROWS, column_plan
from mssql_sandbox.exec.scope import Field


class Stage:
    """Applies a function to every slice; keeps the slice while the function waits for a lock."""

    __slots__ = ("_function", "_pending", "_source")

    def __init__(self, source: Slices, function: Callable[[Slice], Slice]) -> None:
        self._source = source
        self._function = function
        self._pending: Slice | None = None

    def __iter__(self) -> Slices:
        return self

    def __next__(self) -> Slice:
        if self._pending is None:
            self._pending = next(self._source)
        result = self._function(self._pending)
        self._pending = None
        return result


class Opened:
    """An iterator that is opened with the first `next`, so that a wait for a lock at opening can be repeated."""

    __slots__ = ("_open", "_slices")

    def __init__(self, open_: Callable[[], Slices]) -> None:
        self._open = open_
        self._slices: Slices | None = None

    def __iter__(self) -> Slices:
        return self

    def __next__(self) -> Slice:
        if self._slices is None:
            self._slices = self._open()
        return next(self._slices)


class Whole:
    """Rows that a function makes all at once, at the first `next`; passed on in slices."""

    __slots__ = ("_make", "_slices")

    def __init__(self, make: Callable[[], Slice]) -> None:
        self._make = make
        self._slices: Slices | None = None

    def __iter__(self) -> Slices:
        return self

    def __next__(self) -> Slice:
        if self._slices is None:
            self._slices = sliced(self._make())
        return next(self._slices)


def sliced(rows: Slice) -> Slices:
    """Rows in slices."""
    if len(rows) <= SLICE:
        return iter([rows] if rows else [])
    return (rows[start : start + SLICE] for start in range(0, len(rows), SLICE))


def gather(slices: Slices) -> Slice:
    """All rows."""
    return list(chain.from_iterable(slices))


class Limit:
    """The first rows only, after skipping `skip` rows."""

    __slots__ = ("_left", "_skip", "_source")

    def __init__(self, source: Slices, count: int | None, skip: int = 0) -> None:
        self._source = source
        self._left = count
        self._skip = skip

    def __iter__(self) -> Slices:
        return self

    def __next__(self) -> Slice:
        while True:
            if self._left == 0:
                raise StopIteration
            rows = next(self._source)
            if self._skip:
                dropped = min(self._skip, len(rows))
                self._skip -= dropped
                rows = rows[dropped:]
            if self._left is not None:
                rows = rows[: self._left]
                self._left -= len(rows)
            if rows:
                return rows


class Filter:
    """Rows for which the condition is true."""

    __slots__ = ("_condition", "_source", "fields", "order")

    def __init__(self, source: Operator, condition: Callable[[tuple, Context], bool | None]) -> None:
        self._source = source
        self._condition = condition
        self.fields = source.fields
        self.order = source.order

    def open(self, context: Context) -> Slices:
        """Slices may be empty."""
        condition = self._condition
        return Stage(self._source.open(context), lambda rows: [row for row in rows if condition(row, context) is True])


class Single:
    """One row without columns: a query without FROM."""

    __slots__ = ("fields", "order")

    def __init__(self) -> None:
        self.fields: Sequence[Field] = ()
        self.order: Sequence[tuple[int, bool]] = ()

    def open(self, context: Context) -> Slices:  # noqa: ARG002 - of the protocol
        """The one row."""
        return iter([[()]])


class Rows:
    """Rows made by a function of the context: virtual tables, functions, VALUES."""

    __slots__ = ("_make", "fields", "order")

    def __init__(
        self,
        fields: Sequence[Field],
        make: Callable[[Context], Iterable[tuple]],
        order: Sequence[tuple[int, bool]] = (),
    ) -> None:
        self.fields = fields
        self.order = order
        self._make = make

    def open(self, context: Context) -> Slices:
        """Made lazily at the first `next`."""
        make = self._make
        return Whole(lambda: list(make(context)))


class Concatenation:
    """UNION ALL: one source after the other."""

    __slots__ = ("_sources", "fields", "order")

    def __init__(self, sources: Sequence[Operator], fields: Sequence[Field]) -> None:
        self._sources = sources
        self.fields = fields
        self.order: Sequence[tuple[int, bool]] = ()

    def open(self, context: Context) -> Slices:
        """`chain` stays usable after an exception of its current iterator."""
        return chain.from_iterable(map(lambda source: source.open(context), self._sources))  # noqa: C417


class Projection:
    """New rows from expressions; plain columns only: an itemgetter, all columns in order: the rows themselves.

    Columns are converted one by one; after an error the rows are computed again row by row, so that the error is that
    of the first row that has one.
    """

    __slots__ = ("_by_columns", "_functions", "_mapping", "_same", "_source", "fields", "order")

    def __init__(self, source: Operator, exprs: Sequence[Expr], fields: Sequence[Field]) -> None:
        self._source = source
        self._functions = tuple([expr.fn for expr in exprs])
        self._by_columns = column_plan(exprs, len(source.fields))
        self.fields = fields
        places = [expr.column for expr in exprs]
        plain = all(place >= 0 for place in places)
        self._same = plain and list(places) == list(range(len(source.fields)))
        self._mapping = row_getter(places) if plain else None
        where = {place: position for position, place in reversed(list(enumerate(places))) if place >= 0}
        kept = []
        for place, down in source.order:
            if place not in where:
                break
            kept.append((where[place], down))
        self.order: Sequence[tuple[int, bool]] = tuple(kept)

    def lazily(self, context: Context) -> Iterator[tuple]:
        """New rows one at a time: using a row may affect the expressions of the next row."""
        functions = self._functions
        for rows in self._source.open(context):
            for row in rows:
                yield tuple([fn(row, context) for fn in functions])

    def open(self, context: Context) -> Slices:
        """Slices of the new rows."""
        source = self._source.open(context)
        if self._same:
            return source
        mapping = self._mapping
        if mapping is not None:
            return Stage(source, lambda rows: list(map(mapping, rows)))
        functions = self._functions
        if len(functions) == 1:
            only = functions[0]
            return Stage(source, lambda rows: [(only(row, context),) for row in rows])
        by_columns = self._by_columns

        def project(rows: Slice) -> Slice:
            if by_columns is not None and len(rows) >= FEW_ROWS:
                try:
                    return by_columns(rows, context)
                except SqlError:
                    pass  # raised again below, unless another row fails first
            return [tuple([fn(row, context) for fn in functions]) for row in rows]

        return Stage(source, project)

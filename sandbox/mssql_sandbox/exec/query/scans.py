"""Reading stored tables: whole scans, ranges and point seeks, as operators."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mssql_sandbox.engine.storage.index import Index
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.storage.views import ReadView, open_view
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions.base import Fn
from mssql_sandbox.exec.plans import Slice, Slices
from mssql_sandbox.exec.query.operators import Opened, Stage
from mssql_sandbox.exec.scope import Field


@dataclass(frozen=True, slots=True)
class Bound:
    """One side of a range: candidates of which the widest counts (one for plain comparisons, more for OR)."""

    values: tuple[Fn, ...]
    inclusive: bool
    key: Callable[[Any], Any] | None = None


@dataclass(frozen=True, slots=True)
class Access:
    """The access to a table: equal values for the first index columns, then a range of the next one."""

    index: Index | None = None
    equal: tuple[Fn, ...] = ()
    low: Bound | None = None
    high: Bound | None = None
    descending: bool = False

    @property
    def point(self) -> bool:
        """Whether at most one row can match."""
        index = self.index
        return index is not None and index.unique and index.predicate is None and len(self.equal) == len(index.columns)

    def range(self, row: tuple, context: Context) -> dict[str, Any] | None:
        """Arguments of `Table.scan`; None if a bound is NULL, so that no row matches."""
        index = self.index
        if index is None:
            return {"descending": self.descending}
        equal = [fn(row, context) for fn in self.equal]
        if None in equal:
            return None
        low, high = list(equal), list(equal)
        low_inclusive = high_inclusive = True
        bounds = (self.low, self.high)
        down = len(equal) < len(index.columns) and index.columns[len(equal)][1]
        if down:
            bounds = (self.high, self.low)
        for bound, values, first in ((bounds[0], low, True), (bounds[1], high, False)):
            if bound is None:
                continue
            value = _widest(bound, row, context, smallest=first is not down)
            if value is None:
                return None
            values.append(value)
            if first:
                low_inclusive = bound.inclusive
            else:
                high_inclusive = bound.inclusive
        return {
            "index": index,
            "low": low or None,
            "high": high or None,
            "low_inclusive": low_inclusive,
            "high_inclusive": high_inclusive,
            "descending": self.descending,
        }


def _widest(bound: Bound, row: tuple, context: Context, *, smallest: bool) -> Any:
    """The value that includes the most rows; NULL candidates match nothing and are skipped."""
    values = [value for value in (fn(row, context) for fn in bound.values) if value is not None]
    if len(values) <= 1:
        return values[0] if values else None
    return min(values, key=bound.key) if smallest else max(values, key=bound.key)


class TableScan:
    """Rows of a table through an access path."""

    __slots__ = ("_access", "_computed", "_hints", "fields", "order", "table")

    def __init__(
        self,
        table: Table,
        fields: Sequence[Field],
        *,
        hints: frozenset[str],
        access: Access,
        order: Sequence[tuple[int, bool]],
        computed: Callable[[Slice, Context], Slice] | None = None,
    ) -> None:
        self.table = table
        self.fields = fields
        self.order = order
        self._hints = hints
        self._access = access
        self._computed = computed

    def view(self, context: Context) -> ReadView:
        """The read view of one execution."""
        assert context.transaction is not None
        return open_view(context.transaction, self.table.database, hints=self._hints)

    def open(self, context: Context) -> Slices:
        """Slices of rows."""
        access, table = self._access, self.table

        def start() -> Iterator[Slice]:
            view = self.view(context)
            if access.point:
                values = [fn((), context) for fn in access.equal]
                if None in values:
                    view.open(table)
                    return iter(())
                assert access.index is not None
                found = table.seek(view, access.index, values)
                return iter([[row for _, row in found]] if found else ())
            arguments = access.range((), context)
            if arguments is None:
                view.open(table)
                return iter(())
            return table.scan(view, **arguments)

        slices: Slices = Opened(start)
        if self._computed is not None:
            computed = self._computed
            slices = Stage(slices, lambda rows: computed(rows, context))
        return slices


def scan_entries(
    table: Table, context: Context, access: Access, hints: frozenset[str]
) -> Iterator[list[tuple[int, tuple]]]:
    """Slices of (row id, row) of the rows that UPDATE, DELETE or MERGE may change; raises `MustWait`."""
    assert context.transaction is not None
    view = open_view(context.transaction, table.database, hints=hints, for_update=True)
    if access.point:
        values = [fn((), context) for fn in access.equal]
        if None in values:
            return iter(())
        assert access.index is not None
        return iter([table.seek(view, access.index, values)])
    arguments = access.range((), context)
    if arguments is None:
        return iter(())
    return table.scan_entries(view, **arguments)

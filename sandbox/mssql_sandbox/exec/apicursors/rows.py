"""The rows of a cursor: copied when it is opened, or a set of row ids whose rows are read at each fetch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.events import SourceColumn, Sources
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.storage.views import open_view
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.engine.types import ResultColumn
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.flow import StepsTo
from mssql_sandbox.exec.plans import Operator
from mssql_sandbox.exec.query.aggregation import is_aggregate, own_nodes
from mssql_sandbox.exec.query.leaves import Leaf
from mssql_sandbox.exec.query.operators import Rows, gather
from mssql_sandbox.exec.query.select import SelectPlanner
from mssql_sandbox.exec.query.sources import SourcePlanner
from mssql_sandbox.exec.routine import Frame
from mssql_sandbox.exec.scope import Field
from mssql_sandbox.exec.statements.queries import compile_select, result_columns
from mssql_sandbox.tsql import ast

_ROWID = "\0rowid"
FETCHED, MISSING = 1, 2
"""The values of the column ROWSTAT for a row of the fetch buffer."""


class RowSource(Protocol):
    """The rows of an open cursor, by position."""

    columns: tuple[ResultColumn, ...]
    sources: Sources

    def __len__(self) -> int:
        """The number of the cursor's rows, including deleted ones."""
        ...

    def read(self, start: int, stop: int) -> StepsTo[list[tuple]]:
        """The rows at these positions, each with its ROWSTAT as last cell."""
        ...


class Copied:
    """All rows as they were when the cursor was opened: static and read-only forward cursors."""

    def __init__(self, columns: tuple[ResultColumn, ...], rows: list[tuple]) -> None:
        self.columns = columns
        self.sources = described(columns, None)
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def read(self, start: int, stop: int) -> StepsTo[list[tuple]]:
        """Copies are never missing."""
        return [(*row, FETCHED) for row in self._rows[start:stop]]
        yield


def open_copied(frame: Frame, query: ast.Query) -> StepsTo[Copied]:
    """Run any query and keep its rows."""
    compiled = frame.compiled(query, lambda compiler: compile_select(compiler, query))
    rows = yield from frame.session.transactions.run(lambda tx: gather(compiled.plan.open(frame.context(tx))))
    return Copied(compiled.columns, rows)


# ---- row ids --------------------------------------------------------------------------------------------------


class Keyset:
    """Row ids of one table, fixed when the cursor is opened; each fetch reads the current rows."""

    def __init__(
        self, frame: Frame, table: Table, plan: Operator, wanted: list[list[int] | None], names: Sequence[str]
    ) -> None:
        self.frame = frame
        self.table = table
        self.columns = result_columns(plan)[:-1]
        self.sources = described(self.columns, table, names)
        self.rowids: list[int] = []
        self._plan = plan
        self._wanted = wanted
        self.before: dict[int, tuple | None] = {}
        """The table's rows as last fetched, for the optimistic check."""

    def __len__(self) -> int:
        return len(self.rowids)

    def fill(self, again: Operator) -> StepsTo[None]:
        """Find the rows; afterwards `again` reads them."""
        rows = yield from self.frame.session.transactions.run(self._gathered)
        self.rowids = [row[-1] for row in rows]
        self._plan = again

    def _gathered(self, transaction: Transaction) -> list[tuple]:
        return gather(self._plan.open(self.frame.context(transaction)))

    def read(self, start: int, stop: int) -> StepsTo[list[tuple]]:
        """The current rows; those that are gone are NULL throughout and marked as missing."""
        rowids = self.rowids[start:stop]
        self._wanted[0] = rowids

        def work(transaction: Transaction) -> dict[int, tuple]:
            view = open_view(transaction, self.table.database)
            view.open(self.table)
            self.before = {rowid: self.table.fetch(view, rowid) for rowid in rowids}
            return {row[-1]: row[:-1] for row in self._gathered(transaction)}

        found = yield from self.frame.session.transactions.run(work)
        nothing = (None,) * len(self.columns)
        return [(*found[n], FETCHED) if n in found else (*nothing, MISSING) for n in rowids]


class _KeysetPlanner(SourcePlanner):
    """Plans FROM so that rows come with their row id: all of them, or only the wanted ones."""

    def __init__(self, compiler: Compiler, table: Table, wanted: list[list[int] | None]) -> None:
        super().__init__(compiler, None)
        self._table = table
        self._wanted = wanted

    def leaf(self, source: ast.TableSource) -> Leaf:
        plain = super().leaf(source)
        table, wanted, hints = self._table, self._wanted, plain.hints
        fields = [*plain.fields, Field(_ROWID, t.BIGINT, False, (_ROWID,), hidden=True)]

        def rows(context: Context) -> list[tuple]:
            assert context.transaction is not None
            view = open_view(context.transaction, table.database, hints=hints)
            if wanted[0] is None:
                return [(*row, rowid) for slice_ in table.scan_entries(view) for rowid, row in slice_]
            view.open(table)
            found = ((rowid, table.fetch(view, rowid)) for rowid in wanted[0])
            return [(*row, rowid) for rowid, row in found if row is not None]

        return Leaf(fields, operator=Rows(fields, rows))


def keyset_table(frame: Frame, query: ast.Query) -> Table | None:
    """The only table of a query in which each row of the result is one row of the table."""
    body = query.body
    if not isinstance(body, ast.Select) or not isinstance(body.source, ast.NamedTable) or query.ctes:
        return None
    if body.distinct or body.group_by or body.having is not None or body.source.system_time is not None:
        return None
    compiler = frame.compiler()
    found = compiler.names.find(body.source.name)
    if not isinstance(found, Table) or any(column.computed is not None for column in found.columns):
        return None
    nodes = [item.expression for item in (*body.items, *query.order)]
    return None if any(is_aggregate(part) for node in nodes for part in own_nodes(node)) else found


def open_keyset(frame: Frame, query: ast.Query, table: Table) -> StepsTo[Keyset]:
    """Find the row ids of a query over one table."""
    wanted: list[list[int] | None] = [None]
    body = query.body
    assert isinstance(body, ast.Select)
    item = ast.SelectItem(ast.ColumnRef((_ROWID, _ROWID)))
    found = replace(query, body=replace(body, items=(*body.items, item)))
    again = ast.Query(replace(body, items=(*body.items, item), where=None, top=None))
    keyset = Keyset(frame, table, _planned(frame, table, found, wanted), wanted, base_names(body, table))
    yield from keyset.fill(_planned(frame, table, again, wanted))
    return keyset


def base_names(body: ast.Select, table: Table) -> list[str]:
    """The table's own name of each column of a result, empty for expressions."""
    names: list[str] = []
    for item in body.items:
        if isinstance(item.expression, ast.Star):
            names += [column.name for column in table.columns if not column.hidden]
        else:
            column = table.column(item.expression.parts[-1]) if isinstance(item.expression, ast.ColumnRef) else None
            names.append(column.name if column is not None else "")
    return names


def _planned(frame: Frame, table: Table, query: ast.Query, wanted: list[list[int] | None]) -> Operator:
    assert isinstance(query.body, ast.Select)
    compiler = frame.compiler()
    planner = SelectPlanner(compiler, query.body, query, None)
    planner.sources = _KeysetPlanner(compiler, table, wanted)
    return planner.plan()


# ---- description -----------------------------------------------------------------------------------------------


ROWSTAT = ResultColumn("ROWSTAT", t.INT, nullable=False)


def described(columns: Sequence[ResultColumn], table: Table | None, names: Sequence[str] = ()) -> Sources:
    """The base tables of the columns, with the key columns marked. ROWSTAT comes last, as an expression."""
    tables: list[tuple[str, ...]] = []
    found: list[SourceColumn] = []
    primary = table.primary_key if table is not None else None
    keys = {name for name, _ in primary.columns} if primary is not None else set()
    for column, name in zip(columns, names or [column.name for column in columns], strict=True):
        if not column.table or not name:
            found.append(SourceColumn(0))
            continue
        if column.table not in tables:
            tables.append(column.table)
        own = name if name != column.name else ""
        found.append(SourceColumn(tables.index(column.table) + 1, own, key=name in keys))
    return Sources(tuple(tables), (*found, SourceColumn(0, hidden=True)))

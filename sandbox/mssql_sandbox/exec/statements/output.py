"""OUTPUT clauses: rows of inserted, deleted and joined columns, to the client or into a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.events import Columns, Event, Rows
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.types import ResultColumn
from mssql_sandbox.errors import error
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions.base import Expr, Fn, column
from mssql_sandbox.exec.flow import Steps
from mssql_sandbox.exec.plans import SLICE
from mssql_sandbox.exec.query.masks import as_seen, masked_fields, masked_value
from mssql_sandbox.exec.routine import Frame
from mssql_sandbox.exec.scope import Field, Scope, table_fields
from mssql_sandbox.exec.statements.targets import target_table
from mssql_sandbox.exec.tables.cells import insert_columns, row_builder
from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql import statements as st


@dataclass(slots=True)
class _Into:
    """OUTPUT … INTO: the target table, and how its complete rows are made."""

    table: Table
    functions: tuple[Fn, ...]
    cells: tuple[Fn, ...]
    identity: int


@dataclass(slots=True)
class OutputPlan:
    """Compiled OUTPUT clauses of one statement.

    A row to compute from consists of the action, then the cells of the inserted, the deleted and the joined row.
    """

    width: int
    joined: int
    functions: tuple[Fn, ...] = ()
    columns: tuple[ResultColumn, ...] = ()
    into: list[_Into] = field(default_factory=list)

    def rows(
        self, context: Context, action: str, new: Sequence[tuple | None] | None, old: Sequence[tuple | None] | None,
        joined: Sequence[tuple] | None = None, functions: Sequence[Fn] | None = None,
        actions: Sequence[str] | None = None,
    ) -> list[tuple]:  # fmt: skip
        """The output rows of changed rows."""
        count = len(new if new is not None else old or ())
        blank = (None,) * self.width
        use = self.functions if functions is None else functions
        result = []
        for number in range(count):
            row = ((actions[number] if actions else action),)
            row += (new[number] if new is not None else blank) or blank
            row += (old[number] if old is not None else blank) or blank
            row += joined[number] if joined else (None,) * self.joined
            result.append(tuple([fn(row, context) for fn in use]))
        return result

    def store(
        self, context: Context, action: str, new: Sequence[tuple | None] | None, old: Sequence[tuple | None] | None,
        joined: Sequence[tuple] | None = None, actions: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        """Write the rows of OUTPUT … INTO."""
        for into in self.into:
            assert context.transaction is not None
            for row in self.rows(context, action, new, old, joined, into.functions, actions):
                cells = [cell(row, context) for cell in into.cells]
                if into.identity >= 0:
                    cells[into.identity] = into.table.next_identity()
                into.table.insert(context.transaction, tuple(cells))

    def emit(self, rows: list[tuple]) -> Iterator[Event]:
        """The result set of OUTPUT."""
        yield Columns(self.columns)
        for start in range(0, len(rows), SLICE):
            yield Rows(rows[start : start + SLICE])


def compile_output(
    compiler: Compiler, nodes: Sequence[st.Output], table: Table, *, inserted: bool, deleted: bool,
    source: Scope | None = None, merge: bool = False,
) -> OutputPlan:  # fmt: skip
    """Compile OUTPUT clauses: `inserted.`, `deleted.`, `$action` and the columns of FROM are available."""
    fields: list[Field] = [Field("$action", t.nvarchar(10, collation=compiler.collation), False, ("$",))]
    fields += _special(compiler, table, "inserted") if inserted else _hidden(table)
    fields += _special(compiler, table, "deleted") if deleted else _hidden(table)
    joined = list(source.fields) if source is not None else []
    fields += joined
    scope = Scope(fields, compiler.fold)
    plan = OutputPlan(len(table.columns), len(joined))
    for node in nodes:
        items = _items(compiler, node, scope, merge=merge)
        if not node.into:
            plan.functions = tuple(expr.fn for _, expr in items)
            plan.columns = tuple(
                ResultColumn(name, expr.type, nullable=expr.nullable or not inserted) for name, expr in items
            )
            continue
        target = target_table(compiler, node.into, "INSERT")
        places = insert_columns(target, node.columns)
        out = [Field(name, expr.type, expr.nullable, special="null" if expr.null else "") for name, expr in items]
        if len(out) != len(places):
            raise error(213)
        cells = row_builder(target, places, out, named=bool(node.columns))
        identity = next((p for p, col in enumerate(target.columns) if col.identity is not None), -1)
        plan.into.append(_Into(target, tuple(expr.fn for _, expr in items), cells, identity))
    return plan


def _special(compiler: Compiler, table: Table, name: str) -> list[Field]:
    fields = masked_fields(compiler.session, table, table_fields(table, ()))
    return [Field(f.name, f.type, True, (name,), masking=f.masking) for f in fields]


def _hidden(table: Table) -> list[Field]:
    return [Field("", col.type, True, ("",)) for col in table.columns]


def _items(compiler: Compiler, node: st.Output, scope: Scope, *, merge: bool) -> list[tuple[str, Expr]]:
    found: list[tuple[str, Expr]] = []
    for expression, alias in node.items:
        if isinstance(expression, ast.Star):
            for place in scope.star(expression.qualifier):
                field_ = scope.fields[place]
                plain = column(place, field_.type, nullable=True)
                found.append((field_.name, masked_value(plain, field_.masking)))
            continue
        if isinstance(expression, ast.ColumnRef) and expression.parts[-1].lower() == "$action" and not merge:
            raise error(207, name="$action")
        expr = compiler.value(expression, scope)
        expr = as_seen(expression, expr, scope)
        found.append((alias or (expression.parts[-1] if isinstance(expression, ast.ColumnRef) else ""), expr))
    return found


def finish(
    frame: Frame, action: str, count: int, output: OutputPlan | None, new: list[tuple] | None, old: list[tuple] | None,
    joined: list[tuple] | None = None,
) -> Steps:  # fmt: skip
    """OUTPUT rows and the row count of a change."""
    session = frame.session
    if output is not None and output.columns:
        yield from output.emit(output.rows(frame.context(), action.upper(), new, old, joined))
    session.row_count = count
    yield session.done(frame, count, action)
    return None

"""UPDATE and DELETE … WHERE CURRENT OF a T-SQL cursor: the row fetched last."""

from __future__ import annotations

from typing import Any

from mssql_sandbox.engine.storage.views import open_view
from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.query.sources import SourcePlanner
from mssql_sandbox.exec.scope import table_fields
from mssql_sandbox.exec.statements.targets import Target, target_table
from mssql_sandbox.exec.variables import walk
from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql import statements as st

_READ_ONLY = frozenset({"READ_ONLY", "FAST_FORWARD", "STATIC", "INSENSITIVE"})


def is_positioned(statements: Any, cursor: str) -> bool:
    """Whether statements change rows through the cursor: only then does it read row ids, and rows for update."""
    name = cursor.lower()
    return any(isinstance(part, ast.CurrentOf) and part.cursor.lower() == name for part in walk(statements))


def current_target(compiler: Compiler, name: ast.Name, where: ast.CurrentOf, action: str) -> Target:
    """The current row of a cursor as the target of UPDATE or DELETE."""
    table = target_table(compiler, name, action)
    qualifier = (table.name,) if table.private else (table.database.name, table.schema.name, table.name)
    scope = SourcePlanner(compiler, None).scope(table_fields(table, qualifier))
    slots = compiler.variables.slots

    def entries(context: Context) -> list[tuple[int, tuple, tuple]]:
        cursor = _cursor(context, slots, where.cursor)
        if _READ_ONLY & set(cursor.node.options):
            raise SqlError(16929, "The cursor is READ ONLY.")
        if cursor.table is not table:
            raise SqlError(16933, "The cursor does not include the table being modified or the table is not updatable "
                           "through the cursor.")  # fmt: skip
        if cursor.rows is None or not 0 <= cursor.place < len(cursor.rows):
            raise SqlError(16931, "There are no rows in the current fetch buffer.")
        rowid = cursor.rowids[cursor.place]
        assert context.transaction is not None
        row = table.fetch(open_view(context.transaction, table.database, for_update=True), rowid)
        if row is None:
            raise SqlError(16934, "Optimistic concurrency check failed. The row was modified outside of this cursor.")
        return [(rowid, row, row)]

    return Target(table, entries, scope)


def _cursor(context: Context, slots: dict[str, Any], name: str) -> Any:
    if name.startswith("@"):
        slot = slots.get(name.lower())
        found = None if slot is None else context.values[slot.place]
    else:
        found = context.session.cursors.get(name.lower())
    if found is None:
        raise SqlError(16916, f"A cursor with the name '{name}' does not exist.")
    return found


def cursor_changes(node: st.DeclareCursor, statements: Any) -> bool:
    """Whether a declared cursor must return row ids when it is opened."""
    return not _READ_ONLY & set(node.options) and is_positioned(statements, node.name)

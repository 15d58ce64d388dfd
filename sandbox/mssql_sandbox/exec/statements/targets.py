"""The rows that a statement changes: the target table, and the scan or join that finds its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions.base import Fn
from mssql_sandbox.exec.query.masks import masked_fields
from mssql_sandbox.exec.query.row_filters import row_filters
from mssql_sandbox.exec.query.sargs import conjuncts
from mssql_sandbox.exec.query.scans import Access, scan_entries
from mssql_sandbox.exec.query.sources import SourcePlanner
from mssql_sandbox.exec.scope import Scope, table_fields
from mssql_sandbox.exec.security import require, require_columns
from mssql_sandbox.tsql import ast


def target_table(
    compiler: Compiler, name: ast.Name, *permissions: str, columns: Sequence[str] | None = None
) -> Table:  # fmt: skip
    """The table that a statement changes; views, system objects and missing permissions (229) are errors.

    UPDATE may be permitted on single columns: `columns` are those that the statement sets (230).
    """
    if name[0].startswith("@"):
        return compiler.variables.writable_table(name[0]).table
    compiler.reads_tables = True
    found = compiler.names.find(name)
    if isinstance(found, Table):
        if not found.private and not compiler.module_depth:
            for permission in permissions:
                if permission == "UPDATE" and columns is not None:
                    require_columns(compiler.session, found, permission, columns)
                    continue
                require(compiler.session, found.database, permission, found.schema.name, found.name)
        refuse_history(found, permissions)
        return found
    if found is not None and found.type_code == "V":
        raise SqlError(
            4406, f"Update or insert of view or function '{'.'.join(name)}' failed: this server changes views with "
            "INSERT, UPDATE and DELETE only."
        )  # fmt: skip
    if found is None and compiler.session.server.catalog is not None:
        place = compiler.names.place(name)
        if compiler.session.server.catalog.view(place.database, place.schema, place.name) is not None:
            raise SqlError(259, "Ad hoc updates to system catalogs are not allowed.")
    raise error(208, name=".".join(name))


_HISTORY = {
    "INSERT": (13559, "insert rows in"),
    "DELETE": (13560, "delete rows from"),
    "UPDATE": (13561, "update rows in"),
}


def refuse_history(table: Table, actions: Sequence[str]) -> None:
    """Errors 13559 to 13561: statements cannot change the history of a system-versioned table."""
    if table.properties.get("temporal_type") == 1:
        for action in actions:
            number, words = _HISTORY[action]
            raise SqlError(number, f"Cannot {words} a temporal history table '{table.long_name}'.")


@dataclass(frozen=True, slots=True)
class Target:
    """The rows that UPDATE or DELETE changes: a scan of the target, or a plan over FROM that returns row ids.

    `entries` gives (row id, row of the target, whole joined row). `names` maps the columns of a view, common table or
    derived table to those of the base table, `checks` are the conditions of WITH CHECK OPTION on new rows.
    """

    table: Table
    entries: Callable[[Context], list[tuple[int, tuple, tuple]]]
    scope: Scope
    names: Mapping[object, str | None] | None = None
    checks: tuple[Fn, ...] = ()
    owner: Any = None

    @property
    def changed(self) -> Any:
        """Whose triggers fire: the table, or the view with an INSTEAD OF trigger."""
        return self.table if self.owner is None else self.owner


def single_target(
    compiler: Compiler, table: Table, alias: str, where: ast.Expression | None, hints: frozenset[str]
) -> Target:
    """The target of a statement that reads no other table."""
    planner = SourcePlanner(compiler, None)
    qualifier = (
        (alias or table.name,) if table.private or alias else (table.database.name, table.schema.name, table.name)
    )
    scope = planner.scope(masked_fields(compiler.session, table, table_fields(table, qualifier)))
    conditions = conjuncts(where)
    access, covered, _ = planner.access(table, scope, conditions, (), prefer_order=False)
    rest = [node for node in conditions if not any(node is done for done in covered)]
    checks = [*row_filters(compiler, table), *(compiler.condition(node, scope).fn for node in rest)]
    return Target(table, entries_of(table, access, hints, checks), scope)


def entries_of(
    table: Table, access: Access, hints: frozenset[str], checks: Sequence[Fn]
) -> Callable[[Context], list[tuple[int, tuple, tuple]]]:
    """Rows of a table that pass all checks, with their row ids."""

    def entries(context: Context) -> list[tuple[int, tuple, tuple]]:
        found: list[tuple[int, tuple, tuple]] = []
        for slice_ in scan_entries(table, context, access, hints):
            for rowid, row in slice_:
                if all(check(row, context) is True for check in checks):
                    found.append((rowid, row, row))
        return found

    return entries

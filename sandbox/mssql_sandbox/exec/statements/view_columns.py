"""Columns of views as columns of their base tables: for INSERT, for SET, and for WITH CHECK OPTION."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions.base import Fn
from mssql_sandbox.exec.statements.updatable import target_source
from mssql_sandbox.tsql import ast


def insert_target(
    compiler: Compiler, name: ast.Name, columns: Sequence[str]
) -> tuple[Table, tuple[str, ...], tuple[Fn, ...]] | None:
    """Base table, columns and checks for an INSERT into a view or common table expression; None for others."""
    is_common = len(name) == 1 and compiler.fold(name[0]) in compiler.common_tables
    if name[0].startswith("@") or not is_common:
        found = None if name[0].startswith("@") else compiler.names.find(name)
        if found is None or found.type_code != "V":
            return None
    source = target_source(compiler, ast.NamedTable(name), frozenset(), list(columns) or None, "INSERT")
    assert source.names is not None
    wanted = list(columns) or [field.name for field in source.leaf.fields if not field.hidden]
    return source.table, tuple(base_column(source.names, one, compiler, name[-1]) for one in wanted), source.checks


def base_column(names: Mapping[object, str | None], name: str, compiler: Compiler, target: str) -> str:
    """The base column of a visible one; 207, or 4406 for computed ones."""
    key = compiler.fold(name)
    if key not in names:
        raise error(207, name=name)
    found = names[key]
    if found is None:
        raise SqlError(4406, f"Update or insert of view or function '{target}' failed because it contains a derived or "
                       "constant field.")  # fmt: skip
    return found


def check_rows(checks: Sequence[Fn], rows: Sequence[tuple], context: Context) -> None:
    """WITH CHECK OPTION: 550 if a new row would not be visible through the view."""
    if any(check(row, context) is not True for check in checks for row in rows):
        raise SqlError(
            550, "The attempted insert or update failed because the target view either specifies WITH CHECK OPTION or "
            "spans a view that specifies WITH CHECK OPTION and one or more rows resulting from the operation did not "
            "qualify under the CHECK OPTION constraint."
        )  # fmt: skip

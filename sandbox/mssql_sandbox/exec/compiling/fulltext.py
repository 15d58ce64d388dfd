"""CONTAINS and FREETEXT as conditions."""

from __future__ import annotations

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.storage.documents import text_index
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions.base import Expr, coerce, derived
from mssql_sandbox.exec.expressions.fulltext import READERS, searched
from mssql_sandbox.exec.scope import Scope
from mssql_sandbox.tsql import ast

_TWO_TABLES = "Fulltext predicate references columns from two different tables or indexed views, which is not allowed."


def full_text(compiler: Compiler, node: ast.FullText, scope: Scope) -> Expr:
    """Whether a row has what is searched for; 7601 where the table or column has no full-text index."""
    table, names = _searched(compiler, node, scope)
    hits, accents = searched(table, names)
    qualifier = node.columns[0][:-1] if node.columns else node.qualifier
    # Only those columns are compiled that are searched, or say what a searched document is.
    index = text_index(table)
    assert index is not None
    wanted = {name for entry in index.columns for name in entry[:2] if name}
    cells = [
        compiler.value(ast.ColumnRef((*qualifier, column.name), node.line), scope) if column.name in wanted else None
        for column in table.columns
    ]
    functions = [None if cell is None else cell.fn for cell in cells]
    search = coerce(compiler.value(node.search), t.nvarchar(t.MAX, collation=compiler.collation))
    read = READERS[node.kind]

    def fn(row: tuple, context: Context) -> bool:
        cache = context.cache
        condition = cache.get(fn)
        if condition is None:
            condition = cache[fn] = read(search.fn((), context), accents=accents)
        values = [None if cell is None else cell(row, context) for cell in functions]
        return hits(values, condition) > 0

    return derived(t.BIT, fn, *(cell for cell in cells if cell is not None), predicate=True)


def _searched(compiler: Compiler, node: ast.FullText, scope: Scope) -> tuple[Table, tuple[str, ...]]:
    """The one table that the columns belong to, and their names; `*` is the first table in scope that has an index."""
    if node.columns:
        tables = {id(found): found for found in (_table_of(compiler, name, scope, node.line) for name in node.columns)}
        if len(tables) > 1:
            raise SqlError(7646, _TWO_TABLES)
        return next(iter(tables.values())), tuple(name[-1] for name in node.columns)
    first: Table | None = None
    for field in scope.fields:
        if node.qualifier and compiler.fold(field.qualifier[-1] if field.qualifier else "") != compiler.fold(
            node.qualifier[-1]
        ):
            continue
        found = compiler.names.find(field.origin.table) if field.origin is not None and field.origin.table else None
        if isinstance(found, Table):
            first = first or found
            if text_index(found) is not None:
                return found, ()
    if first is None:
        raise error(4104, name=".".join((*node.qualifier, "*")))
    return first, ()


def _table_of(compiler: Compiler, name: ast.Name, scope: Scope, line: int) -> Table:
    level, place = scope.resolve(name, line)
    origin = level.fields[place].origin
    found = compiler.names.find(origin.table) if origin is not None and origin.table else None
    if not isinstance(found, Table):
        raise error(7601, name=".".join(name[:-1]) or name[-1])
    return found

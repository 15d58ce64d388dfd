"""CONTAINSTABLE and FREETEXTTABLE: keys and ranks of the rows that have what is searched for."""

from __future__ import annotations

from collections.abc import Iterable

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.storage.documents import text_index
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.errors import error
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions.base import coerce
from mssql_sandbox.exec.expressions.fulltext import READERS, searched
from mssql_sandbox.exec.query.operators import Operator, Rows
from mssql_sandbox.exec.query.scans import Access, TableScan
from mssql_sandbox.exec.scope import Field
from mssql_sandbox.exec.security import require
from mssql_sandbox.tsql import ast

_HIGHEST = 1000


def plan_fulltext_table(compiler: Compiler, node: ast.FullTextTable) -> Operator:
    """[KEY] and [RANK] of matching rows, best first where only `top` are wanted.

    Ranks grow with the number of hits; they are not those of the real server, which weighs words by their rarity.

    Raises:
        SqlError: 208 for an unknown table, 229 without the right to SELECT, 7601 for one without a full-text index.
    """
    table = compiler.names.find(node.table)
    if not isinstance(table, Table):
        raise error(208, name=".".join(node.table))
    require(compiler.session, table.database, "SELECT", table.schema.name, table.name)
    hits, accents = searched(table, node.columns)
    index = text_index(table)
    key = table.index(index.key_index) if index is not None else None
    assert key is not None
    place = key.ordinals[0]
    compiler.reads_tables = True
    search = coerce(compiler.value(node.search), t.nvarchar(t.MAX, collation=compiler.collation)).fn
    top = None if node.top is None else coerce(compiler.value(node.top), t.INT).fn
    read = READERS[node.kind]
    scan = TableScan(table, (), hints=frozenset(), access=Access(), order=())

    def rows(context: Context) -> Iterable[tuple]:
        condition = read(search((), context), accents=accents)
        found = []
        for row in (row for part in scan.open(context) for row in part):
            count = hits(row, condition)
            if count:
                found.append((row[place], min(16 * count, _HIGHEST)))
        if top is None:
            return found
        return sorted(found, key=lambda pair: -pair[1])[: top((), context)]

    fields = [
        Field("KEY", table.columns[place].type, False, (node.alias,)), Field("RANK", t.INT, False, (node.alias,)),
    ]  # fmt: skip
    return Rows(fields, rows)

"""OPENROWSET(BULK 'file', SINGLE_…): one row, whose only column holds a whole file of the server's machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.data_files import decoded, read_bytes
from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.definition_rights import require_bulk
from mssql_sandbox.exec.query.operators import Operator, Rows
from mssql_sandbox.exec.scope import Field
from mssql_sandbox.tsql import ast


def plan_bulk_rowset(compiler: Compiler, node: ast.BulkRowset) -> Operator:
    """The plan: (max) of varbinary, varchar (text of the server's code page) or nvarchar (UTF-16).

    Raises:
        SqlError: 4834 without the right to read files, 4860 and 4861 for files that cannot be read (when it runs).
    """
    require_bulk(compiler.session)
    type_, content = _KINDS[node.kind]

    def rows(_context: Context) -> Iterable[tuple]:
        return [(content(node.file),)]

    shown = t.with_collation(type_, compiler.collation) if type_.name != "varbinary" else type_
    return Rows([Field(node.column, shown, True, (node.alias,))], rows)


def _national(path: str) -> str:
    content = read_bytes(path)
    if content[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        raise SqlError(
            4809, "SINGLE_NCLOB requires a UNICODE (widechar) input file. The file specified is not Unicode."
        )
    return decoded(content, "1200")


_KINDS: dict[str, tuple[t.SqlType, Callable[[str], bytes | str]]] = {
    "SINGLE_BLOB": (t.varbinary(t.MAX), read_bytes),
    "SINGLE_CLOB": (t.varchar(t.MAX), lambda path: decoded(read_bytes(path), "ACP")),
    "SINGLE_NCLOB": (t.nvarchar(t.MAX), _national),
}

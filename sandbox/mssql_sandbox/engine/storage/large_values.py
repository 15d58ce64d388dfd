"""The limit on large captured values: the server option `max text repl size`.

It is checked when a row is written, not when it is captured: a statement with a larger value fails (7139 [pub]).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mssql_sandbox.engine.types import SqlType
from mssql_sandbox.errors import error

if TYPE_CHECKING:
    from mssql_sandbox.engine.storage.table import Table

OPTION = "max text repl size (B)"
_LEGACY = frozenset({"text", "ntext", "image", "xml"})
_TWO_BYTES = frozenset({"nvarchar", "ntext", "xml"})


def is_large_object(type_: SqlType) -> bool:
    """Whether values of the type are stored as large objects."""
    return type_.name in _LEGACY or (type_.length == -1 and type_.name in ("varchar", "nvarchar", "varbinary"))


def check_replicated_sizes(table: Table, row: tuple) -> None:
    """Refuse a row of a tracked table if a captured large object exceeds the limit; -1 means no limit.

    Raises:
        SqlError: 7139, with the value's length in bytes.
    """
    limit = table.database.server.config[OPTION]
    if limit < 0:
        return
    for place in table.large_at:
        column, value = table.columns[place], row[place]
        if value is None:
            continue
        length = len(value) * (2 if column.type.name in _TWO_BYTES else 1)
        if length > limit and column.replicated:
            raise error(7139, length=length, maximum=limit)

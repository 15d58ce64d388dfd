"""INDEX hints of a table in FROM: the indexes must exist."""

from __future__ import annotations

from collections.abc import Sequence

from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.errors import SqlError
from mssql_sandbox.tsql import ast

_INDEX = "INDEX="


def check_index_hints(table: Table, name: ast.Name, hints: Sequence[str]) -> None:
    """Errors 307 and 308 if an INDEX hint names no index of the table; 0 is the table itself."""
    for hint in hints:
        index = hint.removeprefix(_INDEX)
        if index == hint:
            continue
        shown = ".".join(name)
        if index.isdecimal():
            known = {one.index_id for one in table.indexes} | {0}
            if int(index) not in known:
                raise SqlError(
                    307, f"Index ID {index} on table '{shown}' (specified in the FROM clause) does not exist."
                )
        elif table.index(index) is None:
            raise SqlError(308, f"Index '{index}' on table '{shown}' (specified in the FROM clause) does not exist.")

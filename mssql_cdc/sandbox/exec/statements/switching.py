"""ALTER TABLE … SWITCH TO: all rows of a table become another's, without being read or written.

Change data capture does not see them [doc]. Partitions are known by number only, so that whole tables are switched.
"""

from __future__ import annotations

from collections.abc import Sequence

from mssql_cdc.sandbox.engine.storage import index_changes, schema_change
from mssql_cdc.sandbox.engine.storage.sorted_keys import SortedKeys
from mssql_cdc.sandbox.engine.storage.table import Table
from mssql_cdc.sandbox.engine.transaction import Transaction
from mssql_cdc.sandbox.engine.types import declaration
from mssql_cdc.sandbox.engine.versions import Slot, newest
from mssql_cdc.sandbox.errors import SqlError, error
from mssql_cdc.sandbox.exec.compiler import Compiler
from mssql_cdc.sandbox.exec.definition_rights import require_alter
from mssql_cdc.sandbox.tsql import ast

_FAILED = "ALTER TABLE SWITCH statement failed"


def switch(compiler: Compiler, source: Table, name: ast.Name, transaction: Transaction) -> None:
    """Move the rows of `source` to the table of this name.

    Raises:
        SqlError: 4902 no such table, 4943, 4944, 4957 other columns, 4905 it is not empty.
    """
    target = compiler.names.find(name)
    if not isinstance(target, Table):
        raise error(4902, name=".".join(name))
    require_alter(compiler.session, target)
    _require_same_columns(source, target)
    if target.row_count:
        raise SqlError(4905, f"{_FAILED}. The target table '{target.long_name}' must be empty.")
    for table in (source, target):
        schema_change.begin_ddl(table, transaction)
    before = [(table, _state(table)) for table in (source, target)]

    def undo() -> None:
        for table, state in before:
            table.heap, table.free, table.versions, entries = state
            for index, old in zip(table.indexes, entries, strict=True):
                index.entries = old

    transaction.on_undo(undo)
    rows = [row for slot in source.heap if (row := newest(slot)) is not None]
    _fill(source, [])
    _fill(target, rows)


def _require_same_columns(source: Table, target: Table) -> None:
    if len(source.columns) != len(target.columns):
        raise SqlError(
            4943, f"{_FAILED} because table '{source.long_name}' has {len(source.columns)} columns and table "
            f"'{target.long_name}' has {len(target.columns)} columns."
        )  # fmt: skip
    for own, other in zip(source.columns, target.columns, strict=True):
        if own.name.lower() != other.name.lower():
            raise SqlError(
                4957, f"'{_FAILED}' because column '{own.name}' of table '{source.long_name}' is named '{other.name}' "
                f"in table '{target.long_name}'."
            )  # fmt: skip
        if own.type != other.type:
            raise SqlError(
                4944, f"{_FAILED} because column '{own.name}' has data type {declaration(own.type)} in source table "
                f"'{source.long_name}' which is different from its type {declaration(other.type)} in target table "
                f"'{target.long_name}'."
            )  # fmt: skip


def _state(table: Table) -> tuple[list[Slot], list[int], int, list[SortedKeys]]:
    return table.heap, table.free, table.versions, [index.entries for index in table.indexes]


def _fill(table: Table, rows: Sequence[Slot]) -> None:
    """Give a table these rows and no others."""
    table.heap, table.free, table.versions = [*rows], [], 0
    for index in table.indexes:
        index.entries = SortedKeys()
        if not index.disabled:
            index_changes.rebuild_index(table, index)

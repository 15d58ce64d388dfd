"""Definitions of system-versioned (temporal) tables; FOR SYSTEM_TIME belongs to `query.history`.

Evidence: Microsoft's documentation of temporal tables and its list of errors; 13530, 13592 and 4945 are estimates. The
engine keeps former rows when rows are written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mssql_sandbox.engine.storage import index_changes, schema_change
from mssql_sandbox.engine.storage.columns import Column, Generated
from mssql_sandbox.engine.storage.index import Index
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql.parser import Parser

Options = Sequence[tuple[str, str]]
HISTORY, VERSIONED = 1, 2


def define(
    table: Table, transaction: Transaction, period: tuple[str, str] | None, options: Options, compiler: Compiler
) -> None:
    """PERIOD FOR SYSTEM_TIME and SYSTEM_VERSIONING of CREATE TABLE. 13504, 13505, 13509, 13501, 13510, 13553."""
    if period is None and any(column.generated for column in table.columns):
        raise SqlError(13509, "Cannot create generated always column when SYSTEM_TIME period is not defined.")
    if period is not None:
        add_period(table, period)
    for name, text in options:
        if name == "SYSTEM_VERSIONING":
            set_versioning(table, transaction, text, compiler)


def add_period(table: Table, period: tuple[str, str]) -> None:
    """Check the columns of PERIOD FOR SYSTEM_TIME (start, end)."""
    for kind, number, name in (("start", 13504, period[0]), ("end", 13505, period[1])):
        column = table.column(name)
        if column is None or column.generated != kind:
            raise SqlError(number, f"Temporal 'GENERATED ALWAYS AS ROW {kind.upper()}' column definition missing.")
        if column.type.name != "datetime2" or column.nullable:
            raise SqlError(13501, f"Temporal generated always column '{column.name}' has invalid data type.")
    table.rebind()


def drop_period(table: Table, transaction: Transaction) -> None:
    """DROP PERIOD FOR SYSTEM_TIME: the columns stay as ordinary ones; 13592 while versioning is on."""
    columns = [column for column in table.columns if column.generated]
    if table.history is not None:
        raise SqlError(
            13592,
            f"Period FOR SYSTEM_TIME on table '{table.long_name}' cannot be dropped while SYSTEM_VERSIONING is ON.",
        )
    if not columns:
        raise SqlError(4945, f"Table '{table.long_name}' has no PERIOD FOR SYSTEM_TIME to drop.")
    before: list[tuple[Column, Generated, bool]] = [(column, column.generated, column.hidden) for column in columns]
    schema_change.begin_ddl(table, transaction)

    def undo() -> None:
        for column, kind, hidden in before:
            column.generated = kind
            column.hidden = hidden
        _touch(table)

    transaction.on_undo(undo)
    for column in columns:
        column.generated, column.hidden = "", False
    _touch(table)


def set_versioning(table: Table, transaction: Transaction, text: str, compiler: Compiler) -> None:
    """SYSTEM_VERSIONING = ON [(HISTORY_TABLE = s.t, …)] | OFF."""
    parser = Parser(text)
    if parser.expect_one("ON", "OFF") == "OFF":
        if table.history is None:
            raise SqlError(13591, f"SYSTEM_VERSIONING is not turned ON for table '{table.long_name}'.")
        _link(table, table.history, transaction, on=False)
        return
    options = dict(parser.option_list()) if parser.text == "(" else {}
    unknown = options.keys() - {"HISTORY_TABLE", "DATA_CONSISTENCY_CHECK", "HISTORY_RETENTION_PERIOD"}
    if unknown:
        raise SqlError(102, f"Incorrect syntax near '{min(unknown)}'.", severity=15)
    if table.period_at is None:
        raise SqlError(
            13510, "Cannot set SYSTEM_VERSIONING to ON when SYSTEM_TIME period is not defined and the LEDGER=ON option "
            "is not specified."
        )  # fmt: skip
    if table.primary_key is None:
        raise SqlError(13553, f"System versioned temporal table '{table.long_name}' must have primary key defined.")
    name = Parser(options["HISTORY_TABLE"]).name() if "HISTORY_TABLE" in options else ()
    if len(name) == 1:
        raise SqlError(
            13539, f"Setting SYSTEM_VERSIONING to ON failed because history table '{name[0]}' is not specified in "
            "two-part name format."
        )  # fmt: skip
    found = compiler.names.find(name) if name else None
    history = _make_history(table, transaction, name) if found is None else _checked_history(table, found)
    _link(table, history, transaction, on=True)


def _make_history(table: Table, transaction: Transaction, name: ast.Name) -> Table:
    """A history table: the same columns without keys, defaults and checks, clustered by the period."""
    assert table.period_at is not None
    schema, local = name[-2:] if name else (table.schema.name, f"MSSQL_TemporalHistoryFor_{table.object_id}")
    columns = [former_column(column) for column in table.columns]
    history = table.database.create_table(transaction, schema, local, columns)
    start, end = (table.columns[place].name for place in table.period_at)
    keys = ((end, False), (start, False))
    index_changes.add_index(history, transaction, Index(f"ix_{local}", 0, keys, unique=False, clustered=True))
    return history


def former_column(column: Column) -> Column:
    """A column as in the history table."""
    return Column(column.name, column.type, nullable=column.nullable)


def _checked_history(table: Table, found: Any) -> Table:
    """An existing table as history: 13518, 13523, 13525 if it does not match."""
    if not isinstance(found, Table):
        raise SqlError(13530, f"Setting SYSTEM_VERSIONING to ON failed because '{found.name}' is not a table.")
    where = f"history table '{found.long_name}'"
    if found.primary_key is not None or any(index.unique for index in found.indexes):
        raise SqlError(
            13515, f"Setting SYSTEM_VERSIONING to ON failed because {where} has custom unique keys defined. Consider "
            "dropping all unique keys and trying again."
        )  # fmt: skip
    if found.identity is not None:
        raise SqlError(
            13518, f"Setting SYSTEM_VERSIONING to ON failed because {where} has IDENTITY column specification. "
            "Consider dropping all IDENTITY column specifications and trying again."
        )  # fmt: skip
    if len(found.columns) != len(table.columns):
        raise SqlError(
            13523, f"Setting SYSTEM_VERSIONING to ON failed because table '{table.long_name}' has {len(table.columns)} "
            f"columns and table '{found.long_name}' has {len(found.columns)} columns."
        )  # fmt: skip
    for column in table.columns:
        other = found.column(column.name)
        if other is None or other.type != column.type:
            raise SqlError(
                13525, f"Setting SYSTEM_VERSIONING to ON failed because column '{column.name}' does not have the same "
                f"data type in table '{table.long_name}' and table '{found.long_name}'."
            )  # fmt: skip
    return found


def _link(table: Table, history: Table, transaction: Transaction, *, on: bool) -> None:
    """Link a table to its history, or unlink them."""
    schema_change.begin_ddl(table, transaction)
    before = (table.history, table.properties.get("temporal_type"), history.properties.get("temporal_type"))

    def put(history_table: Table | None, own: int | None, other: int | None) -> None:
        table.history = history_table
        for item, value in ((table, own), (history, other)):
            item.properties.pop("temporal_type", None)
            if value is not None:
                item.properties["temporal_type"] = value
            _touch(item)

    transaction.on_undo(lambda: put(*before))
    put(history, VERSIONED, HISTORY) if on else put(None, None, None)


def _touch(table: Table) -> None:
    """Invalidate compiled statements: they compare the list of columns by identity."""
    table.columns = list(table.columns)
    table.rebind()

"""The check of whole databases: every captured table's source against its current table, or its change log.

It needs no Spark and writes nothing. While it runs, the source should be idle and the lake caught up. Values that are
not compared (masked and computed columns, cells that CDC never delivered) are reported, never silently ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.members import LakeTable, load_tables
from mssql_cdc.capture.write_task import masks_of
from mssql_cdc.check.multiset import Comparison, compare
from mssql_cdc.check.sides import Compared, current_rows, log_rows, source_rows, unknown_cells
from mssql_cdc.errors import CheckDiffersError, NotCaughtUpError
from mssql_cdc.lake.current import applied_batch
from mssql_cdc.lake.history import load_history
from mssql_cdc.lake.offsets import load_offsets
from mssql_cdc.schema import TableId, TableSchema
from mssql_cdc.source.sqlserver.connect import control

SHOWN = 50


@dataclass(frozen=True, slots=True)
class TableCheck:
    """The result of checking one table. `left_out` lists columns that cannot be compared, with the reason."""

    table: TableId
    result: Comparison
    left_out: tuple[str, ...] = ()


def check_databases(
    databases: Sequence[Database], *, progress: Callable[[TableId, int, int], None]
) -> Iterator[TableCheck]:
    """Check every captured table of every database, one after another.

    Args:
        databases: The databases to check.
        progress: Called before each table with its name, the number of checked tables, and the total.

    Raises:
        NotCaughtUpError: nothing was captured yet, or not enough to compare.
    """
    for database in databases:
        found = _tables(database)
        for number, (member, schema) in enumerate(found):
            progress(member.table, number, len(found))
            yield check_table(database, member, schema)


def raise_differences(checks: Sequence[TableCheck]) -> None:
    """Raise when a table differs.

    Raises:
        CheckDiffersError: a table differs; the message names all that do.
    """
    different = [one.table.text for one in checks if not one.result.equal]
    if different:
        raise CheckDiffersError(f"{len(different)} tables differ: {', '.join(different)}")


def _tables(database: Database) -> list[tuple[LakeTable, TableSchema]]:
    """Return every captured table of the database except the signal table, whose rows no snapshot reads (SNP-27)."""
    offsets = load_offsets(database.layout, database.storage)
    history = load_history(database.layout, database.storage)
    with database.session() as session:
        members = load_tables(database, session.tables(), offsets, history)
    if not any(offsets.entry(table.text) for table in members):
        raise NotCaughtUpError(
            f"Not caught up yet: nothing of {database.catalog!r} is in {database.layout.root}; "
            "run mssql-cdc run --until-caught-up"
        )
    is_signal_table = database.connector.filters.tables.is_signal_table
    return [
        (member, history.newest(table) or member.captured.newest.schema)
        for table, member in members.items()
        if not is_signal_table(table.catalog or "", table.schema, table.name)
    ]


def check_table(database: Database, member: LakeTable, schema: TableSchema) -> TableCheck:
    """Check one table.

    Raises:
        NotCaughtUpError: the lake has no table to compare with yet.
    """
    masked = masks_of(database.connector, schema)
    compared = Compared.of(schema, masked)
    left_out = [f"{name} (masked)" for name in masked]
    left_out += [f"{column.name} (computed)" for column in schema.value_columns if column.computed]
    with control(database.connector.connection, database.catalog) as opened:
        if not schema.key_columns:
            result = compare(
                lambda: source_rows(opened, compared),
                lambda: log_rows(member.home.changes, compared, database.storage),
                compared.names,
                most=SHOWN,
            )
            return TableCheck(member.table, result, tuple(left_out))
        if applied_batch(member.home, schema, database.storage) is None:
            raise NotCaughtUpError(
                f"Not caught up yet: {member.table} has no current table; run mssql-cdc run --until-caught-up"
            )
        unknown = unknown_cells(member.home.current, compared, database.storage)
        if unknown:
            names = sorted({name for cells in unknown.values() for name in cells})
            left_out.append(f"cells of {', '.join(names)} in {len(unknown)} rows (never delivered by CDC)")
        result = compare(
            lambda: source_rows(opened, compared, unknown),
            lambda: current_rows(member.home.current, compared, unknown, database.storage),
            compared.names,
            most=SHOWN,
        )
    return TableCheck(member.table, result, tuple(left_out))

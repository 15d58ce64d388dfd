"""The check of whole databases: every captured table's source against its current table, or its change log.

Needs no Spark and writes nothing. The source should be at rest, and the lake caught up, while it runs; what is not
compared (masked and computed columns, cells that CDC never delivered) is said, never passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    """What the check of one table found. `left_out` names columns that cannot be compared, with the reason."""

    table: TableId
    result: Comparison
    left_out: tuple[str, ...] = ()

    @property
    def lines(self) -> list[str]:
        """The finding, for people."""
        notes = f"; not compared: {', '.join(self.left_out)}" if self.left_out else ""
        result = self.result
        if result.equal:
            return [f"{self.table}: equal, {result.source_rows} rows, sum {result.source_sum:032x}{notes}"]
        counts = f"{result.source_rows} rows at the source, {result.lake_rows} in the lake"
        lines = [f"{self.table}: DIFFERS, {counts}{notes}"]
        for one in result.differences:
            key = ", ".join(str(part) for part in one.key) or "(no key)"
            where = f" in {', '.join(one.columns)}" if one.kind == "differs" else ""
            lines.append(f"  key {key}: {one.kind}{where}")
        return lines


def check_databases(databases: Sequence[Database], *, show: Callable[[str], None]) -> int:
    """Check every table of every database, showing a line for each.

    Raises:
        CheckDiffersError: a table differs; the message names all that do.
        NotCaughtUpError: nothing was captured yet, or not enough to compare.
    """
    different = []
    for database in databases:
        for found in check_database(database):
            for line in found.lines:
                show(line)
            if not found.result.equal:
                different.append(found.table.text)
    if different:
        raise CheckDiffersError(f"{len(different)} tables differ: {', '.join(different)}")
    return 0


def check_database(database: Database) -> list[TableCheck]:
    """Check every captured table of one database but the signal table, whose rows no snapshot reads (SNP-27)."""
    offsets = load_offsets(database.layout, database.storage)
    history = load_history(database.layout, database.storage)
    with database.session() as session:
        members = load_tables(database, session.tables(), offsets, history)
    if not any(offsets.entry(table.text) for table in members):
        raise NotCaughtUpError(
            f"Not caught up yet: nothing of {database.catalog!r} is in {database.layout.root}; "
            "run mssql-cdc run --until-caught-up"
        )
    found = []
    for table, member in members.items():
        if database.connector.filters.tables.is_signal_table(table.catalog or "", table.schema, table.name):
            continue
        schema = history.newest(table)
        if schema is None:
            schema = member.captured.newest.schema
        found.append(check_table(database, member, schema))
    return found


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

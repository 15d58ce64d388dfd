"""Merges current tables up to the newest complete cut from the change logs. Merging is idempotent (A6)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from mssql_cdc.capture.current_tables import behind_cut, is_due
from mssql_cdc.capture.database import Database
from mssql_cdc.capture.members import LakeTable
from mssql_cdc.errors import FencedError, MssqlCdcError, OvertakenError
from mssql_cdc.follow.slow_work import SlowWork
from mssql_cdc.lake.current import CurrentRequest, CurrentResult, CurrentTables, Handed
from mssql_cdc.lake.history import SchemaHistory
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.schema import TableId

_NAMED = 8
"""How many tables a log line lists."""


@dataclass(frozen=True, slots=True)
class Merged:
    """The merged current tables; `errors` are tables whose merge failed and will be retried."""

    tables: Mapping[TableId, CurrentResult] = field(default_factory=dict[TableId, CurrentResult])
    errors: Mapping[TableId, MssqlCdcError] = field(default_factory=dict[TableId, MssqlCdcError])

    def raise_failure(self) -> None:
        """Raise the first table's error."""
        for table, error in self.errors.items():
            raise type(error)(f"{table}: {error}") from error


def merge_due(
    database: Database,
    tables: Mapping[TableId, LakeTable],
    offsets: Offsets,
    history: SchemaHistory,
    *,
    slow: SlowWork | None = None,
) -> Merged:
    """Merge the current tables that are behind and whose `delta.current.interval` has passed.

    Args:
        database: The database.
        tables: The captured tables.
        offsets: All offsets of the database.
        history: The schema history.
        slow: Does the slow work, and knows what failed a moment ago; by default, this call waits for the work.
    """
    behind = behind_cut(database, tables.values(), offsets, history)
    due = {table: up_to for table, up_to in behind.items() if is_due(database, tables[table])}
    return _merge_all(database, tables, history, due, slow)


def merge_now(
    database: Database,
    tables: Mapping[TableId, LakeTable],
    offsets: Offsets,
    history: SchemaHistory,
    *,
    only: Collection[TableId] | None = None,
    slow: SlowWork | None = None,
) -> Merged:
    """Merge the current tables that are behind, due or not.

    Args:
        database: The database.
        tables: The captured tables.
        offsets: All offsets of the database.
        history: The schema history.
        only: Only these tables.
        slow: Does the slow work; by default, this call waits for it.
    """
    behind = behind_cut(database, tables.values(), offsets, history)
    wanted = behind if only is None else {table: up_to for table, up_to in behind.items() if table in only}
    return _merge_all(database, tables, history, wanted, slow)


def merge_table(database: Database, table: LakeTable, history: SchemaHistory, up_to: int) -> CurrentResult:
    """Merge one current table up to `_batch` `up_to` of its change log.

    Args:
        database: The database.
        table: The table.
        history: The structures of its rows.
        up_to: The last `_batch` to merge.

    Raises:
        MssqlCdcError: The table cannot be merged.
    """
    current, request = _current_tables(database), _request(database, table, history, up_to)
    (result,) = current.apply_all([request])
    if isinstance(result, FencedError):  # Another run was faster: what it has left, often nothing, is ours to merge.
        (result,) = current.apply_all([request])
    if isinstance(result, OvertakenError):
        _log_overtaken(database, table.table, result)
    if isinstance(result, MssqlCdcError):
        raise result
    _log(database, {table.table: result})
    return result


def _merge_all(
    database: Database,
    tables: Mapping[TableId, LakeTable],
    history: SchemaHistory,
    wanted: Mapping[TableId, int],
    slow: SlowWork | None,
) -> Merged:
    done: dict[TableId, CurrentResult] = {}
    errors: dict[TableId, MssqlCdcError] = {}
    if slow is not None:
        left_alone = {table for table in wanted if table in slow.tables or slow.merges.waits(table)}
        wanted = {table: up_to for table, up_to in wanted.items() if table not in left_alone}
    requests = [
        replace(
            _request(database, tables[table], history, up_to),
            log=database.current_logs.known(tables[table].home.current),  # `behind_cut` has just read it.
        )
        for table, up_to in wanted.items()
    ]
    current = _current_tables(database)
    results = current.apply_all(requests) if slow is None else current.apply_quick(requests)
    for table, result in zip(wanted, results, strict=True):
        if isinstance(result, Handed) and slow is not None:
            slow.begin(table, CurrentResult, partial(_finish, database, table, result))
        elif isinstance(result, CurrentResult):
            done[table] = result
            if result.batch >= wanted[table]:
                database.caught_up.keep(tables[table].home.current, history.versions[table.text][-1], result.batch)
        elif isinstance(result, OvertakenError):
            _log_overtaken(database, table, result)
            if slow is not None and slow.merges.overtaken(table):
                errors[table] = result
        elif isinstance(result, MssqlCdcError) and not isinstance(result, FencedError):
            errors[table] = result  # After a FencedError, another run merged the same rows; its result is valid.
    _log(database, done)
    if slow is not None:
        slow.merges.note(done=done, failed=errors)
    return Merged(done, errors)


def _finish(database: Database, table: TableId, handed: Handed) -> CurrentResult:
    try:
        # With separate logs, since the capturing thread modifies the others.
        result = _current_tables(database.apart()).finish(handed)
    except OvertakenError as error:
        _log_overtaken(database, table, error)
        raise
    _log(database, {table: result})
    return result


def _log_overtaken(database: Database, table: TableId, error: OvertakenError) -> None:
    database.log(f"{table}: the current table is not updated yet: {error}")


def _request(database: Database, table: LakeTable, history: SchemaHistory, up_to: int) -> CurrentRequest:
    versions = history.versions[table.table.text]
    layout = database.connector.delta.layout_of(*table.table.parts)
    return CurrentRequest(table.home, versions, up_to, database.connector.delta.deletion_vectors, layout)


def _current_tables(database: Database) -> CurrentTables:
    return CurrentTables(database.spark, storage=database.storage, logs=database.current_logs, run_id=database.run_id)


def _log(database: Database, results: Mapping[TableId, CurrentResult]) -> None:
    """Write one line for all tables, since a line costs Dagster 25 ms, and one for each restored table."""
    for table, result in results.items():
        if result.restored is not None:
            database.log(
                f"{table}: somebody has restored the current table (Delta version {result.restored}) to rows that are "
                "out of date; it was built again from the change log"
            )
    merged = {table: result for table, result in results.items() if result.rows}
    for because in dict.fromkeys(result.because for result in merged.values()):
        same = {table: result.rows for table, result in merged.items() if result.because == because}
        named = [f"{table} {rows}" for table, rows in list(same.items())[:_NAMED]]
        others = f" and {len(same) - _NAMED} more tables" if len(same) > _NAMED else ""
        how = f" by Spark: {because}" if because else ""
        database.log(f"{sum(same.values())} change rows merged into current tables ({', '.join(named)}{others}){how}")

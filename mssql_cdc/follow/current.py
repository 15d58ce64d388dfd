"""Merges current tables up to the newest complete cut from the change logs. Merging is idempotent (A6)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from mssql_cdc.capture.current_tables import behind_cut, is_due
from mssql_cdc.capture.database import Database
from mssql_cdc.capture.members import LakeTable
from mssql_cdc.errors import FencedError, MssqlCdcError
from mssql_cdc.lake.current import CurrentRequest, CurrentResult, CurrentTables
from mssql_cdc.lake.history import SchemaHistory
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.schema import TableId


@dataclass(frozen=True, slots=True)
class Merged:
    """The merged current tables; `errors` are tables whose merge failed and will be retried."""

    tables: Mapping[TableId, CurrentResult] = field(default_factory=dict)
    errors: Mapping[TableId, MssqlCdcError] = field(default_factory=dict)

    def raise_failure(self) -> None:
        """Raise the first table's error."""
        for table, error in self.errors.items():
            raise type(error)(f"{table}: {error}") from error


def merge_due(
    database: Database, tables: Mapping[TableId, LakeTable], offsets: Offsets, history: SchemaHistory
) -> Merged:
    """Merge the current tables that are behind and whose `delta.current.interval` has passed."""
    behind = behind_cut(tables.values(), offsets, history, storage=database.storage)
    interval = database.connector.delta.current_interval_s
    due = {t: up_to for t, up_to in behind.items() if is_due(tables[t], interval, storage=database.storage)}
    return _merge_all(database, tables, history, due)


def merge_now(
    database: Database,
    tables: Mapping[TableId, LakeTable],
    offsets: Offsets,
    history: SchemaHistory,
    *,
    only: Collection[TableId] | None = None,
) -> Merged:
    """Merge the current tables that are behind, due or not; `only` these of them."""
    behind = behind_cut(tables.values(), offsets, history, storage=database.storage)
    wanted = behind if only is None else {table: up_to for table, up_to in behind.items() if table in only}
    return _merge_all(database, tables, history, wanted)


def merge_table(database: Database, table: LakeTable, history: SchemaHistory, up_to: int) -> CurrentResult:
    """Merge one current table up to `_batch` `up_to` of its change log."""
    (result,) = _apply(database, [(table, up_to)], history)
    if isinstance(result, MssqlCdcError):
        raise result
    return result


def _merge_all(
    database: Database, tables: Mapping[TableId, LakeTable], history: SchemaHistory, wanted: Mapping[TableId, int]
) -> Merged:
    done: dict[TableId, CurrentResult] = {}
    errors: dict[TableId, MssqlCdcError] = {}
    results = _apply(database, [(tables[table], up_to) for table, up_to in wanted.items()], history)
    for table, result in zip(wanted, results, strict=True):
        if isinstance(result, FencedError):
            continue  # Another run merged the same rows; its result is valid.
        if isinstance(result, MssqlCdcError):
            errors[table] = result
            continue
        done[table] = result
    return Merged(done, errors)


def _apply(
    database: Database, wanted: Sequence[tuple[LakeTable, int]], history: SchemaHistory
) -> list[CurrentResult | MssqlCdcError]:
    vectors = database.connector.delta.deletion_vectors
    requests = [
        CurrentRequest(table.home, history.versions[table.table.text], up_to, vectors) for table, up_to in wanted
    ]
    current = CurrentTables(
        database.spark, storage=database.storage, logs=database.current_logs, run_id=database.run_id
    )
    results = current.apply_all(requests)
    for (table, _), result in zip(wanted, results, strict=True):
        if isinstance(result, CurrentResult) and result.rows:
            how = f" by Spark: {result.because}" if result.because else ""
            database.log(f"{table.table}: {result.rows} change rows merged into the current table{how}")
    return results

"""Merges current tables up to the newest complete cut from the change logs. Merging is idempotent (A6)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial

from mssql_cdc.capture.current_tables import behind_cut, is_due
from mssql_cdc.capture.database import Database
from mssql_cdc.capture.members import LakeTable
from mssql_cdc.errors import FencedError, MssqlCdcError
from mssql_cdc.lake.current import CurrentResult, apply
from mssql_cdc.lake.history import SchemaHistory
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.schema import TableId
from mssql_cdc.spark.tasks import side_by_side


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
    result = apply(
        database.spark(),
        table.home,
        history.versions[table.table.text],
        up_to=up_to,
        run_id=database.run_id,
        deletion_vectors="true" if database.connector.delta.deletion_vectors else "false",
        storage=database.storage,
    )
    if result.rows:
        database.log(f"{table.table}: {result.rows} change rows merged into the current table")
    return result


def _merge_all(
    database: Database, tables: Mapping[TableId, LakeTable], history: SchemaHistory, wanted: Mapping[TableId, int]
) -> Merged:
    if not wanted:
        return Merged()
    done: dict[TableId, CurrentResult] = {}
    errors: dict[TableId, MssqlCdcError] = {}
    merges = [partial(merge_table, database, tables[table], history, up_to) for table, up_to in wanted.items()]
    for table, result in zip(wanted, side_by_side(database.spark(), merges), strict=True):
        if isinstance(result, FencedError):
            continue  # Another run merged the same rows; its result is valid.
        if isinstance(result, MssqlCdcError):
            errors[table] = result
            continue
        done[table] = result
    return Merged(done, errors)

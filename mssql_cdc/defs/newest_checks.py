"""The newest evaluation of each table's check, which runs that capture, snapshots and operators all write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import dagster as dg

from mssql_cdc.defs.setup import Setup
from mssql_cdc.defs.specs import CHECK
from mssql_cdc.schema import TableId


def newest_checks(
    setup: Setup, instance: dg.DagsterInstance, tables: Iterable[TableId]
) -> Mapping[TableId, dg.AssetCheckEvaluation]:
    """Return the newest evaluations of the tables that have one; a run that has begun has only planned one.

    Args:
        setup: The database.
        instance: Where the evaluations are.
        tables: The tables.
    """
    keys = {dg.AssetCheckKey(setup.names.log_key(table), CHECK): table for table in tables}
    if not keys:
        return {}
    storage: Any = instance.event_log_storage  # Not all of Dagster's own types are known.
    found: Mapping[dg.AssetCheckKey, Any] = storage.get_asset_check_summary_records(list(keys))
    records = {table: found[key].last_completed_check_execution_record for key, table in keys.items()}
    return {
        table: record.event.dagster_event.asset_check_evaluation_data
        for table, record in records.items()
        if record is not None
    }


def value_of(found: dg.AssetCheckEvaluation, name: str) -> object:
    """Return a value of an evaluation's metadata; None: it has none.

    Args:
        found: The evaluation.
        name: The value's name.
    """
    value = found.metadata.get(f"mssql_cdc/{name}")
    return value.value if value is not None else None


def mildness(*, passed: bool, severity: dg.AssetCheckSeverity) -> int:
    """Return how mild a check's result is: 0 for an error, 1 for a warning, 2 if it has passed."""
    return 2 if passed else int(severity == dg.AssetCheckSeverity.WARN)

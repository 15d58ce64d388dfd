"""Applies a section of the change log to a current table with Spark's MERGE: for tables that only Spark may write.

These have features that `lake/table_log.py` does not write, or a section that is too large for one worker. The commit's
userMetadata says why. Everything else goes through `lake/apply_task.py`, whose oracle this module is.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from mssql_cdc.errors import FencedError
from mssql_cdc.lake.delta_schema import arrow_of
from mssql_cdc.lake.fold import (
    FoldPlan,
    fold,
    insert_expressions,
    plan_fold,
    require_known,
    same_key,
    update_expressions,
)
from mssql_cdc.lake.layout import TableHome
from mssql_cdc.lake.log import facts_of
from mssql_cdc.lake.opened import open_table
from mssql_cdc.lake.read import BatchSlice, scan
from mssql_cdc.lake.spark_log import conflicts_fenced, fact_confs, txn_confs
from mssql_cdc.lake.spark_sql import literal, quoted, spark_identifier
from mssql_cdc.lake.storage import LOCAL, Storage
from mssql_cdc.lake.table_log import TableLog
from mssql_cdc.lake.table_restores import REPLACES
from mssql_cdc.schema.tables import TableSchema
from mssql_cdc.spark.session import private_session, run_sql
from mssql_cdc.spark.tasks import interruptible

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PARTITION_ROWS = 250_000


@dataclass(frozen=True, slots=True)
class Merged:
    """The table's Delta version after the merge, and the number of folded change-log rows; 0: there was no commit."""

    delta_version: int
    rows: int


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Facts about the rows to fold, read without Spark; `passes`: other rows, with a former key, are passed over."""

    rows: int
    passes: bool
    first_key: str | None
    last_key: str | None
    unavailable: frozenset[str]
    schemas: frozenset[int]


def merge(
    session: SparkSession,
    home: TableHome,
    versions: Sequence[TableSchema],
    log: TableLog,
    *,
    app_id: str,
    up_to: int,
    because: str,
    run_id: str = "",
    storage: Storage = LOCAL,
) -> Merged:
    """Merge the change log, up to `_batch` `up_to`, into an existing table of the newest structure.

    Args:
        session: any session of the application; the work is done in a private one.
        home: the table's folders and owner.
        versions: all versions of the table, oldest first.
        log: the table.
        app_id: the app id under which its progress is recorded.
        up_to: the largest `_batch` to apply.
        because: why this is Spark's work; goes into the commit's userMetadata.
        run_id: goes there too.
        storage: how to reach the folders.

    Raises:
        FencedError: another run merged at the same time; its result is valid, this run's was not written.
    """
    usable = same_key(versions)
    table = open_table(home.current, storage)
    reached, empty = table.transaction_version(app_id) or 0, not table.file_uris()
    applied, up_to = (reached, up_to) if log.restored is None else (0, max(up_to, reached))
    stretch = _stretch(home, BatchSlice(applied, up_to), usable, storage)
    if not stretch.rows and not stretch.passes and (applied or empty):
        return Merged(table.version(), 0)
    plan = plan_fold(
        usable,
        schemas=stretch.schemas,
        unavailable=stretch.unavailable,
        stored=arrow_of(log.schema_json).names,
        logged=_logged(home, storage),
        partition_by=log.partition_by,
    )
    facts = {"v": 1, "app_id": f"{home.app_id}:current", "batch": up_to, "rows": stretch.rows, "run_id": run_id}
    facts |= {"merged_by_spark": because, "mark": uuid.uuid4().hex}
    replaces = not applied or empty
    if replaces:
        facts[REPLACES] = True
    # RESTORE keeps the txn, and Spark skips a commit that does not raise it.
    confs = txn_confs(app_id, up_to, facts) if up_to > reached else fact_confs(facts)
    confs["spark.sql.shuffle.partitions"] = str(min(200, 1 + stretch.rows // _PARTITION_ROWS))
    with conflicts_fenced(home.current), private_session(session, confs) as private:
        numbers = [schema.version for schema in usable]
        changes = private.read.format("delta").load(home.changes)
        window = changes.where(changes["_batch"].between(applied + 1, up_to) & changes["_schema"].isin(numbers))
        folded = fold(window, plan)
        if replaces:
            # Nothing to match: writing takes a third of the time that MERGE's joins need.
            interruptible(session, lambda: _replace(home.current, folded, plan))
        else:
            interruptible(session, lambda: _merge(private, home.current, folded, plan, stretch))
    return _read_back(home, app_id, facts, storage)


def _stretch(home: TableHome, batches: BatchSlice, usable: Sequence[TableSchema], storage: Storage) -> _Stretch:
    numbers = {schema.version for schema in usable}
    rows, passes = 0, False
    keys: list[str] = []
    unavailable: set[str] = set()
    schemas: set[int] = set()
    columns = ["_key", "_schema", "_unavailable"]
    for batch in scan(home.changes, batches=batches, columns=columns, storage=storage):
        require_known(home.changes, usable[-1], batch.column("_schema"))
        found = set(pc.unique(batch.column("_schema")).to_pylist())
        schemas |= found & numbers
        passes = passes or not found <= numbers
        if not found & numbers:
            continue
        rows += batch.num_rows
        ends = pc.min_max(batch.column("_key")).as_py()
        keys += [key for key in ends.values() if key is not None]
        unavailable |= set(pc.unique(batch.column("_unavailable").flatten()).to_pylist())
    return _Stretch(
        rows, passes, min(keys, default=None), max(keys, default=None), frozenset(unavailable), frozenset(schemas)
    )


def _logged(home: TableHome, storage: Storage) -> list[str]:
    """The columns of the change log's images."""
    schema = arrow_of(open_table(home.changes, storage).schema().to_json())
    return [field.name for field in schema.field("after").type]


def _replace(uri: str, folded: DataFrame, plan: FoldPlan) -> None:
    """Replace the existing rows with the folded ones; txn and userMetadata are the session's, as for MERGE."""
    values = [f"{expression} AS {quoted(name)}" for name, expression in insert_expressions(plan).items()]
    rows = folded.alias("s").where("NOT s.del").selectExpr(*values)
    # With `dynamic`, which a connector may set for its session, partitions without new rows would stay.
    rows.write.format("delta").mode("overwrite").option("partitionOverwriteMode", "static").save(uri)


def _merge(private: SparkSession, uri: str, folded: DataFrame, plan: FoldPlan, stretch: _Stretch) -> None:
    updates = ", ".join(f"t.{quoted(name)} = {value}" for name, value in update_expressions(plan).items())
    inserts = insert_expressions(plan)
    # Literals let Delta skip files; every `_key` of the stretch lies between its first and last.
    statement = f"""
        MERGE INTO {spark_identifier(uri)} AS t USING changes AS s
        ON t._key = s.k AND t._key BETWEEN {literal(stretch.first_key or "")} AND {literal(stretch.last_key or "")}
        WHEN MATCHED AND s.pos > t._pos AND s.del THEN DELETE
        WHEN MATCHED AND s.pos > t._pos THEN UPDATE SET {updates}
        WHEN NOT MATCHED AND NOT s.del THEN
            INSERT ({", ".join(map(quoted, inserts))}) VALUES ({", ".join(inserts.values())})"""
    folded.createOrReplaceTempView("changes")  # The session is private.
    run_sql(private, statement).collect()


def _read_back(home: TableHome, app_id: str, facts: dict[str, Any], storage: Storage) -> Merged:
    """Spark silently skips a commit whose txn version already exists: check whether this run made it."""
    table = open_table(home.current, storage)
    for entry in table.history(20):
        found = facts_of(entry)
        if found and found.get("mark") == facts["mark"]:
            return Merged(table.version(), facts["rows"])
    raise FencedError(
        f"Another run merged into {home.current} at the same time (it is at batch "
        f"{table.transaction_version(app_id)}); this run wrote nothing"
    )

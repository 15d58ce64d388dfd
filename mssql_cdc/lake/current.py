"""Current tables: kept equal to the source by MERGE from the change log, stretch by stretch (correctness D).

Progress is the txn version of the current table itself, in `_batch` numbers of the change log. The callers decide when
a table may be merged (complete cut, no open snapshot).
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from mssql_cdc.errors import FencedError, SchemaError, StorageError
from mssql_cdc.lake.delta_schema import arrow_of, needs_mapping
from mssql_cdc.lake.evolution import evolve, quoted, schema_change, spark_identifier
from mssql_cdc.lake.fold import FoldPlan, fold, insert_expressions, insert_values, update_values
from mssql_cdc.lake.layout import TableHome
from mssql_cdc.lake.log import TableState, facts_of, load_state
from mssql_cdc.lake.properties import MAPPING, OWNER, STATS, STRUCTURE
from mssql_cdc.lake.read import BatchSlice, scan
from mssql_cdc.lake.spark_log import conflicts_fenced, create_with_spark, txn_confs
from mssql_cdc.lake.storage import LOCAL, Storage
from mssql_cdc.schema.arrow import current_names, current_schema
from mssql_cdc.schema.tables import TableSchema
from mssql_cdc.spark.session import private_session
from mssql_cdc.spark.tasks import interruptible

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PARTITION_ROWS = 250_000
_RENAMED = "mssql_cdc.renamed"


@dataclass(frozen=True, slots=True)
class CurrentResult:
    """The result of `apply`: the current table's Delta version and the `_batch` that it has reached.

    `rows` is the number of folded change-log rows; 0 means that there was nothing new to merge.
    """

    delta_version: int
    batch: int
    rows: int


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Facts about the rows to fold, read without Spark."""

    rows: int
    first_key: str | None
    last_key: str | None
    unavailable: frozenset[str]
    schemas: frozenset[int]


def apply(
    session: SparkSession,
    home: TableHome,
    versions: Sequence[TableSchema],
    *,
    up_to: int,
    run_id: str = "",
    deletion_vectors: str = "true",
    storage: Storage = LOCAL,
) -> CurrentResult:
    """Merge the current table up to `_batch` `up_to` of its change log (the number at the last complete cut).

    Creates the table, and gives it new columns and wider types. When the key's definition has changed the table is
    replaced, in one commit, by what was written under the new definition. That must hold a whole snapshot (rule B15).

    Args:
        session: any session of the application; the work is done in a private one.
        home: the table's folders and owner.
        versions: all versions of the table from `_schema_history`, oldest first.
        up_to: the largest `_batch` to apply.
        run_id: goes into the commit's userMetadata.
        deletion_vectors: "true" or "false", for a table that is created now.
        storage: how to reach the folders.

    Raises:
        FencedError: another run merged at the same time; its result is valid, this run's was not written.
        SchemaError: the table has no key, or cannot take the newest structure.
    """
    with conflicts_fenced(home.current):
        return _apply(session, home, versions, up_to, run_id, deletion_vectors, storage)


def _apply(
    session: SparkSession,
    home: TableHome,
    versions: Sequence[TableSchema],
    up_to: int,
    run_id: str,
    deletion_vectors: str,
    storage: Storage,
) -> CurrentResult:
    newest = versions[-1]
    if not newest.key_columns:
        raise SchemaError(f"{newest.table_id} has no key: it has a change log and no current table")
    state = _prepare(session, home, versions, deletion_vectors, storage)
    app_id = _progress_id(state.table_id, newest)
    applied = state.table.transaction_version(app_id) or 0
    if applied >= up_to:
        return CurrentResult(state.delta_version, applied, 0)
    usable = _same_key(versions)
    stretch = _stretch(home, BatchSlice(applied, up_to), usable, storage)
    filled = bool(applied)
    if not stretch.rows and (filled or _is_empty(home, storage)):
        return CurrentResult(state.delta_version, applied, 0)
    plan = _plan(newest, usable, stretch, state)
    facts = {"v": 1, "app_id": f"{home.app_id}:current", "batch": up_to, "rows": stretch.rows, "run_id": run_id}
    facts["mark"] = uuid.uuid4().hex
    confs = txn_confs(app_id, up_to, facts)
    confs["spark.sql.shuffle.partitions"] = str(min(200, 1 + stretch.rows // _PARTITION_ROWS))
    with private_session(session, confs) as private:
        numbers = [schema.version for schema in usable]
        log = private.read.format("delta").load(home.changes)
        window = log.where(log["_batch"].between(applied + 1, up_to) & log["_schema"].isin(numbers))
        folded = fold(window, plan)
        if not filled or _is_empty(home, storage):
            # Nothing to match: writing takes a third of the time that MERGE's joins need.
            interruptible(session, lambda: _replace(home.current, folded, plan))
        else:
            interruptible(session, lambda: _merge(private, home.current, folded, plan, stretch))
    return _read_back(home, app_id, up_to, facts, storage)


def applied_batch(home: TableHome, newest: TableSchema, storage: Storage = LOCAL) -> int | None:
    """Return the `_batch` that the current table has reached, without a JVM; None if there is no table."""
    try:
        table = DeltaTable(home.current, storage_options=storage.resolved())
    except TableNotFoundError:
        return None
    return progress(table, newest)


def progress(table: DeltaTable, newest: TableSchema) -> int:
    """Return the `_batch` that an open current table has reached; it begins anew with another key."""
    return table.transaction_version(_progress_id(table.metadata().id, newest)) or 0


def _progress_id(table_id: object, newest: TableSchema) -> str:
    return f"{table_id}:{newest.key_id}"


def merged_at(home: TableHome, storage: Storage = LOCAL) -> datetime | None:
    """Return the time of the current table's last commit; None if there is no table."""
    try:
        table = DeltaTable(home.current, storage_options=storage.resolved())
    except TableNotFoundError:
        return None
    newest = table.history(1)
    return datetime.fromtimestamp(newest[0].get("timestamp", 0) / 1000, UTC) if newest else None


def _prepare(
    session: SparkSession, home: TableHome, versions: Sequence[TableSchema], deletion_vectors: str, storage: Storage
) -> TableState:
    """The current table's state with the newest structure."""
    newest, owner = versions[-1], f"{home.app_id}:current"
    state = load_state(home.current, owner=owner, storage=storage)
    wanted = current_schema(newest)
    if state is None:
        _create(session, home, newest, owner, deletion_vectors)
        state = load_state(home.current, owner=owner, storage=storage)
        if state is None:
            raise StorageError(f"{home.current} was created and is not there")
        return state
    change = schema_change(state.schema_json, wanted)
    seen = int(state.properties.get(STRUCTURE, newest.version))
    if not change and seen == newest.version:
        return state
    names = current_names(newest)
    added = {path[0] for path, _ in change.added}
    returned = {names[name]: name for name in _returned(versions, seen) if names[name] not in added}
    # Rows that exist already do not know these columns. Marked first: a crash after it does no harm.
    unknown = [name for name, stored in names.items() if stored in added or stored in returned]
    if unknown:
        _mark_unknown(session, home.current, unknown, emptied=list(returned))
    if seen != newest.version:
        with private_session(session) as private:
            table = spark_identifier(home.current)
            private.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('{STRUCTURE}' = '{newest.version}')")
    state = load_state(home.current, owner=owner, storage=storage) or state
    return evolve(state, wanted, lambda: session, committer="spark")


def _returned(versions: Sequence[TableSchema], seen: int) -> list[str]:
    """The newest version's columns that were gone for a while since the table had structure `seen`."""
    between = [{c.name for c in schema.value_columns} for schema in versions[:-1] if schema.version >= seen]
    return [c.name for c in versions[-1].value_columns if any(c.name not in names for names in between)]


def _create(session: SparkSession, home: TableHome, newest: TableSchema, owner: str, deletion_vectors: str) -> None:
    properties = {
        OWNER: owner,
        STRUCTURE: str(newest.version),
        STATS: "_key,_pos,_batch",
        "delta.enableDeletionVectors": deletion_vectors,
    }
    renamed = {name: stored for name, stored in current_names(newest).items() if name != stored}
    if renamed:
        properties[_RENAMED] = json.dumps(renamed)
    schema = current_schema(newest)
    if needs_mapping(schema):
        properties[MAPPING] = "name"
    with private_session(session) as private:
        create_with_spark(private, home.current, schema, properties)


def _mark_unknown(session: SparkSession, uri: str, names: Sequence[str], *, emptied: Sequence[str]) -> None:
    """Say of every row that it does not know these columns; what the `emptied` ones hold is out of date."""
    listed = "array(" + ", ".join("'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'" for name in names) + ")"
    known = "coalesce(_unavailable, CAST(array() AS ARRAY<STRING>))"
    changes = [f"_unavailable = array_union({known}, {listed})", *(f"{quoted(name)} = NULL" for name in emptied)]
    if emptied:
        left = f"map_filter(_exact, (name, text) -> NOT array_contains({listed}, name))"
        changes.append(f"_exact = IF(cardinality({left}) = 0, NULL, {left})")
    with private_session(session) as private:
        private.sql(
            f"UPDATE {spark_identifier(uri)} SET {', '.join(changes)} WHERE size(array_except({listed}, {known})) > 0"
        )


def _same_key(versions: Sequence[TableSchema]) -> list[TableSchema]:
    """The versions since the key has been defined as it is: `_key` of older rows names rows in another way."""
    return [schema for schema in versions if schema.key_id == versions[-1].key_id]


def _plan(newest: TableSchema, usable: Sequence[TableSchema], stretch: _Stretch, state: TableState) -> FoldPlan:
    lacking: dict[str, tuple[int, ...]] = {}
    for column in newest.value_columns:
        without = tuple(
            schema.version
            for schema in usable
            if schema.version in stretch.schemas and column.name not in {known.name for known in schema.value_columns}
        )
        if without:
            lacking[column.name] = without
    names = {column.name for column in newest.value_columns}
    retired = tuple(sorted(set(arrow_of(state.schema_json).names) - set(current_schema(newest).names)))
    return FoldPlan(newest, frozenset((stretch.unavailable & names) | lacking.keys()), lacking, retired)


def _stretch(home: TableHome, batches: BatchSlice, usable: Sequence[TableSchema], storage: Storage) -> _Stretch:
    numbers = {schema.version for schema in usable}
    rows, keys = 0, []
    unavailable: set[str] = set()
    schemas: set[int] = set()
    columns = ["_key", "_schema", "_unavailable"]
    for batch in scan(home.changes, batches=batches, columns=columns, storage=storage):
        found = set(pc.unique(batch.column("_schema")).to_pylist())
        schemas |= found & numbers
        if not found & numbers:
            continue
        rows += batch.num_rows
        ends = pc.min_max(batch.column("_key")).as_py()
        keys += [key for key in ends.values() if key is not None]
        unavailable |= set(pc.unique(batch.column("_unavailable").flatten()).to_pylist())
    return _Stretch(rows, min(keys, default=None), max(keys, default=None), frozenset(unavailable), frozenset(schemas))


def _is_empty(home: TableHome, storage: Storage) -> bool:
    return not DeltaTable(home.current, storage_options=storage.resolved()).file_uris()


def _replace(uri: str, folded: DataFrame, plan: FoldPlan) -> None:
    """The folded rows instead of those that are there; txn and userMetadata are the session's, as for MERGE."""
    values = [f"{expression} AS {quoted(name)}" for name, expression in insert_expressions(plan).items()]
    rows = folded.alias("s").where("NOT s.del").selectExpr(*values)
    rows.write.format("delta").mode("overwrite").save(uri)


def _merge(private: SparkSession, uri: str, folded: DataFrame, plan: FoldPlan, stretch: _Stretch) -> None:
    from delta.tables import DeltaTable as SparkDeltaTable
    from pyspark.sql import functions as sf

    # Literals let Delta skip files; every `_key` of the stretch lies between its first and last.
    same = (
        (sf.col("t._key") == sf.col("s.k"))
        & (sf.col("t._key") >= sf.lit(stretch.first_key))
        & (sf.col("t._key") <= sf.lit(stretch.last_key))
    )
    newer = sf.col("s.pos") > sf.col("t._pos")
    (
        SparkDeltaTable.forPath(private, uri)
        .alias("t")
        .merge(folded.alias("s"), same)
        .whenMatchedDelete(newer & sf.col("s.del"))
        .whenMatchedUpdate(newer, set=update_values(plan))
        .whenNotMatchedInsert(~sf.col("s.del"), values=insert_values(plan))
        .execute()
    )


def _read_back(home: TableHome, app_id: str, up_to: int, facts: dict[str, Any], storage: Storage) -> CurrentResult:
    """Spark silently skips a commit whose txn version already exists: check whether this run made it."""
    table = DeltaTable(home.current, storage_options=storage.resolved())
    for entry in table.history(20):
        found = facts_of(entry)
        if found and found.get("mark") == facts["mark"]:
            return CurrentResult(table.version(), up_to, facts["rows"])
    raise FencedError(
        f"Another run merged into {home.current} at the same time (it stands at batch "
        f"{table.transaction_version(app_id)}); this run wrote nothing"
    )

"""The log of one Delta table: its state, its creation, and the single write function (rules A3, A6, B15, C18).

Every table that only grows goes through `commit`: change logs, offsets and the small tables. `lake/table_commit.py`
puts the commits, and makes those to current tables. A JVM is needed only to create a table whose column names need
column mapping, and to commit to one with features that only Spark writes (`lake/features.py`).
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import DeltaTable

from mssql_cdc.errors import OvertakenError, StorageError
from mssql_cdc.lake.checkpoints import checkpoint, is_due
from mssql_cdc.lake.commit_facts import told_facts
from mssql_cdc.lake.delta_schema import needs_mapping
from mssql_cdc.lake.features import never_altered, never_appended, without_spark, writer_features
from mssql_cdc.lake.files import DataFile, FileTarget
from mssql_cdc.lake.object_store import Folder
from mssql_cdc.lake.opened import find_table, open_table
from mssql_cdc.lake.properties import CHECKPOINTS, MAPPING, OWNER, STATS, listed_stats
from mssql_cdc.lake.read import exists
from mssql_cdc.lake.storage import LOCAL, Storage, file_system, unwritable
from mssql_cdc.lake.table_commit import Change, append
from mssql_cdc.lake.table_log import commit_infos

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SparkStarter = Callable[[], "SparkSession"]
_INTERVAL = 100  # Delta's default


@dataclass(frozen=True, slots=True)
class TableState:
    """One state of a table's log, from which exactly one commit can be made.

    `batch` is the newest `_batch` of any writer. `own` is the userMetadata of this writer's newest commit; None if it
    never committed, or if log cleanup has removed it (then `own_batch` is greater than 0, rule A5). `features` are
    those that writers must support. `created` is when the table was created, in ms since 1970. `checked`: the version
    up to which the commits of others have been checked; None: this one.
    """

    uri: str
    owner: str
    writer: str
    delta_version: int
    table_id: str
    batch: int
    own_batch: int
    own: Mapping[str, Any] | None
    schema_json: str
    properties: Mapping[str, str]
    storage: Storage
    folder: Folder = field(repr=False, compare=False)
    created: int = 0
    features: tuple[str, ...] = ()
    checked: int | None = field(default=None, compare=False)

    @property
    def known_version(self) -> int:
        """The Delta version from which the next check of other writers' commits continues (A5)."""
        return self.delta_version if self.checked is None else self.checked

    @property
    def app_id(self) -> str:
        """The writer's app id."""
        return _app_id(self.owner, self.writer)

    @property
    def to(self) -> str | None:
        """The end of this writer's rows: `to` of its newest commit."""
        return self.own.get("to") if self.own else None

    @property
    def needs_spark(self) -> bool:
        """Whether only Spark can append to the table: a user's ALTER TABLE has added a feature."""
        return bool(never_appended(self.features))

    @property
    def altered_by_spark(self) -> bool:
        """Whether only Spark can add columns: the same, and after the first widened column."""
        return bool(never_altered(self.features))

    @property
    def target(self) -> FileTarget:
        """The location and schema of files for the next commit."""
        stats = listed_stats(self.properties)
        return FileTarget(self.uri, self.schema_json, stats, self.storage, physical=not self.needs_spark)

    def opened(self) -> DeltaTable:
        """The table at this version.

        Raises:
            StorageError: the table cannot be opened.
        """
        return open_table(self.uri, self.storage, version=self.delta_version)


def load_state(uri: str, *, owner: str, writer: str = "", storage: Storage = LOCAL) -> TableState | None:
    """The newest state of the table, or None if there is no table.

    Args:
        uri: the table's folder.
        owner: the table's app id (`TableHome.app_id`).
        writer: "" for the stream; another name, such as "snapshot", for a further writer of the same table.
        storage: how to reach the folder.

    Raises:
        StorageError: the table cannot be opened, or belongs to another connector or to no known owner.
    """
    table = find_table(uri, storage)
    if table is None:
        return None
    found = table.metadata().configuration.get(OWNER)
    if found != owner:
        raise StorageError(
            f"The Delta table {uri} belongs to {found or 'no connector'}, not to {owner}; give this connector "
            "another topic.prefix or delta.warehouse, or move the table away"
        )
    blank = TableState(uri, owner, writer, table.version(), "", 0, 0, None, "", {}, storage, Folder(uri, storage))
    return _read(blank, table)


def newest_batch(table: DeltaTable, *, owner: str) -> int:
    """The `_batch` of the newest commit that a table ever had, even after a RESTORE.

    Args:
        table: the table.
        owner: its app id.
    """
    return table.transaction_version(_counter(owner)) or 0


def refresh(state: TableState) -> TableState:
    """The newest state of the same table for the same writer.

    Raises:
        StorageError: the table cannot be opened.
    """
    return _read(state, open_table(state.uri, state.storage))


def commit(
    state: TableState,
    files: Sequence[DataFile],
    metadata: Mapping[str, Any],
    *,
    spark: SparkStarter | None = None,
) -> TableState:
    """Commit the files and the metadata with `_batch` = `state.batch + 1`, and return the new state.

    The commit carries two txn actions with that number: the writer's own, and the table's counter, which all writers
    of the table share. Therefore `_batch` never repeats, and a commit from an outdated state fails.

    Args:
        state: the state that was loaded before the source was read.
        files: what the tasks wrote; may be empty (a position that advances without rows).
        metadata: JSON-serializable facts: `to`, `run_id`, `partition`, `snapshot`, ...; kept in userMetadata.
        spark: needed only for a table that only Spark commits to (`TableState.needs_spark`).

    Raises:
        OvertakenError: another run has committed since, or this one from the same state, or somebody has changed the
            table; nothing was written.
        StorageError: the commit failed, or needs Spark and none was given; nothing was written.
    """
    after = _committed(state, files, metadata, spark)
    # Another writer's append between the check and this commit does not make the commit fail.
    judged = state.checked is None and after.delta_version == state.delta_version + 1
    return replace(after, checked=None if judged else state.known_version)


def _committed(
    state: TableState, files: Sequence[DataFile], metadata: Mapping[str, Any], spark: SparkStarter | None
) -> TableState:
    number = state.batch + 1
    mark = uuid.uuid4().hex
    facts = {
        **metadata,
        "v": 1,
        "app_id": state.app_id,
        "batch": number,
        "rows": sum(file.rows for file in files),
        "mark": mark,
    }
    if state.needs_spark:
        if spark is None:
            raise without_spark(state.uri, never_appended(state.features))
        from pyspark.errors import PySparkException

        from mssql_cdc.lake.spark_log import commit_with_spark

        try:
            commit_with_spark(spark(), state.uri, files, app_id=_counter(state.owner), facts=facts)
        except PySparkException as error:
            return _settle(state, mark, error)
        return _settle(state, mark, None)
    change = Change("WRITE", [file.add() for file in files], parameters={"mode": "Append"})
    txns = {state.app_id: number, _counter(state.owner): number}
    try:
        version = append(state.folder, state.delta_version, change, txns=txns, facts=facts, mark=mark)
    except StorageError as error:
        return _settle(state, mark, error)
    if version is None:
        return _settle(state, mark, None)
    if is_due(state.uri, state.delta_version, version, _interval(state)):
        checkpoint(state.uri, state.storage)
    if version != state.delta_version + 1:
        return refresh(state)  # There is another commit in between, which may have changed more.
    own = json.loads(json.dumps(facts))
    return replace(state, delta_version=version, batch=number, own_batch=number, own=own)


def create_table(
    uri: str,
    schema: pa.Schema,
    *,
    owner: str,
    properties: Mapping[str, str],
    stats_columns: Sequence[str] = (),
    storage: Storage = LOCAL,
    spark: SparkStarter | None = None,
) -> None:
    """Create the table with exactly this schema and these properties, unless it exists.

    Args:
        uri: The folder of the table.
        schema: The columns.
        owner: The app id of the connector that owns the table.
        properties: The table properties.
        stats_columns: The columns with statistics; empty: Delta's default.
        storage: The options of the object store.
        spark: Starts Spark, for columns that need column mapping.

    Raises:
        StorageError: the folder cannot be written to; or a column name needs column mapping, and no Spark was given to
            create such a table.
    """
    wanted = {**properties, OWNER: owner}
    if stats_columns:
        wanted[STATS] = ",".join(stats_columns)
    if exists(uri, storage):
        return
    if needs_mapping(schema):
        if spark is None:
            raise StorageError(f"The columns of {uri} need column mapping: the table must be created with Spark")
        from mssql_cdc.lake.spark_log import create_with_spark

        create_with_spark(spark(), uri, schema, {**wanted, MAPPING: "name"})
        return
    file_system(uri, storage)  # Local folders must exist; object stores have none.
    # "ignore" also resolves the race of two creators: the put-if-absent of version 0 has one winner.
    try:
        DeltaTable.create(
            uri,
            schema,
            mode="ignore",
            configuration=wanted,
            storage_options=storage.resolved(),
            raise_if_key_not_exists=False,
        )
    except OSError as error:
        raise unwritable(uri, error) from error


def _interval(state: TableState) -> int:
    text = state.properties.get(CHECKPOINTS, "")
    return int(text) if text.isdecimal() and int(text) else _INTERVAL


def _app_id(owner: str, writer: str) -> str:
    return f"{owner}:{writer}" if writer else owner


def _counter(owner: str) -> str:
    return f"{owner}:batch"


def _read(state: TableState, table: DeltaTable) -> TableState:
    committed = table.transaction_version(state.app_id) or 0
    metadata = table.metadata()
    found = replace(
        state,
        delta_version=table.version(),
        table_id=str(metadata.id),
        batch=table.transaction_version(_counter(state.owner)) or 0,
        schema_json=table.schema().to_json(),
        properties=dict(metadata.configuration),
        created=metadata.created_time or 0,
        features=writer_features(table),
    )
    # A commit by Spark carries only the counter, so only the facts show whether this writer ever committed. Earlier
    # states of the connector also had Spark append to logs with a widened column.
    own = _newest_facts(found, state.app_id) if committed or found.altered_by_spark else None
    return replace(found, own_batch=max(committed, own["batch"] if own else 0), own=own)


def _newest_facts(state: TableState, app_id: str) -> Mapping[str, Any] | None:
    """Find the newest commit of this app id, searching backwards, which usually reads only a few commits."""
    for entry in backwards(state):
        facts = facts_of(entry)
        if facts and facts.get("app_id") == app_id and "batch" in facts:
            return facts
    return None


def newest_facts(state: TableState, writer: str) -> Mapping[str, Any] | None:
    """The facts of the newest commit by another writer of the table; None: there is none, or log cleanup removed it.

    Args:
        state: The state of the table's log.
        writer: The name of the writer.
    """
    return _newest_facts(state, _app_id(state.owner, writer))


def kinds_between(state: TableState, after: int, up_to: int) -> frozenset[str]:
    """The kinds of the connector's commits with rows and `after < _batch <= up_to`; others' commits have no `_batch`.

    Args:
        state: The state of the table's log.
        after: The `_batch` before the first one.
        up_to: The last `_batch`.
    """
    if after >= up_to:
        return frozenset()
    found = set[str]()
    for entry in backwards(state):
        facts = facts_of(entry)
        if facts is None or "batch" not in facts:
            continue
        if facts["batch"] <= after:
            break
        if facts["batch"] <= up_to and facts["rows"]:
            found.add(str(facts["kind"]))
    return frozenset(found)


def backwards(state: TableState) -> Iterator[Mapping[str, Any]]:
    """What each commit of the table says of itself (`commit_infos`), newest first.

    Args:
        state: The state with which the history ends.
    """
    return commit_infos(state.folder, state.delta_version)


def facts_of(history_entry: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the connector's facts in one entry of a table's history; None for other writers' commits."""
    facts = told_facts(history_entry)
    return facts if str(facts.get("app_id", "")).startswith("mssql_cdc:") else None


def _settle(state: TableState, mark: str, error: Exception | None) -> TableState:
    """Resolve a commit with an unknown result: it may have succeeded (a lost response); else report the faster run."""
    fresh = load_state(state.uri, owner=state.owner, writer=state.writer, storage=state.storage)
    if fresh is None:
        raise StorageError(f"The Delta table {state.uri} no longer exists; nothing was written") from error
    if fresh.own and fresh.own.get("mark") == mark:
        return fresh
    said = str(error).partition("\n")[0]
    if error is None or fresh.delta_version != state.delta_version:
        raise OvertakenError(
            f"Another run has changed {state.uri} since this run began (batch {state.batch}, now {fresh.batch}; "
            f"Delta version {state.delta_version}, now {fresh.delta_version}); nothing was written"
            + ("" if error is None else f" ({said})")
        ) from error
    raise StorageError(f"The commit to {state.uri} failed, nothing was written: {said}") from error

"""What the next update of a current table reads, and what its commit will change: nothing is written here.

`lake/current.py` runs the tasks and commits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mssql_cdc.config.data_layout import AS_IT_COMES, DataLayout
from mssql_cdc.lake.apply_task import ApplyTask
from mssql_cdc.lake.current_logs import CurrentLogs
from mssql_cdc.lake.current_structure import StructureChange, restructured
from mssql_cdc.lake.current_table import Vectors, new_table, stats_columns, with_features
from mssql_cdc.lake.delta_schema import arrow_of
from mssql_cdc.lake.files import FileTarget
from mssql_cdc.lake.fold import same_key
from mssql_cdc.lake.layout import TableHome
from mssql_cdc.lake.progress import applied_batch, progress_id
from mssql_cdc.lake.properties import STRUCTURE, listed_stats
from mssql_cdc.lake.read import BatchSlice
from mssql_cdc.lake.shares import too_large
from mssql_cdc.lake.storage import Storage
from mssql_cdc.lake.table_layout import LayoutChange, layout_change, layout_of, unwritable_layout, with_layout
from mssql_cdc.lake.table_log import TableLog
from mssql_cdc.lake.wide_decimals import has_rounded_bounds, widened_stats, without_stats
from mssql_cdc.schema.arrow import current_schema
from mssql_cdc.schema.tables import TableSchema


@dataclass(frozen=True, slots=True)
class CurrentRequest:
    """One table to bring up to date.

    `versions` are all versions of the table from `_schema_history`, oldest first; `up_to` is the largest `_batch` of
    its change log to apply (the number at the last complete cut). `log` is the current table's log if it has just been
    read, so that it is not read again.
    """

    home: TableHome
    versions: Sequence[TableSchema]
    up_to: int
    vectors: Vectors = "auto"
    layout: DataLayout = AS_IT_COMES
    log: TableLog | None = None


@dataclass(frozen=True, slots=True)
class Handed:
    """A table whose update takes a long time, and the reason.

    `merges`: only Spark can write it; otherwise, its structure changes or all of its files are rewritten.
    """

    request: CurrentRequest
    because: str
    merges: bool = True


@dataclass(frozen=True, slots=True)
class Planned:
    """A table whose section is to be applied by a task; `log` is None for a table that does not exist yet.

    `rewriting` says why all files of the table are rewritten; None: they are not.
    """

    request: CurrentRequest
    task: ApplyTask
    log: TableLog | None
    protocol: dict[str, Any] | None
    metadata: dict[str, Any] | None
    replaces: bool
    domains: tuple[Mapping[str, Any], ...] = ()
    rewriting: str | None = None

    @property
    def table_id(self) -> str:
        """The id of the table, or of the one being created."""
        return self.metadata["id"] if self.metadata else self.log.table_id if self.log else ""

    @property
    def work(self) -> int:
        """About how many bytes its task reads."""
        return work_of(self.task)


def plan_update(
    request: CurrentRequest, log: TableLog, wanted: StructureChange, logs: CurrentLogs, storage: Storage
) -> Planned | Handed | None:
    """The next update of an existing table; None: the table already has everything.

    Args:
        request: what is wanted.
        log: the table.
        wanted: what the newest structure requires of it; the change is made with the next rows.
        logs: knows the section of the change log.
        storage: how to reach the folders.

    Raises:
        SchemaError: the table cannot be laid out as wanted.
        StorageError: the change log cannot be read.
    """
    if log.restored is not None:
        # Progress never goes back: other writers' plans depend on it.
        reached = log.txn(progress_id(log.table_id, request.versions[-1]))
        request = replace(request, up_to=max(request.up_to, reached))
    home, newest = request.home, request.versions[-1]
    applied = applied_batch(log, newest)
    if applied >= request.up_to:
        return None
    protocol, metadata, domains = None, None, ()
    if wanted:
        protocol, metadata = restructured(log, newest, wanted)
    elif log.properties.get(STRUCTURE) != str(newest.version):
        configuration = {**log.properties, STRUCTURE: str(newest.version)}
        metadata = {**log.metadata, "configuration": configuration}
    schema_json = str((metadata or log.metadata)["schemaString"])
    widened = widened_stats(log, arrow_of(schema_json))
    if widened:
        metadata = without_stats(metadata or log.metadata, widened)
    layout = layout_of(request.layout, newest, arrow_of(schema_json))
    stats = stats_columns(arrow_of(schema_json), layout)
    change = layout_change(log, layout, stats)
    because = log.writable() or unwritable_layout(log)
    if because:
        return Handed(request, because)
    section = logs.section(home.changes, BatchSlice(applied, request.up_to), storage)
    replaces = log.restored is not None or (not applied and bool(log.files))
    if not section.files and not replaces:
        return None
    live = () if replaces else tuple(log.files.values())
    because = too_large(section, live)
    if because:
        return Handed(request, because)
    if change:
        metadata = with_layout(metadata or log.metadata, layout, stats)
        protocol = with_features(protocol or log.protocol, (), layout.features)
        domains = (layout.domain(schema_json),) if layout.cluster_by or log.cluster_by else ()
    rewriting = _rewriting(wanted, change, replaces=replaces, rounded=has_rounded_bounds(log, widened))
    target = _target(home, schema_json, (metadata or log.metadata)["configuration"], storage)
    vectors = True if log.has_vectors else False if request.vectors == "false" else None
    task = ApplyTask(
        section,
        target,
        tuple(same_key(request.versions)),
        live,
        vectors,
        partition_by=layout.partition_by if change else log.partition_by,
        rewrites=rewriting is not None and not replaces,
        unknown=wanted.unknown,
    )
    return Planned(request, task, log, protocol, metadata, replaces, domains, rewriting)


def plan_new(request: CurrentRequest, logs: CurrentLogs, storage: Storage) -> Planned:
    """The creation of a table with its first rows.

    Args:
        request: what is wanted.
        logs: knows the change log.
        storage: how to reach the folders.

    Raises:
        SchemaError: the table cannot be laid out as wanted.
        StorageError: the change log cannot be read.
    """
    home, newest = request.home, request.versions[-1]
    layout = layout_of(request.layout, newest, current_schema(newest))
    protocol, metadata = new_table(home, newest, request.vectors, layout)
    section = logs.section(home.changes, BatchSlice(0, request.up_to), storage)
    target = _target(home, metadata["schemaString"], metadata["configuration"], storage)
    task = ApplyTask(section, target, tuple(same_key(request.versions)), partition_by=layout.partition_by)
    domains = (layout.domain(metadata["schemaString"]),) if layout.cluster_by else ()
    return Planned(request, task, None, protocol, metadata, replaces=False, domains=domains)


def work_of(task: ApplyTask) -> int:
    """About how many bytes a task reads."""
    stored = sum(file.size for file in task.live)
    return task.window.size + (stored if task.rewrites else stored // 8)


def _rewriting(wanted: StructureChange, layout: LayoutChange | None, *, replaces: bool, rounded: bool) -> str | None:
    """Why all files are rewritten; None: they are not."""
    if replaces:
        return "its rows are replaced"
    if wanted:
        return "its structure changes"
    if rounded:
        return "the bounds of its decimals are rounded"
    return "its layout changes" if layout and layout.rewrites else None


def _target(home: TableHome, schema_json: str, properties: Any, storage: Storage) -> FileTarget:
    return FileTarget(home.current, schema_json, listed_stats(properties), storage)

"""Capture instances as the capture job keeps them in memory, and the state of capture in one database.

Clients see the rows of `cdc.change_tables` and `cdc.captured_columns`. An instance also remembers the layout of the
source's rows at the position in the log that the job has reached.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from mssql_sandbox.cdc.change_rows import CapturedColumn, CapturedColumns, ColumnKind, column_kind
from mssql_sandbox.cdc.layout import LEADING
from mssql_sandbox.cdc.scan_sessions import ScanHistory
from mssql_sandbox.engine.log import DdlChange
from mssql_sandbox.engine.storage.columns import Column
from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.errors import SqlError


@dataclass(slots=True)
class Captured:
    """A captured column of an instance, by its id in the source."""

    name: str
    column_id: int
    ordinal: int
    kind: ColumnKind

    @classmethod
    def of(cls, column: Column, ordinal: int) -> Captured:
        """The captured form of a source column."""
        kind = column_kind(column.type.name, column.type.length, computed=column.computed is not None)
        return cls(column.name, column.column_id, ordinal, kind)


@dataclass(slots=True, eq=False)
class CaptureInstance:
    """One capture instance. `layout` lists the column ids of a logged row at the capture's position in the log."""

    name: str
    source: Table
    change_table: Table
    start_lsn: bytes
    create_date: int
    columns: list[Captured]
    layout: list[int]
    key: tuple[str, ...]
    supports_net_changes: bool
    role: str | None
    index_name: str | None
    filegroup: str | None = None
    partition_switch: bool = True
    """Whether partitions may be switched, although capture does not see the change."""
    masks: bool = True
    """Whether net changes evaluate update masks: CLR was enabled when the instance was created."""
    resolved: CapturedColumns = field(default_factory=CapturedColumns)

    def __post_init__(self) -> None:
        self.resolve()

    def resolve(self) -> None:
        """Compute the positions of the captured columns in logged rows; called again after every change of `layout`."""
        places = {column_id: place for place, column_id in enumerate(self.layout)}
        self.resolved = CapturedColumns(
            [
                CapturedColumn(column.name, column.ordinal, places.get(column.column_id), column.kind)
                for column in self.columns
            ]
        )

    @property
    def captured_places(self) -> slice:
        """The position of the captured columns in a row of the change table."""
        return slice(LEADING, LEADING + len(self.columns))

    def captured(self, column_id: int) -> Captured | None:
        """The captured column of this id in the source."""
        return next((column for column in self.columns if column.column_id == column_id), None)

    def apply(self, change: DdlChange) -> None:
        """Follow a change of the source's columns: rows logged after it have a new layout."""
        column = change.details
        if change.kind == "add column":
            added = column if isinstance(column, Column) else self.source.column(change.column)
            self.layout.append(-len(self.layout) if added is None else added.column_id)
        elif change.kind == "drop column" and isinstance(column, Column) and column.column_id in self.layout:
            self.layout.remove(column.column_id)
        self.resolve()


@dataclass(slots=True, eq=False)
class DatabaseCapture:
    """Capture's state of one database: instances by change table, its position in the log, its scans."""

    database: Database
    position: int
    ddl_trigger: tuple[int, int]
    """Object id and creation time of `tr_MScdc_ddl_event`, the server's DDL trigger."""
    instances: dict[int, CaptureInstance] = field(default_factory=dict)
    pending_ddl: list[tuple] = field(default_factory=list)
    history: ScanHistory = field(default_factory=ScanHistory)
    commit_times: dict[bytes, int] = field(default_factory=dict)
    """Commit times already looked up: change queries need the same LSN on every row. Cleanup empties it."""
    failures: deque[SqlError] = field(default_factory=deque)
    """Errors ordered for the next scans, one for each."""
    paused: bool = False
    lag_seconds: float = 0.0

    def of_source(self, object_id: int) -> list[CaptureInstance]:
        """The instances of a source table, oldest first."""
        return [instance for instance in self.instances.values() if instance.source.object_id == object_id]

    def named(self, name: str) -> CaptureInstance | None:
        """The instance of this name under the database's collation."""
        key = self.database.collation.key
        return next((i for i in self.instances.values() if key(i.name) == key(name)), None)

    def by_source(self) -> dict[int, list[CaptureInstance]]:
        """All instances by the object id of their source."""
        result: dict[int, list[CaptureInstance]] = {}
        for instance in self.instances.values():
            result.setdefault(instance.source.object_id, []).append(instance)
        return result

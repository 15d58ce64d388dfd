"""SQL Server as a `Source`: each docstring names the module that implements the method."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from mssql_cdc.config import Connector
from mssql_cdc.lsn import Lsn, LsnRange
from mssql_cdc.schema import TableId, TableSchema
from mssql_cdc.source.protocol import ChunkRead, Parts
from mssql_cdc.source.sqlserver import chunks, log_end, positions, volume
from mssql_cdc.source.sqlserver.absences import absences
from mssql_cdc.source.sqlserver.catalog import captured_tables, database, signal_table
from mssql_cdc.source.sqlserver.changes import PAGE_ROWS, ChangeReader
from mssql_cdc.source.sqlserver.connect import Control, control
from mssql_cdc.source.sqlserver.snapshot_reader import ISOLATIONS, UNDER_LOCK, ChunkReader, locked
from mssql_cdc.source.sqlserver.sql import require_visible
from mssql_cdc.source.values import Absence, CapturedTable, CaptureInstance, Chunk, LogMark, Standing, Witness


@dataclass(frozen=True, slots=True)
class SqlServerSource:
    """The server of a connector."""

    connector: Connector

    @contextmanager
    def session(self, catalog: str) -> Generator[SqlServerSession, None, None]:
        """A session on one database (autocommit; every statement is separate)."""
        with control(self.connector.connection, catalog) as opened:
            yield SqlServerSession(opened, self.connector)

    def change_reader(
        self, catalog: str, instance: CaptureInstance, wanted: LsnRange, *, visible: Lsn | None = None
    ) -> ChangeReader:
        """A reader of the changes of one instance in a (sub-)range; see `ChangeReader` for `visible`."""
        return ChangeReader(
            connection=self.connector.connection,
            catalog=catalog,
            instance=instance,
            range=wanted,
            visible=visible,
            page_rows=self.connector.streaming.page_rows or PAGE_ROWS,
        )

    def chunk_reader(self, catalog: str, wanted: ChunkRead) -> ChunkReader:
        """A reader of one chunk; a statement may name other tables, so it never reads under the table's lock."""
        isolation = self.connector.snapshot.isolation
        return ChunkReader(
            connection=self.connector.connection,
            catalog=catalog,
            schema=wanted.schema,
            chunk=wanted.chunk,
            snapshot_number=wanted.snapshot_number,
            epoch=wanted.epoch,
            position=wanted.position,
            captured=wanted.captured,
            commit_lsn=wanted.commit_lsn,
            read_at=wanted.read_at,
            isolation=UNDER_LOCK if wanted.under_lock and wanted.statement is None else ISOLATIONS[isolation],
            statement=wanted.statement,
            condition=wanted.condition,
        )

    @contextmanager
    def locked(self, catalog: str, schemas: Sequence[TableSchema]) -> Generator[SqlServerLock]:
        """A shared lock on the tables, waited for as long as `snapshot.lock.timeout.ms` says."""
        settings = self.connector
        with locked(settings.connection, catalog, list(schemas), settings.snapshot.lock_timeout_ms) as holder:
            yield SqlServerLock(holder)

    def signal_table(self, catalog: str, tables: Sequence[CapturedTable]) -> CapturedTable | None:
        """The captured signal table (`signals`)."""
        return signal_table(self.connector, catalog, tables)


@dataclass(frozen=True, slots=True)
class SqlServerLock:
    """Table locks that one transaction holds: they are gone with its connection."""

    control: Control

    def require_held(self, doing: str) -> None:
        """Raises SourceUnavailableError when the connection, and with it the lock, was lost."""
        self.control.value("SELECT @@TRANCOUNT", doing=doing)


@dataclass(frozen=True, slots=True)
class SqlServerSession:
    """Queries to one database, each of one or two short statements."""

    control: Control
    connector: Connector

    def require_ready(self) -> str:
        """The database's name in its real case; raises ConfigurationError when CDC is not enabled (`catalog`)."""
        return database(self.control, self.control.catalog).name

    def tables(self) -> list[CapturedTable]:
        """Return the captured tables that pass the filters, in snapshot order (`catalog`)."""
        return captured_tables(self.control, self.connector.filters)

    def absences(self, tables: Mapping[TableId, int]) -> dict[TableId, Absence]:
        """Why these tables are not among `tables()` (`absences`)."""
        return absences(self.control, tables)

    def standing(self) -> Standing:
        """Settled, captured and maximum, read in this order (`positions`)."""
        return positions.standing(self.control)

    def captured(self) -> Lsn | None:
        """The newest captured transaction (`positions`)."""
        return positions.captured(self.control)

    def minima(self) -> dict[str, Lsn | None]:
        """The smallest LSN that each instance still holds (`positions`)."""
        return positions.minima(self.control)

    def require_minimum(self, instance: str, minimum: Lsn | None) -> Lsn:
        """The minimum, which NULL and zero are not (`positions`, rule A9)."""
        return positions.require_minimum(instance, minimum)

    def require_held(self, instance: str, minimum: Lsn | None, from_: Lsn) -> None:
        """Raise DataLostError if rows after `from_` were cleaned up (`positions`, rule A9)."""
        positions.require_held(instance, minimum, from_)

    def require_visible(self, to: Lsn) -> None:
        """Raises StaleReaderError unless this connection sees the commit `to` (rule A2)."""
        self.control.execute(require_visible(to), doing="looking for the end of the range")

    def witness(self, to: Lsn) -> Witness | None:
        """What to remember with `to` (`positions`, rule A7)."""
        return positions.witness(self.control, to)

    def require_witness(self, known: Witness) -> None:
        """Raises SourceRestoredError when the source has another history (`positions`)."""
        positions.require_witness(self.control, known)

    def nth_transaction(self, after: Lsn, count: int, to: Lsn) -> Lsn | None:
        """The bound of `max.iteration.transactions` (`positions`)."""
        return positions.nth_transaction(self.control, after, count, to)

    def newest_before(self, lsns: Sequence[Lsn]) -> dict[Lsn, Lsn | None]:
        """The newest transaction below each of these positions (`positions`, rule B14)."""
        return positions.newest_before(self.control, lsns)

    def retention(self) -> timedelta | None:
        """How long changes are kept; None when the login may not see the jobs, or nothing cleans up (`positions`)."""
        return positions.retention(self.control)

    def server_time(self) -> datetime:
        """The server's clock, UTC (`positions`)."""
        return positions.server_time(self.control)

    def mark(self) -> LogMark:
        """The end of the log now (`log_end`)."""
        return log_end.mark(self.control)

    def passed(self, known: LogMark) -> bool:
        """Whether capture has passed a mark (`log_end`)."""
        return log_end.passed(self.control, known)

    def count_rows(self, parts: Parts) -> dict[str, int]:
        """Change rows per instance name (`volume`)."""
        return volume.count_rows(self.control, parts)

    def row_bound(self, parts: Parts, to: Lsn) -> Lsn | None:
        """The bound of `dagster.range.max.rows`; None when all rows fit (`volume`)."""
        return volume.row_bound(self.control, parts, self.connector.dagster.range_max_rows, to)

    def split(self, instance: CaptureInstance, wanted: LsnRange, parts: int) -> list[LsnRange]:
        """Adjoining sub-ranges for parallel readers (`volume`)."""
        return volume.split(self.control, instance, wanted, parts)

    def plan_chunks(self, schema: TableSchema, rows_per_chunk: int) -> list[Chunk]:
        """A table's chunks (`chunks`)."""
        return chunks.plan_chunks(self.control, schema, rows_per_chunk)

    def run_statement(self, statement: str, *, doing: str) -> None:
        """Run a user-defined statement; errors name its purpose."""
        self.control.execute(statement, doing=doing)

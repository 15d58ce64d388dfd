"""`SqlServerSource`: the connector's way into its server, and what one session can be asked.

Thin: each answer comes from the module named beside it. Other rooms use this class and the two readers.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from mssql_cdc.config import Connector
from mssql_cdc.lsn import Lsn, LsnRange
from mssql_cdc.schema import TableSchema
from mssql_cdc.source.sqlserver import catalog, chunks, log_end, positions, volume
from mssql_cdc.source.sqlserver.catalog import Database
from mssql_cdc.source.sqlserver.changes import PAGE_ROWS, ChangeReader
from mssql_cdc.source.sqlserver.chunks import Chunk
from mssql_cdc.source.sqlserver.connect import Control, control
from mssql_cdc.source.sqlserver.instances import CapturedTable, CaptureInstance
from mssql_cdc.source.sqlserver.log_end import LogMark
from mssql_cdc.source.sqlserver.positions import Standing, Witness
from mssql_cdc.source.sqlserver.snapshot_reader import ISOLATIONS, UNDER_LOCK, ChunkReader

Parts = Sequence[tuple[CaptureInstance, LsnRange]]


@dataclass(frozen=True, slots=True)
class SqlServerSource:
    """The server of a connector."""

    connector: Connector

    @contextmanager
    def session(self, catalog: str) -> Generator[SqlServerSession, None, None]:
        """A session on one database (autocommit; every statement stands alone)."""
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

    def chunk_reader(
        self,
        catalog: str,
        schema: TableSchema,
        chunk: Chunk,
        *,
        snapshot_number: int,
        epoch: int,
        position: Lsn,
        captured: Lsn | None,
        commit_lsn: Lsn | None,
        read_at: datetime,
        statement: str | None = None,
        condition: str | None = None,
        under_lock: bool = False,
    ) -> ChunkReader:
        """A reader of one chunk; see `ChunkReader` for the arguments.

        `under_lock`: the caller holds a shared lock on the whole table; a statement may name others and reads as usual.
        """
        return ChunkReader(
            connection=self.connector.connection,
            catalog=catalog,
            schema=schema,
            chunk=chunk,
            snapshot_number=snapshot_number,
            epoch=epoch,
            position=position,
            captured=captured,
            commit_lsn=commit_lsn,
            read_at=read_at,
            isolation=(
                UNDER_LOCK if under_lock and statement is None else ISOLATIONS[self.connector.snapshot.isolation]
            ),
            statement=statement,
            condition=condition,
        )

    def acknowledge(self, catalog: str, position: Lsn) -> None:
        """Nothing: SQL Server's cleanup knows no consumers."""


@dataclass(frozen=True, slots=True)
class SqlServerSession:
    """Questions to one database, each one or two short statements."""

    control: Control
    connector: Connector

    def database(self) -> Database:
        """The database in its real case, with its options (`catalog`)."""
        return catalog.database(self.control, self.control.catalog)

    def tables(self) -> list[CapturedTable]:
        """The captured tables that the filters let through, in snapshot order (`catalog`)."""
        return catalog.captured_tables(self.control, self.connector.filters)

    def standing(self) -> Standing:
        """Settled, captured and maximum, read in this order (`positions`)."""
        return positions.standing(self.control)

    def captured(self) -> Lsn | None:
        """The newest captured transaction (`positions`)."""
        return positions.captured(self.control)

    def minima(self) -> dict[str, Lsn | None]:
        """The smallest LSN that each instance still holds (`positions`)."""
        return positions.minima(self.control)

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

    def plan_chunks(self, schema: TableSchema, rows_per_chunk: int, *, condition: str | None = None) -> list[Chunk]:
        """A table's chunks (`chunks`)."""
        return chunks.plan_chunks(self.control, schema, rows_per_chunk, condition=condition)

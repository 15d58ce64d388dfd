"""SQL Server as a `Source`: each docstring names the module that implements the method."""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from mssql_cdc.config import Connector
from mssql_cdc.config.driver_given import dropped
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.lsn import Lsn, LsnRange
from mssql_cdc.schema import TableId, TableSchema, TableStructure
from mssql_cdc.source.protocol import BatchReader, ChunkRead, Parts
from mssql_cdc.source.snapshot_lock import custom_statements
from mssql_cdc.source.sqlserver import (
    chunk_planning,
    chunks,
    health,
    log_end,
    positions,
    replica_states,
    volume,
    watermarks,
)
from mssql_cdc.source.sqlserver.absences import absences
from mssql_cdc.source.sqlserver.catalog import KnownCatalog, captured_names, database
from mssql_cdc.source.sqlserver.changes import PAGE_ROWS, ChangeReader
from mssql_cdc.source.sqlserver.check_session import SqlServerCheckSession
from mssql_cdc.source.sqlserver.concealed import UNSEEN_POLICIES, WholeRows, sees_policies, trusted_policies
from mssql_cdc.source.sqlserver.connect import Control, find_driver
from mssql_cdc.source.sqlserver.ddl_history import altered
from mssql_cdc.source.sqlserver.health import SeenScans
from mssql_cdc.source.sqlserver.kept import KeptControl
from mssql_cdc.source.sqlserver.kept_bulk import KeptBulks
from mssql_cdc.source.sqlserver.log_end import SeenLog
from mssql_cdc.source.sqlserver.replica import is_primary
from mssql_cdc.source.sqlserver.shared_read import SharedRead, open_shared
from mssql_cdc.source.sqlserver.signal_table import signal_table
from mssql_cdc.source.sqlserver.snapshot_reader import ISOLATIONS, UNDER_LOCK, ChunkReader, locked
from mssql_cdc.source.sqlserver.sql import IS_VISIBLE, digits, stale_reader
from mssql_cdc.source.sqlserver.structures import structures
from mssql_cdc.source.values import (
    Absence,
    Bound,
    CapturedTable,
    CaptureHealth,
    CaptureInstance,
    LogMark,
    Standing,
    Volume,
    Witness,
)


@dataclass(frozen=True, slots=True)
class SqlServerSource:
    """The SQL Server of a connector.

    For each database, `known`, `kept`, `kept_bulks`, `scans` and `logs` hold the catalog, the connections, an
    unfinished scan, and what has been seen of the log.
    """

    connector: Connector
    known: dict[str, KnownCatalog] = field(default_factory=dict[str, KnownCatalog], compare=False, repr=False)
    kept: dict[str, KeptControl] = field(default_factory=dict[str, KeptControl], compare=False, repr=False)
    kept_bulks: dict[str, KeptBulks] = field(default_factory=dict[str, KeptBulks], compare=False, repr=False)
    scans: SeenScans = field(default_factory=SeenScans, compare=False, repr=False)
    logs: dict[str, SeenLog] = field(default_factory=dict[str, SeenLog], compare=False, repr=False)

    def notices(self) -> list[str]:
        """The settings that FreeTDS has no keyword for, if it is the driver (`driver_given`)."""
        connection = self.connector.connection
        _, names = dropped(connection.given_settings, find_driver(connection))
        return [f"{', '.join(names)}: no effect, FreeTDS has no such keyword"] if names else []

    @contextmanager
    def session(self, catalog: str) -> Generator[SqlServerSession, None, None]:
        """A session on one database (autocommit; every statement is separate), over a kept connection (`kept`)."""
        kept = self.kept.setdefault(catalog, KeptControl())
        with kept.session(self.connector.connection, catalog) as opened:
            known = self.known.setdefault(catalog, KnownCatalog(uncaptured=self.connector.snapshot.reads_uncaptured))
            log = self.logs.setdefault(catalog, SeenLog())
            yield SqlServerSession(opened, self.connector, known, scans=self.scans, log=log)

    @contextmanager
    def check_session(self, catalog: str) -> Generator[SqlServerCheckSession, None, None]:
        """A session for a check (`check_session`), on the replica of the other sessions, whose marks bound its rows."""
        kept = self.kept.setdefault(catalog, KeptControl())
        with kept.apart(self.connector.connection, catalog) as opened:
            yield SqlServerCheckSession(opened, self.connector.connection)

    def change_reader(
        self,
        catalog: str,
        instance: CaptureInstance,
        wanted: LsnRange,
        *,
        visible: Lsn | None = None,
        rows: int | None = None,
    ) -> ChangeReader:
        """A reader of the changes of one instance in a (sub-)range.

        Args:
            catalog: the database's name.
            instance: the capture instance to read.
            wanted: the range, or a part of it.
            visible: a commit, not below the end of `wanted`, that the connection must see; None: that end itself.
            rows: the approximate number of rows, if it is known.

        Raises:
            ConfigurationError: `data.query.mode=direct`, and the change table may not be read.
        """
        if self.connector.streaming.query_mode == "direct" and instance.change_table is None:
            raise ConfigurationError(
                f"data.query.mode=direct: the login cannot read the change table of {instance.name!r}. "
                "GRANT SELECT ON SCHEMA::cdc TO the login's user, or remove the property"
            )
        return ChangeReader(
            connection=self.connector.connection,
            catalog=catalog,
            instance=instance,
            range=wanted,
            visible=visible,
            page_rows=self.connector.streaming.page_rows or PAGE_ROWS,
            fetch_rows=self.connector.streaming.fetch_size,
            rows=rows,
            by_choice=self.connector.streaming.query_mode == "function",
        )

    def chunk_reader(self, catalog: str, wanted: ChunkRead) -> ChunkReader:
        """A reader of chunks; a user's statement may read other tables, so it never runs under the table's lock."""
        isolation = "read_committed" if wanted.held is not None else self.connector.snapshot.isolation
        return ChunkReader(
            connection=self.connector.connection,
            catalog=catalog,
            wanted=wanted,
            isolation=UNDER_LOCK if wanted.under_lock and wanted.statement is None else ISOLATIONS[isolation],
            fetch_rows=self.connector.snapshot.fetch_size,
            lock_timeout_ms=self.connector.snapshot.lock_timeout_ms,
            trusts_policies=self.connector.snapshot.trusts_policies,
            replica=self.kept[catalog].replica if catalog in self.kept else None,
        )

    def shares(self, reader: BatchReader) -> bool:
        """Whether the reader can share a connection (`shared_read`)."""
        return isinstance(reader, ChangeReader) and SharedRead.takes(reader)

    def share(self, readers: Sequence[BatchReader]) -> AbstractContextManager[SharedRead]:
        """One connection for these readers (`shared_read`)."""
        own = [reader for reader in readers if isinstance(reader, ChangeReader)]
        known = self.known.get(own[0].catalog)
        kept = self.kept_bulks.setdefault(own[0].catalog, KeptBulks())
        return open_shared(own, known.known_minima if known is not None else {}, kept)

    def shown_key(self, schema: TableSchema, bound: Bound) -> Bound:
        """The values of a bound in human-readable form (`chunks`).

        Args:
            schema: The table, keyed by the columns that its chunks are ordered by.
            bound: The bound.
        """
        return chunks.shown_key(schema, bound)

    @contextmanager
    def locked(self, catalog: str, schemas: Sequence[TableSchema]) -> Generator[SqlServerLock]:
        """Hold a shared lock on the tables, after waiting for it no longer than `snapshot.lock.timeout.ms`.

        Raises:
            ConfigurationError: `snapshot.locking.mode=none`, or the user's own lock is faulty.
        """
        settings = self.connector
        if settings.snapshot.locking == "none":
            names = ", ".join(schema.table_id.text for schema in schemas)
            raise ConfigurationError(
                f"snapshot.locking.mode=none: the rows of {names} can be read exactly only under a lock, because the "
                "table has no usable key, is not captured, or snapshot.isolation.mode is exclusive. Remove the "
                "property, or add a key; tables that are not captured need none with snapshot.isolation.mode=snapshot"
            )
        first = custom_statements(settings, schemas) if settings.snapshot.locking == "custom" else ()
        most = settings.snapshot.lock_timeout_ms
        with locked(settings.connection, catalog, list(schemas), most, first=first) as holder:
            yield SqlServerLock(holder)

    def signal_table(self, catalog: str, tables: Sequence[CapturedTable]) -> CapturedTable | None:
        """The captured signal table (`signal_table`)."""
        return signal_table(self.connector, catalog, tables)


@dataclass(frozen=True, slots=True)
class SqlServerLock:
    """Table locks that one transaction holds: they are lost with its connection."""

    control: Control

    def require_held(self, doing: str) -> None:
        """Raise SourceUnavailableError if the connection, and with it the lock, was lost."""
        self.control.value("SELECT @@TRANCOUNT", doing=doing)


@dataclass(frozen=True, slots=True)
class SqlServerSession:
    """Queries on one database, each with one or two short statements."""

    control: Control
    connector: Connector
    known: KnownCatalog = field(default_factory=KnownCatalog)
    problems: dict[TableId, str] = field(default_factory=dict[TableId, str])
    scans: SeenScans = field(default_factory=SeenScans)
    log: SeenLog = field(default_factory=SeenLog)

    def require_ready(self) -> str:
        """Return the database's name in its real case; raise ConfigurationError if CDC is not enabled (`catalog`)."""
        hint = self.connector.snapshot.cdc_hint
        return database(self.control, self.control.catalog, hint=hint, seen=self.log).name

    def tables(self) -> list[CapturedTable]:
        """The captured tables that the filters let through, in snapshot order (`catalog`)."""
        self.problems.clear()
        known = self.known.tables(self.control, self.connector.filters, self.problems)
        return self._read_as_configured([one for table in known if (one := self._whole(table)) is not None])

    def _whole(self, table: CapturedTable) -> CapturedTable | None:
        """The table, with what is taken on trust; None if the login cannot read it completely (`concealed`)."""
        whole = WholeRows.of_instances(table.instances, trusted=self.connector.snapshot.trusts_policies)
        problem = whole.problem(table.concealed)
        if problem is not None:
            self.problems[table.table_id] = problem
            return None
        if not table.concealed.policies:
            return table
        return replace(table, unproven=(trusted_policies(table.table_id, table.concealed),))

    def concealed(self) -> str | None:
        """A message if the login cannot know whether rows are concealed from it (`concealed`)."""
        return None if self.connector.snapshot.trusts_policies or sees_policies(self.control) else UNSEEN_POLICIES

    def _read_as_configured(self, tables: list[CapturedTable]) -> list[CapturedTable]:
        by_function = self.connector.streaming.query_mode == "function"
        return [_through_functions(table) for table in tables] if by_function else tables

    def unreadable(self) -> Mapping[TableId, str]:
        """The tables that `tables()` left out because they cannot be captured as they are, with the reason."""
        return self.problems

    def left_out(self) -> list[str]:
        """The captured tables that the filters exclude (`catalog`)."""
        matches = self.connector.filters.tables.matches
        return [table.text for table in captured_names(self.control) if not matches(*table.parts)]

    def structures(self) -> list[TableStructure]:
        """The structure of every table that the login can see (`structures`)."""
        return structures(self.control)

    def hidden(self) -> list[str]:
        """The capture instances of tables that the login cannot see (`health`)."""
        return health.hidden(self.control)

    def unstarted(self) -> list[str]:
        """The capture instances that capture has not started on (`health`)."""
        return health.unstarted(self.control)

    def has_table(self, name: str) -> bool:
        """Whether the login can see a table of this name (`health`)."""
        return health.has_table(self.control, name)

    def stalled(self) -> str | None:
        """A message if capture has stalled (`health`)."""
        return health.stalled(self.control, self.connector.connection, self.scans)

    def capture_health(self, positions: Collection[Lsn]) -> CaptureHealth:
        """The state of capture, and since when there have been transactions after these positions (`health`)."""
        return health.capture_health(self.control, self.connector.connection, positions, self.scans)

    def shows_fork(self) -> bool:
        """Whether the server shows recovery forks to those who may see them (`positions`)."""
        return positions.shows_fork(self.control)

    def is_primary(self) -> bool:
        """Whether this is not a readable secondary (`replica`)."""
        return is_primary(self.control)

    def replica_lag(self) -> timedelta:
        """How far the secondary replicas are behind (`health`)."""
        return health.replica_lag(self.control)

    def absences(self, tables: Mapping[TableId, int | None]) -> dict[TableId, Absence]:
        """Why these tables are not among `tables()` (`absences`)."""
        return absences(self.control, tables, self.connector.filters.tables)

    def standing(self) -> Standing:
        """Settled, captured and maximum, read in this order (`positions`, `log_end`)."""
        found = log_end.standing(self.control, self.log)
        if found.captured is not None or not self.known.uncaptured:
            return found
        end = log_end.log_end(self.control)  # Nothing is captured, and nothing has to be.
        return Standing(end, end, end)

    def captured(self) -> Lsn | None:
        """The newest captured transaction (`positions`); of a database that captures no table, the end of its log."""
        found = positions.captured(self.control)
        return log_end.log_end(self.control) if found is None and self.known.uncaptured else found

    def captured_before(self, at: datetime) -> Lsn | None:
        """The newest captured transaction that was committed before an instant (`positions`)."""
        return positions.captured_before(self.control, at, self.connector.connection.server_timezone)

    def minima(self) -> Mapping[str, Lsn | None]:
        """The smallest LSN that each instance still holds (`catalog`)."""
        return self.known.minima_now(self.control)

    def catalog_minima(self) -> Mapping[str, Lsn | None]:
        """The same as of `tables()`, not queried again while the catalog stays the same (`catalog`)."""
        return self.known.minima(self.control)

    def require_minimum(self, instance: str, minimum: Lsn | None) -> Lsn:
        """Return the minimum; NULL and zero do not count as one (`positions`, rule A9)."""
        return positions.require_minimum(instance, minimum)

    def require_held(self, instance: str, minimum: Lsn | None, from_: Lsn) -> None:
        """Raise DataLostError if rows after `from_` were cleaned up (`positions`, rule A9).

        Args:
            instance: The name of the capture instance.
            minimum: Where its rows begin now, if that can be read.
            from_: The position up to which it was read.
        """
        positions.require_held(instance, minimum, from_)

    def require_visible(self, to: Lsn) -> None:
        """Raise StaleReaderError unless this connection sees the commit `to` (rule A2)."""
        doing = "looking for the end of the range"
        if not self.control.value(IS_VISIBLE, digits(to), digits(to), doing=doing):
            raise stale_reader(doing)

    def witness(self, to: Lsn) -> Witness | None:
        """What to remember with `to` (`positions`, rule A7)."""
        return positions.witness(self.control, to)

    def require_witness(self, known: Witness) -> None:
        """Raise SourceRestoredError if the source has another history (`positions`)."""
        positions.require_witness(self.control, known)

    def nth_transaction(self, after: Lsn, count: int, to: Lsn) -> Lsn | None:
        """The bound of `max.iteration.transactions` (`positions`).

        Args:
            after: The position up to which the tables were read.
            count: The number of transactions.
            to: The end without this bound.
        """
        return positions.nth_transaction(self.control, after, count, to)

    def newest_before(self, lsns: Sequence[Lsn]) -> dict[Lsn, Lsn | None]:
        """The newest transaction below each of these positions (`positions`, rule B14)."""
        return positions.newest_before(self.control, lsns)

    def retention(self) -> timedelta | None:
        """How long changes are kept; None if the login may not see the jobs, or there is no cleanup (`positions`)."""
        return positions.retention(self.control)

    def server_time(self) -> datetime:
        """The server's clock, UTC (`positions`)."""
        return positions.server_time(self.control)

    def mark(self) -> LogMark:
        """The current end of the log (`log_end`)."""
        return log_end.mark(self.control)

    def require_complete(self, to: Lsn, known: Witness | None) -> None:
        """Raise SourceRestoredError if a transaction has appeared below `to` (`positions`)."""
        positions.require_complete(self.control, to, known)

    def require_mark(self, known: LogMark) -> None:
        """Raise SourceRestoredError if the log no longer leads to a mark (`log_end`)."""
        log_end.require_mark(self.control, known)

    def passed(self, known: LogMark) -> bool:
        """Whether capture has passed a mark (`log_end`)."""
        return self.newest_passed([known]) is not None

    def newest_passed(self, known: Collection[LogMark]) -> Lsn | None:
        """The newest of these marks that capture has passed (`log_end`); the newest of all if nothing is captured."""
        if known and self.known.uncaptured and positions.captured(self.control) is None:
            return max(mark.lsn for mark in known)
        return log_end.newest_passed(self.control, known, self.log)

    def held_back(self) -> str | None:
        """Why it is not known that capture has passed the end of an idle log (`replica_states`)."""
        return replica_states.HELD_BACK if self.log.held_back else None

    def count_rows(self, parts: Parts) -> dict[str, int]:
        """Change rows per instance name (`volume`)."""
        return volume.count_rows(self.control, parts)

    def measure(self, parts: Parts, to: Lsn) -> Volume:
        """The rows up to the bound of `dagster.range.max.rows` (`volume`)."""
        return volume.measure(self.control, parts, self.connector.dagster.range_max_rows, to)

    def split(self, instance: CaptureInstance, wanted: LsnRange, parts: int) -> list[LsnRange]:
        """Adjacent sub-ranges for parallel readers (`volume`).

        Args:
            instance: The capture instance.
            wanted: The range.
            parts: The wanted number of sub-ranges.
        """
        return volume.split(self.control, instance, wanted, parts)

    def altered(self, positions: Mapping[int, Lsn]) -> dict[int, str]:
        """The tables that were altered after these positions (`ddl_history`)."""
        return altered(self.control, positions)

    def estimated_rows(self) -> dict[int, int]:
        """The approximate number of rows of each table, by its object id (`chunk_planning`)."""
        return chunk_planning.estimated_rows(self.control)

    def next_bound(
        self,
        schema: TableSchema,
        rows: int,
        last: Bound | None,
        *,
        until: Bound | None = None,
        condition: str | None = None,
        under_lock: bool = False,
    ) -> Bound | None:
        """The key that ends the next rows after a bound (`chunk_planning`).

        Args:
            schema: The table, keyed by the columns that its chunks are ordered by.
            rows: The number of rows of a chunk.
            last: The bound of the previous chunk.
            until: Search no further than this bound.
            condition: Count only the rows that satisfy it.
            under_lock: The caller holds a shared lock on the table.
        """
        with self._lock_timeout():
            return chunk_planning.next_bound(
                self.control, schema, rows, last, until=until, condition=condition, under_lock=under_lock
            )

    def last_bound(self, schema: TableSchema, condition: str | None = None) -> Bound | None:
        """The largest key of a table (`chunk_planning`)."""
        with self._lock_timeout():
            return chunk_planning.last_bound(self.control, schema, condition)

    @contextmanager
    def _lock_timeout(self) -> Generator[None]:
        """Let the server wait for rows locked by writers no longer than `snapshot.lock.timeout.ms` (SNP-17).

        A connection whose time-out was not reset is used for nothing else.
        """
        doing = "setting the lock time-out"
        try:
            self.control.execute(f"SET LOCK_TIMEOUT {self.connector.snapshot.lock_timeout_ms}", doing=doing)
            yield
            self.control.execute("SET LOCK_TIMEOUT -1", doing=doing)
        except BaseException:
            self.control.altered = True
            raise

    def window(self) -> AbstractContextManager[None]:
        """Write rows to the signal table before and after a chunk, if this is configured (`watermarks`)."""
        table = self.connector.signals.table_of(self.control.catalog)
        strategy = self.connector.snapshot.incremental.watermarking
        if table is None or strategy is None:
            return nullcontext()
        return watermarks.window(self.control, table, strategy)

    def run_statement(self, statement: str, *, doing: str) -> None:
        """Run a user-defined statement; errors name its purpose."""
        self.control.altered = True
        self.control.execute(statement, doing=doing)


def _through_functions(table: CapturedTable) -> CapturedTable:
    """The table as if its change tables could not be read, so that their functions are (`data.query.mode=function`)."""
    return replace(table, instances=tuple(replace(one, change_table=None) for one in table.instances))

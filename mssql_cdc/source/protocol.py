"""The interface that planning and capture need from a source. Each implementation is a package next to this module.

Everything that runs in a Spark task is a `BatchReader`: a picklable value without resolved secrets. Every method raises
only exceptions from `errors`; the implementation decides which one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, runtime_checkable

import pyarrow as pa

from mssql_cdc.lsn import Lsn, LsnRange
from mssql_cdc.schema import Column, TableId, TableSchema, TableStructure
from mssql_cdc.source.values import (
    Absence,
    Bound,
    Buckets,
    CapturedTable,
    CaptureHealth,
    CaptureInstance,
    Checksum,
    Chunk,
    LogMark,
    SourceTable,
    Standing,
    Texts,
    Volume,
    Witness,
)

Parts = Sequence[tuple[CaptureInstance, LsnRange]]


class BatchReader(Protocol):
    """Reads one piece of one table, on an executor."""

    def read(self) -> Iterator[pa.RecordBatch]:
        """Neutral batches (`schema.neutral_schema`) in position order."""
        ...


class SharedReading(Protocol):
    """One connection over which several readers read in turn."""

    def read(self, reader: BatchReader) -> Iterator[pa.RecordBatch]:
        """The batches of one of the readers; they count only if `spoiled` does not list it afterwards."""
        ...

    def spoiled(self) -> Collection[int]:
        """The numbers of the readers that may have missed changes, or whose tables were altered meanwhile."""
        ...


class TableLock(Protocol):
    """A shared lock that blocks writers to some tables."""

    def require_held(self, doing: str) -> None:
        """Raise SourceUnavailableError unless the lock is still held; `doing` names the work that needs it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkRead:
    """Chunks of a table that one reader reads, one after another in one transaction.

    Attributes:
        schema: the table's stored schema.
        chunks: which rows. The next chunk is requested when the last row of the previous one has been read, and each
            read starts again with the first.
        snapshot_number: the snapshot's number, part of `_pos`.
        epoch: the current epoch.
        position: the commit position of the rows.
        captured: the position that the reader must see as captured (C20); None if the table is locked.
        commit_lsn: the source's newest position when the snapshot began, for the records.
        read_at: the source's clock when the table's read began.
        rows: the approximate number of rows in a chunk, if it is known to be small.
        statement: a SELECT statement that replaces the table (SNP-23, BLK-04).
        condition: an additional condition on the rows (INC-04).
        under_lock: the caller holds a lock on the whole table.
        recompile: the server compiles a separate plan for each statement (INC-17).
        hidden: columns that nothing uses and that are not read (SNP-22).
        begun: called as soon as the reader's view of the table is fixed at one moment, whoever writes from then on;
            only a reader in this process, under SNAPSHOT isolation, gets it.
        held: called after the last row, while nobody can change what was read or add a row to it, because the statement
            that reads the rows locks them. Only a reader in this process gets it.
    """

    schema: TableSchema
    chunks: Iterable[Chunk]
    snapshot_number: int
    epoch: int
    position: Lsn
    captured: Lsn | None
    commit_lsn: Lsn | None
    read_at: datetime
    rows: int | None = None
    statement: str | None = None
    condition: str | None = None
    under_lock: bool = False
    recompile: bool = False
    hidden: frozenset[str] = frozenset()
    begun: Callable[[], None] | None = None
    held: Callable[[], None] | None = None


class SourceSession(Protocol):
    """A short-lived connection to one database, for metadata queries, not for rows."""

    def require_ready(self) -> str:
        """Return the database's name in the source's spelling; raise ConfigurationError if nothing can be captured."""
        ...

    def tables(self) -> Sequence[CapturedTable]:
        """Return the captured tables that pass the connector's filters, in snapshot order."""
        ...

    def unreadable(self) -> Mapping[TableId, str]:
        """The tables that `tables()` left out because they cannot be captured as they are, with the reason."""
        ...

    def left_out(self) -> Sequence[str]:
        """The names of the captured tables that the connector's filters exclude."""
        ...

    def structures(self) -> Sequence[TableStructure]:
        """The structure of every table that the login can see, captured or not."""
        ...

    def hidden(self) -> Sequence[str]:
        """The names of the capture instances of tables that the login cannot see; the tables' own names are hidden."""
        ...

    def unstarted(self) -> Sequence[str]:
        """The names of the capture instances that capture has not started on: nothing can be read from them yet."""
        ...

    def concealed(self) -> str | None:
        """A message if the login cannot know whether rows are concealed from it; None if it can."""
        ...

    def has_table(self, name: str) -> bool:
        """Whether the login can see a table of this name, as the source writes names."""
        ...

    def shows_fork(self) -> bool:
        """Whether a mark of the log lacks its fork only because the login may not see it."""
        ...

    def stalled(self) -> str | None:
        """A message if capture has stalled; None if it is working, or if this cannot be determined."""
        ...

    def capture_health(self, positions: Collection[Lsn]) -> CaptureHealth:
        """The state of capture, and since when there have been captured transactions after each of these positions."""
        ...

    def is_primary(self) -> bool:
        """Whether everything that is committed can be seen here; a readable secondary may lag."""
        ...

    def replica_lag(self) -> timedelta:
        """The lag of the secondary replica that is furthest behind; zero if it cannot be determined."""
        ...

    def absences(self, tables: Mapping[TableId, int | None]) -> Mapping[TableId, Absence]:
        """Why each of these tables, given with its object id, is not among `tables()`."""
        ...

    def standing(self) -> Standing:
        """Return the progress of capture."""
        ...

    def captured(self) -> Lsn | None:
        """The newest captured transaction."""
        ...

    def captured_before(self, at: datetime) -> Lsn | None:
        """The newest captured transaction that was committed before an instant; None when there is none."""
        ...

    def minima(self) -> Mapping[str, Lsn | None]:
        """The oldest position that each capture instance still holds, by the instance's name."""
        ...

    def catalog_minima(self) -> Mapping[str, Lsn | None]:
        """The same as of `tables()`, which must have been called before."""
        ...

    def require_minimum(self, instance: str, minimum: Lsn | None) -> Lsn:
        """Return the minimum if there is one (A9); raise SourceError otherwise."""
        ...

    def require_held(self, instance: str, minimum: Lsn | None, from_: Lsn) -> None:
        """Raise DataLostError if changes after `from_` are gone (A9), SourceError if that cannot be determined.

        Args:
            instance: The name of the capture instance.
            minimum: Its minimum LSN; None if it cannot be read.
            from_: The position after which changes are needed.
        """
        ...

    def require_visible(self, to: Lsn) -> None:
        """Raise StaleReaderError unless this session sees the commit `to` (A2)."""
        ...

    def newest_before(self, lsns: Sequence[Lsn]) -> Mapping[Lsn, Lsn | None]:
        """The newest captured transaction below each of these positions (B14)."""
        ...

    def witness(self, to: Lsn) -> Witness | None:
        """Return the witness to store with `to` (A7)."""
        ...

    def require_witness(self, known: Witness) -> None:
        """Raise SourceRestoredError if the source's history differs from the one that the witness saw (A7)."""
        ...

    def mark(self) -> LogMark:
        """The current end of the log."""
        ...

    def require_complete(self, to: Lsn, known: Witness | None) -> None:
        """Raise SourceRestoredError if a transaction newer than the witness has appeared below `to` (A7)."""
        ...

    def require_mark(self, known: LogMark) -> None:
        """Raise SourceRestoredError if the source's log no longer leads to a mark (A7)."""
        ...

    def passed(self, known: LogMark) -> bool:
        """Whether capture has passed a mark."""
        ...

    def newest_passed(self, known: Collection[LogMark]) -> Lsn | None:
        """The position of the newest of these marks that capture has passed; None: it has passed none."""
        ...

    def held_back(self) -> str | None:
        """Why it is not known that capture has passed the end of an idle log, if something may hold capture back.

        As determined by the last calls of `newest_passed` and `standing`.
        """
        ...

    def count_rows(self, parts: Parts) -> Mapping[str, int]:
        """Change rows per instance name."""
        ...

    def measure(self, parts: Parts, to: Lsn) -> Volume:
        """The rows of these ranges, cut at the last commit with which they are within `dagster.range.max.rows`."""
        ...

    def nth_transaction(self, after: Lsn, count: int, to: Lsn) -> Lsn | None:
        """The commit position of the `count`-th transaction after `after`, or of the last one; None: there is none.

        Args:
            after: The position after which to count.
            count: The number of transactions.
            to: The position up to which to count.
        """
        ...

    def split(self, instance: CaptureInstance, wanted: LsnRange, parts: int) -> Sequence[LsnRange]:
        """Return adjacent sub-ranges with about the same number of rows.

        Args:
            instance: The capture instance.
            wanted: The range.
            parts: The number of parts.
        """
        ...

    def altered(self, positions: Mapping[int, Lsn]) -> Mapping[int, str]:
        """The tables, by object id, that were altered after these positions, each with what altered it."""
        ...

    def estimated_rows(self) -> Mapping[int, int]:
        """Return the approximate number of rows of each table, by its object id, without reading any."""
        ...

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
        """Return the key that ends the next `rows` rows after `last`; None if fewer remain, or no key can end a chunk.

        Args:
            schema: The table, keyed by the columns that its chunks are ordered by.
            rows: The number of rows of a chunk.
            last: The bound of the previous chunk; None at the beginning of the table.
            until: Search no further than this bound.
            condition: Count only the rows that satisfy it.
            under_lock: The caller holds a shared lock on the table, behind which a writer may wait.
        """
        ...

    def last_bound(self, schema: TableSchema, condition: str | None = None) -> Bound | None:
        """Return the largest key of a table's rows, or of those that satisfy a condition; None if there are none."""
        ...

    def retention(self) -> timedelta | None:
        """Return how long changes are kept; None if unknown, or if there is no cleanup."""
        ...

    def server_time(self) -> datetime:
        """The source's clock, in UTC."""
        ...

    def window(self) -> AbstractContextManager[None]:
        """Notify the source before and after the read of a chunk, if this is configured (INC-08)."""
        ...

    def run_statement(self, statement: str, *, doing: str) -> None:
        """Run a user-defined statement, such as `heartbeat.action.query`."""
        ...


class CheckSession(Protocol):
    """A connection to one database for a check, which shares no reader with capture.

    `schema` is always the source's own structure, reduced to the columns that are compared.
    """

    def tables(self) -> Sequence[SourceTable]:
        """Every table of the database that the login can see, captured or not."""
        ...

    def ranges(self, schema: TableSchema, rows: int) -> Sequence[Chunk]:
        """Key ranges of about `rows` rows each; together they cover every key."""
        ...

    def places(self, schema: TableSchema, keys: Sequence[Texts], ranges: Sequence[Chunk]) -> Sequence[int]:
        """For each key, given by its canonical texts, the index in `ranges` of the range that it falls into.

        Args:
            schema: The table, with its key.
            keys: The canonical texts of the keys.
            ranges: What `ranges` returned.
        """
        ...

    def rows(
        self, schema: TableSchema, chunk: Chunk, *, keys: Sequence[Column], buckets: Buckets | None = None
    ) -> Iterator[Texts]:
        """The rows of a key range as canonical texts (`canonical`).

        Args:
            schema: The columns to read.
            chunk: The range of keys.
            keys: The columns that ranges are made of.
            buckets: Only the rows whose key's hash falls into one of these.
        """
        ...

    def checksums(self, schema: TableSchema, chunk: Chunk, buckets: int) -> Mapping[int, Checksum] | None:
        """The checksum of each bucket in a key range; None if the lake cannot compute the same for these columns.

        Args:
            schema: The table and the columns to compare.
            chunk: The range of keys.
            buckets: The number of buckets.
        """
        ...

    def keyed(self, schema: TableSchema, keys: Sequence[Texts], *, number: int = 0) -> Chunk:
        """The chunk that holds the rows with these keys, given by their canonical texts.

        Args:
            schema: The table and the columns to read.
            keys: The canonical texts of the keys.
            number: The number of the chunk.
        """
        ...

    def shows(self, to: Lsn) -> bool:
        """Whether rows that are read from now on are no older than the commit `to`; a readable secondary may lag."""
        ...

    def held(self, schema: TableSchema, keys: Sequence[Texts] | None) -> AbstractContextManager[Iterator[Texts]]:
        """The rows with these keys (None: all), which nobody can change or add until the block ends."""
        ...


@runtime_checkable
class CheckSource(Protocol):
    """What `check` needs from a kind of source, in addition to what capture needs."""

    def check_session(self, catalog: str) -> AbstractContextManager[CheckSession]:
        """A session for a check of one database."""
        ...


class Source(Protocol):
    """The source of one connector."""

    def notices(self) -> Sequence[str]:
        """Which settings have no effect with the driver that reaches this source, one line per reason."""
        ...

    def session(self, catalog: str) -> AbstractContextManager[SourceSession]:
        """A session on one database."""
        ...

    def change_reader(
        self,
        catalog: str,
        instance: CaptureInstance,
        wanted: LsnRange,
        *,
        visible: Lsn | None = None,
        rows: int | None = None,
    ) -> BatchReader:
        """A reader of one instance's changes in a range; `visible` is a commit that it must see (A2).

        Args:
            catalog: The database's name.
            instance: The capture instance.
            wanted: The range.
            visible: A commit that the reader must see (A2); None: the range's end is checked instead.
            rows: The approximate number of rows, if it is known.
        """
        ...

    def chunk_reader(self, catalog: str, wanted: ChunkRead) -> BatchReader:
        """A reader of one or several adjacent chunks of a snapshot."""
        ...

    def shares(self, reader: BatchReader) -> bool:
        """Whether the reader can read over a connection that it shares with others."""
        ...

    def share(self, readers: Sequence[BatchReader]) -> AbstractContextManager[SharedReading]:
        """One connection for these readers of one database, all of which `shares` accepts."""
        ...

    def shown_key(self, schema: TableSchema, bound: Bound) -> Bound:
        """The values of a bound in human-readable form."""
        ...

    def locked(self, catalog: str, schemas: Sequence[TableSchema]) -> AbstractContextManager[TableLock]:
        """Hold a shared lock on whole tables until the block ends (C21)."""
        ...

    def signal_table(self, catalog: str, tables: Sequence[CapturedTable]) -> CapturedTable | None:
        """The captured signal table of a database; None when none is configured.

        Raises:
            ConfigurationError: it is configured but not captured, or its columns do not fit.
        """
        ...

"""Reads chunks of a table as neutral `r` batches (rules C18, C20, C21; SNP-15, SNP-18, SNP-32).

Runs inside Spark executors, as `changes` does. Locks, log ends and the order of steps belong to `snapshot/`.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC
from itertools import zip_longest
from typing import Literal

import numpy as np
import pyarrow as pa

from mssql_cdc.config import Connection
from mssql_cdc.errors import ConfigurationError, MssqlCdcError, SourceError, StaleStructureError
from mssql_cdc.lsn import Lsn
from mssql_cdc.schema import TableSchema, neutral_schema
from mssql_cdc.schema.arrow import INSTANT
from mssql_cdc.source.protocol import ChunkRead
from mssql_cdc.source.sqlserver.bulk import Bulk, open_bulk
from mssql_cdc.source.sqlserver.chunks import Piece, pieces, table_name
from mssql_cdc.source.sqlserver.columns import RowPlan
from mssql_cdc.source.sqlserver.concealed import WholeRows
from mssql_cdc.source.sqlserver.connect import Control, control
from mssql_cdc.source.sqlserver.decode import position_texts
from mssql_cdc.source.sqlserver.images import Images, inserted_images
from mssql_cdc.source.sqlserver.key_indexes import KeyIndexes
from mssql_cdc.source.sqlserver.numpy_arrays import hex_number, literal
from mssql_cdc.source.sqlserver.replica import ATTEMPTS, NAME, elsewhere
from mssql_cdc.source.sqlserver.sql import IS_CAPTURED, digits, quote, stale_reader
from mssql_cdc.source.sqlserver.structure import Structure

Isolation = Literal["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE", "SNAPSHOT"]

UNDER_LOCK: Isolation = "READ UNCOMMITTED"
"""Used only while the caller holds a shared lock on the whole table (`locked`), so that nothing in it is uncommitted.

A reader that requests its own lock would queue behind the first writer, which waits for the holder, which waits for the
reader: the server does not detect this cycle. Without that lock READ UNCOMMITTED is never used: it
reads rows that no event ever corrects (rule C21).
"""

ISOLATIONS: dict[str, Isolation] = {
    "read_uncommitted": "READ COMMITTED",
    "read_committed": "READ COMMITTED",
    "repeatable_read": "READ COMMITTED",
    "snapshot": "SNAPSHOT",
    "exclusive": "READ COMMITTED",
}
"""`snapshot.isolation.mode` -> how chunks are read.

A chunk needs no more than READ COMMITTED: whatever changes while it is read appears again in the stream, which is read
to the end of the snapshot even where `snapshot.mode` does not stream. The locks of a stricter level are held for a
whole chunk, escalate to a table lock, and block writers.
"""

_STARS = re.compile(
    r"""'(?:[^']|'')*' | \[(?:[^\]]|\]\])*\] | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/
    | (?P<list>(?:\bSELECT(?:\s+(?:ALL|DISTINCT))?(?:\s+TOP\s*(?:\([^()]*\)|\d+)(?:\s+PERCENT)?)?|,|\.)\s*)\*""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_SNAPSHOT_COMMAND = 0xFFFFFFFF
UPDATEABILITY = "SELECT CAST(DATABASEPROPERTYEX(DB_NAME(), 'Updateability') AS nvarchar(128))"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkReader:
    """Reads the rows of some chunks.

    `isolation` is the level of the read's transaction, `fetch_rows` the number of rows per fetch (SNP-31),
    `lock_timeout_ms` how long the server waits for a row locked by a writer (SNP-17; None: as long as the statement may
    take), `trusts_policies` whether the login sees every row although row-level security filters them, `replica` the
    readable secondary on which the log's end is read (`replica`; None: there is only one server).
    """

    connection: Connection
    catalog: str
    wanted: ChunkRead
    isolation: Isolation = "READ COMMITTED"
    fetch_rows: int | None = None
    lock_timeout_ms: int | None = None
    trusts_policies: bool = False
    replica: str | None = None

    def read(self) -> Iterator[pa.RecordBatch]:
        """Neutral `r` batches, in the order of the key, or of its index, when the chunks have bounds.

        Raises:
            StaleReaderError: this connection does not see `captured` yet, or has reached another replica.
            StaleStructureError: the table's columns differ from the schema.
            AccessDeniedError: the login does not see the rows as they are.
            SourceUnavailableError, SourceError, ConfigurationError: see `classify`.
        """
        whole = WholeRows.of(self.wanted.schema, trusted=self.trusts_policies, hidden=self.wanted.hidden)
        plan, structure = RowPlan.of(self.wanted.schema.columns), Structure.of_source(self.wanted.schema)
        with self._opened(plan) as bulk:
            if self.lock_timeout_ms is not None:
                bulk.execute(f"SET LOCK_TIMEOUT {self.lock_timeout_ms}", doing=self._doing)
            begin(bulk, self.isolation, self.wanted.captured, doing=self._doing)
            structure.require(bulk, doing=self._doing)
            whole.require(bulk, doing=self._doing)
            if self.wanted.begun is not None:
                self._fix_view(bulk)
                self.wanted.begun()
            if self.wanted.held is not None:
                self._require_locks(bulk)
            try:
                yield from self._rows(bulk, plan)
            except SourceError as error:
                raise self._cause(bulk, structure, error) from None
            if self.wanted.held is not None:
                self.wanted.held()
            structure.require(bulk, doing=self._doing)
            whole.require(bulk, doing=self._doing)

    def _fix_view(self, bulk: Bulk) -> None:
        """Fix the view: a transaction under SNAPSHOT isolation sees what was committed before its first table read."""
        statement = f"SELECT TOP (1) CAST(1 AS int) AS n FROM {table_name(self.wanted.schema)}"
        for _ in bulk.read(statement, [pa.field("n", pa.int32())], doing=self._doing, rows=1):
            pass

    def _require_locks(self, bulk: Bulk) -> None:
        """Reject a readable secondary, which reads row versions, whatever the hints of a statement."""
        if self._text(bulk, UPDATEABILITY) == "READ_ONLY":
            raise ConfigurationError(
                f"Rows of {self.wanted.schema.table_id} have to be locked and read again, and a readable secondary "
                "ignores locks; check on the primary (without driver.applicationIntent)"
            )

    def _text(self, bulk: Bulk, sql: str) -> str | None:
        rows = bulk.read(sql, [pa.field("text", pa.string())], doing=self._doing, rows=1)
        return next((value for batch in rows for value in batch.column("text").to_pylist()), None)

    @contextmanager
    def _opened(self, plan: RowPlan) -> Generator[Bulk]:
        """A connection to the replica of the sessions; through a listener, it may take several attempts."""
        for _ in range(1 if self.replica is None else ATTEMPTS):
            with open_bulk(self.connection, self.catalog, by_rows=plan.by_rows, fetch_rows=self.fetch_rows) as bulk:
                if self.replica is None or self._text(bulk, NAME) == self.replica:
                    yield bulk
                    return
        raise elsewhere(self.replica or "", doing=self._doing)

    def _cause(self, bulk: Bulk, structure: Structure, error: SourceError) -> MssqlCdcError:
        """What to raise for an error of the read: DDL may have caused it, unless the connection is gone."""
        try:
            bulk.rollback()
            structure.require(bulk, doing=self._doing)
        except StaleStructureError as cause:
            return cause
        except MssqlCdcError:
            return error
        return error

    def _rows(self, bulk: Bulk, plan: RowPlan) -> Iterator[pa.RecordBatch]:
        descending: tuple[bool, ...] | None = None
        for chunk in self.wanted.chunks:
            row, doing = 0, f"reading chunk {chunk.number} of {self.wanted.schema.table_id}"
            for piece in pieces(chunk, self.wanted.schema.keys):
                if descending is None and piece.sql:
                    descending = self._descending(bulk)
                statement, fields = select_statement(self.wanted, plan, piece, descending or ()), plan.raw_fields()
                for raw in bulk.read(statement, fields, piece.parameters, doing=doing, rows=self.wanted.rows):
                    rows = raw.num_rows
                    if rows:
                        images = inserted_images(plan.columns, plan.decode(raw), rows)
                        yield self._neutral(images, self._positions(chunk.number, row, rows))
                        row += rows

    def _descending(self, bulk: Bulk) -> tuple[bool, ...]:
        """Which columns of the key descend, if its index has some in both directions (`key_indexes`)."""
        schema = self.wanted.schema
        return KeyIndexes.seen_by(bulk, schema, doing=self._doing).both_ways if len(schema.keys) > 1 else ()

    def _neutral(self, images: Images, positions: pa.Array) -> pa.RecordBatch:
        """The neutral `r` batch of these images, at these positions."""
        rows = len(positions)
        commit_lsn = self.wanted.commit_lsn.text if self.wanted.commit_lsn else None
        known: dict[str, pa.Array] = {
            "pos": positions,
            "commit_ts": pa.repeat(pa.scalar(self.wanted.read_at.astimezone(UTC), INSTANT), rows),
            "op": pa.repeat("r", rows),
            "commit_lsn": pa.repeat(pa.scalar(commit_lsn, pa.string()), rows),
            "before": images.before,
            "after": images.after,
            "unavailable": images.unavailable,
            "exact": images.exact,
        }
        neutral = neutral_schema(self.wanted.schema)
        arrays = [known.get(field.name, pa.nulls(rows, field.type)) for field in neutral]
        return pa.RecordBatch.from_arrays(arrays, schema=neutral)

    def _positions(self, chunk: int, first: int, rows: int) -> pa.Array:
        """`_pos` of rows `first` … of a chunk; `lsn.snapshot_position_text` does the same for one row."""
        commit = literal(self.wanted.position.raw.hex(), rows)
        place = literal(f"{self.wanted.snapshot_number:06x}{chunk:06x}", rows)
        number = hex_number(np.arange(first, first + rows, dtype=np.int64), 8)
        command = np.full(rows, _SNAPSHOT_COMMAND, dtype=np.int64)
        change = np.concatenate([place, number], axis=1)
        return position_texts(self.wanted.epoch, commit, command, change, np.zeros(rows, dtype=np.int64))

    @property
    def _doing(self) -> str:
        return f"reading rows of {self.wanted.schema.table_id}"


def begin(bulk: Bulk, isolation: Isolation, captured: Lsn | None, *, doing: str) -> None:
    """Begin the transaction of a read.

    Args:
        bulk: the connection; an open transaction of it is rolled back.
        isolation: that of the new transaction; under SNAPSHOT the check fixes its view, so it holds for the rows.
        captured: capture must have reached this LSN; None: nothing is checked.
        doing: completes "while …" in the text of an error.

    Raises:
        StaleReaderError: the connection does not see `captured` yet.
    """
    bulk.execute(f"SET TRANSACTION ISOLATION LEVEL {isolation}", doing=doing)
    bulk.rollback()
    if captured is not None:
        rows = bulk.read(IS_CAPTURED, [pa.field("n", pa.int32())], [digits(captured)] * 2, doing=doing, rows=1)
        if not any(value for batch in rows for value in batch.column("n").to_pylist()):
            raise stale_reader(doing)


def select_statement(wanted: ChunkRead, plan: RowPlan, piece: Piece, descending: Sequence[bool] = ()) -> str:
    """Build the SELECT statement for one piece of the chunk; it takes the piece's parameters.

    Args:
        wanted: What to read.
        plan: The columns to select.
        piece: The condition on the key.
        descending: Which columns of the key descend in its index, so that the server need not sort; empty: none.
    """
    source = table_name(wanted.schema)
    if wanted.statement is not None:
        names = ", ".join(quote(one.name) for one in wanted.schema.columns if one.name not in wanted.hidden)
        source = f"({_with_columns(wanted.statement, names)})"
    conditions = [text for text in (piece.sql, f"({wanted.condition})" if wanted.condition else "") if text]
    # No FORCESEEK, even if the key's index only points to the rows: a plan that looks them up may keep its locks on the
    # index to the end of the statement [Freedman, Read Committed and Bookmark Lookup], and a chunk's would escalate.
    sql = f"SELECT {', '.join(plan.select_list('t', hidden=wanted.hidden))} FROM {source} AS t"
    if wanted.held is not None:
        sql += " WITH (HOLDLOCK)"
    if conditions:
        sql += f" WHERE {' AND '.join(conditions)}"
    if piece.sql:
        ways = zip_longest(wanted.schema.keys, descending)
        sql += " ORDER BY " + ", ".join(f"t.{quote(key.name)}{' DESC' if down else ''}" for key, down in ways)
    return f"{sql} OPTION (RECOMPILE)" if wanted.recompile else sql


def _with_columns(statement: str, names: str) -> str:
    """The statement with its stars replaced by columns; stars in literals, names and products stay."""

    def named(found: re.Match[str]) -> str:
        return found[0] if found["list"] is None else f"{found['list']}{names}"

    return _STARS.sub(named, statement)


@contextmanager
def locked(
    connection: Connection,
    catalog: str,
    schemas: list[TableSchema],
    lock_timeout_ms: int,
    *,
    first: Sequence[str] = (),
) -> Generator[Control, None, None]:
    """Hold a shared lock on every table until the block ends or rolls back (rule C21: tables without a key).

    Args:
        connection: how to connect.
        catalog: the database.
        schemas: the tables to lock.
        lock_timeout_ms: how long the server waits for a writer that is in the way.
        first: statements of the user's own lock, which run first.

    Raises:
        SourceUnavailableError: a lock was not granted in time.
        ConfigurationError: the connection reads a secondary, which ignores locks.
    """
    with control(connection, catalog, autocommit=False, opened_before=True) as opened:
        if opened.value(UPDATEABILITY, doing="asking whether the database may be locked") == "READ_ONLY":
            names = ", ".join(str(schema.table_id) for schema in schemas)
            raise ConfigurationError(
                f"{names} cannot be snapshotted from a readable secondary: a table without a key is read under a "
                "lock, which secondaries ignore. Add a unique index, or take the snapshot on the primary (without "
                "driver.applicationIntent)"
            )
        opened.execute(f"SET LOCK_TIMEOUT {int(lock_timeout_ms)}", doing="setting the lock time-out")
        for statement in first:
            opened.execute(statement, doing="running the statement of snapshot.locking.mode.custom.name")
        for schema in schemas:
            # No column is named: the login may not read those that are not captured, and some cannot be selected.
            opened.execute(
                f"SELECT TOP (1) CAST(1 AS int) AS n FROM {table_name(schema)} WITH (TABLOCK, HOLDLOCK)",
                doing=f"locking {schema.table_id}",
            )
        yield opened

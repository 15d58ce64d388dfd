"""Reads chunks of an incremental snapshot into staged files, each group between a low mark L and a log end E.

Both marks may be off in one direction only: L earlier, E later, which leaves more rows to the stream (correctness C).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.incremental.state import Group, Reading, Wanted
from mssql_cdc.capture.members import LakeTable, prepared, versioned
from mssql_cdc.capture.sealing import require_sealed
from mssql_cdc.capture.snapshot.begin import marked, take_number
from mssql_cdc.capture.write_task import WriteTask, Written, write
from mssql_cdc.config import Connector
from mssql_cdc.errors import ConfigurationError, DataLostError, StaleReaderError
from mssql_cdc.lake.history import SchemaHistory
from mssql_cdc.lake.log import TableState
from mssql_cdc.lake.read import exists
from mssql_cdc.lake.staged import staging
from mssql_cdc.lsn import Lsn
from mssql_cdc.schema import TableSchema
from mssql_cdc.schema.types import LONGEST_BOUND
from mssql_cdc.source.protocol import ChunkRead, SourceSession
from mssql_cdc.source.values import Bound, CaptureInstance, Chunk, LogMark
from mssql_cdc.spark.tasks import run_here

GROUP_ROWS = 50_000
GROUP_SECONDS = 1.0
"""How much a group holds: this many rows, or as many chunks as are read in this time, but at least one chunk."""

INCREMENTAL = "incremental"
"""The writer of emitted rows in a change log."""


@dataclass(frozen=True, slots=True)
class Streaming:
    """A table that streams: its position, and what its rows look like there.

    Attributes:
        member: The table in the lake.
        position: The end of its stream.
        epoch: The current epoch.
        instance: The capture instance that is read after the position.
        schema: The structure of that instance's rows, with its version.
        history: The schema history, which has this version.
        offsets: The newest row of `_offsets`.
    """

    member: LakeTable
    position: Lsn
    epoch: int
    instance: CaptureInstance
    schema: TableSchema
    history: SchemaHistory
    offsets: int


def versioned_schema(
    database: Database, member: LakeTable, instance: CaptureInstance, position: Lsn, history: SchemaHistory
) -> tuple[TableSchema, SchemaHistory]:
    """The structure of an instance's rows with its version, and the history that has it.

    Args:
        database: The database.
        member: The table.
        instance: The capture instance that is read after the position.
        position: The position of the table's stream.
        history: The schema history.
    """
    schemas, history = versioned(database, {member.table: member.structure(instance, position)}, history)
    return schemas[member.table], history


def stream_end(database: Database, table: Streaming) -> Lsn:
    """The present end of a table's streamed commits, which a run may not have recorded in `_offsets` yet."""
    member, home = table.member, table.member.home
    state = database.states.load(home.changes, owner=home.app_id, storage=database.storage)
    own = replace(member, state=state).own()
    return Lsn.parse(own.to) if own is not None and own.epoch == table.epoch else table.position


def ordered(connector: Connector, schema: TableSchema, surrogate: str | None) -> TableSchema:
    """The table, keyed by the columns that order its chunks (INC-05, INC-07).

    These are the surrogate key, else the table's key, else the columns of `message.key.columns`.

    Args:
        connector: The configuration.
        schema: The table.
        surrogate: The column that the signal names.

    Raises:
        ConfigurationError: There are none, the surrogate key is not a captured column, bounds cannot hold its values,
            or events do not have them.
    """
    table = schema.table_id
    if surrogate is not None:
        found = [column.name for column in schema.value_columns if column.name.lower() == surrogate.lower()]
        if not found:
            raise ConfigurationError(f"{table} has no captured column {surrogate!r}; name one as surrogate-key")
        return _bounded(_known(schema, found, "surrogate-key"), "surrogate-key")
    if schema.key_columns:
        return schema
    names = connector.records.keys.columns_for(*table.parts, [column.name for column in schema.value_columns])
    if not names:
        raise ConfigurationError(
            f"{table} has no key that orders its chunks; name a column as surrogate-key, or take a blocking snapshot"
        )
    return _bounded(_known(schema, names, "message.key.columns"), "message.key.columns")


def _known(schema: TableSchema, names: Sequence[str], named: str) -> TableSchema:
    """The table in this order, if events identify the rows that they change: by its key, otherwise by these columns."""
    by = schema.keyed_by(names)
    computed = [] if schema.key_columns else [column.name for column in by.keys if column.computed]
    if computed:
        raise ConfigurationError(
            f"{by.table_id} cannot be read in the order of {', '.join(computed)}: the table has no key, and CDC does "
            f"not deliver values of computed columns, so no change would tell its row; name another one in {named}"
        )
    return by


def _bounded(by: TableSchema, named: str) -> TableSchema:
    """The same, if bounds can hold every value: truncated ones would end the read early, and the rest be swept."""
    long = [f"{column.name} ({column.type.declaration})" for column in by.keys if column.type.exceeds_bounds]
    if long:
        raise ConfigurationError(
            f"{by.table_id} cannot be read in the order of {', '.join(long)}: a column that orders chunks has at most "
            f"{LONGEST_BOUND:,} characters or bytes; name another one in {named}"
        )
    return by


def open_table(database: Database, session: SourceSession, table: Streaming, wanted: Wanted) -> Reading | None:
    """Begin to read a table: take L0 and the largest key; None if no row is wanted and none has to be removed.

    L0 is not after the stream's position: rows are emitted at that position, and whatever is below L0 afterwards is
    swept (C19). This already completes the read of an empty table: a group without rows waits for the stream, so that
    the sweep follows the deletes.

    Args:
        database: The database.
        session: A session on the source.
        table: The table.
        wanted: What was requested.

    Raises:
        ConfigurationError: Nothing orders the table's chunks, or their bounds would show masked values.
        SchemaError: Its key cannot bound a chunk.
    """
    by = ordered(database.connector, table.schema, wanted.surrogate)
    require_sealed(database.connector, by)
    begun = min(_low_mark(session, table)[0], table.position)  # An idle log has rows after the stream's position.
    maximum = session.last_bound(by, wanted.condition)
    is_whole = bool(table.schema.key_columns) and wanted.condition is None
    if maximum is None and not (is_whole and exists(table.member.home.changes, database.storage)):
        return None
    mark = marked(database, session)
    reading = Reading(
        wanted=wanted,
        object_id=table.member.captured.object_id,
        number=take_number(database, "incremental", wanted.table, begun),
        epoch=table.epoch,
        begun=begun,
        keys=by.key_columns,
        definition=by.key_fingerprint,
        maximum=maximum or (),
    )
    return reading if maximum is not None else reading.having(_no_rows(database, table, reading, mark))


def _no_rows(database: Database, table: Streaming, reading: Reading, mark: LogMark) -> Group:
    return Group(
        number=reading.next_group,
        chunks=0,
        upper=(),
        low=reading.begun,
        mark=mark,
        batch=prepare(database, table).batch,
        version=table.schema.version,
        offsets=table.offsets,
        files=(),
        rows=0,
    )


def read_group(
    database: Database, session: SourceSession, table: Streaming, reading: Reading, *, most: int | None = None
) -> Group:
    """Read the next chunks of a table.

    Args:
        database: The database.
        session: A session on the source.
        table: The table.
        reading: What was read so far.
        most: End the group with the chunk that reaches this many rows.

    Raises:
        StaleReaderError: The connection sees less than the table's stream has read.
        StaleStructureError: The table has other columns than the stream's rows.
    """
    # Before L: what the stream commits from here on is checked when the group is emitted.
    state = prepare(database, table)
    low, seen = _low_mark(session, table)
    if low < max(stream_end(database, table), table.position):
        raise StaleReaderError(f"The connection sees changes of {table.member.table} up to {low} only")
    by = table.schema.keyed_by(reading.keys)
    settings = database.connector.snapshot.incremental
    chunks = _Chunks(session, by, reading, settings.chunk_rows, min(most or GROUP_ROWS, GROUP_ROWS))
    wanted = ChunkRead(
        schema=by,
        chunks=chunks,
        snapshot_number=reading.number,
        epoch=reading.epoch,
        position=low,
        captured=seen,
        commit_lsn=low,
        read_at=session.server_time(),
        rows=settings.chunk_rows,
        condition=reading.wanted.condition,
        recompile=settings.recompile,
        hidden=table.schema.hidden - {*reading.keys},
    )
    reader = database.source.chunk_reader(database.catalog, wanted)
    target = staging(table.member.home.changes, database.storage)
    task = WriteTask(reader, table.schema, target, state.batch + 1, database.connector, reading.mark)
    written = Written.from_value(run_here([task], write)[0].unwrap())
    return Group(
        number=reading.next_group,
        chunks=len(chunks.uppers),
        upper=chunks.uppers[-1],
        low=low,
        mark=chunks.end,
        batch=state.batch,
        version=table.schema.version,
        offsets=table.offsets,
        files=tuple(file.path for file in written.files),
        rows=written.rows,
        uppers=tuple(chunks.uppers),
    )


class _Chunks:
    """The chunks of a group: each is planned once the previous one has been read, and the last one is followed by E.

    The rows of all of them are read over one connection, whose checks come after E.
    """

    def __init__(self, session: SourceSession, by: TableSchema, reading: Reading, rows: int, most: int) -> None:
        self._session, self._by, self._reading = session, by, reading
        self._rows, self._most = rows, most
        self.uppers: list[Bound] = []
        self._mark: LogMark | None = None

    def __iter__(self) -> Iterator[Chunk]:
        """Yield the chunks, from the first one on."""
        reading, upper, first = self._reading, self._reading.reached, self._reading.next_chunk
        self.uppers, self._mark = [], None
        until = time.monotonic() + GROUP_SECONDS
        while self._mark is None:
            with self._session.window():
                lower = upper
                upper = self._session.next_bound(
                    self._by, self._rows, lower, until=reading.maximum, condition=reading.wanted.condition
                )
                upper = upper or reading.maximum
                yield Chunk(first + len(self.uppers), lower, upper)
                self.uppers.append(upper)
                is_enough = len(self.uppers) * self._rows >= self._most or time.monotonic() > until
                if upper == reading.maximum or is_enough:
                    self._mark = self._session.mark()  # Before the window closes, so that its last row lies after E.

    @property
    def end(self) -> LogMark:
        """E, once every chunk has been read."""
        assert self._mark is not None
        return self._mark


def prepare(database: Database, table: Streaming) -> TableState:
    """The change log's state, from which emitted rows are committed."""
    return prepared(database, table.member, table.schema, INCREMENTAL)


def _low_mark(session: SourceSession, table: Streaming) -> tuple[Lsn, Lsn]:
    """L, up to which every transaction is captured and visible to a reader; and what a reader has to see as captured.

    A settled row of an idle log counts, since idle tables are advanced to it (A8), and so does the instance's start,
    below which nothing was captured. The stream may be beyond all of them, at the end of the log at which a table was
    read whole: a primary shows what was committed below that.
    """
    standing = session.standing()
    if standing.captured is None:
        raise DataLostError("No capture instance is left; nothing can be read")
    seen = max(standing.captured, standing.settled or standing.captured, table.instance.start_lsn)
    return (table.position if seen < table.position and session.is_primary() else seen), seen

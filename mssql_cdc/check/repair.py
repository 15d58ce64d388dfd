"""Re-reads the rows that differ, as the staged chunks of correctness C: a few keys at a time, exact at a log end E.

The rows are staged in memory until the table's change log has passed E; only then do they represent something that
every reader of the log sees in order. They are recorded as `r` at `(epoch, E, MAX, n)` with `_snapshot` `repair:<n>`,
which Debezium's records show as rows of an incremental snapshot; rows that the source does not have are recorded as `d`
with `_snapshot` `sweep:<n>`, which records omit. If the stream is at a position before E because nothing after it has
been captured, the rows get that position: every later snapshot is newer. A key that has changed after E is left to the
stream, and so is a row to delete that has changed since the current table was read. What a run commits before it is
interrupted is correct by itself: the next run or check merges it (`capture/current_tables`), and the next repair reads
what still differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa
from tenacity import retry, retry_if_exception_type, stop_after_attempt

from mssql_cdc.capture.current_tables import mergeable_batch, waits_for_cut
from mssql_cdc.capture.members import SNAPSHOT, LakeTable, prepared, versioned
from mssql_cdc.capture.snapshot.begin import take_number
from mssql_cdc.capture.write_task import WriteTask, log_rows, masks_of
from mssql_cdc.check.compared import Compared, compared_of
from mssql_cdc.check.looked import Looked
from mssql_cdc.check.multiset import Difference
from mssql_cdc.check.repair_rows import (
    Deletes,
    StoredRows,
    changed_keys,
    delete_rows,
    moved,
    stored_rows,
    without,
)
from mssql_cdc.check.sides import image_texts
from mssql_cdc.errors import ConfigurationError, DataLostError, FencedError
from mssql_cdc.follow.current import merge_table
from mssql_cdc.lake.files import DataFile, write_files
from mssql_cdc.lake.log import TableState, commit
from mssql_cdc.lake.pinned import pin_current
from mssql_cdc.lsn import Lsn, cut_text
from mssql_cdc.schema import TableSchema
from mssql_cdc.source.protocol import ChunkRead
from mssql_cdc.source.values import LogMark, Texts

KEYS_TOGETHER = 50
"""How many rows are locked at a time."""
STAGED_BYTES = 32 * 2**20
"""Bytes of rows that are held in memory until the change log has passed them: one wait serves them all."""
STAGED_CHUNKS = 100
ATTEMPTS = 5
"""How often a commit is tried if other runs of the table, such as one that reads its ranges, commit first."""


@dataclass(frozen=True, slots=True)
class Staged:
    """One chunk of rows, read while nobody could change them; it also serves as the reader of a write task."""

    keys: Sequence[Texts]
    batches: tuple[pa.RecordBatch, ...]
    mark: LogMark

    @property
    def nbytes(self) -> int:
        """How much memory the rows take."""
        return sum(batch.nbytes for batch in self.batches)

    def read(self) -> Iterator[pa.RecordBatch]:
        """The rows."""
        yield from self.batches


def repair_table(looked: Looked, member: LakeTable, differences: Sequence[Difference]) -> int:
    """Re-read the rows that differ, and merge them; return the number of keys.

    Args:
        looked: what is known about the database.
        member: the table.
        differences: the settled differences.

    Raises:
        ConfigurationError: the table's rows cannot be told apart, or it is not streaming.
        SourceUnavailableError: rows stayed locked, or the lake did not pass the rows' marks in time.
        FencedError: another run repairs or snapshots the table.
        SourceRestoredError: the source was restored while the rows waited.
    """
    database, recorded = looked.database, looked.recorded(member)
    compared = _compared(looked, member, recorded)
    begun = _captured(looked)
    structure = member.structure(member.captured.newest, begun)
    schemas, history = versioned(database, {member.table: structure}, looked.history)
    schema = schemas[member.table]
    number = take_number(database, "repair", member.table, begun)
    keys = [difference.key for difference in differences]
    stored, pinned_at = _stored(looked, member, compared, schema, differences)
    before = state = prepared(database, member, schema, SNAPSHOT)
    after = before.batch if pinned_at is None else min(pinned_at, before.batch)
    at = datetime.now(UTC)
    groups = [keys[start : start + KEYS_TOGETHER] for start in range(0, len(keys), KEYS_TOGETHER)]
    chunks = (
        _stage(looked, compared, schema, group, number=number, chunk=chunk, begun=begun, at=at)
        for chunk, group in enumerate(groups)
    )
    writer = _Writer(looked, member, compared, schema, stored, after, number, at)
    for together in held_together(chunks):
        state = writer.commit(together)

    def is_open() -> bool:
        offsets = database.offsets()
        entry = member.entry_in(offsets)
        return not waits_for_cut(state, mergeable_batch(member.table, offsets, entry), state.batch)

    looked.fence.follow(is_open, member.table, f"a complete cut has all changes of {member.table} that were read")
    # The rows belong to no range, so no cut would include them.
    merge_table(database, member, history, state.batch)
    database.log(f"{member.table}: {len(keys)} rows that differed were read again (repair:{number})")
    return len(keys)


@dataclass
class _Writer:
    """Commits staged chunks. `after`: the `_batch` after which to look for changes to their keys."""

    looked: Looked
    member: LakeTable
    compared: Compared
    schema: TableSchema
    stored: StoredRows
    after: int
    number: int
    at: datetime
    deleted: int = 0

    @retry(retry=retry_if_exception_type(FencedError), stop=stop_after_attempt(ATTEMPTS), reraise=True)
    def commit(self, together: Sequence[Staged]) -> TableState:
        """Commit chunks once the change log has passed their marks; try again if another run was faster."""
        looked, database = self.looked, self.looked.database
        looked.fence.wait(together[-1].mark, self.member)
        state = prepared(database, self.member, self.schema, SNAPSHOT)
        changed, reached = changed_keys(state, after=self.after), _stream_end(looked, self.member)
        files, keys = list[DataFile](), self.compared.schema.keys
        # On an idle source, all groups have the same position, so their deletes are numbered together.
        deleted = self.deleted
        for staged in together:
            after, position = cut_text(looked.offsets.epoch, staged.mark.lsn), min(staged.mark.lsn, reached)
            newer = [key for key, newest in changed.items() if newest > after]
            task = WriteTask(
                staged, self.schema, state.target, state.batch + 1, database.connector, f"repair:{self.number}"
            )
            read = list(log_rows(task, staged.batches))
            files += write_files((moved(without(batch, newer), position) for batch in read), state.target)
            absent = frozenset(staged.keys).difference(*(image_texts(batch, "after", keys) for batch in read))
            # An event that has changed a row since it was stored has another image of the row.
            stored = (without(batch, changed) for batch in self.stored.of(absent))
            deletes = Deletes(self.number, looked.offsets.epoch, position, self.at, first=deleted)
            gone = write_files(delete_rows(stored, state, self.schema, deletes), state.target)
            deleted += sum(file.rows for file in gone)
            files += gone
        count = sum(len(staged.keys) for staged in together)
        facts = {"kind": "repair", "number": self.number, "epoch": looked.offsets.epoch, "keys": count}
        _require_marks(looked, together)
        after = commit(state, files, {**facts, "run_id": database.run_id}, spark=database.spark)
        self.deleted = deleted
        return after


def _require_marks(looked: Looked, chunks: Sequence[Staged]) -> None:
    """Require that the source still has the history that the rows were read from, as every other writer does (A7).

    Raises:
        SourceRestoredError: It was restored, or a failover lost transactions.
    """
    with looked.database.session() as session:
        for mark in {staged.mark for staged in chunks}:
            session.require_mark(mark)


def _stream_end(looked: Looked, member: LakeTable) -> Lsn:
    """The position of the table's stream, for which the fence has waited."""
    entry = member.entry_in(looked.database.offsets())
    assert entry is not None  # It streams.
    assert entry.to is not None
    return Lsn.parse(entry.to)


def held_together(chunks: Iterable[Staged]) -> Iterator[Sequence[Staged]]:
    """The staged chunks in groups that wait for the change log together; marks only grow, so the last one counts.

    Args:
        chunks: The chunks in the order in which they are read.
    """
    held: list[Staged] = []
    for chunk in chunks:
        held.append(chunk)
        if len(held) >= STAGED_CHUNKS or sum(one.nbytes for one in held) >= STAGED_BYTES:
            yield held
            held = []
    if held:
        yield held


def _compared(looked: Looked, member: LakeTable, recorded: TableSchema) -> Compared:
    structure, masked = looked.structure(member), masks_of(looked.database.connector, recorded)
    names = {column.name for column in recorded.columns}
    compared = compared_of(structure, recorded, connector=looked.database.connector, masked=masked, stored=names)
    entry = member.entry_in(looked.offsets)
    if not compared.sought_by_key or entry is None or entry.status != "streaming":
        raise ConfigurationError(
            f"Rows of {member.table} cannot be re-read individually; take a blocking snapshot of the table"
        )
    return compared


def _captured(looked: Looked) -> Lsn:
    with looked.database.session() as session:
        captured = session.captured()
    if captured is None:
        raise DataLostError("No capture instance is left; nothing can be read")
    return captured


def _stage(
    looked: Looked,
    compared: Compared,
    schema: TableSchema,
    keys: Sequence[Texts],
    *,
    number: int,
    chunk: int,
    begun: Lsn,
    at: datetime,
) -> Staged:
    """Read rows with a statement that locks them, and take the log's end before it releases them.

    One statement does both: a reader other than the lock's holder would have to pass writers that wait for the lock,
    without one of its own, and might see what one of them has written to an index that the holder has not read.
    """
    database, marks = looked.database, list[LogMark]()
    with database.session() as asked:
        wanted = ChunkRead(
            schema=schema,
            chunks=[looked.session.keyed(compared.schema, keys, number=chunk)],
            snapshot_number=number,
            epoch=looked.offsets.epoch,
            position=begun,
            captured=None,
            commit_lsn=begun,
            read_at=at,
            hidden=schema.hidden,
            held=lambda: marks.append(asked.mark()),
        )
        batches = tuple(database.source.chunk_reader(database.catalog, wanted).read())
    (mark,) = marks
    return Staged(keys, batches, mark)


def _stored(
    looked: Looked, member: LakeTable, compared: Compared, schema: TableSchema, differences: Sequence[Difference]
) -> tuple[StoredRows, int | None]:
    """The lake's rows that the source did not have, and the `_batch` that they are at; None: there are none."""
    wanted = frozenset(difference.key for difference in differences if difference.source is None)
    database = looked.database
    pinned = pin_current(member.home, schema, spark=database.spark, storage=database.storage) if wanted else None
    return (StoredRows(), None) if pinned is None else (stored_rows(pinned, compared, schema, wanted), pinned.batch)

"""Emits staged chunks: rows that nothing has touched since their low mark, as `r` rows at the stream's position.

A key without an event after L had one value throughout, so its row is exact at the end of the stream; a touched key
gets its newer state from the stream (correctness C). One commit holds the rows of some groups and says which; then a
row of `_offsets` names the commit, so that the current table and the records see it. Groups that are read again are
also given up by a commit, so that a late run emits none of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.incremental.chunks import Streaming
from mssql_cdc.capture.incremental.state import Group, Reading
from mssql_cdc.capture.survey import Survey
from mssql_cdc.events import check_batch
from mssql_cdc.lake.files import write_files
from mssql_cdc.lake.log import TableState, commit, kinds_between
from mssql_cdc.lake.offset_commits import append_offsets
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.read import BatchSlice, scan
from mssql_cdc.lake.staged import staged_rows
from mssql_cdc.lake.steps import Entry, chunks_emitted
from mssql_cdc.lsn import Lsn, cut_text
from mssql_cdc.schema.arrow import SOURCE_BLOCK
from mssql_cdc.source.protocol import SourceSession
from mssql_cdc.source.values import Witness

_COLUMNS = ("_pos", "_key", "before", "after", "_snapshot")


def passed_groups(session: SourceSession, reading: Reading, position: Lsn) -> list[Group]:
    """The staged groups whose log end the table's stream has passed, in order.

    Args:
        session: A session on the source.
        reading: The table that is being read.
        position: The end of its stream.

    Raises:
        SourceRestoredError: The log that a group was read from is gone.
    """
    found: list[Group] = []
    for group in reading.staged:
        session.require_mark(group.mark)
        if position < group.mark.lsn:
            # First, everything below the mark must be captured; then everything that is captured must have been read.
            captured = session.captured() if session.passed(group.mark) else None
            if captured is None or captured > position:
                break
        found.append(group)
    return found


def is_stale(reading: Reading, group: Group, table: Streaming, offsets: Offsets) -> bool:
    """Whether a staged group must be read again: its rows have another structure, or the stream was interrupted since.

    Args:
        reading: The table that is being read.
        group: One of its groups.
        table: The table now.
        offsets: All offsets.
    """
    identity = table.member.captured.object_id
    later = (row for row in offsets.snapshot_rows if row.number > group.offsets)
    broken = any(entry.object_id == identity for row in later for entry in row.tables.values())
    return broken or group.version != table.schema.version or reading.epoch != table.epoch


def caught_up(reading: Reading, state: TableState) -> Reading:
    """The reading after the groups that the change log holds: the run that emitted them may have ended right then.

    Args:
        reading: What was read of the table.
        state: The state of its change log.
    """
    own = state.own or {}
    done = int(own.get("group", 0)) if own.get("number") == reading.number else 0
    while reading.staged and reading.staged[0].number <= done:
        reading = reading.emitted(reading.staged[0])
    return reading


def was_given_up(reading: Reading, state: TableState) -> bool:
    """Whether another run has given up what is staged, and perhaps ended before it could record that.

    Args:
        reading: What was read of the table, after what was emitted (`caught_up`).
        state: The state of its change log.
    """
    own = state.own or {}
    given_up = int(own.get("given_up", 0)) if own.get("number") == reading.number else 0
    return bool(reading.staged) and reading.staged[0].number <= given_up


def was_repaired(groups: Collection[Group], state: TableState) -> bool:
    """Whether rows of the table were repaired since groups were read: what CDC missed is in no event after them.

    No position shows whether the repair or the group has the newer rows; what is read now is newer.

    Args:
        groups: Staged groups.
        state: The state of the change log.
    """
    return "repair" in kinds_between(state, min(group.batch for group in groups), state.batch)


def give_up(database: Database, reading: Reading, state: TableState) -> TableState:
    """Let no run emit what is staged any longer: a commit without rows fences the runs that began before it.

    Args:
        database: The database.
        reading: What was read of the table, after what was emitted.
        state: The state of its change log.

    Raises:
        FencedError: Another run has written to the table; the next step begins from there.
    """
    facts = {
        "kind": "incremental",
        "number": reading.number,
        "group": reading.group,
        "given_up": reading.staged[-1].number,
        "run_id": database.run_id,
    }
    return commit(state, [], facts, spark=database.spark)


def emit(
    database: Database, table: Streaming, reading: Reading, groups: Sequence[Group], state: TableState
) -> TableState:
    """Write the rows of the first staged groups to the change log, in one commit that names them.

    Args:
        database: The database.
        table: The table.
        reading: What was read of it.
        groups: Its first staged groups, all of them passed.
        state: The state of its change log; the table's position is the end of the stream in it.

    Raises:
        FencedError: Another run has written to the table; the next step begins from there.
        FileNotFoundError: A staged file is gone.
    """
    # Before anything is written: a staged file that is gone is not a fault of the place that rows are written to.
    touched = [_touched(database, table, reading, group, state) for group in groups]
    files = write_files(_rows(database, table, reading, list(zip(groups, touched, strict=True)), state), state.target)
    facts = {
        "kind": "incremental",
        "number": reading.number,
        "group": groups[-1].number,
        "chunks": sum(group.chunks for group in groups),
        "low": groups[0].low.text,
        "position": table.position.text,
        "epoch": table.epoch,
        "run_id": database.run_id,
    }
    after = commit(state, files, facts, spark=database.spark)
    written, read = sum(file.rows for file in files), sum(group.rows for group in groups)
    changed = f"; {read - written} have changed since they were read" if read > written else ""
    database.log(f"incremental snapshot of {table.member.table}: {written} of {read} rows emitted{changed}")
    return after


def record(
    database: Database, session: SourceSession, seen: Survey, table: Streaming, state: TableState, offsets: Offsets
) -> Offsets:
    """Record emitted rows in `_offsets`: as a complete cut with them if every table is at the same position.

    Args:
        database: The database.
        session: A session on the source.
        seen: The survey of this step.
        table: The table.
        state: The state of its change log.
        offsets: All offsets.

    Raises:
        FencedError: Another run has advanced the table; its own row names the commit.
    """
    member = table.member
    entry = member.entry_in(offsets)
    if entry is None or state.own_batch <= (entry.batch or 0):
        return offsets
    known = {one.table.text: one.entry_in(offsets) for one in seen.tables.values()}
    new = {name for name in seen.new if offsets.entry(name) == seen.offsets.entry(name)}
    at = "streaming", entry.epoch, entry.to
    entries = {
        name: replace(found, rows=0)
        for name, found in known.items()
        if found is not None and (found.status, found.epoch, found.to) == at
    }
    entries[member.table.text] = replace(
        entry,
        rows=0,
        delta_table_id=state.table_id,
        delta_version=state.known_version,
        batch=state.batch,
        schema=table.schema.version,
    )
    row = chunks_emitted(
        database.stamp(offsets.epoch),
        entries,
        to=table.position.text,
        # A table that its snapshot keeps closed is opened by the range that passes the snapshot. Cuts continue without
        # other tables.
        complete=all(offsets.closed_until(name, found) is None for name, found in entries.items()),
        witness=_witness(session, table, entry, offsets),
    )
    members = seen.identities if row.complete else None
    return append_offsets(
        database.layout, row, seen=offsets, members=members, new=new, storage=database.storage, known=database.tables
    )


def _witness(session: SourceSession, table: Streaming, entry: Entry, offsets: Offsets) -> Witness | None:
    """What proves later that the source's history is still the same up to the table's position (A7).

    Raises:
        SourceRestoredError: The source shows another history.
    """
    cut = offsets.last_cut()
    if cut is not None and (cut.epoch, cut.to) == (entry.epoch, entry.to):
        return cut.witness
    if offsets.witness is not None:  # A witness of another history would hide that the source went back.
        session.require_witness(offsets.witness)
    return session.witness(table.position)


def _rows(
    database: Database,
    table: Streaming,
    reading: Reading,
    groups: Sequence[tuple[Group, Collection[object]]],
    state: TableState,
) -> Iterator[pa.RecordBatch]:
    """The rows of the groups except those with touched keys, as rows of the next commit at the stream's position."""
    uri, storage = table.member.home.changes, database.storage
    keyed = bool(table.schema.key_columns)
    for group, touched in groups:
        for batch in staged_rows(uri, group.files, table.schema, storage=storage):
            own = _keys(batch, table, reading, "after")
            kept = batch.filter(pa.array([key not in touched for key in own], pa.bool_()))
            if kept.num_rows:
                moved = _moved(kept, table.position, state.batch + 1)
                check_batch(moved, keyed=keyed)
                yield moved


def _touched(
    database: Database, table: Streaming, reading: Reading, group: Group, state: TableState
) -> Collection[object]:
    """The keys of a group that have an event after its low mark. Events after the stream's end count, too."""
    uri, storage = table.member.home.changes, database.storage
    columns = ["_key"] if table.schema.key_columns else ["after"]
    staged = staged_rows(uri, group.files, table.schema, columns=columns, storage=storage)
    own = {key for batch in staged for key in _keys(batch, table, reading, "after")}
    low, found = cut_text(reading.epoch, group.low), set[object]()
    for batch in scan(uri, batches=BatchSlice(group.batch, state.batch), columns=list(_COLUMNS), storage=storage):
        later = pc.greater(batch.column("_pos"), low)
        events = batch.filter(pc.and_(later, pc.is_null(batch.column("_snapshot"))))
        for image in ("before", "after"):
            found.update(own.intersection(_keys(events, table, reading, image)))
    return found


def _keys(rows: pa.RecordBatch, table: Streaming, reading: Reading, image: str) -> list[object]:
    """What identifies each row: `_key`, or without a key the columns that order chunks, before or after a change."""
    if table.schema.key_columns:
        return rows.column("_key").to_pylist()
    return _values(rows.column(image), [table.schema.column(name).stored_name for name in reading.keys])


def _values(images: pa.StructArray, names: Sequence[str]) -> list[object]:
    """The values of some columns of each image that is there: a missing image is not a row with NULLs."""
    there = images.filter(images.is_valid())
    return list(zip(*(pc.struct_field(there, name).to_pylist() for name in names), strict=True))


def _moved(rows: pa.RecordBatch, position: Lsn, number: int) -> pa.RecordBatch:
    """The rows at another position, in another commit."""
    source = rows.column("source")
    count = rows.num_rows
    children = [
        pa.repeat(pa.scalar(position.text), count) if field.name == "commit_lsn" else source.field(field.name)
        for field in SOURCE_BLOCK
    ]
    columns = {
        "_pos": pc.utf8_replace_slice(rows.column("_pos"), 5, 25, position.raw.hex()),
        "_batch": pa.repeat(pa.scalar(number, pa.int64()), count),
        "source": pa.StructArray.from_arrays(children, fields=list(SOURCE_BLOCK)),
    }
    arrays = [columns.get(field.name, rows.column(field.name)) for field in rows.schema]
    return pa.RecordBatch.from_arrays(arrays, schema=rows.schema)

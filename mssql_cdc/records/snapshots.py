"""Snapshots as blocks of records: CREATE records of all their tables, then table by table its rows with markers (SNP).

In the lake the rows of a snapshot lie where they are exact (rule C18); Debezium emits them in one go. A block stands at
its first row's position: what the stream repeats behind it is what Debezium repeats, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lsn import Lsn, snapshot_position_text
from mssql_cdc.records.envelope import Envelopes, Record
from mssql_cdc.records.pieces import ChangeLog, snapshot_numbers, snapshot_rows
from mssql_cdc.records.rows import Row, Shapes, rows_of
from mssql_cdc.records.schema_changes import Version, snapshot_record
from mssql_cdc.records.times import CaptureTimes
from mssql_cdc.schema import TableId


@dataclass(frozen=True, slots=True)
class Block:
    """One snapshot: where it stands, its number (None: no table had a row), its tables in snapshot order."""

    position: str
    number: str | None
    tables: tuple[TableId, ...]
    kind: str


def blocks(logs: Mapping[TableId, ChangeLog], offsets: Offsets, order: Sequence[TableId]) -> list[Block]:
    """The snapshots of a database in the order of their positions; the first is INITIAL, later ones are BLOCKING.

    `order` are the database's tables in snapshot order. Tables without rows are found by the offsets rows of the
    snapshot's partition.
    """
    members: dict[str, set[TableId]] = {}
    firsts: dict[str, str] = {}
    for table_id, log in logs.items():
        for number in snapshot_numbers(log):
            members.setdefault(number, set()).add(table_id)
            first = min(piece.first for piece in log.pieces if number in piece.snapshots)
            firsts[number] = min(first, firsts.get(number, first))
    found: list[tuple[str, str | None, set[TableId]]] = [
        (firsts[number], number, tables) for number, tables in members.items()
    ]
    by_name = {table.text: table for table in order}
    for position, tables in _partitions(offsets, by_name):
        known = [own for _, _, own in found if own & tables]
        if known:
            known[0].update(tables)
        else:
            found.append((position, None, tables))
    kinds = ["INITIAL", *["BLOCKING"] * len(found)]
    ordered = sorted(found, key=lambda block: block[0])
    return [
        Block(position, number, tuple(t for t in order if t in tables), kind)
        for (position, number, tables), kind in zip(ordered, kinds, strict=False)
    ]


def _partitions(offsets: Offsets, by_name: Mapping[str, TableId]) -> Iterator[tuple[str, set[TableId]]]:
    """The tables that each snapshot partition held, and where the earliest of them stood then."""
    tables: dict[str, set[TableId]] = {}
    positions: dict[str, str] = {}
    for row in offsets.rows:
        if row.kind != "snapshot" or row.partition is None:
            continue
        tables.setdefault(row.partition, set()).update(by_name[name] for name in row.tables if name in by_name)
        for entry in row.tables.values():
            if entry.to is not None:
                position = snapshot_position_text(entry.epoch, Lsn.parse(entry.to), number=0)
                positions[row.partition] = min(position, positions.get(row.partition, position))
    for partition, own in tables.items():
        yield positions.get(partition, ""), own


def block_records(
    block: Block,
    *,
    logs: Mapping[TableId, ChangeLog],
    versions: Mapping[TableId, Sequence[Version]],
    shapes: Shapes,
    times: CaptureTimes,
    envelopes: Envelopes,
) -> Iterator[Record]:
    """The records of one snapshot."""
    if envelopes.connector.records.schema_changes:
        yield from _creates(block, logs, versions, envelopes)
    pending: tuple[Row, str] | None = None
    for row, marker in _marked(block, logs, shapes):
        if pending is not None:
            yield _read(*pending, block, times, envelopes, completed=False)
        pending = row, marker
    if pending is not None:
        yield _read(pending[0], "last", block, times, envelopes, completed=True)


def _creates(
    block: Block,
    logs: Mapping[TableId, ChangeLog],
    versions: Mapping[TableId, Sequence[Version]],
    envelopes: Envelopes,
) -> Iterator[Record]:
    commit_lsn, found = _first_facts(block, logs)
    if commit_lsn is None and len(block.position) > 25:
        commit_lsn = Lsn.parse(block.position[5:25]).text
    for place, table_id in enumerate(block.tables, start=1):
        own = versions[table_id]
        number = found.get(table_id)
        version = next((v for v in own if v.schema.version == number), own[0])
        is_last = block.number is None and place == len(block.tables)
        yield snapshot_record(
            version, envelopes, commit_lsn=commit_lsn, kind=block.kind, marker="last" if is_last else "true"
        )


def _first_facts(block: Block, logs: Mapping[TableId, ChangeLog]) -> tuple[str | None, dict[TableId, int]]:
    """The snapshot's LSN, and the schema version of each table's first row."""
    commit_lsn, found = None, {}
    for table_id in block.tables:
        if table_id in logs and block.number is not None:
            first = next(snapshot_rows(logs[table_id], block.number, window_rows=1), None)
            if first is not None:
                found[table_id] = first.column("_schema")[0].as_py()
                commit_lsn = commit_lsn or first.column("source")[0].as_py()["commit_lsn"]
    return commit_lsn, found


def _marked(block: Block, logs: Mapping[TableId, ChangeLog], shapes: Shapes) -> Iterator[tuple[Row, str]]:
    """All rows in order with their `source.snapshot`; that the very last is `last` is known only behind it."""
    is_first_table = True
    for table_id in block.tables:
        if table_id in logs and block.number is not None:
            rows = (
                row for batch in snapshot_rows(logs[table_id], block.number) for row in rows_of(batch, table_id, shapes)
            )
            yield from _table_markers(rows, "first" if is_first_table else "first_in_data_collection")
        is_first_table = False


def _table_markers(rows: Iterable[Row], first: str) -> Iterator[tuple[Row, str]]:
    previous: Row | None = None
    marker = first
    for row in rows:
        if previous is not None:
            yield previous, marker
            marker = "true"
        previous = row
    if previous is not None:
        yield previous, first if marker == "first" else "last_in_data_collection"


def _read(row: Row, marker: str, block: Block, times: CaptureTimes, envelopes: Envelopes, *, completed: bool) -> Record:
    captured = times.of_batch(row.shape.table_id.text, row.batch)
    return envelopes.read(row, marker, captured, kind=block.kind, completed=completed)

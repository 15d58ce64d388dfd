"""Compares one table with a key: checksums by bucket of the key, then the rows of the cells that differ.

Rows that seem to differ may have changed at the source in the meantime; `settle` says which of them do differ.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path

from mssql_cdc.check.cells import Cell, LakeCells, SourceCells, differing, stage
from mssql_cdc.check.checksums import bucket_count, lake_checksums
from mssql_cdc.check.compared import Compared, Unknown
from mssql_cdc.check.multiset import Comparison, Difference, Found, Row, Unread, compare, differences
from mssql_cdc.check.sides import CurrentRows
from mssql_cdc.check.unkeyed import compare_unkeyed
from mssql_cdc.lake.pinned import PinnedTable
from mssql_cdc.schema import TableSchema
from mssql_cdc.source.protocol import CheckSession
from mssql_cdc.source.values import Buckets, Checksum, Chunk, Texts

RANGE_ROWS = 500_000
"""How many rows a key range has; one statement adds up its checksums."""
HELD_ROWS = 200_000
"""About how many rows of differing cells are held at a time, for each side."""
MOST_DIFFERENCES = 10_000
"""A table with more differences is not compared to the end."""
_MODULUS = 1 << 64


@dataclass
class Fetched:
    """What the source had to send: rows of tables, and rows of checksums."""

    rows: int = 0
    checksums: int = 0

    def counted(self, rows: Iterable[Texts]) -> Iterable[Texts]:
        """The same rows, counted as they pass."""
        for row in rows:
            self.rows += 1
            yield row


RowProgress = Callable[[int, int], None]
"""How many rows have been compared, and about how many there are."""


def unseen(_done: int, _of: int) -> None:
    """Progress that is not shown."""


@dataclass(frozen=True, slots=True)
class KeyedTable:
    """A table with a key, and the version of its current table that it is compared with.

    `progress` is called with the number of rows compared so far: after each key range, then as ranges that differ are
    read again. `unread` counts the rows of the source that the lake was never meant to have; None: it should have every
    row.
    """

    session: CheckSession
    compared: Compared
    recorded: TableSchema
    pinned: PinnedTable
    progress: RowProgress = unseen
    fetched: Fetched = field(default_factory=Fetched)
    unread: Unread | None = None

    @property
    def current(self) -> CurrentRows:
        """How to read the current table's rows."""
        return CurrentRows(self.compared, self.recorded)


@dataclass(frozen=True, slots=True)
class Suspects:
    """Rows that seem to differ.

    `unknown` has the cells that CDC never delivered, `positions` the `_pos` of the suspect rows that the lake has.
    """

    differences: Sequence[Difference]
    unknown: Unknown
    positions: dict[Texts, str]


Settle = Callable[[Suspects], Sequence[Difference]]
"""Says which of the rows that seem to differ do differ."""


@dataclass(frozen=True, slots=True)
class Look:
    """What a comparison found.

    `lacking` are the columns whose cells CDC never delivered in some rows, `lacking_rows` is the number of these rows;
    `partial`: so many rows differ that not all were compared.
    """

    result: Comparison
    lacking: frozenset[str]
    lacking_rows: int
    partial: bool = False


def compare_keyed(table: KeyedTable, settle: Settle) -> Look:
    """Compare the rows at the source with the pinned current table.

    Args:
        table: What to compare.
        settle: Says which of the rows that seem to differ do differ.
    """
    ranges = table.session.ranges(table.compared.sought, RANGE_ROWS)
    if not table.compared.keyed:
        return _without_keys(table, ranges)
    unknown = table.current.unknown(table.pinned.read())
    with tempfile.TemporaryDirectory(prefix="mssql_cdc_check_") as folder:
        source = _source_cells(table, ranges, Path(folder))
        if source is None:
            result = _by_rows(table, ranges, unknown)
            settled = tuple(settle(_with_positions(table, result.differences, unknown)))
            return _look(replace(result, differences=settled), unknown)
        return _by_checksums(table, ranges, source, unknown, settle)


def _source_cells(table: KeyedTable, ranges: Sequence[Chunk], folder: Path) -> SourceCells | None:
    """The source's checksums; None if only rows can be compared."""
    cells, buckets = SourceCells(folder), bucket_count(table.pinned.rows)
    for number, chunk in enumerate(ranges):
        if number:
            done = sum(cells.rows)
            table.progress(done, max(done, table.pinned.rows))
        found = table.session.checksums(table.compared.schema, chunk, buckets)
        if found is None:
            return None
        table.fetched.checksums += len(found)
        cells.add(found)
    return cells


def _by_checksums(
    table: KeyedTable, ranges: Sequence[Chunk], source: SourceCells, unknown: Unknown, settle: Settle
) -> Look:
    count = bucket_count(table.pinned.rows)
    ours = source.buckets
    theirs = lake_checksums(table.pinned.read(), table.current, table.compared, count)
    suspects = sorted(number for number in ours.keys() | theirs.keys() if ours.get(number) != theirs.get(number))
    found: list[Difference] = []
    waiting = Suspects([], unknown, {})
    seemed = False
    for differing_rows, positions in _unequal(table, ranges, source, suspects, unknown):
        seemed = seemed or bool(differing_rows)
        waiting = Suspects([*waiting.differences, *differing_rows], unknown, waiting.positions | positions)
        if len(waiting.differences) > MOST_DIFFERENCES:
            found += settle(waiting)
            waiting = Suspects([], unknown, {})
        if len(found) > MOST_DIFFERENCES:
            break
    found += settle(waiting)
    whole = [sum(sums.values(), Checksum()) for sums in (ours, theirs)]
    unread = table.unread is not None and table.unread.rows > 0
    at_source, in_lake = whole if seemed or unread else (whole[1], whole[1])
    result = Comparison(at_source.rows, in_lake.rows, _total(at_source), _total(in_lake), tuple(found))
    return _look(result, unknown, partial=len(found) > MOST_DIFFERENCES)


def _look(result: Comparison, unknown: Unknown, *, partial: bool = False) -> Look:
    return Look(result, frozenset[str]().union(*unknown.values()), len(unknown), partial)


def _without_keys(table: KeyedTable, ranges: Sequence[Chunk]) -> Look:
    """Compare a table whose key is not compared: every cell that a row has counts, whatever other rows lack."""
    lacking, count = frozenset[str](), 0
    for _, names in table.current.partial(table.pinned.read()):
        lacking, count = lacking | names, count + 1
    if not lacking:
        return Look(_by_rows(table, ranges, {}), lacking, count)
    result = compare_unkeyed(
        lambda: table.fetched.counted(_source_rows(table, ranges)),
        lambda: (row for batch in table.pinned.read() for row in table.current.texts(batch)),
        table.compared.names,
        lacking,
        table.unread,
    )
    return Look(result, lacking, count)


def _unequal(
    table: KeyedTable, ranges: Sequence[Chunk], source: SourceCells, suspects: Sequence[int], unknown: Unknown
) -> Iterator[tuple[Sequence[Difference], dict[Texts, str]]]:
    """Rows that seem to differ, some at a time, and the positions of those that the lake has."""
    count = bucket_count(table.pinned.rows)
    # Each bucket has a difference unless its rows changed in the meantime, so the first buckets may be enough.
    for buckets in (suspects[: MOST_DIFFERENCES + 1], suspects[MOST_DIFFERENCES + 1 :]):
        if not buckets:
            continue
        file = source.folder / "lake.arrows"
        session, compared, pinned = table.session, table.compared, table.pinned
        lake = stage(session, compared, table.current, pinned, file=file, buckets=buckets, count=count, ranges=ranges)
        cells = differing(source, lake, buckets)
        again = sum(source.rows[place] for place in {cell.range for cell in cells})
        done = 0
        for some in _held(cells):
            table.progress(pinned.rows + done, pinned.rows + again)
            left, right, positions = _rows_of(table, ranges, lake, some, unknown)
            unequal = list(differences(left, right, compared.names, table.unread))
            yield unequal, {one.key: positions[one.key] for one in unequal if one.key in positions}
            done += sum(cell.rows for cell in some)


def _held(cells: Sequence[Cell]) -> Iterator[list[Cell]]:
    """The cells, in groups whose rows fit in memory together."""
    some: list[Cell] = []
    rows = 0
    for cell in cells:
        if some and rows + cell.rows > HELD_ROWS:
            yield some
            some, rows = [], 0
        some.append(cell)
        rows += cell.rows
    if some:
        yield some


def _rows_of(
    table: KeyedTable, ranges: Sequence[Chunk], lake: LakeCells, cells: Sequence[Cell], unknown: Unknown
) -> tuple[Found, Found, dict[Texts, str]]:
    """The rows of both sides in these cells, and the positions of the lake's rows."""
    left: Found = {}
    right: Found = {}
    positions: dict[Texts, str] = {}
    compared = table.compared
    for batch in lake.read(cells):
        for (texts, _), position in zip(table.current.texts(batch), batch.column("_pos").to_pylist(), strict=True):
            key = compared.key(texts)
            right.setdefault(key, Counter())[compared.known(texts, key, unknown)] += 1
            positions[key] = position
    for place, mine in groupby(cells, key=lambda cell: cell.range):
        buckets = Buckets(lake.count, frozenset(cell.bucket for cell in mine))
        rows = table.session.rows(compared.schema, ranges[place], keys=compared.sought.keys, buckets=buckets)
        for texts in table.fetched.counted(rows):
            key = compared.key(texts)
            left.setdefault(key, Counter())[compared.known(texts, key, unknown)] += 1
    return left, right, positions


def _by_rows(table: KeyedTable, ranges: Sequence[Chunk], unknown: Unknown) -> Comparison:
    """Compare every row of both sides, for tables whose server-side bytes the lake cannot reproduce."""
    compared = table.compared

    def row(texts: Texts) -> Row:
        key = compared.key(texts)
        return key, compared.known(texts, key, unknown), 1

    return compare(
        lambda: map(row, table.fetched.counted(_source_rows(table, ranges))),
        lambda: (row(texts) for batch in table.pinned.read() for texts, _ in table.current.texts(batch)),
        compared.names,
        table.unread,
    )


def _source_rows(table: KeyedTable, ranges: Sequence[Chunk]) -> Iterator[Texts]:
    for chunk in ranges:
        yield from table.session.rows(table.compared.schema, chunk, keys=table.compared.sought.keys)


def _with_positions(table: KeyedTable, found: Sequence[Difference], unknown: Unknown) -> Suspects:
    """The rows that seem to differ, with the positions of those that the lake has."""
    wanted = {difference.key for difference in found}
    positions: dict[Texts, str] = {}
    for batch in table.pinned.read() if wanted else ():
        for (texts, _), position in zip(table.current.texts(batch), batch.column("_pos").to_pylist(), strict=True):
            if (key := table.compared.key(texts)) in wanted:
                positions[key] = position
    return Suspects(found, unknown, positions)


def _total(sums: Checksum) -> int:
    return (sums.high % _MODULUS << 64) + sums.low % _MODULUS

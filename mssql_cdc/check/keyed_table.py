"""Compares one table with a key: checksums by bucket of the key, then the rows of the buckets that differ.

What was found here may have changed at the source meanwhile; `settle` says which of it is a difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from mssql_cdc.check.checksums import Sums, add, bucket_count, lake_checksums, row_data
from mssql_cdc.check.compared import Compared, Unknown
from mssql_cdc.check.multiset import Comparison, Difference, Found, Row, compare, differences
from mssql_cdc.check.sides import CurrentRows
from mssql_cdc.lake.pinned import PinnedTable
from mssql_cdc.schema import TableSchema
from mssql_cdc.source.protocol import CheckSession
from mssql_cdc.source.values import Buckets, Checksum, Texts

RANGE_ROWS = 500_000
"""Rows of a key range whose checksums one statement adds up."""
HELD_ROWS = 200_000
"""About how many rows of differing buckets are held at a time, for each side."""
MOST_DIFFERENCES = 10_000
"""A table with more differences is not compared to its end: each part of it costs the source a scan."""
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
"""How many rows are compared, and about how many there are."""


def unseen(_done: int, _of: int) -> None:
    """Progress that is not shown."""


@dataclass(frozen=True, slots=True)
class KeyedTable:
    """A table with a key, and the version of its current table that it is compared with.

    `progress` is told after each key range how many rows are compared.
    """

    session: CheckSession
    compared: Compared
    recorded: TableSchema
    pinned: PinnedTable
    progress: RowProgress = unseen
    fetched: Fetched = field(default_factory=Fetched)

    @property
    def current(self) -> CurrentRows:
        """How to read the current table's rows."""
        return CurrentRows(self.compared, self.recorded)


@dataclass(frozen=True, slots=True)
class FirstLook:
    """What a comparison found before it was settled.

    `unknown` are the cells that CDC never delivered, `positions` the `_pos` of the lake's rows that differ. `partial`:
    there are more than `MOST_DIFFERENCES`, and not all rows were compared.
    """

    result: Comparison
    unknown: Unknown
    positions: dict[Texts, str] = field(default_factory=dict[Texts, str])
    partial: bool = False


def first_look(table: KeyedTable) -> FirstLook:
    """Compare the rows at the source, as they are now, with the pinned current table."""
    unknown = table.current.unknown(table.pinned.read())
    if not table.compared.keyed:
        return FirstLook(_by_rows(table, unknown), unknown)
    buckets = bucket_count(table.pinned.rows)
    ours = _source_sums(table, buckets)
    if ours is None:
        return _with_positions(table, FirstLook(_by_rows(table, unknown), unknown))
    theirs = lake_checksums(table.pinned.read(), table.current, table.compared, buckets)
    suspects = sorted(number for number in ours.keys() | theirs.keys() if ours.get(number) != theirs.get(number))
    held = max(1, HELD_ROWS * buckets // max(table.pinned.rows, 1))
    found: list[Difference] = []
    positions: dict[Texts, str] = {}
    for start in range(0, len(suspects), held):
        if len(found) > MOST_DIFFERENCES:
            break
        some = Buckets(buckets, frozenset(suspects[start : start + held]))
        left, right, places = _rows_of(table, some, unknown)
        new = list(differences(left, right, table.compared.names))
        found += new
        positions |= {one.key: places[one.key] for one in new if one.key in places}
    whole = [sum(sums.values(), Checksum()) for sums in (ours, theirs)]
    at_source, in_lake = whole if found else (whole[1], whole[1])
    result = Comparison(at_source.rows, in_lake.rows, _total(at_source), _total(in_lake), tuple(found))
    return FirstLook(result, unknown, positions, partial=len(found) > MOST_DIFFERENCES)


def _source_sums(table: KeyedTable, buckets: int) -> Sums | None:
    """The source's checksums; None where only rows can be compared."""
    schema = table.compared.schema
    sums: Sums = {}
    for number, chunk in enumerate(table.session.ranges(schema, RANGE_ROWS)):
        if number:
            done = sum(one.rows for one in sums.values())
            table.progress(done, max(done, table.pinned.rows))
        found = table.session.checksums(schema, chunk, buckets)
        if found is None:
            return None
        table.fetched.checksums += len(found)
        add(sums, found)
    return sums


def _rows_of(table: KeyedTable, buckets: Buckets, unknown: Unknown) -> tuple[Found, Found, dict[Texts, str]]:
    """The rows of both sides in these buckets, and the positions of the lake's."""
    left: Found = {}
    right: Found = {}
    positions: dict[Texts, str] = {}
    for batch in table.pinned.read():
        numbers, _ = row_data(batch, table.current, table.compared, buckets.count)
        mine = batch.filter(pa.array([number in buckets.numbers for number in numbers], pa.bool_()))
        for (texts, _), position in zip(table.current.texts(mine), mine.column("_pos").to_pylist(), strict=True):
            key = table.compared.key(texts)
            right.setdefault(key, Counter())[table.compared.known(texts, key, unknown)] += 1
            positions[key] = position
    for texts in table.fetched.counted(table.session.rows(table.compared.schema, buckets=buckets)):
        key = table.compared.key(texts)
        left.setdefault(key, Counter())[table.compared.known(texts, key, unknown)] += 1
    return left, right, positions


def _by_rows(table: KeyedTable, unknown: Unknown) -> Comparison:
    """Every row of both sides, for tables whose server-side bytes the lake cannot make again."""
    compared = table.compared

    def row(texts: Texts) -> Row:
        key = compared.key(texts)
        return key, compared.known(texts, key, unknown), 1

    return compare(
        lambda: map(row, table.fetched.counted(table.session.rows(compared.schema))),
        lambda: (row(texts) for batch in table.pinned.read() for texts, _ in table.current.texts(batch)),
        compared.names,
    )


def _with_positions(table: KeyedTable, look: FirstLook) -> FirstLook:
    """The same with the positions of the lake's rows that differ."""
    wanted = {difference.key for difference in look.result.differences}
    if not wanted:
        return look
    positions: dict[Texts, str] = {}
    for batch in table.pinned.read():
        for (texts, _), position in zip(table.current.texts(batch), batch.column("_pos").to_pylist(), strict=True):
            if (key := table.compared.key(texts)) in wanted:
                positions[key] = position
    return FirstLook(look.result, look.unknown, positions)


def _total(sums: Checksum) -> int:
    return (sums.high % _MODULUS << 64) + sums.low % _MODULUS

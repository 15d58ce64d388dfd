"""Finds where the chunks of a table end, step by step (rule C20, case B).

A step reads the keys of one chunk, starting at the last bound; who runs it, and what is kept of it, is not decided
here. What a bound is belongs in `chunks`; how the server finds one, in `key_walk`.
"""

from __future__ import annotations

from itertools import pairwise

from mssql_cdc.schema import TableSchema
from mssql_cdc.source.sqlserver.chunks import WHOLE, pieces
from mssql_cdc.source.sqlserver.connect import Control
from mssql_cdc.source.sqlserver.key_indexes import KeyIndexes
from mssql_cdc.source.sqlserver.key_walk import KeyWalk
from mssql_cdc.source.sqlserver.mixed_keys import MixedWalk
from mssql_cdc.source.sqlserver.partitioned_keys import PartitionedWalk, by_partition
from mssql_cdc.source.values import Bound, Chunk


def plan_chunks(control: Control, schema: TableSchema, rows_per_chunk: int) -> list[Chunk]:
    """All chunks of about `rows_per_chunk` rows in key order (`next_bound`).

    Args:
        control: a connection to the table's database.
        schema: the table, with its key.
        rows_per_chunk: at least 1.
    """
    edges: list[Bound | None] = [None]
    while (bound := next_bound(control, schema, rows_per_chunk, edges[-1])) is not None:
        edges.append(bound)
    edges.append(None)
    return [Chunk(number, lower, upper) for number, (lower, upper) in enumerate(pairwise(edges))]


def estimated_rows(control: Control) -> dict[int, int]:
    """The approximate number of rows of each table that the login can see, by its object id, from metadata."""
    statement = "SELECT object_id, SUM(rows) FROM sys.partitions WHERE index_id IN (0, 1) GROUP BY object_id"
    return {int(table): int(rows or 0) for table, rows in control.rows(statement, doing="estimating tables' rows")}


def next_bound(
    control: Control,
    schema: TableSchema,
    rows: int,
    last: Bound | None,
    *,
    until: Bound | None = None,
    condition: str | None = None,
    under_lock: bool = False,
) -> Bound | None:
    """Return the key that ends the next `rows` rows after `last`; None if fewer remain.

    The server seeks the last bound, then walks along the key's index: however large the table, each statement reads the
    keys of one chunk; with a condition, up to the last row of the chunk that satisfies it. Rows that share a surrogate
    key's value stay in one chunk, since a chunk reaches up to and including its bound. Where the index is partitioned
    by another column, a chunk may have fewer rows (`partitioned_keys`); where it has columns in both directions, the
    key is searched for column by column (`mixed_keys`).

    None, too, for a table without a key, or with a key of a type that has no bounds (sql_variant).

    Args:
        control: a connection to the table's database.
        schema: the table, with its key.
        rows: how many rows the chunk has, at least 1.
        last: the bound of the previous chunk; None at the beginning of the table.
        until: search no further than this bound.
        condition: count only the rows that satisfy it.
        under_lock: the caller holds a shared lock on the table, behind which a writer may wait: take no lock.
    """
    if not schema.keys or not all(column.type.has_bounds for column in schema.keys):
        return None
    walk = walk_of(KeyWalk(control, schema, condition, under_lock=under_lock))
    left, parts = rows, pieces(Chunk(0, last, until), schema.keys)
    for part in parts:
        found = walk.nth(part, left)
        if found is not None:
            return found
        if part is not parts[-1]:
            left = max(left - walk.count(part, left), 1)  # Rows may have been added since the search.
    return None


def last_bound(control: Control, schema: TableSchema, condition: str | None = None) -> Bound | None:
    """Return the largest key of the table in the order of its chunks; None if it is empty.

    Args:
        control: a connection to the table's database.
        schema: the table, with its key.
        condition: consider only the rows that satisfy it.

    Raises:
        SchemaError: keys of this type cannot bound a chunk.
    """
    return walk_of(KeyWalk(control, schema, condition)).last(WHOLE)


def walk_of(walk: KeyWalk) -> KeyWalk | PartitionedWalk | MixedWalk:
    """The walk that suits the index of the key: none of its statements sorts the remaining rows."""
    indexes = KeyIndexes.of(walk.control, walk.schema, doing=walk.doing)
    by = by_partition(walk, indexes)
    return MixedWalk(by, walk.schema.keys) if indexes.both_ways else by

"""Which key range a key falls into, in the server's order; no table is read for this.

Only the server knows the order of a collation or of a `uniqueidentifier`. So it sorts the keys together with the upper
bounds of the ranges: the keys before or at a bound belong to the range that ends there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from mssql_cdc.schema import Column, TableSchema
from mssql_cdc.source.sqlserver.chunks import bound_value
from mssql_cdc.source.sqlserver.connect import Control
from mssql_cdc.source.values import Bound

PARAMETERS = 2_000
"""SQL Server allows 2,100 per statement."""


def ranges_of(control: Control, schema: TableSchema, keys: Sequence[Bound], edges: Sequence[Bound]) -> list[int]:
    """For each key, the number of the range that it falls into: how many edges are below the key.

    Args:
        control: a connection to the table's database, in whose collation texts are compared.
        schema: the table, with its key.
        keys: the keys.
        edges: the upper bounds of all ranges but the last, ascending.
    """
    together = max(2, PARAMETERS // max(len(schema.keys), 1))
    step = -(-len(edges) // (together // 2))
    if step <= 1:
        return _sorted_together(control, schema, keys, edges, together - len(edges))
    found = [0] * len(keys)
    inside: dict[int, list[int]] = defaultdict(list)
    for place, coarse in enumerate(ranges_of(control, schema, keys, edges[step - 1 :: step])):
        inside[coarse].append(place)
    for coarse, places in inside.items():
        first = coarse * step
        within = ranges_of(control, schema, [keys[place] for place in places], edges[first : first + step - 1])
        for place, number in zip(places, within, strict=True):
            found[place] = first + number
    return found


def _sorted_together(
    control: Control, schema: TableSchema, keys: Sequence[Bound], edges: Sequence[Bound], together: int
) -> list[int]:
    if not edges:
        return [0] * len(keys)
    names = [f"[k{number}]" for number in range(len(schema.keys))]
    found = [0] * len(keys)
    for start in range(0, len(keys), together):
        some = keys[start : start + together]
        bounds = [*some, *edges]  # An edge has a larger number than a key equal to it, so it sorts after the key.
        rows = ", ".join(f"({number}, {_values(schema.keys, bound)})" for number, bound in enumerate(bounds))
        ordered = control.rows(
            f"SELECT [n] FROM (VALUES {rows}) AS [keys]([n], {', '.join(names)}) ORDER BY {', '.join(names)}, [n]",
            *(value for bound in bounds for value in bound if value is not None),
            doing=f"placing keys of {schema.table_id} in ranges",
        )
        below = 0
        for (number,) in ordered:
            if number < len(some):
                found[start + number] = below
            else:
                below += 1
    return found


def _values(columns: Sequence[Column], bound: Bound) -> str:
    return ", ".join(
        bound_value(column) if value is not None else bound_value(column).replace("?", "NULL")
        for column, value in zip(columns, bound, strict=True)
    )

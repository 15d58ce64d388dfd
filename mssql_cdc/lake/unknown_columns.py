"""Columns that the rows of a current table do not know, because they are newer than the rows (correctness D24).

Every row names them in `_unavailable`. `lake/current_structure.py` says which they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True, slots=True)
class UnknownColumns:
    """What old rows do not know: source columns by name, and the Delta columns whose values are out of date."""

    names: tuple[str, ...] = ()
    emptied: tuple[str, ...] = ()

    def marked(self, rows: pa.Table) -> pa.Table:
        """Return the rows, marked as not knowing these columns; `rows` may lack any column of the table."""
        if not self.names:
            return rows
        for place, name in enumerate(rows.column_names):
            field, values = rows.schema.field(place), rows.column(place)
            if name == "_unavailable":
                values = _with(values.combine_chunks(), self.names, field.type)
            elif name == "_exact" and self.emptied:
                values = _without(values.combine_chunks(), self.names, field.type)
            elif name in self.emptied:
                values = pa.nulls(rows.num_rows, field.type)
            else:
                continue
            rows = rows.set_column(place, field, values)
        return rows


ALL_KNOWN = UnknownColumns()


def _with(lists: pa.ListArray, names: Sequence[str], kind: pa.ListType) -> pa.ListArray:
    """Append to each list (NULL counts as empty) those of the names that it lacks."""
    count = len(lists)
    values, owners = [lists.flatten()], [_owners(lists)]
    for name in names:
        has = np.zeros(count, dtype=bool)
        has[owners[0][np.asarray(pc.equal(values[0], name), dtype=bool)]] = True
        lacking = np.flatnonzero(~has)
        values.append(pa.array([name], kind.value_type).take(pa.array(np.zeros(len(lacking), dtype=np.int64))))
        owners.append(lacking)
    owner = np.concatenate(owners)
    order = np.argsort(owner, kind="stable")
    return pa.ListArray.from_arrays(_offsets(owner, count), pa.concat_arrays(values).take(pa.array(order)), type=kind)


def _without(maps: pa.MapArray, names: Sequence[str], kind: pa.MapType) -> pa.MapArray:
    """Each map without the entries of these names; NULL if nothing is left. Few rows have a map."""
    kept = [[entry for entry in entries or () if entry[0] not in names] or None for entries in maps.to_pylist()]
    return pa.array(kept, kind)


def _owners(nested: pa.ListArray) -> np.ndarray:
    """For each value of all lists, the number of its list."""
    return np.repeat(np.arange(len(nested)), np.asarray(pc.fill_null(pc.list_value_length(nested), 0)))


def _offsets(owner: np.ndarray, count: int) -> pa.Array:
    return pa.array(np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=count))]), pa.int32())

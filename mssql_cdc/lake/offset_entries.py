"""The per-table entries of some `_offsets` rows, searched by column: thousands of Python objects take a second."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.lake.steps import Entry

Numbers = np.ndarray[Any, Any]
_ALIKE = ["name", "object_id", "folder", "epoch", "status"]


class Group(NamedTuple):
    """Entries that are alike in what `_ALIKE` lists; their positions and batches may differ.

    `place` is the newest one's place among all entries, `batch` their largest batch; `first` and `last` are their
    smallest and largest `to`.
    """

    name: str
    object_id: int | None
    folder: str | None
    epoch: int
    status: str
    place: int
    batch: int | None
    first: str | None
    last: str | None


class Entries:
    """The concatenated entries of a column `tables`, of as many rows as memory allows."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        chunks = column.combine_chunks()
        maps = chunks if isinstance(chunks, pa.MapArray) else pa.concat_arrays(chunks.chunks)
        bounds = maps.offsets.to_numpy()
        first, last = int(bounds[0]), int(bounds[-1])
        self._names = maps.keys.slice(first, last - first)
        self._items = maps.items.slice(first, last - first)
        self._ends = bounds - first

    @property
    def count(self) -> int:
        """The number of entries."""
        return len(self._items)

    @property
    def homes(self) -> pa.Array:
        """The folder of each entry's table, or its name where it has none."""
        return pc.coalesce(self._items.field("folder"), self._names)

    @property
    def batches(self) -> pa.Array:
        """The `batch` of each entry."""
        return self._items.field("batch")

    @property
    def owners(self) -> Numbers:
        """The place of each entry's row among the rows."""
        return np.repeat(np.arange(len(self._ends) - 1), np.diff(self._ends))

    def at(self, places: Sequence[int]) -> list[Entry]:
        """The entries at these places."""
        return [Entry(**found) for found in self._items.take(pa.array(places, pa.int64())).to_pylist()]

    def groups(self) -> list[Group]:
        """Group entries that are alike: there are hardly more groups than tables, however many rows there are."""
        columns = {name: self._items.field(name) for name in (*_ALIKE[1:], "batch", "to")}
        places = pa.array(np.arange(self.count))
        table = pa.table({"name": self._names, "place": places, **columns})
        found = table.group_by(_ALIKE, use_threads=False).aggregate(
            [("place", "max"), ("batch", "max"), ("to", "min"), ("to", "max")]
        )
        wanted = [*_ALIKE, "place_max", "batch_max", "to_min", "to_max"]
        return [Group(*one) for one in zip(*(found.column(name).to_pylist() for name in wanted), strict=True)]

    def of(self, name: str, *, folder: str | None = None) -> pa.Table:
        """All entries under a name, oldest first; if its folder is known, the table's entries under all its names."""
        mine = pc.equal(self._names, name) if folder is None else pc.equal(self._items.field("folder"), folder)
        return pa.Table.from_struct_array(self._items.filter(mine))

    def span(self, epoch: int) -> tuple[str, str] | None:
        """The smallest and the largest position at which tables stream in an epoch; None: no table does.

        Args:
            epoch: The epoch.
        """
        wanted = pc.and_(
            pc.equal(self._items.field("epoch"), epoch), pc.equal(self._items.field("status"), "streaming")
        )
        ends = pc.min_max(self._items.field("to").filter(pc.fill_null(wanted, fill_value=False)))
        first, last = ends["min"].as_py(), ends["max"].as_py()
        return None if first is None or last is None else (first, last)

    def last_streaming(self, rows: Numbers) -> dict[int | str, int]:
        """The last of the given rows in which each table streams, by object id, or by name where an entry has none.

        Args:
            rows: The places of the rows, in order.
        """
        begins, sizes = self._ends[rows], np.diff(self._ends)[rows]
        owners = np.repeat(rows, sizes)
        places = pa.array(np.repeat(begins - np.cumsum(sizes) + sizes, sizes) + np.arange(int(sizes.sum())))
        columns = {name: self._items.field(name).take(places) for name in ("status", "object_id")}
        table = pa.table({"name": self._names.take(places), "row": owners, **columns})
        streams = table.filter(pc.equal(table.column("status"), "streaming"))
        found = streams.group_by(["object_id", "name"], use_threads=False).aggregate([("row", "max")]).to_pylist()
        last: dict[int | str, int] = {}
        for one in found:
            identity = one["name"] if one["object_id"] is None else one["object_id"]
            last[identity] = max(last.get(identity, -1), one["row_max"])
        return last

    def largest_batch(self, rows: int, name: str, folder: str | None) -> int | None:
        """The largest `batch` that a table had in the first `rows` rows; None without any.

        Args:
            rows: The number of rows.
            name: The name that it has in them, if its folder is not known.
            folder: Its folder, which distinguishes it from others of the same name; None: it is not known.
        """
        end = int(self._ends[rows])
        alike, wanted = (self._names, name) if folder is None else (self._items.field("folder"), folder)
        mine = pc.fill_null(pc.equal(alike.slice(0, end), wanted), fill_value=False)
        return pc.max(self._items.field("batch").slice(0, end).filter(mine)).as_py()

"""The per-table entries of all `_offsets` rows, searched in columns: thousands of Python objects take a second."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Numbers = np.ndarray[Any, Any]


class Entries:
    """The concatenated entries of a column `tables`."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        chunks = column.combine_chunks()
        maps = chunks if isinstance(chunks, pa.MapArray) else pa.concat_arrays(chunks.chunks)
        bounds = maps.offsets.to_numpy()
        first, last = int(bounds[0]), int(bounds[-1])
        names = maps.keys.slice(first, last - first).dictionary_encode()
        self.items = maps.items.slice(first, last - first)
        self._ends = bounds - first
        self._codes = names.indices.to_numpy()
        self._names: list[str] = names.dictionary.to_pylist()
        place = np.zeros(len(self._names), dtype=np.int64)
        place[self._codes] = np.arange(len(self._codes))  # For a repeated index, the last value is kept.
        self.newest: dict[str, int] = dict(zip(self._names, place.tolist(), strict=True))

    def of(self, name: str) -> pa.Table:
        """All entries of one table, oldest first."""
        if name not in self._names:
            return pa.Table.from_struct_array(self.items.slice(0, 0))
        mine = np.flatnonzero(self._codes == self._names.index(name))
        return pa.Table.from_struct_array(self.items.take(pa.array(mine, pa.int64())))

    def identities(self, epoch: int) -> frozenset[int]:
        """The object ids of the tables that were read in an epoch; one that is only called lost was not seen in it."""
        read = pc.is_in(self.items.field("status"), value_set=pa.array(["snapshot", "streaming"]))
        found = self.items.field("object_id").filter(pc.and_(read, pc.equal(self.items.field("epoch"), epoch)))
        return frozenset(pc.unique(found).drop_null().to_pylist())

    def newest_of(self, object_id: int) -> dict[str, Any] | None:
        """The newest entry of the source table with this identity, whatever its name was.

        None if another table has taken its folder since: it was dropped then, and once the database is restored, the
        source gives the same identity to whichever table is created next.
        """
        mine = np.flatnonzero(pc.fill_null(self.items.field("object_id"), -1).to_numpy() == object_id)
        if not len(mine):
            return None
        newest = int(mine[-1])
        later, folder = self.items.slice(newest + 1), self.items.field("folder")[newest]
        taken = pc.and_(pc.equal(later.field("folder"), folder), pc.not_equal(later.field("object_id"), object_id))
        return None if pc.any(taken).as_py() else self.items[newest].as_py()

    def last_streaming(self, rows: Numbers) -> dict[int | str, int]:
        """The last of some rows in which a table streams: by object id, or by name where an entry has none.

        Args:
            rows: Where the rows are, in order.
        """
        begins, sizes = self._ends[rows], np.diff(self._ends)[rows]
        owners = np.repeat(rows, sizes)
        places = np.repeat(begins - np.cumsum(sizes) + sizes, sizes) + np.arange(int(sizes.sum()))
        status = self.items.field("status").take(pa.array(places))
        streams = pc.equal(status, "streaming").to_numpy(zero_copy_only=False)
        owners, places = owners[streams], places[streams]
        ids = self.items.field("object_id").take(pa.array(places))
        encoded, has_id = ids.drop_null().dictionary_encode(), ids.is_valid().to_numpy(zero_copy_only=False)
        found: dict[int | str, int] = {}
        for codes, labels, mine in (
            (self._codes[places[~has_id]], self._names, owners[~has_id]),
            (encoded.indices.to_numpy(), encoded.dictionary.to_pylist(), owners[has_id]),
        ):
            last = np.full(len(labels), -1, dtype=np.int64)
            last[codes] = mine  # For a repeated index, the last value is kept.
            found |= {label: row for label, row in zip(labels, last.tolist(), strict=True) if row >= 0}
        return found

    def newest_name(self, object_id: int) -> str | None:
        """The name in the newest entry of this identity; None if the name has a newer entry, or is excluded."""
        mine = np.flatnonzero(pc.fill_null(self.items.field("object_id"), -1).to_numpy() == object_id)
        if not len(mine):
            return None
        newest = int(mine[-1])
        name = self._names[int(self._codes[newest])]
        is_excluded = self.items.field("status")[newest].as_py() == "excluded"
        return None if self.newest[name] != newest or is_excluded else name

    def largest_batches(self, rows: int) -> dict[str, int]:
        """The largest `batch` of each table in the first `rows` rows; tables without any are omitted."""
        end = int(self._ends[rows])
        batches = self.items.field("batch").slice(0, end)
        largest = np.full(len(self._names), -1, dtype=np.int64)
        np.maximum.at(largest, self._codes[:end], pc.fill_null(batches, -1).to_numpy())
        return {name: batch for name, batch in zip(self._names, largest.tolist(), strict=True) if batch >= 0}

    def largest_batch(self, rows: int, name: str, folder: str | None) -> int | None:
        """The largest `batch` that a table had in the first `rows` rows; None without any.

        Args:
            rows: The number of rows.
            name: The name that it has in them, if its folder is not known.
            folder: Its folder, which tells it from others of the same name; None: it is not known.
        """
        end = int(self._ends[rows])
        if folder is not None:
            mine = pc.equal(self.items.field("folder").slice(0, end), folder)
        elif name in self._names:
            mine = pa.array(self._codes[:end] == self._names.index(name))
        else:
            return None
        return pc.max(self.items.field("batch").slice(0, end).filter(pc.fill_null(mine, fill_value=False))).as_py()

"""When batches and cuts were recorded: what records need from all rows of `_offsets`, folded in as rows arrive.

A `_batch` of a change log was recorded by the first row that contains it. Batches are counted per change log, so tables
are identified by their folders, and those without one by their names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.lake.offset_entries import Entries, Numbers

COLUMNS = ("_batch", "at", "epoch", "to", "complete", "tables")
"""The columns of `_offsets` that `Recorded` is built from."""
_OF_CUT = ["_batch", "at", "epoch", "to"]
_NONE: Numbers = np.zeros(0, np.int64)


class Cut(NamedTuple):
    """A complete cut: its row's number, when it was recorded, and its position."""

    number: int
    at: datetime
    epoch: int
    to: str


@dataclass(frozen=True)
class Recorded:
    """What some rows have recorded.

    Attributes:
        number: The number of the newest row that is folded in.
        batches: The batches of each change log, ascending, and their times in microseconds since 1970.
        table: The complete cuts as columns.
    """

    number: int = 0
    batches: Mapping[str, tuple[Numbers, Numbers]] = field(default_factory=dict[str, tuple[Numbers, Numbers]])
    table: pa.Table | None = None

    def after(self, rows: pa.Table) -> Recorded:
        """Fold in further rows.

        Args:
            rows: The next rows of `_offsets`, in order, with `COLUMNS`.
        """
        if not rows.num_rows:
            return self
        entries = Entries(rows.column("tables"))
        found = pa.table({"home": entries.homes, "batch": entries.batches, "row": entries.owners})
        found = found.filter(pc.is_valid(found.column("batch")))
        firsts = found.group_by(["home", "batch"], use_threads=False).aggregate([("row", "min")])
        homes = firsts.column("home").combine_chunks().dictionary_encode()
        batches, owners = firsts.column("batch").to_numpy(), firsts.column("row_min").to_numpy()
        codes = homes.indices.to_numpy()
        order = np.lexsort((batches, codes))
        times = rows.column("at").cast(pa.int64()).to_numpy()[owners]
        bounds = np.searchsorted(codes[order], np.arange(len(homes.dictionary) + 1))
        known = dict(self.batches)
        for code, home in enumerate(homes.dictionary.to_pylist()):
            own = order[bounds[code] : bounds[code + 1]]
            before, at = known.get(home, (_NONE, _NONE))
            merged, first = np.unique(np.concatenate([before, batches[own]]), return_index=True)
            known[home] = merged, np.concatenate([at, times[own]])[first]
        complete = pc.and_(pc.fill_null(rows.column("complete"), fill_value=False), pc.is_valid(rows.column("to")))
        cuts = rows.filter(complete).select(_OF_CUT)
        cuts = cuts if self.table is None else pa.concat_tables([self.table, cuts])
        return Recorded(rows.column("_batch")[-1].as_py(), known, cuts)

    def times(self, home: str, batches: Numbers) -> pa.Array:
        """Return the time of the first row that contains each of these batches; null if none does yet.

        Args:
            home: The table's folder, or its name (`TableId.text`) where it has none.
            batches: Its batches.
        """
        own, at = self.batches.get(home, (_NONE, _NONE))
        places = np.searchsorted(own, batches)
        missing = places >= len(own)
        return pa.array(np.append(at, 0)[np.where(missing, len(own), places)], pa.int64(), mask=missing)

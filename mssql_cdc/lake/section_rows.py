"""Reads the rows of a section of the change log for a fold, as one batch of bounded size.

Arrow limits texts and bytes to 2 GiB per column. Of many changes to one row, only those that a fold needs are kept; a
section that is still too wide has to be divided by its keys (`lake/apply_task.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.lake.arrow_fold import fold_rows
from mssql_cdc.lake.fold import FoldPlan, require_known
from mssql_cdc.lake.window import Window
from mssql_cdc.schema.tables import TableSchema

MOST_PLAIN_BYTES = 1024 * 1024 * 1024
"""The most bytes of rows folded at once: blank-padded `char(4000)` has them in 260,000 rows, which take 5 MB."""


class TooWide(Exception):  # noqa: N818 (not an error: the caller divides the work)
    """The rows have more than `MOST_PLAIN_BYTES`; `parts` says into about how many parts they should be divided."""

    def __init__(self, parts: int) -> None:
        super().__init__(parts)
        self.parts = parts


def usable_rows(window: Window, usable: Sequence[TableSchema], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The window's rows of usable versions.

    Args:
        window: A section of the change log.
        usable: The versions with the present key.
        columns: Columns of the change log, `_schema` among them.
    """
    numbers = pa.array([schema.version for schema in usable], pa.int32())
    for batch in window.rows(columns):
        require_known(window.uri, usable[-1], batch.column("_schema"))
        known = pc.is_in(batch.column("_schema"), value_set=numbers)
        found = batch if pc.all(known).as_py() else batch.filter(known)
        if found.num_rows:
            yield found


def rows_to_fold(
    batches: Iterator[pa.RecordBatch], plan_of: Callable[[pa.RecordBatch], FoldPlan], *, rows: int, bounded: bool = True
) -> tuple[pa.RecordBatch | None, int]:
    """Return what a fold needs of these rows (None if there are none), and how many rows there are.

    Args:
        batches: The rows of a section, with the columns that a fold needs.
        plan_of: How to fold some of them.
        rows: An upper bound on the number of all rows.
        bounded: Whether too many bytes are refused.

    Raises:
        TooWide: The rows have too many bytes.
    """
    held: list[pa.RecordBatch] = []
    size = count = 0
    for batch in batches:
        if held and size + batch.nbytes > MOST_PLAIN_BYTES:
            held, size = _needed(held, plan_of)
        held.append(batch)
        size, count = size + batch.nbytes, count + batch.num_rows
        if size > MOST_PLAIN_BYTES:
            held, size = _needed(held, plan_of)
        # Leave room for the next batches, so that a batch is not folded again with each of them.
        if bounded and len(held) == 1 and size > MOST_PLAIN_BYTES // 2 and count < rows:
            raise TooWide(1 + 2 * size * rows // (count * MOST_PLAIN_BYTES))
    if bounded and size > MOST_PLAIN_BYTES:
        raise TooWide(1 + 2 * size // MOST_PLAIN_BYTES)
    return (pa.concat_batches(held) if held else None), count


def _needed(
    batches: Sequence[pa.RecordBatch], plan_of: Callable[[pa.RecordBatch], FoldPlan]
) -> tuple[list[pa.RecordBatch], int]:
    together = pa.concat_batches(batches)
    found = together.take(pa.array(fold_rows(together, plan_of(together)).needed))
    return [found], found.nbytes

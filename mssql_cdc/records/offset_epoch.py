"""Which history of the source an offset belongs to: LSNs recur after a restore, and an offset has no epoch (A7).

Its position shows it if the tables streamed past it in one epoch only; otherwise its event does, if one epoch only has
it. Anything else is refused: with the wrong epoch, the consumer would miss changes or get them again.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.errors import ConfigurationError
from mssql_cdc.lsn import Lsn, cut_text
from mssql_cdc.records.pieces import streamed
from mssql_cdc.records.source_offsets import INCREMENTAL, SourceOffset

if TYPE_CHECKING:
    from mssql_cdc.records.database_view import DatabaseView


def position_before(epoch: int, commit: Lsn) -> str:
    """Return a text that is not greater than any position of a transaction, but greater than all earlier ones.

    Args:
        epoch: The epoch of the transaction.
        commit: Its commit.
    """
    return f"{epoch:04x}-{commit.raw.hex()}"


def position_after(epoch: int, commit: Lsn) -> str:
    """Return a text that is greater than any position of a transaction, but not greater than any later one.

    Args:
        epoch: The epoch of the transaction.
        commit: Its commit.
    """
    return f"{cut_text(epoch, commit)}+"


def epoch_of(view: DatabaseView, offset: SourceOffset, commit: Lsn, database: str) -> int:
    """Return the epoch that an offset belongs to: the newest one if the lake has no earlier one that reached it.

    Args:
        view: The lake.
        offset: The offset of a consumer.
        commit: Its commit.
        database: The database, for the message.

    Raises:
        ConfigurationError: It may belong to several epochs.
    """
    if not view.epoch:
        return 0
    spans = {epoch: view.offsets.history.span(epoch) for epoch in range(view.epoch + 1)}
    found = [epoch for epoch, span in spans.items() if span is not None and span[0] <= commit.text <= span[1]]
    if len(found) > 1:
        found = [epoch for epoch in found if _has(view, offset, epoch, commit)] or found
    if len(found) > 1:
        newest = spans[view.epoch]
        begins = newest[0] if newest is not None else commit.text
        raise ConfigurationError(
            f"{database}: the offset {commit.text} lies both before and after a restore of the source, whose LSNs "
            f"come again, and nothing tells which of both it is of (epochs {', '.join(map(str, found))}). Leave the "
            "offsets out (with --state-dir, remove committed-offsets.json there): then all records come. Or, for what "
            f"happened only after the restore, write to another output with mssql-cdc records --from {begins}"
        )
    return found[0] if found else view.epoch


def batches_with(view: DatabaseView, offset: SourceOffset, epoch: int, commit: Lsn) -> list[tuple[str, int]]:
    """Return the tables whose rows of a transaction have the event of an offset, each with a batch that has it.

    Args:
        view: The lake.
        offset: The offset.
        epoch: The epoch of the transaction.
        commit: Its commit.
    """
    start, after = position_before(epoch, commit), position_after(epoch, commit)
    logs = [log.after([(start, sys.maxsize)]).within(after, log.limits.batch) for log in view.logs.values()]
    batches = (batch for window in streamed(logs) for batch in window)
    written = ((batch.log.table_id.text, _batch_with(batch.rows, offset)) for batch in batches)
    return [(table, number) for table, number in written if number is not None]


def _has(view: DatabaseView, offset: SourceOffset, epoch: int, commit: Lsn) -> bool:
    """Whether the lake has the event or the snapshot of an offset, in this epoch."""
    if offset.snapshot in {None, INCREMENTAL}:
        return bool(batches_with(view, offset, epoch, commit))
    start = position_before(epoch, commit)
    if offset.snapshot == "BLOCKING":  # It shows the event before it, and is the next one after that.
        return any(block.position >= start for block in view.blocks)
    return any(block.position.startswith(start) for block in view.blocks)


def _batch_with(rows: pa.RecordBatch, offset: SourceOffset) -> int | None:
    """Return the earliest batch among rows that have the event of an offset; None if there are none."""
    if offset.is_of_row_read:
        is_event = pc.equal(rows.column("op"), "r")
    else:
        is_event = pc.equal(rows.column("source").field("change_lsn"), offset.change_lsn)
    return pc.min(rows.column("_batch").filter(pc.fill_null(is_event, fill_value=False))).as_py()

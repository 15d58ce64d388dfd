"""Converts raw batches of a change table to neutral batches: pairs of operations 3 and 4, positions, images.

Pure: Arrow in, Arrow out, no reads. `ChangeDecoder` carries an open operation 3 across a batch boundary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from mssql_cdc.errors import SourceError
from mssql_cdc.schema import TableSchema, neutral_schema
from mssql_cdc.source.sqlserver.bulk import column_name
from mssql_cdc.source.sqlserver.columns import RowPlan
from mssql_cdc.source.sqlserver.images import (
    AFTER,
    BEFORE,
    build_images,
    changed_lists,
    mask_bits,
)
from mssql_cdc.source.sqlserver.numpy_arrays import (
    Bytes,
    Numbers,
    fixed_bytes,
    fixed_text,
    flags,
    hex_digits,
    hex_number,
    literal,
    numbers,
)

RAW_META = (
    pa.field("lsn", pa.binary(10)),
    pa.field("cmd", pa.int32()),
    pa.field("seq", pa.binary(10)),
    pa.field("op", pa.int32()),
    pa.field("mask", pa.binary()),
)
"""The raw fields that precede those of the columns."""

TimeLookup = Callable[[Bytes], pa.Array]
"""Returns the commit times, timestamp[us, UTC], of an (n, 10) matrix of commit LSNs in ascending order."""

_OPERATION_LETTERS = np.frombuffer(b"?dc?u", dtype=np.uint8)


class ChangeDecoder:
    """Turns the raw batches of one (table, range), in order, into neutral batches.

    Feed every batch to `push`, then call `finish`. `ordinals` are the columns' places in the update mask.
    """

    def __init__(
        self, schema: TableSchema, plan: RowPlan, ordinals: Sequence[int], epoch: int, times: TimeLookup
    ) -> None:
        self._schema = schema
        self._neutral = neutral_schema(schema)
        self._plan = plan
        self._ordinals = tuple(ordinals)
        self._epoch = epoch
        self._times = times
        self._open: pa.RecordBatch | None = None
        self._last = ""

    def push(self, raw: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The neutral batch of these raw rows; none when every row must wait for the next batch."""
        if self._open is not None:
            raw, self._open = self._joined(self._open, raw), None
        if raw.num_rows and raw.column("op")[-1].as_py() == BEFORE:
            self._open = raw.slice(raw.num_rows - 1)
            raw = raw.slice(0, raw.num_rows - 1)
        if raw.num_rows:
            yield self._decode(raw)

    def _joined(self, before: pa.RecordBatch, raw: pa.RecordBatch) -> pa.RecordBatch:
        try:
            return pa.concat_batches([before, raw])
        except pa.ArrowInvalid:
            longest = max(
                raw.schema, key=lambda field: before.column(field.name).nbytes + raw.column(field.name).nbytes
            )
            raise SourceError(
                f"{self._schema.table_id}: the two images of an update in transaction 0x{_hex_lsn(before)} have 2 GiB "
                f"or more in column {column_name(longest)!r}, which cannot be read. Exclude the column "
                "(column.exclude.list), or take a new snapshot of the table"
            ) from None

    def finish(self) -> None:
        """Check that nothing is left open.

        Raises:
            SourceError: the last row was the before image of an update whose after image never came.
        """
        if self._open is not None:
            raise self._unpaired(_hex_lsn(self._open))

    def _decode(self, raw: pa.RecordBatch) -> pa.RecordBatch:
        lsn, seq = fixed_bytes(raw.column("lsn"), 10), fixed_bytes(raw.column("seq"), 10)
        command, operation = numbers(raw.column("cmd")), numbers(raw.column("op"))
        self._check_pairs(lsn, seq, command, operation)
        rows = np.nonzero(operation != BEFORE)[0]
        kept = operation[rows]
        changed = mask_bits(raw.column("mask"), self._ordinals)[rows]
        images = build_images(self._plan.columns, self._plan.decode(raw), rows, kept, changed)
        lsn, seq, command = lsn[rows], seq[rows], command[rows]
        known_command = flags(raw.column("cmd"))[rows]
        commit, change = hex_digits(lsn), hex_digits(seq)
        pos = position_texts(self._epoch, commit, command, change, kept)
        self._check_order(pos)
        return pa.RecordBatch.from_arrays(
            [
                pos,
                self._times(lsn),
                fixed_text(_OPERATION_LETTERS[kept][:, None]),
                lsn_texts(commit),
                lsn_texts(change),
                pa.array(command.astype(np.int32), mask=~known_command),
                pa.array(kept.astype(np.int8)),
                images.before,
                images.after,
                changed_lists(self._plan.columns, kept, changed),
                images.unavailable,
                images.exact,
            ],
            schema=self._neutral,
        )

    def _check_pairs(self, lsn: Bytes, seq: Bytes, command: Numbers, operation: Numbers) -> None:
        """Check that every 3 is followed by its own 4, and every 4 follows its own 3 (STR-10)."""
        strange = (operation < 1) | (operation > AFTER)
        if strange.any():
            row = int(strange.argmax())
            raise SourceError(
                f"{self._schema.table_id}: operation {operation[row]} at {lsn[row].tobytes().hex()} is not one of 1 "
                "(delete), 2 (insert), 3 and 4 (update)"
            )
        first = np.nonzero(operation == BEFORE)[0]
        second = np.nonzero(operation == AFTER)[0]
        if len(first) == len(second) and bool((first + 1 == second).all()):
            same = (lsn[first] == lsn[second]).all(axis=1) & (seq[first] == seq[second]).all(axis=1)
            same &= command[first] == command[second]
            if bool(same.all()):
                return
            raise self._unpaired(lsn[first[int((~same).argmax())]].tobytes().hex())
        alone = np.setxor1d(first + 1, second)
        raise self._unpaired(lsn[min(int(alone[0]), len(lsn) - 1)].tobytes().hex())

    def _unpaired(self, lsn: str) -> SourceError:
        return SourceError(
            f"{self._schema.table_id}: an update in transaction 0x{lsn} has only one of its two rows (operations "
            f"3 and 4) in the change table of {self._schema.instance!r}; rows were deleted manually, or the change "
            "table is damaged. Take a new snapshot of the table"
        )

    def _check_order(self, pos: pa.Array) -> None:
        first, last = pos[0].as_py(), pos[-1].as_py()
        if first <= self._last:
            raise SourceError(
                f"{self._schema.table_id}: the position {first} came after {self._last}; pages must not overlap"
            )
        self._last = last


def _hex_lsn(raw: pa.RecordBatch) -> str:
    return raw.column("lsn")[0].as_py().hex()


def position_texts(epoch: int, commit: Bytes, command: Numbers, change: Bytes, operation: Numbers) -> pa.StringArray:
    """`_pos` texts (architecture §6) of many rows; `lsn.position_text` does the same for one row.

    Args:
        epoch: the same for all rows.
        commit: hexadecimal digits of the commit LSNs, an (n, 20) matrix.
        command: command ids, 0 for none.
        change: hexadecimal digits of the change LSNs, an (n, 20) matrix.
        operation: 0 to 4.
    """
    rows = len(commit)
    dash = literal("-", rows)
    return fixed_text(
        literal(f"{epoch:04x}-", rows),
        commit,
        dash,
        hex_number(command, 8),
        dash,
        change,
        dash,
        hex_number(operation, 2)[:, 1:],
    )


def lsn_texts(digits: Bytes) -> pa.StringArray:
    """Texts like `00000027:00000ac0:0002` from an (n, 20) matrix of hexadecimal digits."""
    colon = literal(":", len(digits))
    return fixed_text(digits[:, :8], colon, digits[:, 8:16], colon, digits[:, 16:])

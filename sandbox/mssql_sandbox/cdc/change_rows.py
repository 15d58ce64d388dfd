"""From a log record to the rows of one change table.

Pure: takes a `RowChange` of the engine's log and an instance's captured columns, and returns tuples in the change
table's column order. `scan` decides which instances a record concerns, and when. Rules: operations and masks
[doc][est], deferred updates [doc KB 238254, est], large values [doc][fab].
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mssql_sandbox.cdc.masks import full_mask, mask_of
from mssql_sandbox.engine.log import RowChange
from mssql_sandbox.engine.rows import row_getter

ColumnKind = Literal["plain", "computed", "max", "legacy lob", "rowversion"]
DELETE, INSERT, BEFORE, AFTER = 1, 2, 3, 4


@dataclass(frozen=True, slots=True)
class CapturedColumn:
    """A captured column: its 1-based ordinal, and the position of its value in a logged row (None once dropped)."""

    name: str
    ordinal: int
    position: int | None
    kind: ColumnKind = "plain"


class CapturedColumns:
    """The captured columns of an instance, and how to pick their values if none needs special handling."""

    __slots__ = ("_last", "_pick", "all", "full_mask")

    def __init__(self, columns: Sequence[CapturedColumn] = ()) -> None:
        self.all = tuple(columns)
        self.full_mask = full_mask(len(self.all))
        places = [column.position for column in self.all if column.kind in ("plain", "rowversion")]
        plain = [place for place in places if place is not None]
        self._last = max(plain, default=-1)
        self._pick = row_getter(plain) if plain and len(plain) == len(self.all) else None

    def values(self, row: tuple, *, operation: int, changed: int) -> tuple[Any, ...]:
        """Their values in a change row of `operation`; `changed` is the record's bit set of table positions."""
        if self._pick is not None and self._last < len(row):
            return self._pick(row)
        return tuple([_value(column, row, operation=operation, changed=changed) for column in self.all])


def column_kind(type_name: str, length: int, *, computed: bool) -> ColumnKind:
    """How a column of this type is captured."""
    if computed:
        return "computed"
    if type_name in ("text", "ntext", "image"):
        return "legacy lob"
    if type_name == "rowversion":
        return "rowversion"
    if (length == -1 and type_name in ("varchar", "nvarchar", "varbinary")) or type_name == "xml":
        return "max"
    return "plain"


def _value(column: CapturedColumn, row: tuple, *, operation: int, changed: int) -> object:
    if column.position is None or column.kind == "computed" or column.position >= len(row):
        return None
    if column.kind == "legacy lob" and operation in (DELETE, BEFORE):
        return None
    if column.kind == "max" and operation == BEFORE and not changed >> column.position & 1:
        return None
    return row[column.position]


def _update_mask(columns: Sequence[CapturedColumn], changed: int) -> bytes:
    ordinals = (
        column.ordinal
        for column in columns
        if column.position is not None and (column.kind == "rowversion" or changed >> column.position & 1)
    )
    return mask_of(ordinals, len(columns))


def change_rows(
    change: RowChange, columns: CapturedColumns, commit_lsn: bytes, command: int
) -> Iterator[tuple[Any, ...]]:
    """The one or two rows that a record adds to a change table; `command` is the command id of the first one.

    The halves of an update share it, those of a deferred update take it and the next.

    Column order: start_lsn, end_lsn, seqval, operation, update_mask, the captured columns, command_id.
    An update that captured no changed column leaves none [?].
    """
    full = columns.full_mask

    def row(operation: int, image: tuple, mask: bytes, command: int) -> tuple[Any, ...]:
        values = columns.values(image, operation=operation, changed=change.changed)
        return (commit_lsn, None, change.lsn, operation, mask, *values, command)

    before, after = change.before, change.after
    if change.operation == "delete" and before is not None:
        yield row(DELETE, before, full, command)
    elif change.operation == "insert" and after is not None:
        yield row(INSERT, after, full, command)
    elif before is not None and after is not None:
        if change.deferred:
            yield row(DELETE, before, full, command)
            yield row(INSERT, after, full, command + 1)
            return
        mask = _update_mask(columns.all, change.changed)
        if any(mask):
            yield row(BEFORE, before, mask, command)
            yield row(AFTER, after, mask, command)

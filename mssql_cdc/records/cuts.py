"""The complete cuts of a database as records use them: a few of thousands, each decoded on access."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import overload

from mssql_cdc.lake.recorded import Cut, Recorded
from mssql_cdc.lsn import Lsn, cut_text
from mssql_cdc.records.capture_times import microseconds

_COMMIT = 25
"""The length of the epoch and the commit LSN in `_pos`."""


class Cuts(Sequence[Cut]):
    """The complete cuts that have a position, in order; lookups use bisection."""

    def __init__(self, recorded: Recorded) -> None:
        """Take what `_offsets` has recorded.

        Args:
            recorded: When cuts were recorded.
        """
        found = recorded.table
        self._columns = [] if found is None else [found.column(name) for name in ("_batch", "at", "epoch", "to")]
        self._count = 0 if found is None else found.num_rows

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> Cut: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Cut]: ...
    def __getitem__(self, place: int | slice) -> Cut | Sequence[Cut]:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(self._count))]
        at = range(self._count)[place]
        return Cut(*(column[at].as_py() for column in self._columns))


def first_after(cuts: Sequence[Cut], position: str) -> Cut | None:
    """Return the first cut whose records do not all precede a position; None: all do.

    Args:
        cuts: The complete cuts, in order.
        position: How far records have been written.
    """
    place = bisect_right(cuts, position, key=position_of)
    return cuts[place] if place < len(cuts) else None


def last_before(cuts: Sequence[Cut], number: int) -> Cut | None:
    """Return the newest cut before a row of `_offsets`; None: there is none.

    Args:
        cuts: The complete cuts, in order.
        number: The row's number.
    """
    place = bisect_left(cuts, number, key=_number)
    return cuts[place - 1] if place else None


def recorded_ms(cut: Cut) -> int:
    """Return when a cut was recorded, in milliseconds since 1970."""
    return microseconds(cut.at) // 1000


def position_of(cut: Cut) -> str:
    """Return a text that is greater than every position before the end of a cut, and less than every later one."""
    return cut_text(cut.epoch, Lsn.parse(cut.to))


def commit_of(position: str) -> str:
    """Return the beginning of a position, its epoch and its commit: a text greater than every cut before the commit."""
    return position[:_COMMIT]


def _number(cut: Cut) -> int:
    return cut.number

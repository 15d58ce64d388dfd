"""`_gaps`: the ledger of changes that were lost at the source (rule A9).

A gap represents events that no change log will ever contain. It is recorded once, before capture continues after it,
and keeps its table's check red until it is acknowledged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal

from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.small_tables import SmallTable, retry_overtaken, small_table
from mssql_cdc.lake.storage import LOCAL, Storage


@dataclass(frozen=True, slots=True)
class Gap:
    """Changes of `table` (`TableId.text`) after `from_` that no change log contains.

    `to` is the last position that such a change may have: where a snapshot lets the table stream again. None: no
    snapshot has done so yet, or one did in a later epoch. `by` says who acknowledged the gap.
    """

    table: str
    epoch: int
    from_: str
    to: str | None
    reason: str
    status: Literal["open", "acknowledged"] = "open"
    by: str | None = None
    at: datetime | None = None

    @property
    def identity(self) -> tuple[str, int, str]:
        """Identifies the gap, because every survey finds the same loss again."""
        return self.table, self.epoch, self.from_

    @property
    def text(self) -> str:
        """One line for the operator."""
        end = f" up to {self.to}" if self.to else ""
        return f"{self.table}: changes after {self.from_}{end} are lost: {self.reason}"


def load_gaps(layout: Layout, storage: Storage = LOCAL) -> list[Gap]:
    """Return the current state of every gap, oldest first.

    Raises:
        StorageError: the ledger has been restored or changed: gaps would be forgotten.
    """
    return _gaps(_table(layout, storage))


def open_gaps(layout: Layout, storage: Storage = LOCAL) -> dict[str, list[Gap]]:
    """Return the unacknowledged gaps, by table."""
    found: dict[str, list[Gap]] = {}
    for gap in load_gaps(layout, storage):
        if gap.status == "open":
            found.setdefault(gap.table, []).append(gap)
    return found


def record_gaps(layout: Layout, gaps: Sequence[Gap], *, run_id: str, storage: Storage = LOCAL) -> list[Gap]:
    """Record the gaps that the ledger does not contain yet, and return them.

    A gap that has an end is over: a loss after the same position is a new one, which reopens the gap.

    Args:
        layout: The database's folders.
        gaps: The lost changes.
        run_id: The id of the run.
        storage: The options of the object store.

    Raises:
        FencedError: other runs write to the ledger continuously.
    """

    def missing(known: Sequence[Gap]) -> list[Gap]:
        there = {gap.identity: gap.to for gap in known}
        return [gap for gap in gaps if gap.identity not in there or there[gap.identity] not in {None, gap.to}]

    return _append(_table(layout, storage), missing, run_id)


def bound_gaps(
    layout: Layout,
    names: Collection[str],
    *,
    epoch: int,
    streamed: str,
    to: str,
    run_id: str,
    is_own: Callable[[Gap], bool] | None = None,
    storage: Storage = LOCAL,
) -> list[Gap]:
    """Set this end for the table's gaps of this epoch from whose ends it has not streamed yet, and return them.

    Such a gap has no end, or has the end of a snapshot that never got to let the table stream; the latter becomes
    longer than it was when it may have been acknowledged.

    Args:
        layout: The database's folders.
        names: The names (`TableId.text`) that the table has and has had.
        epoch: The current epoch.
        streamed: The furthest position that the table, or another one under its name, has had; may be empty.
        to: The position from which a snapshot lets the table stream.
        run_id: The id of the run.
        is_own: Whether a gap under one of the names is the table's: another table may have had the name. None: all are.
        storage: The options of the object store.
    """

    def unbounded(known: Sequence[Gap]) -> list[Gap]:
        named = [gap for gap in known if gap.table in names and gap.epoch == epoch and gap.to != to]
        mine = [gap for gap in named if is_own is None or is_own(gap)]
        ended = (replace(gap, to=to) for gap in mine if gap.to is None)
        moved = (gap for gap in mine if gap.to is not None and gap.to > streamed)
        return [*ended, *(replace(gap, to=to, status="open", by=None) for gap in moved)]

    return _append(_table(layout, storage), unbounded, run_id)


def acknowledge_gaps(
    layout: Layout, gaps: Collection[Gap] | None, *, by: str, run_id: str, storage: Storage = LOCAL
) -> list[Gap]:
    """Acknowledge open gaps, and return them.

    Args:
        layout: The database's folders.
        gaps: The gaps; None: all.
        by: Who acknowledges the gaps.
        run_id: The id of the run.
        storage: The options of the object store.
    """

    def chosen(known: Sequence[Gap]) -> list[Gap]:
        own = None if gaps is None else {gap.identity for gap in gaps}
        wanted = (gap for gap in known if gap.status == "open" and (own is None or gap.identity in own))
        return [replace(gap, status="acknowledged", by=by) for gap in wanted]

    return _append(_table(layout, storage), chosen, run_id)


@retry_overtaken
def _append(table: SmallTable, choose: Callable[[Sequence[Gap]], list[Gap]], run_id: str) -> list[Gap]:
    """Append rows that are selected from the same state to which they are appended."""
    if not choose(_gaps(table)):
        return []
    state = table.state()
    wanted = choose(_gaps(table))
    if not wanted:
        return []
    now = datetime.now(UTC)
    table.append(state, [_row(gap, now) for gap in wanted], {"kind": "gaps", "run_id": run_id})
    return wanted


def _table(layout: Layout, storage: Storage) -> SmallTable:
    return small_table(layout, "gaps", storage)


def _gaps(table: SmallTable) -> list[Gap]:
    found: dict[tuple[str, int, str], Gap] = {}
    for row in table.all_rows():
        gap = _gap(row)
        found[gap.identity] = gap
    return list(found.values())


def _gap(row: Mapping[str, Any]) -> Gap:
    names = ("to", "reason", "status", "by", "at")
    return Gap(row["table_id"], row["epoch"], row["from"], *(row[name] for name in names))


def _row(gap: Gap, now: datetime) -> dict[str, Any]:
    return {
        "table_id": gap.table,
        "epoch": gap.epoch,
        "from": gap.from_,
        "to": gap.to,
        "reason": gap.reason,
        "status": gap.status,
        "by": gap.by,
        "at": now,
    }

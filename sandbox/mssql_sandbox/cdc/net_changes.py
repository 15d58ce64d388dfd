"""The collapse behind `cdc.fn_cdc_get_net_changes_<instance>`: one row per key over a window of changes.

Pure: change rows in, net rows out. The rules are those of the generated function [sys]: grouping by key over the
whole window (not the transaction [fab]), first and last change by `__$seqval` alone, operation 3 rows counted
but never final.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from mssql_sandbox.cdc.masks import union

NetOption = Literal["all", "all with mask", "all with merge"]
NET_OPTIONS: tuple[NetOption, ...] = ("all", "all with mask", "all with merge")
DELETE, INSERT, BEFORE, AFTER, MERGE = 1, 2, 3, 4, 5


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """One row of a change table: LSNs of 10 bytes, the key's values, the captured values."""

    start_lsn: bytes
    seqval: bytes
    operation: int
    mask: bytes
    key: tuple[object, ...]
    values: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class NetRow:
    """One row of the function's result."""

    start_lsn: bytes
    operation: int
    mask: bytes | None
    values: tuple[object, ...]


def _final_operation(first: int, last: int, rows: int) -> int | None:
    """The net operation of a key's first and last change; None if the row was inserted and deleted again."""
    if rows == 1:
        return last
    if first == INSERT:
        return None if last == DELETE else INSERT
    return DELETE if last == DELETE else AFTER


def net_changes(rows: Iterable[ChangeRow], option: NetOption, columns: int) -> list[NetRow]:
    """Collapse the rows of a window; `columns` is the number of captured columns (the mask's width).

    Result rows come in the order of their final change.
    """
    groups: dict[tuple[object, ...], list[ChangeRow]] = {}
    for row in rows:
        groups.setdefault(row.key, []).append(row)
    result: list[tuple[bytes, NetRow]] = []
    for group in groups.values():
        visible = [row for row in group if row.operation != BEFORE]
        if not visible:
            continue
        first = min(visible, key=lambda row: row.seqval)
        last = max(visible, key=lambda row: (row.seqval, row.operation))
        operation = _final_operation(first.operation, last.operation, len(group))
        if operation is None:
            continue
        mask: bytes | None = None
        if option == "all with mask" and operation == AFTER:
            mask = union((row.mask for row in visible if row.operation == AFTER), columns)
        if option == "all with merge" and operation != DELETE:
            operation = MERGE
        result.append((last.start_lsn + last.seqval, NetRow(last.start_lsn, operation, mask, last.values)))
    return [row for _, row in sorted(result, key=lambda entry: entry[0])]

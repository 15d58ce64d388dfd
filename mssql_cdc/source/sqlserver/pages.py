"""The statements that read a change table page by page, in the one order that there is (rule B11)."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from mssql_cdc.lsn import Lsn, LsnRange
from mssql_cdc.source.sqlserver.columns import RowPlan
from mssql_cdc.source.sqlserver.sql import (
    ORDER_WITH_COMMAND,
    ORDER_WITHOUT_COMMAND,
    keyset_after,
    lsn,
    quote,
)
from mssql_cdc.source.sqlserver.volume import between, change_source
from mssql_cdc.source.values import CaptureInstance


@dataclass(frozen=True, slots=True)
class Place:
    """The raw row behind which the next page begins; `command_id` is None where the server has none."""

    start_lsn: Lsn
    command_id: int | None
    seqval: Lsn
    operation: int

    @classmethod
    def last_of(cls, raw: pa.RecordBatch) -> Place:
        """The place of a raw batch's last row."""
        row = {name: raw.column(name)[-1].as_py() for name in ("lsn", "cmd", "seq", "op")}
        return cls(Lsn(row["lsn"]), row["cmd"], Lsn(row["seq"]), row["op"])


def page_statement(
    instance: CaptureInstance, plan: RowPlan, wanted: LsnRange, *, rows: int, after: Place | None = None
) -> str:
    """The next `rows` raw rows of the range behind `after`."""
    with_command = instance.change_table is not None and instance.has_command_id
    order = ORDER_WITH_COMMAND if with_command else ORDER_WITHOUT_COMMAND
    select = [
        "[__$start_lsn] AS [lsn]",
        f"{'[__$command_id]' if with_command else 'CAST(NULL AS int)'} AS [cmd]",
        "[__$seqval] AS [seq]",
        "[__$operation] AS [op]",
        "[__$update_mask] AS [mask]",
        *plan.select_list(),
    ]
    where = between(wanted)
    if after is not None:
        where = f"[__$start_lsn] >= {lsn(after.start_lsn)} AND {where} AND {_after(after)}"
    return (
        f"SELECT TOP ({int(rows)}) {', '.join(select)} FROM {change_source(instance, wanted)} WHERE {where} "
        f"ORDER BY {', '.join(quote(name) for name in order)}"
    )


def _after(place: Place) -> str:
    """The page predicate; rows of one transaction either all have a command id or all have none."""
    if place.command_id is None:
        return keyset_after(ORDER_WITHOUT_COMMAND, [lsn(place.start_lsn), lsn(place.seqval), str(int(place.operation))])
    return keyset_after(
        ORDER_WITH_COMMAND,
        [lsn(place.start_lsn), str(int(place.command_id)), lsn(place.seqval), str(int(place.operation))],
    )

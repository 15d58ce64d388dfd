"""A sweep behind an incremental snapshot waits until what was read is in a complete cut (C19)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mssql_cdc.follow.sweeps import due_sweeps
from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.offsets import Offsets, append_offsets
from mssql_cdc.lake.steps import Entry, OffsetRow, Stamp, chunks_emitted, incremental_ended, rows_swept
from mssql_cdc_tests.lake_kit import AT, ORDERS, lsn

STAMP = Stamp(at=AT, run_id="r", epoch=0)


def test_rows_outside_every_cut_are_not_taken_for_deleted(tmp_path: Path):
    layout, name, known = Layout(str(tmp_path), "server1", "shop"), ORDERS.text, Offsets()
    tables: Any = {ORDERS: None}

    def after(row: OffsetRow) -> Offsets:
        return append_offsets(layout, row, seen=known)

    def entry(batch: int) -> dict[str, Entry]:
        return {name: Entry("streaming", to=lsn(9).text, batch=batch)}

    known = after(OffsetRow("range", AT, entry(3), to=lsn(9).text, complete=True))
    known = after(chunks_emitted(STAMP, entry(5), to=lsn(9).text, complete=False, witness=None))
    known = after(incremental_ended(STAMP, table=name, number=2, batch=5, low=lsn(4).text))
    assert list(due_sweeps(tables, known)) == []

    known = after(OffsetRow("range", AT, entry(6), to=lsn(10).text, complete=True))
    (due,) = due_sweeps(tables, known)
    assert (due.table, due.number, due.low) == (ORDERS, 2, lsn(4))

    known = after(rows_swept(STAMP, table=name, number=2))
    assert list(due_sweeps(tables, known)) == []

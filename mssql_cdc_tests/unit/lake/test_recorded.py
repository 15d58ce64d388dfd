"""When batches were recorded: folded in as rows come, it is what all rows say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mssql_cdc.lake import offsets as offsets_module
from mssql_cdc.lake.known_states import KnownTables
from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.offset_commits import append_offsets, load_offsets
from mssql_cdc.lake.offset_history import Stored
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.steps import Entry, OffsetRow

BEGIN = datetime(2026, 11, 27, tzinfo=UTC)
Row = Mapping[str, tuple[str | None, int | None]]
ENTRIES = st.tuples(st.sampled_from([None, "dbo/a", "dbo/b"]), st.none() | st.integers(1, 5))
ROWS = st.lists(st.dictionaries(st.sampled_from(["x.dbo.a", "x.dbo.b"]), ENTRIES, max_size=2), max_size=8)


def row_of(number: int, entries: Row) -> OffsetRow:
    tables = {name: Entry("streaming", batch=batch, folder=folder) for name, (folder, batch) in entries.items()}
    return OffsetRow("range", BEGIN + timedelta(seconds=number), tables, complete=True)


def expected(rows: Sequence[Row]) -> dict[str, dict[int, int]]:
    """The seconds of the first row that has a batch, by folder or name."""
    found: dict[str, dict[int, int]] = {}
    for number, entries in enumerate(rows, 1):
        for name, (folder, batch) in entries.items():
            if batch is not None:
                found.setdefault(folder or name, {}).setdefault(batch, number)
    return found


def told(offsets: Offsets, home: str) -> list[int | None]:
    """The seconds of batches 1 to 6."""
    times = offsets.recorded.times(home, np.arange(1, 7)).to_pylist()
    begin = int(BEGIN.timestamp()) * 1_000_000
    return [None if at is None else (at - begin) // 1_000_000 for at in times]


@settings(max_examples=60, deadline=None)
@given(ROWS, st.sets(st.integers(0, 8)))
def test_a_batch_was_recorded_by_the_first_row_that_contains_it(rows: list[Row], asked: set[int]):
    offsets = Offsets()
    for number, entries in enumerate(rows, 1):
        if number in asked:
            _ = offsets.recorded  # What is known then is carried on.
        offsets = offsets.with_row(row_of(number, entries), number)
    for home in ("dbo/a", "dbo/b", "x.dbo.a", "x.dbo.b"):
        known = expected(rows).get(home, {})
        later = [min((b for b in known if b >= batch), default=None) for batch in range(1, 7)]
        assert told(offsets, home) == [None if batch is None else known[batch] for batch in later]


def test_only_new_rows_are_read_for_the_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    layout, known = Layout(str(tmp_path), "server1", "x"), KnownTables()
    monkeypatch.setattr(offsets_module, "FOLDED_ROWS", 2)
    offsets = load_offsets(layout)
    for number in range(1, 6):
        offsets = append_offsets(layout, row_of(number, {"x.dbo.a": ("dbo/a", number)}), seen=offsets)
    assert told(load_offsets(layout, known=known), "dbo/a") == [1, 2, 3, 4, 5, None]
    offsets = append_offsets(layout, row_of(6, {"x.dbo.a": ("dbo/a", 6)}), seen=offsets)
    read = Stored.read
    ranges: list[tuple[int, int]] = []

    def watched(stored: object, number: int, columns: Sequence[str], *, after: int = 0) -> object:
        ranges.append((after, number))
        return read(stored, number, columns, after=after)  # type: ignore[arg-type]

    monkeypatch.setattr(Stored, "read", watched)
    assert told(load_offsets(layout, known=known), "dbo/a") == [1, 2, 3, 4, 5, 6]
    assert ranges == [(5, 6)]

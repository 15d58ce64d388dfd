"""A stream that goes on looks at what is new: neither at every row of `_offsets`, nor at every file of a change log."""

from __future__ import annotations

from pathlib import Path

import pytest

from mssql_cdc.lake.known_states import KnownTables
from mssql_cdc.lake.offset_history import OffsetHistory
from mssql_cdc.records import log_files
from mssql_cdc.records.state import StreamState
from mssql_cdc.records.write import Resumed, records_behind
from mssql_cdc_tests.lake_kit import Change
from mssql_cdc_tests.unit.records.kit import DATABASE, Lake, table


def rendered(lake: Lake, state: StreamState | None, known: KnownTables | None) -> tuple[list[str], StreamState]:
    """The keys of the records behind a state, and the state behind them."""
    found = list(records_behind(lake.connector, DATABASE, Resumed(state), known=known))
    return [key for one in found for key in one.records.column("key").to_pylist()], found[-1].state


def test_records_are_rendered_without_decoding_every_row_of_offsets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """With 100 tables and 500 rows, the announcements alone took 55 s of CPU, at each look of `records --follow`."""

    def every_row(_: OffsetHistory) -> None:
        raise AssertionError("every row of _offsets is decoded")

    monkeypatch.setattr(OffsetHistory, "rows", property(every_row))
    lake = Lake(tmp_path)
    for name in ("a", "b"):
        lake.append(lake.add(table(name)), Change(1, "c", after={"id": 1}))
    lake.cut(2)
    keys, _ = rendered(lake, None, None)
    assert keys.count('{"id":1}') == 2


def test_footers_of_known_files_are_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    read: list[str] = []
    footers = log_files._pieces
    monkeypatch.setattr(
        log_files, "_pieces", lambda system, path, *names: read.append(path) or footers(system, path, *names)
    )
    lake, known = Lake(tmp_path, {"include.schema.changes": False}), KnownTables()
    a, b = lake.add(table("a")), lake.add(table("b"))
    for schema in (a, b):
        lake.append(schema, Change(1, "c", after={"id": 1}))
    lake.cut(2)
    keys, state = rendered(lake, None, known)
    assert (len(keys), len(read)) == (2, 2)
    keys, state = rendered(lake, state, known)
    assert (keys, len(read)) == ([], 2)
    lake.append(a, Change(3, "c", after={"id": 3}))
    lake.cut(3)
    keys, state = rendered(lake, state, known)
    assert (keys, len(read)) == (['{"id":3}'], 3)
    assert rendered(lake, None, None)[0] == ['{"id":1}', '{"id":1}', '{"id":3}']

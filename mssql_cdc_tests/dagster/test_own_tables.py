"""The events of the database's own tables: what is new in them is read, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from mssql_cdc.defs.report import OwnTables
from mssql_cdc.defs.setup import Setup
from mssql_cdc.lake import small_tables
from mssql_cdc.lake.small_tables import SmallTable, small_table
from mssql_cdc_tests.dagster.kit import connector, metadata, table

MANY = 10_000


@pytest.fixture
def own(tmp_path: Path) -> OwnTables:
    """Tables that have been looked at; `notifications` has many rows."""
    setup = Setup.of(connector(), "shop", (table("orders"),), warehouse=str(tmp_path))
    made = OwnTables(setup, setup.open())
    append(made, "notifications", [note("i1", "IN_PROGRESS")] * MANY)
    append(made, "signals", [signal("i1")])
    made.remember()
    return made


@pytest.fixture
def decoded(own: OwnTables, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of rows that are read from now on, by read."""
    found: list[int] = []
    whole, ordered = SmallTable.table, small_tables.ordered

    def counted(one: SmallTable) -> pa.Table:
        rows = whole(one)
        found.append(rows.num_rows)
        return rows

    def parts(*arguments: Any, **more: Any) -> Any:
        for rows in ordered(*arguments, **more):
            found.append(rows.num_rows)
            yield rows

    monkeypatch.setattr(SmallTable, "table", counted)
    monkeypatch.setattr(small_tables, "ordered", parts)
    return found


def append(own: OwnTables, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
    one = small_table(own.database.layout, name, own.database.storage)
    one.append(one.state(), rows, {"kind": name})


def note(id_: str, kind: str) -> dict[str, Any]:
    return {"id": id_, "aggregate_type": "Incremental Snapshot", "type": kind, "timestamp_ms": 1_800_000_000_000}


def signal(id_: str) -> dict[str, Any]:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    data = '{"data-collections": [".*"]}'
    return {"id": id_, "type": "execute-snapshot", "data": data, "channel": "x", "status": "requested", "at": at}


def events(own: OwnTables) -> dict[str, dict[str, Any]]:
    return {event.asset_key.path[-1]: metadata(event) for event in own.grown()}


def test_tables_that_did_not_grow_are_not_read(own: OwnTables, decoded: list[int]):
    """An incremental snapshot writes a row per chunk, and each range read all of them again."""
    for _ in range(100):
        assert events(own) == {}
    assert decoded == []


def test_only_new_rows_are_read(own: OwnTables, decoded: list[int]):
    append(own, "notifications", [note("i1", "IN_PROGRESS")])
    found = events(own)
    assert list(found) == ["notifications"]
    assert found["notifications"]["mssql_cdc/rows"] == 1
    assert decoded == [1]
    assert events(own) == {}


def test_what_is_there_is_noted_without_a_read(own: OwnTables, decoded: list[int]):
    again = OwnTables(own.setup, own.database)
    again.remember()
    assert decoded == []
    append(own, "notifications", [note("i1", "IN_PROGRESS"), note("i1", "IN_PROGRESS")])
    assert events(again)["notifications"]["mssql_cdc/rows"] == 2


def test_the_end_of_a_snapshot_is_shown_with_the_signal_that_asked_for_it(own: OwnTables):
    append(own, "notifications", [note("another", "COMPLETED")])
    assert set(events(own)) == {"notifications"}
    append(own, "notifications", [note("i1", "COMPLETED")])
    assert set(events(own)) == {"notifications", "signals"}


def test_a_table_that_begins_is_reported(own: OwnTables):
    rows = [{"table_id": "shop.dbo.orders", "schema": 1}]
    append(own, "schema_history", rows)
    assert events(own)["schema_history"]["mssql_cdc/rows"] == 1

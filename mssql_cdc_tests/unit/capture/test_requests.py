"""Requests name tables: exactly those, whatever characters their names have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.requests import ask_for_snapshot, ask_to_control, known_tables, open_requests
from mssql_cdc.capture.snapshot_controls import load_controls
from mssql_cdc.config.filters import spoken_name
from mssql_cdc.config.signals import ExecuteSnapshot, parse_signal
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.follow.incremental_control import wanted
from mssql_cdc.lake.history import SchemaHistory, record_versions
from mssql_cdc.lake.offset_commits import append_offsets
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.small_tables import small_table
from mssql_cdc.lake.steps import Entry, status_changed
from mssql_cdc.schema import Column, SqlServerType, TableId, TableSchema
from mssql_cdc_tests.lake_kit import AT, lsn
from mssql_cdc_tests.spark.model_source import ModelSource
from mssql_cdc_tests.unit.config.samples import connector_with

NAMES = ("price$", "price", "order.items", "order_items", "a[b", "[x", "x", "price (EUR", "y]z", 'q"q', "plain")
TABLES = {name: TableId("shop", "dbo", name) for name in NAMES}
KINDS = ["blocking", "incremental"]


@pytest.fixture
def database(tmp_path: Path) -> Database:
    """A database whose lake knows these tables, which stream."""

    def none() -> Any:
        raise AssertionError("requests need no Spark")

    connector = connector_with({"database.names": "shop", "delta.warehouse": str(tmp_path)})
    made = Database.of(connector, "shop", spark=none, source=ModelSource("orders"))
    column = Column("id", SqlServerType("int"), key_ordinal=1)
    schemas = [TableSchema(table, (column,), ("id",), object_id=n) for n, table in enumerate(TABLES.values(), start=1)]
    record_versions(made.layout, schemas, known=SchemaHistory({}), at=AT)
    entries = {table.text: Entry("streaming", to=lsn(3).text) for table in TABLES.values()}
    append_offsets(made.layout, status_changed(made.stamp(0), entries), seen=Offsets(), storage=made.storage)
    return made


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("short", [False, True])
def test_a_snapshot_of_a_table_is_that_of_no_other(database: Database, name: str, kind: Any, short: bool):  # noqa: FBT001
    asked = known_tables(database, [spoken_name(TABLES[name].parts[1:] if short else TABLES[name].parts)])
    ask_for_snapshot(database, "s", asked, channel="test", kind=kind, condition="id = 1")
    (row,) = small_table(database.layout, "signals", database.storage).rows()
    if kind == "blocking":
        (request,) = open_requests(database, database.offsets())
        assert request.of(TABLES.values()) == (TABLES[name],)
        others = [table for table in TABLES.values() if table != TABLES[name]]
        assert request.of(others) == ()
        assert request.filters(others) == {}
        (found,) = request.filters(TABLES.values()).values()
        quoted = name.replace("]", "]]")
        assert (found.refused, found.text) == (None, f"SELECT * FROM [shop].[dbo].[{quoted}] WHERE id = 1")
    else:
        action = parse_signal(row["id"], row["type"], row["data"])
        assert isinstance(action, ExecuteSnapshot)
        (one,) = wanted(action, TABLES.values())
        assert (one.table, one.condition, one.refused) == (TABLES[name], "id = 1", None)


@pytest.mark.parametrize("name", NAMES)
def test_a_stop_of_a_table_is_that_of_no_other(database: Database, name: str):
    ask_to_control(database, "s", "stop-snapshot", known_tables(database, [f"dbo.{name}"]), channel="test")
    controls = load_controls(database)
    assert set(controls.stopped(TABLES.values(), 0)) == {TABLES[name]}
    assert not controls.stopped([table for table in TABLES.values() if table != TABLES[name]], 0)


def test_an_expression_still_names_several_tables(database: Database):
    assert known_tables(database, [r"dbo\.order.items$"]) == ["[shop].[dbo].[order.items]", "shop.dbo.order_items"]
    assert set(known_tables(database, ["dbo.*"])) == {spoken_name(table.parts) for table in TABLES.values()}
    assert known_tables(database, ["dbo.price (USD"]) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_that_is_neither_a_name_nor_an_expression_is_refused(database: Database, kind: Any):
    with pytest.raises(ConfigurationError, match="not a valid regular expression"):
        ask_for_snapshot(database, "s", ["dbo.price (USD"], channel="test", kind=kind)
    assert small_table(database.layout, "signals", database.storage).rows() == []

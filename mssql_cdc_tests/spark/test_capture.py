"""Ranges and snapshots against a model source: the lake ends equal to the source whatever happens on the way."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from deltalake import QueryBuilder, DeltaTable

from mssql_cdc.capture.context import Database
from mssql_cdc.config import connector_from_mapping
from mssql_cdc.stream.loop import Follower, catch_up
from mssql_cdc_tests.spark.model_source import ModelSource

pytestmark = pytest.mark.spark


@pytest.fixture
def source() -> ModelSource:
    return ModelSource("orders", "people")


@pytest.fixture
def database(source, spark, tmp_path) -> Database:
    connector = connector_from_mapping(
        "test",
        {
            "connector.class": "io.debezium.connector.sqlserver.SqlServerConnector",
            "database.hostname": "127.0.0.1",
            "database.user": "sa",
            "database.password": "x",
            "database.names": "shop",
            "topic.prefix": "server1",
            "delta.warehouse": str(tmp_path),
            "delta.current.interval": "0",
        },
    )
    made = Database.of(connector, "shop", spark=lambda: spark)
    return replace(made, source=source)


def current(database: Database, name: str) -> dict[int, str]:
    uri = database.layout.root + f"/dbo/{name}/current"
    found = QueryBuilder().register("t", DeltaTable(uri)).execute("SELECT id, name FROM t").read_all()
    return dict(zip(found["id"].to_pylist(), found["name"].to_pylist(), strict=True))


def changes(database: Database, name: str) -> list[tuple[str, int | None, str | None]]:
    uri = database.layout.root + f"/dbo/{name}/changes"
    sql = "SELECT op, after.id AS id, after.name AS name FROM t ORDER BY _pos"
    found = QueryBuilder().register("t", DeltaTable(uri)).execute(sql).read_all()
    return list(zip(*(found[n].to_pylist() for n in ("op", "id", "name")), strict=True))


def same(database: Database, source: ModelSource) -> None:
    for name, table in source.tables.items():
        assert current(database, name) == table.rows, name


def test_snapshot_and_stream_end_equal_to_the_source(database, source):
    for key in range(5):
        source.put("orders", key, f"o{key}")
    source.capture()
    catch_up([database], timeout=120)
    same(database, source)
    source.put("orders", 1, "changed")
    source.put("orders", 2, None)
    source.put("people", 1, "Ann")
    source.capture()
    catch_up([database], timeout=120)
    same(database, source)
    assert [op for op, _, _ in changes(database, "orders")] == ["r"] * 5 + ["u", "d"]


def test_quiet_database_opens_right_after_its_snapshot(database, source):
    source.put("orders", 1, "one")
    source.capture()
    source.enable("late")
    source.scans = 5
    follower = Follower(database)
    follower.step()
    source.scans += 1
    for _ in range(3):
        follower.step()
    assert current(database, "orders") == {1: "one"}
    assert current(database, "late") == {}

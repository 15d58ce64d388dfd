"""A lake fed by the model source: the database, its tables' rows, and functions that bring it up to date."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import TableNotFoundError

from mssql_cdc.capture.database import Database
from mssql_cdc.config import connector_from_mapping
from mssql_cdc.run.loop import catch_up
from mssql_cdc_tests.spark.model_source import ModelSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def model_database(source: ModelSource, spark: SparkSession, folder: Path, **properties: str) -> Database:
    """The database of a connector whose source is the model; `a_b` stands for the property `a.b`."""
    connector = connector_from_mapping(
        "test",
        {
            "connector.class": "io.debezium.connector.sqlserver.SqlServerConnector",
            "database.hostname": "127.0.0.1",
            "database.user": "sa",
            "database.password": "x",
            "database.names": "shop",
            "topic.prefix": "server1",
            "delta.warehouse": str(folder),
            "delta.current.interval": "0",
            "poll.interval.ms": "50",  # The source is in memory: what it has is there at the next look.
            **{name.replace("_", "."): value for name, value in properties.items()},
        },
    )
    return Database.of(connector, "shop", spark=lambda: spark, source=source)


def current(database: Database, name: str) -> dict[int, str]:
    """The rows of a current table."""
    uri = database.layout.root + f"/dbo/{name}/current"
    found = QueryBuilder().register("t", DeltaTable(uri)).execute("SELECT id, name FROM t").read_all()
    return dict(zip(found["id"].to_pylist(), found["name"].to_pylist(), strict=True))


def changes(database: Database, name: str) -> list[tuple[str, int | None, str | None]]:
    """The rows of a change log in order."""
    uri = database.layout.root + f"/dbo/{name}/changes"
    sql = "SELECT op, after.id AS id, after.name AS name FROM t ORDER BY _pos"
    try:
        found = QueryBuilder().register("t", DeltaTable(uri)).execute(sql).read_all()
    except TableNotFoundError:
        return []
    return list(zip(*(found[n].to_pylist() for n in ("op", "id", "name")), strict=True))


def same(database: Database, source: ModelSource) -> None:
    """Assert that every current table equals its source table."""
    for name, table in source.tables.items():
        if name != "signals":
            assert current(database, name) == table.rows, name


def settled(database: Database, source: ModelSource) -> None:
    """Bring everything captured so far into the lake."""
    source.capture()
    catch_up([database], timeout=120)


def write_some(source: ModelSource) -> None:
    """Run eight transactions; after the first call, the log of a source with two tables ends at 20."""
    for key in range(4):
        source.put("orders", key, f"order {key} at {source.number}")
        source.put("people", key, f"person {key} at {source.number}")

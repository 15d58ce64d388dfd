"""A database, a connector and a lake that a test owns, and the command line that captures rows."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from deltalake import DeltaTable, QueryBuilder

from mssql_cdc.cli import main
from mssql_cdc.config import load_connector
from mssql_cdc.source.sqlserver import log_end
from mssql_cdc.source.sqlserver.connect import Control, control
from mssql_cdc.source.sqlserver.sql import quote
from mssql_cdc_tests.servers import Server, drop_database


@dataclass(frozen=True)
class Place:
    """Everything of one test."""

    server: Server
    folder: Path
    database: str
    control: Control

    @property
    def config(self) -> Path:
        return self.folder / "shop.json"

    @property
    def warehouse(self) -> Path:
        return self.folder / "lake"

    def configure(self, **properties: str) -> None:
        """Write the connector file; `a_b` stands for the property `a.b`."""
        config = {
            "connector.class": "io.debezium.connector.sqlserver.SqlServerConnector",
            "topic.prefix": "shop",
            "database.hostname": self.server.host,
            "database.port": str(self.server.port),
            "database.user": self.server.user,
            "database.password": self.server.password,
            "database.names": self.database,
            **self.server.properties,
            "delta.current.interval": "0",
            "poll.interval.ms": "100",  # With the default of 500, a sixth of the time of these tests is this pause.
            **{name.replace("_", "."): value for name, value in properties.items()},
        }
        self.config.write_text(json.dumps({"name": "shop", "config": config}), encoding="utf-8")

    def sql(self, *statements: str) -> None:
        for statement in statements:
            self.control.execute(statement, doing="playing the application")

    def create(self, table: str, columns: str, *, instance: str | None = None) -> None:
        self.sql(f"CREATE TABLE dbo.[{table}] ({columns})")
        self.enable(table, instance=instance)

    def enable(self, table: str, *, instance: str | None = None) -> None:
        named = f", @capture_instance = N'{instance}'" if instance else ""
        self.sql(
            f"EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'{table}', @role_name = NULL{named}"
        )

    def create_orders(self) -> None:
        """Create a table of two orders and capture it into the lake."""
        self.create("orders", "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
        self.sql("INSERT INTO dbo.orders VALUES (1, N'one'), (2, N'two')")
        self.settle()
        assert self.catch_up() == 0

    def create_sales(self) -> None:
        """Create a partitioned table `sales` of four rows, two in each partition, and `aside` to switch with."""
        self.sql(
            "CREATE PARTITION FUNCTION halves (int) AS RANGE RIGHT FOR VALUES (100)",
            "CREATE PARTITION SCHEME both AS PARTITION halves ALL TO ([PRIMARY])",
            "CREATE TABLE dbo.sales (id int NOT NULL PRIMARY KEY CLUSTERED, v int NULL) ON both (id)",
            "CREATE TABLE dbo.aside (id int NOT NULL PRIMARY KEY CLUSTERED, v int NULL)",
            "INSERT dbo.sales VALUES (1, 1), (2, 2), (200, 1), (201, 2)",
        )
        self.enable("sales")

    def second_database(self) -> str:
        """Create a database beside the own one, with a captured table `people`, and return its name."""
        other = f"{self.database}_b"
        self.sql(f"CREATE DATABASE {other}")
        with control(load_connector(self.config).connection, other) as opened:
            for statement in (
                "EXEC sys.sp_cdc_enable_db",
                "CREATE TABLE dbo.people (id int NOT NULL PRIMARY KEY)",
                "EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'people', @role_name = NULL",
            ):
                opened.execute(statement, doing="preparing a test")
        return other

    def signal(self, key: str, **data: object) -> None:
        """Request a snapshot in the signal table."""
        text = json.dumps(data).replace("'", "''")
        self.sql(f"INSERT INTO dbo.signals VALUES ('{key}', 'execute-snapshot', '{text}')")

    def settle(self) -> None:
        """Wait until capture has passed everything that was written, so that a snapshot needs no further event."""
        mark, seen = log_end.mark(self.control), log_end.SeenLog()
        end = time.monotonic() + self.server.settle_seconds
        while not log_end.newest_passed(self.control, [mark], seen):
            assert time.monotonic() < end, "the capture job makes no progress"
            time.sleep(0.05)

    def command(self, name: str, *options: str) -> int:
        """Run `mssql-cdc <name> --config ... --warehouse ... <options>` and return its exit code."""
        return main([name, "--config", str(self.config), "--warehouse", str(self.warehouse), *options])

    def catch_up(self) -> int:
        return self.command("run", "--until-caught-up", "--timeout", "120")

    def check(self) -> int:
        return self.command("check")

    def uri(self, table: str, which: str = "current") -> str:
        return f"{self.warehouse}/shop/{self.database}/dbo/{table}/{which}"

    def query(self, sql: str, table: str, which: str = "current") -> list[dict[str, Any]]:
        """Rows of a query over `t`."""
        found = QueryBuilder().register("t", DeltaTable(self.uri(table, which))).execute(sql).read_all()
        names = found.schema.names
        return [dict(zip(names, row, strict=True)) for row in zip(*(found[n].to_pylist() for n in names), strict=True)]


@contextmanager
def open_place(server: Server, folder: Path, database: str, *, collation: str | None = None) -> Iterator[Place]:
    """A database of its own under CDC, which is dropped when the block ends."""
    first = Place(server, folder, "master", None)  # type: ignore[arg-type]
    first.configure()
    connection = load_connector(first.config).connection
    with control(connection, "master") as master:
        if server.is_sandbox:  # Other tests have moved its clock, and ordered faults that did not happen.
            now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}"
            for statement in (f"EXEC sandbox.set_clock @utc = '{now}'", "EXEC sandbox.clear_faults"):
                master.execute(statement, doing="preparing a test")
        collated = f" COLLATE {collation}" if collation else ""
        master.execute(f"CREATE DATABASE {quote(database)}{collated}", doing="preparing a test")
    try:
        with control(connection, database) as opened:
            opened.execute("EXEC sys.sp_cdc_enable_db", doing="preparing a test")
            place = Place(server, folder, database, opened)
            place.configure()
            yield place
    finally:
        with control(connection, "master") as master:  # A new one: a test may have cut the server's connections.
            drop_database(master, database)

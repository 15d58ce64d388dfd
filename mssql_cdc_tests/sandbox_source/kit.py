"""A CDC-enabled database that a test owns, with query helpers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from mssql_sandbox.process import SandboxProcess

from mssql_cdc.config import Connection, Connector, Secret, connector_from_mapping
from mssql_cdc.config.driver import DriverSetting
from mssql_cdc.lsn import Lsn, LsnRange
from mssql_cdc.schema import neutral_schema
from mssql_cdc.source.protocol import ChunkRead
from mssql_cdc.source.sqlserver.catalog import captured_tables
from mssql_cdc.source.sqlserver.changes import ChangeReader
from mssql_cdc.source.sqlserver.connect import Control, control
from mssql_cdc.source.sqlserver.positions import captured
from mssql_cdc.source.sqlserver.snapshot_reader import ChunkReader, Isolation
from mssql_cdc.source.sqlserver.source import SqlServerSource
from mssql_cdc.source.values import CapturedTable, CaptureInstance, Chunk
from mssql_cdc_tests.servers import drop_database, grant

START = Lsn((1).to_bytes(10, "big"))


@dataclass(frozen=True)
class Shop:
    """A database, a connection for the test's own statements, and readers."""

    connection: Connection
    catalog: str
    control: Control
    connector: Connector

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.control.execute(statement, doing="preparing a test")

    def create(self, table: str, columns: str, *, capture: bool = True, instance: str | None = None) -> None:
        self.run(f"CREATE TABLE dbo.{table} ({columns})")
        if capture:
            self.enable(table, instance)

    def enable(self, table: str, instance: str | None = None, *, columns: str | None = None) -> None:
        name = f", @capture_instance = N'{instance}'" if instance else ""
        some = f", @captured_column_list = N'{columns}'" if columns else ""
        self.run(
            "EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', "
            f"@source_name = N'{table}', @role_name = NULL{name}{some}"
        )

    def set_clock(self, to: datetime) -> None:
        """Let the server's clock jump, with a scan behind it: capture does not seem to stand still."""
        self.run(f"EXEC sandbox.set_clock @utc = '{to:%Y-%m-%dT%H:%M:%S.%f}'", "EXEC sys.sp_cdc_scan")

    def scan(self) -> Lsn:
        """Capture everything and return the captured position."""
        self.run("EXEC sys.sp_cdc_scan")
        found = captured(self.control)
        assert found is not None
        return found

    def table(self, name: str) -> CapturedTable:
        (found,) = (t for t in captured_tables(self.control) if t.table_id.name == name)
        return found

    def instance(self, name: str) -> CaptureInstance:
        return self.table(name).newest

    def source(self) -> SqlServerSource:
        return SqlServerSource(self.connector)

    def changes(self, name: str, *, from_: Lsn | None = None, to: Lsn | None = None, **more: Any) -> ChangeReader:
        """A reader from the instance's start to the captured position."""
        instance = more.pop("instance", None) or self.instance(name)
        return ChangeReader(
            connection=self.connection,
            catalog=self.catalog,
            instance=instance,
            range=LsnRange(from_ or instance.start_lsn.decrement(), to or self.scan()),
            **more,
        )

    def chunk(self, name: str, chunk: Chunk | None = None, **more: Any) -> ChunkReader:
        at = captured(self.control)
        assert at is not None
        isolation: Isolation = more.pop("isolation", "READ COMMITTED")
        fetch_rows: int | None = more.pop("fetch_rows", None)
        trusts_policies: bool = more.pop("trusts_policies", False)
        return ChunkReader(
            connection=self.connection,
            catalog=self.catalog,
            wanted=ChunkRead(
                schema=self.instance(name).schema,
                chunks=[chunk or Chunk(0)],
                snapshot_number=1,
                epoch=0,
                position=at,
                captured=more.pop("captured", at),
                commit_lsn=at,
                read_at=datetime(2026, 1, 1, tzinfo=UTC),
                **more,
            ),
            isolation=isolation,
            fetch_rows=fetch_rows,
            trusts_policies=trusts_policies,
        )

    def seen_by(self, login: str, *rights: str) -> Shop:
        """The shop as a new login with these rights reads it; `control` stays the owner's.

        Args:
            login: The login's name, beside that of the database.
            *rights: What is granted to its user, such as `SELECT ON SCHEMA::dbo`, or to the login (`VIEW SERVER …`).
        """
        name, password = f"{self.catalog}_{login}", "Reader-of-the-test-1"
        self.run(f"CREATE LOGIN [{name}] WITH PASSWORD = '{password}'", f"CREATE USER [{name}] FOR LOGIN [{name}]")
        self.run(*(grant(right, name, self.catalog) for right in rights))
        return replace(self, connection=replace(self.connection, user=Secret(name), password=Secret(password)))


def rows(reader: ChangeReader | ChunkReader) -> list[dict[str, Any]]:
    """All neutral rows of a reader; its batches are checked."""
    schema = neutral_schema(reader.wanted.schema if isinstance(reader, ChunkReader) else reader.instance.schema)
    found: list[dict[str, Any]] = []
    for batch in reader.read():
        batch.validate(full=True)
        assert batch.schema == schema
        found += batch.to_pylist()
    return found


def table_of(reader: ChangeReader | ChunkReader) -> pa.Table:
    schema = neutral_schema(reader.wanted.schema if isinstance(reader, ChunkReader) else reader.instance.schema)
    return pa.Table.from_batches(list(reader.read()), schema)


def server_values(process: SandboxProcess) -> dict[str, Any]:
    """How `open_shop` reaches a sandbox, and the numbers of its databases."""
    return {
        "host": process.host,
        "port": process.port,
        "user": process.user,
        "password": process.password,
        "numbers": itertools.count(1),
    }


@contextmanager
def open_shop(server: dict[str, Any], *, agent: bool = True, collation: str | None = None) -> Iterator[Shop]:
    name = f"shop{next(server['numbers'])}"
    login = Connection(
        hostname=server["host"],
        port=server["port"],
        user=Secret(server["user"]),
        password=Secret(server["password"]),
        driver_settings=(DriverSetting("encrypt", "false"),),
        login_timeout_s=20,
    )
    with control(login, "master") as master:
        master.execute("EXEC sandbox.clear_faults", doing="preparing a test")  # Those that did not happen.
        collated = f" COLLATE {collation}" if collation else ""
        master.execute(f"CREATE DATABASE {name}{collated}", doing="preparing a test")
    connector = connector_from_mapping(
        name,
        {
            "topic.prefix": "test",
            "database.hostname": server["host"],
            "database.port": str(server["port"]),
            "database.user": server["user"],
            "database.password": server["password"],
            "database.names": name,
            "driver.encrypt": "false",
        },
    )
    try:
        with control(login, name) as opened:
            opened.execute("EXEC sys.sp_cdc_enable_db", doing="preparing a test")
            shop = Shop(login, name, opened, connector)
            # The capture job starts with the first captured table; it is stopped so that the test controls the scans.
            shop.create("first_table", "id int NOT NULL PRIMARY KEY")
            shop.run("EXEC sys.sp_cdc_stop_job @job_type = N'capture'" if agent else "EXEC sandbox.capture_pause")
            yield shop
    finally:
        with control(login, "master") as master:
            drop_database(master, name)


def without_login(connection: Connection) -> Connection:
    return replace(connection, user=Secret("nobody"), password=Secret("wrong"))

"""The storm as a whole: the sandbox as the server, ODBC drivers, Spark, current tables and all.

The capture job is stopped; the schedule scans the log itself, so that it decides how far capture lags behind.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from mssql_sandbox.process import SandboxProcess

from mssql_cdc.capture.database import Database
from mssql_cdc.errors import MssqlCdcError
from mssql_cdc.source.protocol import Source
from mssql_cdc.source.registry import open_source
from mssql_cdc.source.sqlserver.connect import control
from mssql_cdc_tests.storm.lake import WRITES, connector_for
from mssql_cdc_tests.storm.worlds import KEYED, TABLES, Change, Interruption


class WholeWorld:
    """A database of its own on the sandbox."""

    merges = True
    writes: tuple[str, ...] = (*WRITES, "mssql_cdc.lake.current.commit", "mssql_cdc.follow.sweeps.append_offsets")

    def __init__(self, server: SandboxProcess, spark: Any, folder: Path, name: str) -> None:
        self.name = name
        connector = connector_for(
            folder,
            **{
                "database.hostname": server.host,
                "database.port": str(server.port),
                "database.user": server.user,
                "database.password": server.password,
                "database.names": name,
                "database.encrypt": "false",
                "driver.encrypt": "false",
                "delta.current.interval": "0",
            },
        )
        self._connection = connector.connection
        self.interruption = Interruption(open_source(connector))
        self.database = Database.of(connector, name, spark=lambda: spark, source=cast("Source", self.interruption))
        self._made = 0
        self._instances: dict[str, list[str]] = {table: [] for table in TABLES}
        self._backup: dict[str, list[str]] = {}

    @contextmanager
    def open(self) -> Iterator[None]:
        with control(self._connection, "master") as master:
            master.execute(f"CREATE DATABASE {self.name}", doing="preparing a storm")
        self._run("EXEC sys.sp_cdc_enable_db")
        for table in TABLES:
            self._create(table)
        self._run("EXEC sys.sp_cdc_stop_job @job_type = N'capture'")
        self.back_up()
        yield
        with contextlib.suppress(MssqlCdcError), control(self._connection, "master") as master:
            master.execute(f"DROP DATABASE {self.name}", doing="ending a storm")

    def change(self, *changes: Change) -> None:
        statements = ["SET XACT_ABORT ON", "BEGIN TRANSACTION"]
        for table, key, name in changes:
            if name is None:
                statements.append(f"DELETE dbo.{table} WHERE id = {key}")
            else:
                statements.append(
                    f"UPDATE dbo.{table} SET name = N'{name}' WHERE id = {key}; "
                    f"IF @@ROWCOUNT = 0 INSERT dbo.{table} (id, name) VALUES ({key}, N'{name}')"
                )
        self._run("; ".join([*statements, "COMMIT"]))

    def move(self, name: str, key: int, to: int) -> None:
        self._run(
            f"IF NOT EXISTS (SELECT 1 FROM dbo.{name} WHERE id = {to}) UPDATE dbo.{name} SET id = {to} WHERE id = {key}"
        )

    def begin_scan(self) -> None:
        """The sandbox scans in one go."""

    def scan(self, most: int) -> None:
        self._run(f"EXEC sys.sp_cdc_scan @maxtrans = {most}, @maxscans = 1")

    def restart(self) -> None:
        """The sandbox has no restart of one database: the same scans stay visible."""

    def enable(self, name: str, *, more: bool = False) -> None:
        if len(self._instances[name]) > 1:
            return
        self._made += 1
        instance = f"{name}_{self._made}"
        if more:
            self._run(f"ALTER TABLE dbo.{name} ADD extra_{self._made} int NULL")
        self._run(
            f"EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'{name}', @role_name = NULL, "
            f"@capture_instance = N'{instance}'"
        )
        self._instances[name].append(instance)

    def disable(self, name: str, *, oldest_only: bool = False) -> None:
        if oldest_only and len(self._instances[name]) == 1:
            return
        gone, self._instances[name] = (
            (self._instances[name][:1], self._instances[name][1:]) if oldest_only else (self._instances[name], [])
        )
        for instance in gone:
            self._run(
                f"EXEC sys.sp_cdc_disable_table @source_schema = N'dbo', @source_name = N'{name}', "
                f"@capture_instance = N'{instance}'"
            )

    def dark(self) -> set[str]:
        return {name for name, instances in self._instances.items() if not instances}

    def drop_and_create(self, name: str) -> None:
        self.disable(name)
        self._run(f"DROP TABLE dbo.{name}")
        self._create(name)

    def clean_up(self, kept: int) -> None:
        mark = (
            f"(SELECT MIN(start_lsn) FROM (SELECT TOP ({max(kept, 1)}) start_lsn FROM cdc.lsn_time_mapping "
            "WHERE tran_id <> 0x00 ORDER BY start_lsn DESC) newest)"
        )
        for instances in self._instances.values():
            for instance in instances:
                self._run(
                    f"DECLARE @mark binary(10) = {mark}; IF @mark > sys.fn_cdc_get_min_lsn(N'{instance}') "
                    f"EXEC sys.sp_cdc_cleanup_change_table @capture_instance = N'{instance}', @low_water_mark = @mark"
                )

    def back_up(self) -> None:
        self._backup = {table: list(names) for table, names in self._instances.items()}
        self._run("EXEC sandbox.restore_point @point = N'storm'")

    def restore(self) -> None:
        self._run("EXEC sandbox.restore_database @point = N'storm', @keep_cdc = 1")
        self._instances = {table: list(names) for table, names in self._backup.items()}

    def rows(self, name: str) -> Counter[tuple[int, str]]:
        with control(self._connection, self.name) as session:
            found = session.rows(f"SELECT id, name FROM dbo.{name}", doing="reading the source")
        return Counter((int(key), str(value)) for key, value in found)

    def captured_events(self, name: str) -> None:
        """Cleanup takes what was captured."""

    def _create(self, table: str) -> None:
        key = " PRIMARY KEY" if table in KEYED else ""
        self._run(f"CREATE TABLE dbo.{table} (id int NOT NULL{key}, name nvarchar(50) NULL)")
        self.enable(table)

    def _run(self, statement: str) -> None:
        with control(self._connection, self.name) as session:
            session.execute(statement, doing="playing the application")

"""The storm as a whole: the sandbox as the server, ODBC drivers, Spark, current tables and all.

The capture job is stopped; the schedule scans the log itself, so that it decides how far capture lags behind. Beside
`id` and `name`, its tables have columns whose types and keys change, and large values (`whole_machine.py`).
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

from mssql_sandbox.process import SandboxProcess

from mssql_cdc.capture.database import Database
from mssql_cdc.errors import MssqlCdcError
from mssql_cdc.lsn import Lsn
from mssql_cdc.source.protocol import Source
from mssql_cdc.source.registry import open_source
from mssql_cdc.source.sqlserver.connect import control
from mssql_cdc_tests.storm.emitted import emitted_rows_are_in_the_cut
from mssql_cdc_tests.storm.lake import WRITES, connector_for
from mssql_cdc_tests.storm.worlds import KEYED, TABLES, Change, Interruption

SIGNALS = "signals"
"""The captured table of signals. Its rows also show a secondary that capture has passed what was written before."""


FREELY_KEYED = ("orders",)
"""Tables that CDC identifies by another unique index than the primary key, which may therefore be replaced.

By the names under which they were made first: they may have exchanged them since.
"""


class WholeWorld:
    """A database of its own on the sandbox."""

    merges = True
    keyed = KEYED
    writes: tuple[str, ...] = (*WRITES, "mssql_cdc.lake.current.commit", "mssql_cdc.follow.sweeps.append_offsets")

    def __init__(self, server: SandboxProcess, spark: Any, folder: Path, name: str) -> None:
        self.name, self.spark, self.folder = name, spark, folder
        self._properties = {
            "database.hostname": server.host,
            "database.port": str(server.port),
            "database.user": server.user,
            "database.password": server.password,
            "database.names": name,
            "database.encrypt": "false",
            "driver.encrypt": "false",
            "delta.current.interval": "0",
            "signal.data.collection": f"{name}.dbo.{SIGNALS}",
        }
        self.replica = False
        self.configure()
        self._writer = self.connector.connection
        self._made = 0
        self._instances: dict[str, list[str]] = {table: [] for table in TABLES}
        self._labels: dict[str, str] = {table: table for table in TABLES}
        self._backup: tuple[dict[str, list[str]], dict[str, str]] = {}, {}

    def configure(self, **properties: str) -> None:
        self._properties |= properties
        self.connector = connector_for(self.folder, **self._properties)
        self.interruption = Interruption(open_source(self.connector), self.object_id)
        self.database = Database.of(
            self.connector, self.name, spark=lambda: self.spark, source=cast("Source", self.interruption)
        )

    def read_a_secondary(self) -> None:
        """From now on, the connector reads a secondary, which shows no scans and needs a key in every table."""
        self.replica, self.keyed = True, TABLES
        self.configure(**{"driver.applicationIntent": "ReadOnly"})
        for table in set(TABLES) - set(KEYED):
            self.drop_and_create(table)
        self.run("EXEC sandbox.replica_lag @seconds = 0")
        self.back_up()

    @contextmanager
    def open(self) -> Iterator[None]:
        """The database, and snapshots of several groups though tables have few rows."""
        with control(self._writer, "master") as master:
            master.execute(f"CREATE DATABASE {self.name}", doing="preparing a storm")
        self.run(f"CREATE TABLE dbo.{SIGNALS} (id varchar(64) PRIMARY KEY, type varchar(32), data varchar(2048) NULL)")
        self._enable_database()
        for table in TABLES:
            self._create(table)
        self.run("EXEC sys.sp_cdc_stop_job @job_type = N'capture'")
        self.back_up()
        with (
            patch("mssql_cdc.capture.snapshot.take.CHUNK_ROWS", 2),
            patch("mssql_cdc.capture.snapshot.take.GROUP_CHUNKS", 1),
        ):
            yield
        with contextlib.suppress(MssqlCdcError), control(self._writer, "master") as master:
            master.execute(f"DROP DATABASE {self.name}", doing="ending a storm")

    def change(self, *changes: Change) -> None:
        statements = ["SET XACT_ABORT ON", "BEGIN TRANSACTION"]
        for table, key, name in changes:
            if name is None:
                statements.append(f"DELETE dbo.{table} WHERE id = {key}")
            else:
                statements.append(
                    f"UPDATE dbo.{table} SET name = N'{name}' WHERE id = {key}; "
                    f"IF @@ROWCOUNT = 0 INSERT dbo.{table} (id, part, name) VALUES ({key}, 0, N'{name}')"
                )
        self.run("; ".join([*statements, "COMMIT"]))

    def move(self, name: str, key: int, to: int) -> None:
        self.run(
            f"IF NOT EXISTS (SELECT 1 FROM dbo.{name} WHERE id = {to}) UPDATE dbo.{name} SET id = {to} WHERE id = {key}"
        )

    def begin_scan(self) -> None:
        """The sandbox scans in one go."""

    def scan(self, most: int) -> None:
        self.run(f"EXEC sys.sp_cdc_scan @maxtrans = {most}, @maxscans = 1")

    def beat(self) -> None:
        if self.replica:
            self.signal("log", "{}")

    def fork_is_hidden(self) -> bool:
        return False

    def hide_fork(self) -> None:
        """The sandbox shows it to every login that may capture."""

    def restart(self) -> None:
        """The sandbox has no restart of one database: the same scans stay visible."""

    def enable(self, name: str, *, more: bool = False) -> None:
        if len(self._instances[name]) > 1:
            return
        self._made += 1
        instance = f"{name}_{self._made}"
        if more:
            self.run(f"ALTER TABLE dbo.{name} ADD extra_{self._made} int NULL")
        index = f", @index_name = N'ux_{self.label(name)}'" if self.is_freely_keyed(name) else ""
        self.run(
            f"EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'{name}', @role_name = NULL, "
            f"@capture_instance = N'{instance}'{index}"
        )
        self._instances[name].append(instance)

    def disable(self, name: str, *, oldest_only: bool = False) -> None:
        if oldest_only and len(self._instances[name]) == 1:
            return
        gone, self._instances[name] = (
            (self._instances[name][:1], self._instances[name][1:]) if oldest_only else (self._instances[name], [])
        )
        for instance in gone:
            self.run(
                f"EXEC sys.sp_cdc_disable_table @source_schema = N'dbo', @source_name = N'{name}', "
                f"@capture_instance = N'{instance}'"
            )

    def disable_database(self) -> None:
        """CDC ends in the whole database: its instances, jobs and what they had captured go."""
        self.run("EXEC sys.sp_cdc_disable_db")
        self._instances = {table: [] for table in self._instances}

    def enable_database(self) -> None:
        """CDC begins in it anew, for the same tables."""
        self._enable_database()
        for table in TABLES:
            self.enable(table)
        self.run("EXEC sys.sp_cdc_stop_job @job_type = N'capture'")

    def _enable_database(self) -> None:
        self.run("EXEC sys.sp_cdc_enable_db")
        self.run(
            f"EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'{SIGNALS}', @role_name = NULL"
        )

    def dark(self) -> set[str]:
        return {name for name, instances in self._instances.items() if not instances}

    def drop_and_create(self, name: str) -> None:
        self.disable(name)
        self.run(f"DROP TABLE dbo.{name}")
        self._create(name)

    def rename(self, name: str, to: str) -> None:
        self.run(f"EXEC sp_rename N'dbo.{name}', N'{to}'")
        self._instances[to], self._labels[to] = self._instances.pop(name), self._labels.pop(name)

    def label(self, name: str) -> str:
        """What a table's constraints and indexes are called after: the name under which it was made first."""
        return self._labels[name]

    def is_freely_keyed(self, name: str) -> bool:
        """Whether CDC identifies the table's rows by another unique index than the primary key."""
        return self.label(name) in FREELY_KEYED

    def clean_up(self, kept: int, *, only: str | None = None) -> None:
        mark = (
            f"(SELECT MIN(start_lsn) FROM (SELECT TOP ({max(kept, 1)}) start_lsn FROM cdc.lsn_time_mapping "
            "WHERE tran_id <> 0x00 ORDER BY start_lsn DESC) newest)"
        )
        for table, instances in self._instances.items():
            for instance in instances if only in {None, table} else ():
                self.run(
                    f"DECLARE @mark binary(10) = {mark}; IF @mark > sys.fn_cdc_get_min_lsn(N'{instance}') "
                    f"EXEC sys.sp_cdc_cleanup_change_table @capture_instance = N'{instance}', @low_water_mark = @mark"
                )

    def back_up(self) -> None:
        self._backup = {table: list(names) for table, names in self._instances.items()}, {**self._labels}
        self.run("EXEC sandbox.restore_point @point = N'storm'")

    def restore(self) -> None:
        self.run("EXEC sandbox.restore_database @point = N'storm', @keep_cdc = 1")
        instances, labels = self._backup
        self._instances, self._labels = {table: list(names) for table, names in instances.items()}, {**labels}

    def rows(self, name: str) -> Counter[tuple[int, str]]:
        return Counter((int(key), str(value)) for key, value in self.asked(f"SELECT id, name FROM dbo.{name}"))

    def captured_events(self, name: str) -> None:
        """Cleanup takes what was captured."""

    def captured_columns_by_event(self, name: str) -> None:
        """Its current tables are compared with the source in every cell."""

    def check_emitted(self, name: str, log: Sequence[Mapping[str, Any]]) -> None:
        emitted_rows_are_in_the_cut(self.database, name, log)

    def is_read(self, object_id: int, number: int, end: Lsn, position: Lsn) -> bool:  # noqa: ARG002 (the protocol's)
        """Its current tables are compared with the source."""
        return True

    def fail_over(self) -> None:
        """Another server takes over without loss: it does not know the former one's scans."""
        self.run("EXEC sandbox.failover @with_jobs = 1")
        self.freeze_the_secondary(False)

    def freeze_the_secondary(self, frozen: bool) -> None:  # noqa: FBT001 (a state)
        """The secondary, if the connector reads one, stops or goes on following the primary."""
        if self.replica:
            self.run("EXEC sandbox.replica_freeze" if frozen else "EXEC sandbox.replica_lag @seconds = 0")

    def signal(self, kind: str, data: str) -> None:
        """A row in the table of signals."""
        self._made += 1
        self.run(f"INSERT dbo.{SIGNALS} VALUES ('s{self._made}', '{kind}', '{data}')")

    def object_id(self, name: str) -> int | None:
        """The identity of the table that has this name on the primary."""
        ((found,),) = self.asked(f"SELECT OBJECT_ID(N'dbo.{name}')")
        return found

    def columns(self, name: str) -> dict[str, str]:
        """Names and types of a source table's columns, in order."""
        return dict(
            self.asked(
                "SELECT c.name, TYPE_NAME(c.user_type_id) FROM sys.columns AS c "
                f"WHERE c.object_id = OBJECT_ID(N'dbo.{name}') ORDER BY c.column_id"
            )
        )

    def captured_columns(self, name: str) -> set[str]:
        """The columns in the table's newest capture instance that holds a change; in its oldest one if none does.

        Nothing tells the connector of a column before a change or a snapshot has it.
        """
        instances = self._instances[name]
        of = next((one for one in reversed(instances) if self._holds_changes(one)), instances[0])
        return {
            row[0]
            for row in self.asked(
                f"SELECT column_name FROM cdc.captured_columns WHERE object_id = OBJECT_ID(N'cdc.{of}_CT')"
            )
        }

    def _holds_changes(self, instance: str) -> bool:
        return bool(self.asked(f"SELECT TOP (1) 1 FROM cdc.[{instance}_CT]"))

    def asked(self, statement: str) -> list[tuple[Any, ...]]:
        """What the primary answers."""
        with control(self._writer, self.name) as session:
            return [tuple(row) for row in session.rows(statement, doing="reading the source")]

    def run(self, statement: str) -> None:
        """Run a statement on the primary."""
        with control(self._writer, self.name) as session:
            session.execute(statement, doing="playing the application")

    def _create(self, table: str) -> None:
        key = f", CONSTRAINT pk_{self.label(table)} PRIMARY KEY (id)" if table in self.keyed else ""
        self.run(
            f"CREATE TABLE dbo.{table} (id int NOT NULL, part decimal(9, 0) NOT NULL, name nvarchar(50) NULL, "
            f"size smallint NULL, doc nvarchar(max) NULL, note ntext NULL{key})"
        )
        self._index(table)
        self.enable(table)

    def widen_part(self, name: str) -> None:
        """`part` gets a scale; no primary key contains it, and rows are not captured by the index that does."""
        self.run(f"DROP INDEX IF EXISTS ux_{self.label(name)} ON dbo.{name}")
        self.run(f"ALTER TABLE dbo.{name} ALTER COLUMN part decimal(12, 2) NOT NULL")
        self._index(name)

    def _index(self, table: str) -> None:
        if self.is_freely_keyed(table):
            self.run(f"CREATE UNIQUE INDEX ux_{self.label(table)} ON dbo.{table} (id, part)")

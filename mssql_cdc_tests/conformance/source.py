"""A course's databases on the stand-in server: T-SQL, and waiting for the capture job."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pyodbc
from mssql_sandbox.process import SandboxProcess

from mssql_cdc_tests.conformance.workload import RESTART, WAIT, Step, captured

WAIT_SECONDS = 240.0
FENCE = "dbo.fence"
LAST_UPDATE, LAST_INSERT = "updated", "last"
"""What the last two rows of a course say."""
"""A table of every course's first database: its last row ends the stream."""
MARKER = "dbo.marker"
"""A captured table that neither connector includes; its rows show how far the capture job has come."""


@dataclass(frozen=True, slots=True)
class Source:
    """A server and a course's databases."""

    server: SandboxProcess
    databases: tuple[str, ...]

    def create(self, collation: str | None = None) -> None:
        """Create the databases with the tables that every one has."""
        collated = "" if collation is None else f" COLLATE {collation}"
        for database in self.databases:
            self.execute([f"CREATE DATABASE {quoted(database)}{collated}"], database="master")
            self.execute(
                [
                    "EXEC sys.sp_cdc_enable_db",
                    f"CREATE TABLE {FENCE} (id int NOT NULL PRIMARY KEY, what varchar(10))",
                    f"CREATE TABLE {MARKER} (id int IDENTITY(1, 1) NOT NULL PRIMARY KEY)",
                    captured("fence"),
                    captured("marker"),
                    f"INSERT INTO {FENCE} VALUES (1, 'first')",
                ],
                database=database,
            )

    def execute(self, batches: Iterable[str], *, database: str) -> list[Any]:
        """Run batches in autocommit mode and return the rows of the last one that had any."""
        text = (
            f"DRIVER=FreeTDS;SERVER={self.server.host};PORT={self.server.port};TDS_Version=7.4;ClientCharset=UTF-8;"
            f"UID={self.server.user};PWD={{{self.server.password}}};DATABASE=master"
        )
        rows: list[Any] = []
        with closing(pyodbc.connect(text, autocommit=True, timeout=10)) as connection:
            for batch in (f"USE {quoted(database)}", *batches):
                cursor = connection.execute(batch)
                if cursor.description:
                    rows = cursor.fetchall()
                while cursor.nextset():
                    pass
        return rows

    def walk(self, steps: Iterable[Step], *, database: str, read: Callable[[bool], None] | None = None) -> None:
        """Run the steps of a script.

        Args:
            steps: The steps.
            database: Its database.
            read: Lets the connectors read; is told whether Debezium is started again then.
        """
        pending: list[str] = []
        for step in steps:
            if isinstance(step, str):
                pending.append(step)
                continue
            self.execute(pending, database=database)
            self.wait_for_capture(database)
            pending = []
            if step is not WAIT:
                assert read is not None, "a script cannot wait for connectors that do not read yet"
                read(step is RESTART)
        self.execute(pending, database=database)

    def finish(self) -> None:
        """Commit the last rows of the course, and wait until everything is captured."""
        for database in (*self.databases[1:], self.databases[0]):
            # The insert is the end of the stream; the update before it, for a reading that skips inserts.
            self.execute(
                [
                    f"INSERT INTO {FENCE} VALUES (1000, 'ending')",
                    f"UPDATE {FENCE} SET what = '{LAST_UPDATE}' WHERE id = 1000",
                    f"INSERT INTO {FENCE} VALUES (1001, '{LAST_INSERT}')",
                ],
                database=database,
            )
            self.wait_for_capture(database)

    def sign(self) -> str:
        """Commit a row that shows how far a connector has read, and wait until it is captured."""
        database = self.databases[0]
        sign = f"sign {self.execute([f'SELECT COUNT(*) FROM {FENCE}'], database=database)[0][0]}"
        self.execute([f"INSERT INTO {FENCE} SELECT MAX(id) + 1, '{sign}' FROM {FENCE}"], database=database)
        self.wait_for_capture(database)
        return sign

    def wait_for_capture(self, database: str) -> None:
        """Wait until everything committed so far has been captured."""
        deadline = time.monotonic() + WAIT_SECONDS
        self.execute([f"INSERT INTO {MARKER} DEFAULT VALUES"], database=database)
        statement = (
            f"SELECT CASE WHEN (SELECT MAX(id) FROM {MARKER}) = (SELECT MAX(id) FROM cdc.dbo_marker_CT) "
            "THEN 1 ELSE 0 END"
        )
        while self.execute([statement], database=database)[0][0] != 1:
            if time.monotonic() > deadline:
                raise TimeoutError(f"a row was not captured within {WAIT_SECONDS} s")
            time.sleep(0.05)


def quoted(name: str) -> str:
    """Return an identifier in brackets."""
    return f"[{name.replace(']', ']]')}]"

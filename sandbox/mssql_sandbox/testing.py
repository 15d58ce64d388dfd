"""A database with change data capture for a test, used without a driver.

The fixtures themselves belong to `pytest_plugin`, connection strings to `address`.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, time, timedelta, timezone
from typing import Any

from mssql_sandbox.engine.events import Columns, Message, Rows
from mssql_sandbox.engine.ticks import civil, clock_parts, moment
from mssql_sandbox.engine.types import DATES, SqlType
from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.session import Session
from mssql_sandbox.scripts import split_batches
from mssql_sandbox.server import ADMINISTRATOR, SandboxServer

_INFORMATION = 10


class CdcDatabase:
    """A database of a running server. Its capture job is stopped: a test decides when changes are captured."""

    def __init__(self, server: SandboxServer, name: str, session: Session) -> None:
        self.server = server
        self.name = name
        self._session = session

    def execute(self, sql: str) -> list[tuple[Any, ...]]:
        """Run T-SQL as `sa`, in one session for the whole test; a line with `GO` separates batches.

        Args:
            sql: the statements.

        Returns:
            The rows of the last result set; empty if there is none. Fractional seconds are truncated to microseconds.

        Raises:
            SqlError: a statement failed; `number` is the error number.
        """

        async def run() -> list[tuple[Any, ...]]:
            rows: list[tuple[Any, ...]] = []
            for batch in split_batches(sql):
                for _ in range(batch.times):
                    rows = await _last_rows(self._session, batch.text)
            return rows

        return self.server.call(run)

    def enable_capture(self, table: str, *, schema: str = "dbo") -> str:
        """Enable a table for change data capture, with all columns and no gating role.

        Args:
            table: the table's name.
            schema: the table's schema.

        Returns:
            The name of the capture instance.
        """
        self.execute(
            f"EXEC sys.sp_cdc_enable_table @source_schema = {_literal(schema)}, @source_name = {_literal(table)}, "
            "@role_name = NULL"
        )
        return f"{schema}_{table}"

    def capture(self) -> int:
        """Run one scan of the capture job now; afterwards the change tables hold all committed changes.

        Returns:
            The number of captured transactions.
        """
        ((transactions,),) = self.execute("EXEC sandbox.capture_run")
        return transactions

    def odbc(self, *, driver: str = "FreeTDS") -> str:
        """A connection string for pyodbc and other ODBC clients; `driver` is the name or library of a driver."""
        return self.server.address.odbc(self.name, driver=driver)

    def sqlalchemy(self, *, driver: str = "FreeTDS") -> str:
        """A URL for SQLAlchemy's `create_engine`, with pyodbc."""
        return self.server.address.sqlalchemy(self.name, driver=driver)

    def jdbc(self) -> str:
        """A URL for Microsoft's JDBC driver."""
        return self.server.address.jdbc(self.name)


@contextmanager
def cdc_database(server: SandboxServer) -> Iterator[CdcDatabase]:
    """A new database with change data capture; dropped when the block ends, even if clients are still connected."""

    async def opened() -> Session:
        return Session(server.engine, login=ADMINISTRATOR, database="master", application="mssql_sandbox.testing")

    async def closed() -> None:
        database._session.close()  # noqa: SLF001 - this module's

    name = f"test_{secrets.token_hex(4)}"
    database = CdcDatabase(server, name, server.call(opened))
    try:
        database.execute(
            f"CREATE DATABASE {name}\nGO\nUSE {name}\nEXEC sys.sp_cdc_enable_db\nEXEC sandbox.capture_pause"
        )
        yield database
    finally:
        server.call(closed)
        _drop(server, name)


def _drop(server: SandboxServer, name: str) -> None:
    async def run() -> None:
        session = Session(server.engine, login=ADMINISTRATOR, database="master")
        try:
            await _last_rows(
                session,
                f"IF DB_ID(N'{name}') IS NOT NULL BEGIN\n"
                f"ALTER DATABASE {name} SET SINGLE_USER WITH ROLLBACK IMMEDIATE; DROP DATABASE {name} END",
            )
        finally:
            session.close()

    server.call(run)


async def _last_rows(session: Session, sql: str) -> list[tuple[Any, ...]]:
    types: list[SqlType] = []
    rows: list[tuple[Any, ...]] = []
    failures: list[SqlError] = []
    async for event in session.batch(sql):
        if isinstance(event, Columns):
            types, rows = [column.type for column in event.columns], []
        elif isinstance(event, Rows):
            rows += [tuple(map(_python_value, row, types)) for row in event.rows]
        elif isinstance(event, Message) and event.severity > _INFORMATION:
            more = {"severity": event.severity, "state": event.state, "procedure": event.procedure, "line": event.line}
            failures.append(SqlError(event.number, event.text, **more))
    if failures:
        raise failures[0]
    return rows


def _python_value(value: Any, type_: SqlType) -> Any:
    """A value in storage form as ODBC clients give it to Python."""
    if value is None:
        return None
    if type_.name == "sql_variant":
        return _python_value(value[1], value[0])
    if type_.name == "bit":
        return bool(value)
    return _date_value(value, type_) if type_.name in DATES else value


def _date_value(value: Any, type_: SqlType) -> Any:
    point = moment(value, type_)
    day = civil(point.day)
    if type_.name == "date":
        return day
    hour, minute, second, fraction = clock_parts(point.ticks)
    if type_.name == "datetime":
        # Clients see its 1/300 seconds as milliseconds.
        fraction = (fraction + 5_000) // 10_000 * 10_000
    zone = timezone(timedelta(minutes=point.offset)) if type_.name == "datetimeoffset" else None
    clock = time(hour, minute, second, fraction // 10, zone)
    return clock if type_.name == "time" else datetime.combine(day, clock)


def _literal(text: str) -> str:
    return "N'" + text.replace("'", "''") + "'"

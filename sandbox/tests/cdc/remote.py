"""Any server behind ODBC as the world of the rule tests: a real SQL Server, or a sandbox in another process.

`MSSQL_TEST_URL` holds an ODBC connection string of a sysadmin, without DATABASE. Every test gets a database of its own,
dropped in the end, and logins with names of their own. Nothing here uses what only the sandbox has.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
import uuid
from collections.abc import Iterator

import pyodbc
import pytest

from mssql_sandbox.engine.events import Message
from tests.cdc.client import Answer, World

VARIABLE = "MSSQL_TEST_URL"
_SCAN_ATTEMPTS = 30
_DATETIMEOFFSET = -155
"""pyodbc has no value for it: bytes do, where only its being there matters."""
_AGENT_BUSY, _SCAN_RUNS = 22022, 22903
_NUMBER = re.compile(r"\((\d+)\)")
_ERROR_NUMBER = re.compile(r"\((\d+)\) \(SQL|\((\d+)\)$")
"""The number stands behind the text, before the name of the ODBC function."""
_PREFIX = re.compile(r"^(\[[^\]]*\]\s?)+")
_LOGIN = re.compile(r"(?<![A-Za-z])(UID|PWD)=(\{(?:[^}]|\}\})*\}|[^;]*)", re.IGNORECASE)


def connection_string() -> str | None:
    """What `MSSQL_TEST_URL` says, None when it is not set."""
    return os.environ.get(VARIABLE) or None


class RemoteWorld(World):
    """A fresh database on a server; one connection for every login and name."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._suffix = uuid.uuid4().hex[:10]
        self.database = f"cdc_rules_{self._suffix}"
        self._passwords: dict[str, str] = {}
        self._connections: dict[str, pyodbc.Connection] = {}
        self._master = self._open(address, "master")
        self._master.execute(f"CREATE DATABASE [{self.database}]")

    @staticmethod
    def _open(address: str, database: str) -> pyodbc.Connection:
        connection = pyodbc.connect(f"{address};DATABASE={database}", autocommit=True, timeout=30)
        connection.add_output_converter(_DATETIMEOFFSET, bytes)
        return connection

    def close(self) -> None:
        """Drop the database and the logins."""
        for connection in self._connections.values():
            connection.close()
        master = self._master.cursor()
        master.execute(f"ALTER DATABASE [{self.database}] SET SINGLE_USER WITH ROLLBACK IMMEDIATE")
        master.execute(f"DROP DATABASE [{self.database}]")
        for name in self._passwords:
            master.execute(f"DROP LOGIN [{self._login(name)}]")
        self._master.close()

    def _login(self, name: str) -> str:
        return f"{name}_{self._suffix}"

    def _connection(self, login: str, name: str) -> pyodbc.Connection:
        key = f"{login}/{name}"
        if key not in self._connections:
            address = self._address
            if login != "sa":
                given = {"uid": self._login(login), "pwd": "{" + self._passwords[login] + "}"}
                address = _LOGIN.sub(lambda match: f"{match[1]}={given[match[1].lower()]}", address)
            self._connections[key] = self._open(address, self.database)
        return self._connections[key]

    def send(self, sql: str, *, login: str = "sa", name: str = "") -> Answer:
        """Run a batch; pyodbc raises at the first error, so that nothing of the batch is seen behind it."""
        answer = Answer()
        cursor = self._connection(login, name).cursor()
        try:
            try:
                cursor.execute(sql)
                seen: list | None = None
                while True:
                    if cursor.messages is not seen:
                        seen = cursor.messages
                        answer.messages.extend(_informative(seen))
                    if cursor.description is not None:
                        answer.names.append([column[0] for column in cursor.description])
                        answer.sets.append([tuple(row) for row in cursor.fetchall()])
                    if not cursor.nextset():
                        break
            except pyodbc.Error as failure:
                answer.messages.append(self._described(failure, sql, login=login, name=name))
        finally:
            cursor.close()
        return answer

    def _described(self, failure: pyodbc.Error, sql: str, *, login: str, name: str) -> Message:
        """The error with severity, state and procedure, which ODBC does not tell: from a CATCH around it."""
        whole = str(failure.args[1]) if len(failure.args) > 1 else str(failure)
        found = _ERROR_NUMBER.search(whole)
        number = int(found[1] or found[2]) if found is not None else 0
        text = _PREFIX.sub("", whole).split(f" ({number})")[0]
        caught = "SELECT ERROR_NUMBER(), ERROR_SEVERITY(), ERROR_STATE(), ERROR_PROCEDURE(), ERROR_MESSAGE()"
        quoted = sql.replace("'", "''")
        wrapped = f"BEGIN TRY EXEC sys.sp_executesql N'{quoted}' END TRY BEGIN CATCH {caught} END CATCH"
        for known, severity, state, procedure, message in self._caught(wrapped, login=login, name=name):
            if known == number:
                return Message(number, state, severity, message, procedure or "", 1)
        return Message(number, 1, 16, text, "", 1)

    def _caught(self, wrapped: str, *, login: str, name: str) -> list[tuple]:
        cursor = self._connection(login, name).cursor()
        last: list[tuple] = []
        try:
            cursor.execute(wrapped)
            while True:
                if cursor.description is not None and len(cursor.description) == 5:
                    last = [tuple(row) for row in cursor.fetchall()]
                if not cursor.nextset():
                    return last
        except pyodbc.Error:
            return []
        finally:
            cursor.close()

    def add_user(self, name: str, *roles: str) -> None:
        """A login with a name of its own; the user in the database has the given one."""
        self._passwords[name] = f"Aa1-{uuid.uuid4().hex}"
        self._master.execute(f"CREATE LOGIN [{self._login(name)}] WITH PASSWORD = '{self._passwords[name]}'")
        self.execute(f"CREATE USER [{name}] FOR LOGIN [{self._login(name)}]")
        for role in roles:
            self.execute(f"ALTER ROLE [{role}] ADD MEMBER [{name}]")

    def stop_capture(self) -> None:
        """Stop the capture job; it may not run at all."""
        self.send("EXEC sys.sp_cdc_stop_job @job_type = N'capture'")

    def capture(self) -> None:
        """Scan by hand until nothing is left, then once more: history of DDL comes behind."""
        self.stop_capture()
        for _ in range(2):
            for attempt in range(_SCAN_ATTEMPTS):
                errors = self.send("EXEC sys.sp_cdc_scan @maxscans = 1000").errors
                if not errors:
                    break
                assert _SCAN_RUNS in errors, f"sp_cdc_scan failed with {errors}"
                assert attempt < _SCAN_ATTEMPTS - 1, "the capture job does not stop"
                time.sleep(0.5)

    def require_messages(self) -> None:
        """FreeTDS keeps messages without a result set to itself."""
        if not self.send("PRINT 'seen'").messages:
            pytest.skip("the ODBC driver does not show messages")

    def wait(self, seconds: float) -> None:
        """Really wait."""
        time.sleep(seconds)


def _informative(messages: list | None) -> Iterator[Message]:
    for kind, text in messages or ():
        number = _NUMBER.search(kind)
        yield Message(int(number[1]) if number else 0, 1, 10, _PREFIX.sub("", text), "", 1)


@contextlib.contextmanager
def remote_world(address: str) -> Iterator[RemoteWorld]:
    """A world on the server at `address` until the block ends."""
    made = RemoteWorld(address)
    try:
        yield made
    finally:
        made.close()

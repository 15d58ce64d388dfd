"""What the two drivers are given: connections with their time-outs, and the statements that run on them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import arrow_odbc
import pyodbc

from mssql_cdc.config import Connector
from mssql_cdc.source.sqlserver.bulk import open_bulk
from mssql_cdc.source.sqlserver.connect import control, translated
from mssql_cdc.source.sqlserver.source import SqlServerSource
from mssql_cdc_tests.lake_kit import orders


@dataclass
class Driver:
    """Both drivers, a connection and its cursor in one: notes what it is asked, and answers nothing."""

    asked: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    autocommit: bool = True

    def connect(self, _text: str, **options: Any) -> Driver:
        self.asked.append(("connect", options))
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "timeout":
            self.asked.append((name, value))
        object.__setattr__(self, name, value)

    def cursor(self) -> Driver:
        return self

    def execute(self, sql: str, *parameters: Any, **options: Any) -> Driver:
        self.asked.append(("execute", sql, parameters, options))
        return self

    def fetchone(self) -> None:
        """There is no row."""

    def nextset(self) -> bool:
        return False

    def commit(self) -> None:
        """Nothing was changed."""

    def rollback(self) -> None:
        """Nothing was changed."""

    def close(self) -> None:
        """Nothing was opened."""


@contextmanager
def drivers() -> Iterator[Driver]:
    """Let the product use such drivers, for a server that can be reached."""
    driver = Driver()
    with (
        patch.object(pyodbc, "connect", driver.connect),
        patch.object(arrow_odbc, "connect", driver.connect),
        patch("mssql_cdc.source.sqlserver.connect.require_reachable"),
    ):
        yield driver


def by_pyodbc(connector: Connector) -> Any:
    """What pyodbc is asked until a connection is ready, and for its first statement."""
    with drivers() as driver, control(connector.connection, "shop") as opened:
        opened.execute("SELECT 1", doing="testing")
    return driver.asked


def by_arrow(connector: Connector) -> Any:
    """What arrow-odbc is asked until a connection is ready, and for its first statement."""
    with drivers() as driver, open_bulk(connector.connection, "shop", by_rows=False) as bulk:
        bulk.execute("SELECT 1", doing="testing")
    return driver.asked


def locked(connector: Connector) -> Any:
    """The statements of a lock on a table without a key."""
    with drivers() as driver, SqlServerSource(connector).locked("shop", [orders(keys=())]):
        pass
    return [one[1] for one in driver.asked if one[0] == "execute"]


def translated_error(connector: Connector) -> Any:
    """What becomes of an error that the drivers report."""
    try:
        with translated(connector.connection, "testing"):
            raise pyodbc.Error("42000", "[42000] [Microsoft] bad weather today (50000) (SQLExecDirectW)")
    except Exception as error:  # noqa: BLE001 - the kind of the error is what is seen
        return type(error).__name__

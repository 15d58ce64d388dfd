"""What the two drivers are given: connections with their time-outs, and the statements that run on them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import arrow_odbc
import pyarrow as pa
import pyodbc

from mssql_cdc.config import Connector
from mssql_cdc.source.protocol import ChunkRead
from mssql_cdc.source.sqlserver.bulk import open_bulk
from mssql_cdc.source.sqlserver.changes import ChangeReader
from mssql_cdc.source.sqlserver.connect import control, translated
from mssql_cdc.source.sqlserver.source import SqlServerSource
from mssql_cdc.source.sqlserver.structure import Structure
from mssql_cdc.source.values import Chunk
from mssql_cdc_tests.lake_kit import lsn, orders
from mssql_cdc_tests.unit.config.observed.things import AT, INSTANCE, PART, THINGS


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

    @property
    def read(self) -> list[tuple[str, Any]]:
        """The statements with rows, and the options of their fetches."""
        return [(one[1], one[2]) for one in self.asked if one[0] == "read"]

    def read_arrow_batches(self, sql: str, **options: Any) -> list[pa.RecordBatch]:
        self.asked.append(("read", sql, options))
        return []

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


def pages(connector: Connector) -> Any:
    """The statements for a range of changes, with their parameters."""
    return [(sql, options["parameters"]) for sql, options in _changes_read(connector)]


def fetches(connector: Connector) -> Any:
    """How many changes are fetched at a time."""
    return [options["batch_size"] for _, options in _changes_read(connector)]


def _changes_read(connector: Connector) -> list[tuple[str, Any]]:
    reader = SqlServerSource(connector).change_reader("shop", INSTANCE, PART[1])
    with (
        drivers() as driver,
        patch.object(ChangeReader, "require_visible"),
        patch.object(ChangeReader, "_require_held"),
        patch.object(Structure, "require"),
    ):
        assert list(reader.read()) == []
    return driver.read


def chunk(connector: Connector) -> Any:
    """The statements of a chunk's transaction, and how many rows are fetched at a time."""
    wanted = ChunkRead(
        schema=THINGS, chunks=[Chunk(0)], snapshot_number=1, epoch=0, position=lsn(1), captured=None, commit_lsn=lsn(1),
        read_at=AT,
    )  # fmt: skip
    with drivers() as driver, patch.object(Structure, "require"):
        assert list(SqlServerSource(connector).chunk_reader("shop", wanted).read()) == []
    executed = [one[1] for one in driver.asked if one[0] == "execute"]
    return executed, [options["batch_size"] for _, options in driver.read]


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

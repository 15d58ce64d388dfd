"""C21: a table without a key is read whole, and is exact at one position; who has to wait for that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from mssql_cdc.config import load_connector
from mssql_cdc.errors import MssqlCdcError, SourceUnavailableError
from mssql_cdc.source.sqlserver.connect import control
from mssql_cdc.source.sqlserver.snapshot_reader import ChunkReader
from mssql_cdc.source.sqlserver.source import SqlServerLock
from mssql_cdc_tests.end_to_end.kit import Place

pytestmark = [pytest.mark.spark, pytest.mark.slow]

WRITES = "INSERT INTO dbo.notes VALUES (N'new'); DELETE TOP (1) FROM dbo.notes WHERE what = N'a'"


@pytest.fixture
def notes(place: Place) -> Place:
    place.sql("ALTER DATABASE CURRENT SET ALLOW_SNAPSHOT_ISOLATION ON")
    place.create("notes", "what nvarchar(50) NULL")
    place.sql("INSERT INTO dbo.notes VALUES (N'a'), (N'a'), (N'b')")
    place.settle()
    return place


@pytest.mark.feature("SNP-14", "SNP-15")
@pytest.mark.parametrize(("isolation", "waits"), [("repeatable_read", True), ("snapshot", False)])
def test_writers_wait_until_all_is_read_or_only_until_a_snapshot_transaction_has_begun(
    notes: Place, monkeypatch: pytest.MonkeyPatch, isolation: str, *, waits: bool
):
    """Case A of correctness C: what is written behind the transaction's begin comes by the stream, and only there."""
    notes.configure(snapshot_isolation_mode=isolation)
    real, waited = ChunkReader._rows, list[bool]()  # pyright: ignore[reportPrivateUsage]

    def beside_a_writer(reader: ChunkReader, *arguments: Any) -> Iterator[Any]:
        with control(load_connector(notes.config).connection, notes.database) as writer:
            writer.execute("SET LOCK_TIMEOUT 300", doing="waiting not long")
            try:
                writer.execute(WRITES, doing="writing while the table is read")
                waited.append(False)
            except MssqlCdcError:
                waited.append(True)
        yield from real(reader, *arguments)

    monkeypatch.setattr(ChunkReader, "_rows", beside_a_writer)
    assert notes.catch_up() == 0
    assert waited == [waits]
    ops = [row["op"] for row in notes.query("SELECT op FROM t ORDER BY _pos", "notes", "changes")]
    assert ops == ["r", "r", "r"] + ([] if waits else ["c", "d"])
    assert notes.check() == 0


def test_a_lock_that_is_lost_before_the_transaction_has_begun_fails_the_table(
    notes: Place, monkeypatch: pytest.MonkeyPatch
):
    """Its rows may be newer than the position that they were to be exact at."""
    notes.configure(snapshot_isolation_mode="snapshot", retriable_restart_connector_wait_ms="10")
    lost = iter([True])

    def require_held(_: SqlServerLock, doing: str) -> None:
        if next(lost, False):
            raise SourceUnavailableError(f"The connection was lost while {doing}")

    monkeypatch.setattr(SqlServerLock, "require_held", require_held)
    assert notes.catch_up() == 0, "it is tried again"
    assert next(lost, None) is None
    assert notes.check() == 0
    assert [row["op"] for row in notes.query("SELECT op FROM t", "notes", "changes")] == ["r"] * 3

"""The statements and positions of chunk reads (rules C18, C20; SNP-15, SNP-23)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from mssql_cdc.config import Connection
from mssql_cdc.lsn import snapshot_position_text
from mssql_cdc.source.sqlserver.columns import RowPlan
from mssql_cdc.source.sqlserver.snapshot_reader import ISOLATIONS, ChunkReader, begin, select_statement
from mssql_cdc.source.sqlserver.sql import require_captured
from mssql_cdc.source.values import Chunk
from mssql_cdc_tests.unit.source.raw import ORDERS, lsn

READER = ChunkReader(
    connection=Connection(hostname="nowhere"),
    catalog="shop",
    schema=ORDERS,
    chunk=Chunk(2, ("1",), ("9",)),
    snapshot_number=3,
    epoch=1,
    position=lsn(20),
    captured=lsn(20),
    commit_lsn=lsn(19),
    read_at=datetime(2026, 1, 1, tzinfo=UTC),
)
PLAN = RowPlan.of(ORDERS.columns)


def test_a_chunk_reads_its_bounds_in_key_order() -> None:
    sql, parameters = select_statement(READER, PLAN)

    assert sql == (
        "SELECT t.[id] AS [c0_0], CAST(t.[name] AS varbinary(100)) AS [c1_0] FROM [dbo].[orders] AS t "
        "WHERE (([id] > CAST(? AS int))) AND (([id] < CAST(? AS int)) OR ([id] = CAST(? AS int))) ORDER BY t.[id]"
    )
    assert parameters == ["1", "9", "9"]


def test_an_entire_table_is_read_without_a_sort() -> None:
    sql, parameters = select_statement(replace(READER, chunk=Chunk(0)), PLAN)

    assert sql.endswith("FROM [dbo].[orders] AS t")
    assert parameters == []


@pytest.mark.feature("SNP-23")
def test_every_star_of_an_override_becomes_the_columns() -> None:
    reader = replace(READER, chunk=Chunk(0), statement="SELECT * FROM v", condition="id > 5")
    sql, _ = select_statement(reader, PLAN)

    assert sql.endswith("FROM (SELECT [id], [name] FROM v) AS t WHERE (id > 5)")


def test_positions_number_the_rows_of_the_chunk() -> None:
    expected = [snapshot_position_text(1, lsn(20), number=3, chunk=2, row=row) for row in (7, 8)]

    assert READER._positions(7, 2).to_pylist() == expected


@pytest.mark.feature("SNP-14")
def test_uncommitted_rows_are_never_read() -> None:
    assert ISOLATIONS["read_uncommitted"] == "READ COMMITTED"
    assert "READ UNCOMMITTED" not in ISOLATIONS.values()


@pytest.mark.feature("SNP-15")
def test_the_isolation_level_is_set_before_the_transaction_that_checks() -> None:
    done: list[str] = []

    class Recorder:
        def execute(self, sql: str, **_: object) -> None:
            done.append(sql)

        def rollback(self) -> None:
            done.append("ROLLBACK")

        def read(self, *_: object, **__: object) -> object:
            raise AssertionError("nothing is read while beginning")

    begin(Recorder(), "SNAPSHOT", lsn(20), doing="testing")  # type: ignore[arg-type]

    assert done == ["SET TRANSACTION ISOLATION LEVEL SNAPSHOT", "ROLLBACK", require_captured(lsn(20))]

"""The statements and positions of chunk reads (rules C18, C20; SNP-15, SNP-23)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from mssql_cdc.config import Connection
from mssql_cdc.errors import StaleReaderError
from mssql_cdc.lsn import snapshot_position_text
from mssql_cdc.source.protocol import ChunkRead
from mssql_cdc.source.sqlserver.chunks import Piece, pieces
from mssql_cdc.source.sqlserver.columns import RowPlan
from mssql_cdc.source.sqlserver.snapshot_reader import ISOLATIONS, ChunkReader, begin, select_statement
from mssql_cdc.source.sqlserver.sql import IS_CAPTURED
from mssql_cdc.source.values import Chunk
from mssql_cdc_tests.unit.source.raw import ORDERS, lsn

WANTED = ChunkRead(
    schema=ORDERS,
    chunks=[Chunk(2, ("1",), ("9",))],
    snapshot_number=3,
    epoch=1,
    position=lsn(20),
    captured=lsn(20),
    commit_lsn=lsn(19),
    read_at=datetime(2026, 1, 1, tzinfo=UTC),
)
READER = ChunkReader(connection=Connection(hostname="nowhere"), catalog="shop", wanted=WANTED)
PLAN = RowPlan.of(ORDERS.columns)


def test_a_chunk_reads_its_bounds_in_key_order() -> None:
    (piece,) = pieces(Chunk(2, ("1",), ("9",)), ORDERS.keys)

    assert select_statement(WANTED, PLAN, piece) == (
        "SELECT t.[id] AS [c0_0], CAST(t.[name] AS varbinary(102)) AS [c1_0] FROM [dbo].[orders] AS t "
        "WHERE [id] <= CAST(? AS int) AND [id] > CAST(? AS int) ORDER BY t.[id]"
    )
    assert piece.parameters == ("9", "1")


@pytest.mark.parametrize("lower", [("1", "5"), ("2", "1")])
def test_every_piece_of_a_key_in_both_directions_is_read_in_the_order_of_its_index(lower: tuple[str, str]) -> None:
    """A sort waits for the last row of the piece, needs memory for all of them, and may keep their locks."""
    schema = ORDERS.keyed_by(["id", "name"])
    wanted = replace(WANTED, schema=schema)
    for piece in pieces(Chunk(2, lower, ("2", "9")), schema.keys):
        for descending, order in (((False, True), "t.[id], t.[name] DESC"), ((), "t.[id], t.[name]")):
            assert select_statement(wanted, PLAN, piece, descending).endswith(f" ORDER BY {order}")


@pytest.mark.feature("INC-04", "INC-17")
def test_a_chunk_of_an_incremental_snapshot_may_have_a_condition_and_a_plan_of_its_own() -> None:
    (piece,) = pieces(Chunk(2, ("1",), ("9",)), ORDERS.keys)
    wanted = replace(WANTED, condition="name = 'a' OR name = 'b'", recompile=True)

    assert select_statement(wanted, PLAN, piece).endswith(
        "WHERE [id] <= CAST(? AS int) AND [id] > CAST(? AS int) AND (name = 'a' OR name = 'b') "
        "ORDER BY t.[id] OPTION (RECOMPILE)"
    )


def test_rows_that_are_held_are_locked_by_the_statement_that_reads_them() -> None:
    (piece,) = pieces(Chunk(2, keys=(("1",), ("7",))), ORDERS.keys)
    wanted = replace(WANTED, held=lambda: None)

    assert "FROM [dbo].[orders] AS t WITH (HOLDLOCK) WHERE" in select_statement(wanted, PLAN, piece)


def test_a_whole_table_is_read_without_a_sort() -> None:
    (piece,) = pieces(Chunk(0), ORDERS.keys)

    assert select_statement(WANTED, PLAN, piece).endswith("FROM [dbo].[orders] AS t")
    assert piece.parameters == ()


@pytest.mark.feature("SNP-23")
def test_every_star_of_an_override_becomes_the_columns() -> None:
    wanted = replace(WANTED, chunks=[Chunk(0)], statement="SELECT * FROM v", condition="id > 5")

    assert select_statement(wanted, PLAN, Piece("")).endswith("FROM (SELECT [id], [name] FROM v) AS t WHERE (id > 5)")


@pytest.mark.parametrize(
    ("statement", "read"),
    [
        (
            "SELECT * FROM v WHERE name = 'a*b' AND id * 2 > 4",
            "SELECT [id], [name] FROM v WHERE name = 'a*b' AND id * 2 > 4",
        ),
        ("SELECT TOP (5) * FROM [a.*] ORDER BY (id) * 2", "SELECT TOP (5) [id], [name] FROM [a.*] ORDER BY (id) * 2"),
        (
            "select v.* from v, (select all * from w) w",
            "select v.[id], [name] from v, (select all [id], [name] from w) w",
        ),
    ],
)
def test_a_star_that_selects_no_columns_stays(statement: str, read: str) -> None:
    """A column's name can have an apostrophe, which would end the text of a signal's filter."""
    wanted = replace(WANTED, chunks=[Chunk(0)], statement=statement)

    assert select_statement(wanted, PLAN, Piece("")).endswith(f"FROM ({read}) AS t")


def test_positions_number_the_rows_of_the_chunk() -> None:
    expected = [snapshot_position_text(1, lsn(20), number=3, chunk=2, row=row) for row in (7, 8)]

    assert READER._positions(2, 7, 2).to_pylist() == expected


@pytest.mark.feature("SNP-14")
def test_uncommitted_rows_are_never_read() -> None:
    assert ISOLATIONS["read_uncommitted"] == "READ COMMITTED"
    assert "READ UNCOMMITTED" not in ISOLATIONS.values()


@pytest.mark.feature("SNP-14")
@pytest.mark.parametrize("mode", ["repeatable_read", "exclusive"])
def test_no_chunk_holds_locks_on_what_it_has_read(mode: str) -> None:
    assert ISOLATIONS[mode] == "READ COMMITTED"


@pytest.mark.feature("SNP-15")
def test_the_isolation_level_is_set_before_the_transaction_that_checks() -> None:
    done: list[str] = []

    class Recorder:
        def execute(self, sql: str, **_: object) -> None:
            done.append(sql)

        def rollback(self) -> None:
            done.append("ROLLBACK")

        def read(self, sql: str, *_: object, **__: object) -> Iterator[pa.RecordBatch]:
            done.append(sql)
            yield pa.record_batch({"n": [seen]})

    seen = 1
    begin(Recorder(), "SNAPSHOT", lsn(20), doing="testing")  # type: ignore[arg-type]
    assert done == ["SET TRANSACTION ISOLATION LEVEL SNAPSHOT", "ROLLBACK", IS_CAPTURED]

    seen = 0
    with pytest.raises(StaleReaderError, match="while testing"):
        begin(Recorder(), "SNAPSHOT", lsn(20), doing="testing")  # type: ignore[arg-type]

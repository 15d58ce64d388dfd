"""Chunks: every row in exactly one, under every kind of key (rules C20, C21; SNP-*)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from mssql_cdc.errors import SourceUnavailableError, StaleReaderError, StaleStructureError
from mssql_cdc.lsn import snapshot_position_text
from mssql_cdc.source.sqlserver.chunk_planning import last_bound, next_bound, plan_chunks
from mssql_cdc.source.sqlserver.connect import control
from mssql_cdc.source.sqlserver.log_end import log_end
from mssql_cdc.source.sqlserver.snapshot_reader import ISOLATIONS, UNDER_LOCK, locked
from mssql_cdc.source.sqlserver.source import SqlServerSource
from mssql_cdc.source.sqlserver.structure import Structure
from mssql_cdc.source.values import Chunk
from mssql_cdc_tests.sandbox_source.kit import Shop, rows

WAITING = "SELECT COUNT(*) FROM sys.dm_tran_locks WHERE request_status = 'WAIT'"

# key columns, key clause, rows as T-SQL values
KEYS = [
    ("k int NOT NULL", "k", [f"({i})" for i in range(-5, 6)]),
    ("k bigint NOT NULL", "k", [f"({i * 10**12})" for i in range(11)]),
    ("k decimal(20, 5) NOT NULL", "k", [f"({i}.00001)" for i in range(11)]),
    ("k nvarchar(20) NOT NULL", "k", [f"(N'{t}')" for t in ("a", "B", "c", "\u017c", "\u00e9", "_", "-x", "Z", "zz")]),
    ("k varchar(20) NOT NULL", "k", [f"('{t}')" for t in ("a", "B", "c", "\u00e9", "_", "-x", "Z", "zz", "o''o")]),
    ("k nvarchar(20) COLLATE Latin1_General_BIN NOT NULL", "k", [f"(N'{t}')" for t in ("a", "A", "b", "B", "_", "Z")]),
    ("k uniqueidentifier NOT NULL", "k",
     [f"('{i:08x}-0000-0000-0000-{(i * 7919) % 9973:012x}')" for i in range(11)]),
    ("k datetime NOT NULL", "k", [f"('2024-01-01T00:00:00.{i * 10 % 1000:03d}')" for i in range(11)]),
    ("k datetime2(7) NOT NULL", "k", [f"('2024-01-01T00:00:00.000000{i}')" for i in range(10)]),
    ("k datetimeoffset(3) NOT NULL", "k", [f"('2024-01-01T00:00:00.00{i}+0{i}:00')" for i in range(9)]),
    ("k date NOT NULL", "k", [f"('2024-01-{i + 1:02d}')" for i in range(11)]),
    ("k varbinary(8) NOT NULL", "k", [f"(0x{i:02x}ff)" for i in range(11)]),
    ("k hierarchyid NOT NULL", "k", [f"('/{i}/')" for i in range(-3, 4)] + [f"('/2/{i}.5/')" for i in range(4)]),
    ("k float NOT NULL", "k", [f"({i / 10})" for i in range(11)]),
    ("a int NOT NULL, b nvarchar(5) NOT NULL", "a, b", [f"({i}, N'{t}')" for i in range(3) for t in "xyz"]),
    ("a nvarchar(5) NOT NULL, b int NOT NULL", "a, b", [f"(N'{'aA'[i % 2]}', {i})" for i in range(11)]),
    ("a int NOT NULL, b int NOT NULL, c int NOT NULL", "a, b, c",
     [f"({a}, {b}, {c})" for a in range(3) for b in range(2) for c in range(4)]),
]  # fmt: skip


@pytest.mark.parametrize(("columns", "key", "values"), KEYS, ids=[columns for columns, *_ in KEYS])
def test_every_row_is_read_by_exactly_one_chunk(shop: Shop, columns: str, key: str, values: list[str]) -> None:
    shop.create("t", f"{columns}, CONSTRAINT pk PRIMARY KEY ({key})")
    shop.run(f"INSERT dbo.t VALUES {', '.join(values)}")
    shop.scan()
    chunks = plan_chunks(shop.control, shop.instance("t").schema, 3)
    whole = sorted(str(row["after"]) for row in rows(shop.chunk("t")))
    parts = [rows(shop.chunk("t", chunk)) for chunk in chunks]

    assert len(chunks) == len(values) // 3 + 1
    assert all(len(part) <= 3 for part in parts)
    assert sorted(str(row["after"]) for part in parts for row in part) == whole
    assert len(whole) == len(values)


@pytest.mark.parametrize("gone", [False, True])
def test_a_chunk_is_planned_while_rows_of_its_first_piece_come_or_go(shop: Shop, *, gone: bool) -> None:
    """Between the look for the chunk's last row, which finds too few, and the count of these."""
    shop.create("t", "a int NOT NULL, b int NOT NULL, CONSTRAINT pk PRIMARY KEY (a, b)")
    shop.run("INSERT dbo.t VALUES (1, 1), (1, 2), (2, 1), (2, 2), (3, 1)")
    shop.scan()
    look = shop.control.row

    def row(sql: str, *parameters: object, doing: str) -> object:
        found = look(sql, *parameters, doing=doing)
        if found is None and "[a] = " in sql:
            shop.run("DELETE dbo.t WHERE a = 1" if gone else "INSERT dbo.t VALUES (1, 11), (1, 12), (1, 13)")
        return found

    with patch.object(shop.control, "row", row):
        bound = next_bound(shop.control, shop.instance("t").schema, 3, ("1", "1"))

    assert bound == (("3", "1") if gone else ("2", "1"))


def test_a_null_in_a_unique_key_belongs_to_the_first_chunk(shop: Shop) -> None:
    shop.create("t", "a int NULL, b int NOT NULL, CONSTRAINT u UNIQUE (a, b)")
    shop.run("INSERT dbo.t VALUES (NULL, 1), (NULL, 2), (1, 1), (1, 2), (2, 1)")
    shop.scan()
    chunks = plan_chunks(shop.control, shop.instance("t").schema, 1)
    found = [row["after"] for chunk in chunks for row in rows(shop.chunk("t", chunk))]

    assert found == [
        {"a": None, "b": 1}, {"a": None, "b": 2}, {"a": 1, "b": 1}, {"a": 1, "b": 2}, {"a": 2, "b": 1},
    ]  # fmt: skip


def test_a_table_without_a_key_is_one_chunk(shop: Shop) -> None:
    shop.create("t", "a int")
    shop.run("INSERT dbo.t VALUES (1), (1), (2)")
    shop.scan()
    (chunk,) = plan_chunks(shop.control, shop.instance("t").schema, 1)

    assert len(rows(shop.chunk("t", chunk))) == 3


@pytest.mark.feature("SNP-18")
def test_rows_of_a_chunk_have_snapshot_positions(shop: Shop) -> None:
    shop.create("t", "id int NOT NULL PRIMARY KEY")
    shop.run("INSERT dbo.t VALUES (1), (2), (3)")
    at = shop.scan()
    chunk = plan_chunks(shop.control, shop.instance("t").schema, 2)[1]
    (row,) = rows(shop.chunk("t", chunk))

    assert row["pos"] == snapshot_position_text(0, at, number=1, chunk=1, row=0)
    assert (row["op"], row["commit_lsn"], row["change_lsn"], row["command_id"], row["operation"]) == (
        "r", at.text, None, None, None,
    )  # fmt: skip
    assert row["commit_ts"].year == 2026


@pytest.mark.parametrize("isolation", ["READ COMMITTED", "REPEATABLE READ", "SNAPSHOT"])
def test_a_chunk_can_be_read_at_every_isolation_level(shop: Shop, isolation: str) -> None:
    shop.run("ALTER DATABASE CURRENT SET ALLOW_SNAPSHOT_ISOLATION ON")
    shop.create("t", "id int NOT NULL PRIMARY KEY, x nvarchar(max)")
    shop.run("INSERT dbo.t VALUES (1, N'a')", "INSERT dbo.first_table VALUES (1)")
    shop.scan()

    assert [row["after"] for row in rows(shop.chunk("t", isolation=isolation))] == [{"id": 1, "x": "a"}]
    assert [row["after"] for row in rows(shop.chunk("first_table", isolation=isolation))] == [{"id": 1}]


def test_a_chunk_whose_reader_is_behind_is_rejected(shop: Shop) -> None:
    ahead = max(shop.scan(), log_end(shop.control)).increment()

    with pytest.raises(StaleReaderError):
        rows(shop.chunk("first_table", captured=ahead))


def test_bounds_are_found_one_by_one(shop: Shop) -> None:
    shop.create("t", "id int NOT NULL PRIMARY KEY")
    shop.run("INSERT dbo.t VALUES (1), (2), (3), (4), (5)")
    schema = shop.instance("t").schema

    assert next_bound(shop.control, schema, 2, None) == ("2",)
    assert next_bound(shop.control, schema, 2, ("2",)) == ("4",)
    assert next_bound(shop.control, schema, 2, ("4",)) is None
    assert next_bound(shop.control, schema, 2, ("1",), until=("2",)) is None


@pytest.mark.parametrize("columns", ["id int NOT NULL PRIMARY KEY", "a int NOT NULL DEFAULT 1, id int, UNIQUE (a, id)"])
def test_a_step_does_not_read_the_keys_of_further_chunks(shop: Shop, columns: str) -> None:
    """It would wait for one that a transaction has written, and not committed."""
    shop.create("t", columns)
    shop.run("INSERT dbo.t (id) SELECT value FROM GENERATE_SERIES(1, 30000)", "SET LOCK_TIMEOUT 50")
    schema = shop.instance("t").schema
    with control(shop.connection, shop.catalog, autocommit=False) as writer:
        writer.execute("DELETE FROM dbo.t WHERE id = 29999", doing="holding a lock")
        first = next_bound(shop.control, schema, 1000, None)
        second = next_bound(shop.control, schema, 1000, first)
        with pytest.raises(SourceUnavailableError, match="1222"):
            next_bound(shop.control, schema, 29000, first)
        writer.rollback()

    assert [bound and bound[-1] for bound in (first, second)] == ["1000", "2000"]


@pytest.mark.timeout(60)
def test_a_chunk_of_a_locked_table_is_planned_past_a_writer_that_waits_for_the_lock(shop: Shop) -> None:
    """The sandbox's readers take no lock on the table, but those of a SQL Server do without the hint."""
    shop.create("t", "id int NOT NULL PRIMARY KEY")
    shop.run("INSERT dbo.t VALUES (1), (2), (3)")
    schema = shop.instance("t").schema
    with ThreadPoolExecutor(1) as pool, locked(shop.connection, shop.catalog, [schema], 1_000) as holder:
        writer = pool.submit(shop.run, "INSERT dbo.t WITH (TABLOCKX) VALUES (4)")
        while not holder.value(WAITING, doing="waiting"):
            assert not writer.done()
        with control(shop.connection, shop.catalog) as planner, patch.object(planner, "row", wraps=planner.row) as row:
            bound = next_bound(planner, schema, 2, None, under_lock=True)
        holder.rollback()
        writer.result(30)

    assert bound == ("2",)
    assert "FROM [dbo].[t] AS t WITH (NOLOCK) ORDER BY" in row.call_args.args[0]


def test_chunks_of_one_reader_are_asked_for_one_by_one_and_checked_once(shop: Shop) -> None:
    shop.create("t", "id int NOT NULL PRIMARY KEY")
    shop.run("INSERT dbo.t VALUES (1), (2), (3), (4)")
    shop.scan()
    reader, asked = shop.chunk("t"), list[int]()

    def chunks() -> Iterator[Chunk]:
        for number in range(3):
            asked.append(number)
            yield Chunk(number, None if number == 0 else (str(number),), (str(number + 1),))
            if number == 1:
                shop.run("DELETE dbo.t WHERE id = 3")

    with patch.object(Structure, "require", autospec=True) as checked:
        found = rows(replace(reader, wanted=replace(reader.wanted, chunks=chunks(), rows=1)))

    assert [row["after"]["id"] for row in found] == [1, 2]
    assert [row["pos"] for row in found] == [
        snapshot_position_text(0, reader.wanted.position, number=1, chunk=number, row=0) for number in (0, 1)
    ]
    assert asked == [0, 1, 2]
    assert checked.call_count == 2


def test_a_table_that_is_altered_between_two_chunks_of_a_reader_is_stale(shop: Shop) -> None:
    shop.create("t", "id int NOT NULL PRIMARY KEY, name nvarchar(10) NULL")
    shop.run("INSERT dbo.t VALUES (1, N'a'), (2, N'b')")
    shop.scan()
    reader = shop.chunk("t")

    def chunks() -> Iterator[Chunk]:
        yield Chunk(0, None, ("1",))
        shop.run("ALTER TABLE dbo.t ALTER COLUMN name nvarchar(20) NULL")
        yield Chunk(1, ("1",), ("2",))

    with pytest.raises(StaleStructureError):
        rows(replace(reader, wanted=replace(reader.wanted, chunks=chunks())))


@pytest.mark.feature("INC-06")
def test_the_last_bound_is_the_largest_key(shop: Shop) -> None:
    shop.create("t", "a int NOT NULL, b varchar(5) NOT NULL, PRIMARY KEY (a, b)")
    schema = shop.instance("t").schema

    assert last_bound(shop.control, schema) is None
    shop.run("INSERT dbo.t VALUES (1, 'z'), (2, 'x'), (2, 'y')")
    largest = last_bound(shop.control, schema)

    assert largest is not None
    assert next_bound(shop.control, schema, 3, None) == largest
    assert next_bound(shop.control, schema, 1, largest, until=largest) is None


@pytest.mark.feature("SNP-23")
def test_a_select_override_narrows_the_rows(shop: Shop) -> None:
    shop.create("t", "id int NOT NULL PRIMARY KEY, gone bit NOT NULL")
    shop.run("INSERT dbo.t VALUES (1, 0), (2, 1)")
    shop.scan()
    reader = shop.chunk("t", statement="SELECT * FROM dbo.t WHERE gone = 0")

    assert [row["after"] for row in rows(reader)] == [{"id": 1, "gone": False}]


def test_a_locked_table_blocks_writers_until_the_block_ends(shop: Shop) -> None:
    """Pyodbc cursors commit at the end of a `with` block: a lock taken in one is released before it is used."""
    shop.create("t", "a int NULL")
    with locked(shop.connection, shop.catalog, [shop.instance("t").schema], 1_000):
        shop.run("SET LOCK_TIMEOUT 100")
        with pytest.raises(SourceUnavailableError, match="1222"):
            shop.run("INSERT dbo.t VALUES (1)")
    shop.run("INSERT dbo.t VALUES (2)")


def test_a_table_is_locked_by_a_login_that_may_read_only_its_captured_columns(shop: Shop) -> None:
    """Review: the lock selected all columns, and the advice was to grant one that nothing reads (SNP-22)."""
    shop.create("t", "a int NULL, ssn varchar(11) NULL", capture=False)
    shop.enable("t", columns="a")
    reader = shop.seen_by("reader", "SELECT ON dbo.t (a)")
    with locked(reader.connection, reader.catalog, [shop.instance("t").schema], 1_000):
        shop.run("SET LOCK_TIMEOUT 100")
        with pytest.raises(SourceUnavailableError, match="1222"):
            shop.run("INSERT dbo.t (a) VALUES (1)")


@pytest.mark.timeout(60)
def test_a_locked_table_is_read_past_a_writer_that_waits_for_the_lock(shop: Shop) -> None:
    shop.create("t", "a int NULL")
    shop.run("INSERT dbo.t VALUES (1)")
    shop.scan()
    schema, reader = shop.instance("t").schema, shop.chunk("t", isolation=UNDER_LOCK)
    with ThreadPoolExecutor(1) as pool, locked(shop.connection, shop.catalog, [schema], 1_000) as holder:
        writer = pool.submit(shop.run, "INSERT dbo.t VALUES (2)")
        while not holder.value(WAITING, doing="waiting"):
            assert not writer.done()
        read = rows(reader)
        holder.rollback()
        writer.result(30)

    assert [row["after"] for row in read] == [{"a": 1}]


def held(shop: Shop, kind: str, action: Callable[[], None]) -> list[dict[str, Any]]:
    """The rows 1 and 2 of a table whose keys 1 to 3 are asked for, read while something happens behind the last row."""
    shop.create("t", f"id int NOT NULL PRIMARY KEY, note {kind} NULL")
    shop.run("INSERT dbo.t VALUES (1, N'a'), (2, N'b')")
    shop.scan()
    wanted = Chunk(0, keys=(("1",), ("2",), ("3",)))
    return [row["after"] for row in rows(replace(shop.chunk("t", wanted, held=action), lock_timeout_ms=100))]


READ = [{"id": 1, "note": "a"}, {"id": 2, "note": "b"}]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("versions", ["OFF", "ON"])
@pytest.mark.parametrize("kind", ["nvarchar(9)", "nvarchar(max)"])
def test_rows_that_are_held_do_not_change_before_the_reader_is_done(shop: Shop, kind: str, versions: str) -> None:
    """Nor do keys without a row get one; writers that wait are passed. With either driver, and under row versions."""
    writes = ["UPDATE dbo.t SET note = N'x' WHERE id = 2", "DELETE dbo.t WHERE id = 1", "INSERT dbo.t VALUES (3, N'c')"]
    refused: list[str] = []
    shop.run(f"ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT {versions}", "SET LOCK_TIMEOUT 100")

    def meanwhile() -> None:
        for statement in writes:
            with pytest.raises(SourceUnavailableError, match="1222"):
                shop.run(statement)
            refused.append(statement)
        waiting.append(pool.submit(other.execute, writes[0], doing="waiting for a row"))
        while not shop.control.value(WAITING, doing="waiting"):
            assert not waiting[0].done()

    waiting: list[Future[None]] = []
    with ThreadPoolExecutor(1) as pool, control(shop.connection, shop.catalog) as other:
        assert held(shop, kind, meanwhile) == READ
        waiting[0].result(30)
    assert refused == writes
    shop.run(*writes[1:])


@pytest.mark.parametrize("versions", ["OFF", "ON"])
def test_a_reader_that_holds_rows_sees_nothing_uncommitted(shop: Shop, versions: str) -> None:
    """A repair read at READ UNCOMMITTED, beside another connection whose locks were to guard the rows."""
    shop.run(f"ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT {versions}")
    assert held(shop, "nvarchar(9)", lambda: None) == READ
    again = replace(shop.chunk("t", Chunk(0, keys=(("2",),)), held=lambda: None), lock_timeout_ms=100)
    with control(shop.connection, shop.catalog, autocommit=False) as writer:
        writer.execute("UPDATE dbo.t SET note = N'x' WHERE id = 2", doing="writing")
        with pytest.raises(SourceUnavailableError, match="1222"):
            rows(again)
        writer.rollback()
    assert [row["after"] for row in rows(again)] == READ[1:]
    modes = {mode: replace(shop.connector.snapshot, isolation=mode) for mode in ISOLATIONS}
    sources = {mode: SqlServerSource(replace(shop.connector, snapshot=settings)) for mode, settings in modes.items()}
    found = {source.chunk_reader(shop.catalog, again.wanted).isolation for source in sources.values()}
    assert found == {"READ COMMITTED"}, "a transaction of row versions does not see what its own locks guard"


@pytest.mark.feature("SNP-31")
@pytest.mark.parametrize("by_rows", [False, True])
def test_rows_of_a_chunk_come_in_fetches_of_the_configured_size(shop: Shop, by_rows: bool) -> None:  # noqa: FBT001
    shop.create("t", f"id int NOT NULL PRIMARY KEY, note {'nvarchar(max)' if by_rows else 'nvarchar(9)'} NULL")
    shop.run("INSERT dbo.t VALUES (1, N'a'), (2, N'b'), (3, N'c'), (4, N'd'), (5, N'e')")
    shop.scan()
    reader = replace(shop.chunk("t"), fetch_rows=2)
    assert [batch.num_rows for batch in reader.read()] == [2, 2, 1]

"""Reading changes: every change once, in order, with pages and slices of any size (STR-*, rules A2, A9, B11)."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Literal

import pytest

from mssql_cdc.errors import DataLostError, MssqlCdcError, SourceError, StaleReaderError
from mssql_cdc.lsn import LsnRange
from mssql_cdc.source.sqlserver import bulk, changes, order_guard
from mssql_cdc.source.sqlserver.commit_times import CommitTimeLoader
from mssql_cdc.source.sqlserver.source import SqlServerSource
from mssql_cdc.source.sqlserver.volume import split
from mssql_cdc_tests.sandbox_source.kit import Shop, rows, table_of

SHAPES = [("arrow", "name nvarchar(50)"), ("rows", "name nvarchar(max)")]


@pytest.fixture(params=[shape for _, shape in SHAPES], ids=[name for name, _ in SHAPES])
def written(request: pytest.FixtureRequest, shop: Shop) -> Shop:
    shop.create("t", f"id int NOT NULL PRIMARY KEY, {request.param}, n int NOT NULL DEFAULT (0)")
    shop.run(
        "INSERT dbo.t (id, name) VALUES (1, N'one'), (2, N'two'), (3, NULL)",
        "UPDATE dbo.t SET name = N'zwei 😀' WHERE id = 2",
        "BEGIN TRAN; UPDATE dbo.t SET n = 7; DELETE dbo.t WHERE id = 1; COMMIT",
        "UPDATE dbo.t SET id = 30 WHERE id = 3",
        "DELETE dbo.t",
    )
    return shop


def clean_up(shop: Shop) -> None:
    """Remove every change of table t. The last commit gets a distinct time because cleanup compares times."""
    shop.run("WAITFOR DELAY '00:00:00.020'", "INSERT dbo.first_table VALUES (1)")
    shop.run(f"EXEC sys.sp_cdc_cleanup_change_table N'dbo_t', 0x{shop.scan().raw.hex()}")


@pytest.mark.feature("STR-01", "STR-10")
def test_every_change_arrives_once_and_in_order(written: Shop) -> None:
    found = rows(written.changes("t"))

    assert [row["op"] for row in found] == ["c", "c", "c", "u", "u", "u", "u", "d", "d", "c", "d", "d"]
    assert [row["pos"] for row in found] == sorted(row["pos"] for row in found)
    assert found[3]["before"] == {"id": 2, "name": "two", "n": 0}
    assert found[3]["after"] == {"id": 2, "name": "zwei 😀", "n": 0}
    assert found[3]["changed"] == ["name"]
    assert [row["before"]["name"] for row in found[4:7]] == ["one", "zwei 😀", None]
    assert all(row["changed"] == ["n"] for row in found[4:7])
    assert all(row["unavailable"] is None for row in found)
    assert all(row["commit_ts"] is not None for row in found)


@pytest.mark.feature("STR-07", "STR-08")
@pytest.mark.parametrize("page_rows", [1, 2, 3, 5])
def test_pages_of_any_size_yield_the_same_rows(written: Shop, page_rows: int) -> None:
    to = written.scan()

    assert table_of(written.changes("t", to=to, page_rows=page_rows)).equals(table_of(written.changes("t", to=to)))


@pytest.mark.feature("STR-09")
@pytest.mark.parametrize("most", [1, 2, 5])
def test_a_fetch_has_no_more_rows_than_the_fetch_size_and_all_of_them_arrive(written: Shop, most: int) -> None:
    given = written.changes("t")
    sizes = [batch.num_rows for batch in replace(given, fetch_rows=most).read()]
    assert max(sizes) <= most
    assert len(sizes) > len(list(given.read()))
    assert table_of(replace(given, fetch_rows=most)).equals(table_of(given))


@pytest.mark.parametrize("expected", [0, 1, 2, 1000])
def test_a_wrong_number_of_expected_rows_changes_nothing(written: Shop, expected: int) -> None:
    to = written.scan()
    assert table_of(written.changes("t", to=to, rows=expected)).equals(table_of(written.changes("t", to=to)))


@pytest.mark.feature("STR-03")
def test_adjacent_slices_yield_the_entire_range(written: Shop) -> None:
    whole = written.changes("t")
    slices = split(written.control, whole.instance, whole.range, 3)
    parts = [
        row
        for part in slices
        for row in rows(written.changes("t", from_=part.from_, to=part.to, visible=whole.range.to))
    ]

    assert len(slices) > 1
    assert [part.from_ for part in slices[1:]] == [part.to for part in slices[:-1]]
    assert parts == rows(whole)


def test_a_reader_survives_pickling(written: Shop) -> None:
    reader = written.changes("t")

    assert rows(pickle.loads(pickle.dumps(reader))) == rows(reader)  # noqa: S301 - pickled right here


def test_an_empty_range_sends_no_query(shop: Shop) -> None:
    at = shop.scan()

    assert rows(shop.changes("first_table", from_=at, to=at)) == []


@pytest.mark.feature("STR-13")
def test_commit_times_are_those_of_the_mapping_table(written: Shop) -> None:
    found = rows(written.changes("t"))[0]
    seconds = written.control.value(
        "SELECT ABS(DATEDIFF(second, CAST(? AS datetime), DATEADD(minute, "
        "-DATEPART(tzoffset, SYSDATETIMEOFFSET()), sys.fn_cdc_map_lsn_to_time(?))))",
        found["commit_ts"].strftime("%Y-%m-%dT%H:%M:%S"),
        bytes.fromhex(found["commit_lsn"].replace(":", "")),
        doing="testing",
    )

    assert seconds <= 1


def test_a_reader_that_does_not_see_the_end_is_stale(written: Shop) -> None:
    future = written.scan().increment()

    with pytest.raises(StaleReaderError):
        rows(written.changes("t", to=future))


def test_a_range_whose_start_was_cleaned_up_is_lost(written: Shop) -> None:
    reader = written.changes("t")
    clean_up(written)

    with pytest.raises(DataLostError, match="removed by CDC cleanup"):
        rows(reader)


def test_a_cleanup_during_the_read_is_detected_before_the_last_batch(written: Shop) -> None:
    reader = written.changes("t", page_rows=2)
    batches = reader.read()
    next(batches)
    clean_up(written)

    with pytest.raises(DataLostError, match="removed by CDC cleanup"):
        list(batches)


def test_a_dropped_instance_is_an_error_and_not_an_empty_range(written: Shop) -> None:
    reader = written.changes("t")
    written.run("EXEC sys.sp_cdc_disable_table N'dbo', N't', N'dbo_t'")

    with pytest.raises(SourceError):
        rows(reader)


@pytest.mark.feature("STR-05")
def test_the_function_yields_the_same_images_if_the_change_table_is_not_readable(written: Shop) -> None:
    direct = written.changes("t")
    function = replace(direct, instance=replace(direct.instance, change_table=None))
    ordered = sorted(rows(direct), key=lambda row: (row["commit_lsn"], row["change_lsn"], row["operation"]))

    assert [(r["op"], r["before"], r["after"]) for r in rows(function)] == [
        (r["op"], r["before"], r["after"]) for r in ordered
    ]


@pytest.mark.parametrize(
    ("statement", "read"),
    [
        ("DELETE dbo.t", 100),
        ("INSERT dbo.t SELECT id + 500 FROM dbo.t", 100),
        ("UPDATE dbo.t SET id = id + 1", None),
    ],
)
def test_of_a_large_transaction_the_function_tells_whether_it_deletes_and_inserts(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, statement: str, read: int | None
) -> None:
    monkeypatch.setattr(order_guard, "REMEMBERED", 20)
    shop.create("t", "id int NOT NULL PRIMARY KEY")
    shop.run("INSERT dbo.t SELECT value FROM GENERATE_SERIES(1, 100)")
    start = shop.scan()
    shop.run(statement)
    direct = shop.changes("t", from_=start, page_rows=7)
    function = replace(direct, instance=replace(direct.instance, change_table=None))

    if read:
        assert len(rows(function)) == read
    else:
        with pytest.raises(SourceError, match="deletes and inserts the same key"):
            rows(function)


@pytest.mark.parametrize(
    ("mode", "remedy", "other"),
    [("function", "Remove data.query.mode", "without SELECT"), (None, "without SELECT", "data.query.mode")],
)
def test_an_order_that_no_function_tells_is_mended_by_what_asked_for_the_function(
    shop: Shop, mode: Literal["function"] | None, remedy: str, other: str
) -> None:
    """A login that may read the change table lacks no right where the configuration wants its function."""
    settings = replace(shop.connector.streaming, query_mode=mode)
    source = SqlServerSource(replace(shop.connector, streaming=settings))
    shop.create("t", "id int NOT NULL PRIMARY KEY")
    shop.run("INSERT dbo.t VALUES (1), (2)")
    start = shop.scan()
    shop.run("UPDATE dbo.t SET id = id + 1")
    one = replace(shop.instance("t"), change_table=None)
    reader = source.change_reader(shop.catalog, one, LsnRange(start, shop.scan()))

    with pytest.raises(SourceError, match="deletes and inserts the same key") as error:
        rows(reader)
    assert remedy in str(error.value)
    assert other not in str(error.value)


def test_a_transaction_larger_than_a_page_is_read_whole(shop: Shop) -> None:
    shop.create("t", "id int NOT NULL PRIMARY KEY, n int")
    values = ", ".join(f"({i}, {i})" for i in range(500))
    shop.run(f"INSERT dbo.t VALUES {values}", "UPDATE dbo.t SET n = n + 1")
    found = rows(shop.changes("t", page_rows=37))

    assert [row["op"] for row in found] == ["c"] * 500 + ["u"] * 500
    assert all(row["after"]["n"] == row["before"]["n"] + 1 for row in found[500:])


def test_a_range_that_ends_between_two_commits_needs_a_visible_commit(shop: Shop) -> None:
    shop.create("t", "id int NOT NULL PRIMARY KEY")
    shop.run("INSERT dbo.t VALUES (1)")
    to = shop.scan()
    reader = shop.changes("t", to=to.decrement(), visible=to)

    assert rows(reader) == []
    assert rows(shop.changes("t", from_=reader.range.to, to=to))[0]["after"] == {"id": 1}


@pytest.mark.parametrize("more", ["", ", body nvarchar(max) NULL"])
def test_pages_are_bounded_by_their_bytes(shop: Shop, monkeypatch: pytest.MonkeyPatch, more: str) -> None:
    """Review, 5.6: a page of 100,000 documents of 100 KB was one list in memory."""
    sizes: list[int] = []
    load = CommitTimeLoader.load
    monkeypatch.setattr(
        CommitTimeLoader, "load", lambda self, page: [sizes.append(sum(map(len, page))), load(self, page)][1]
    )
    shop.create("t", f"id int NOT NULL PRIMARY KEY, a nvarchar(4000) NULL{more}")
    for first in range(0, 300, 100):
        values = ", ".join(f"({number}, REPLICATE(N'x', 4000))" for number in range(first, first + 100))
        shop.run(f"INSERT dbo.t (id, a) VALUES {values}")
    if more:
        shop.run("UPDATE dbo.t SET body = REPLICATE(CAST(N'y' AS nvarchar(max)), 30000) WHERE id < 200")
    monkeypatch.setattr(changes, "PAGE_BYTES", 1_000_000)
    monkeypatch.setattr(bulk, "BATCH_BYTES", 100_000)
    monkeypatch.setattr(bulk, "_BY_ROWS_BYTES", 100_000)
    found = rows(shop.changes("t"))

    assert len(found) == (500 if more else 300)
    assert max(sizes) <= 150
    if more:
        assert {len(row["after"]["body"]) for row in found if row["op"] == "u"} == {30_000}
        assert min(sizes) <= 20


def test_the_statements_of_one_poll_are_those_of_the_next(shop: Shop) -> None:
    """Review, 5.8: each text with an LSN in it was compiled anew, and stayed in the plan cache."""
    shop.create("t", "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
    shop.create("other", "id int NOT NULL PRIMARY KEY")
    known = {name: shop.instance(name) for name in ("t", "other", "first_table")}
    at, texts = shop.scan(), []
    for poll in range(3):
        for number in range(3 + 4 * poll):
            shop.run(f"INSERT dbo.t VALUES ({100 * poll + number}, N'x'), ({-100 * poll - number - 1}, NULL)")
        to = shop.scan()
        shop.run("EXEC sandbox.statement_log")
        with shop.source().session(shop.catalog) as session:
            session.require_visible(to)
            volume = session.measure([(one, LsnRange(at, to)) for one in known.values()], to)
            witness = session.witness(to)
            assert witness is not None
            session.require_witness(witness)
            session.nth_transaction(at, 5, to)
        assert volume.rows == {"dbo_t": 6 + 8 * poll, "dbo_other": 0, "dbo_first_table": 0}
        rows(shop.changes("t", instance=known["t"], from_=at, to=to, page_rows=5))
        found = shop.control.rows(
            "SELECT DISTINCT text FROM sandbox.statements WHERE text NOT LIKE N'%sandbox%'", doing="testing"
        )
        shop.run("EXEC sandbox.statement_log @on = 0")
        texts.append({row.text for row in found})
        at = to

    assert len(texts[0]) > 8
    assert texts[2] - texts[1] == set()


@pytest.mark.feature("STR-12")
@pytest.mark.parametrize("column", ["__$start_lsn", "__$seqval"])
def test_a_change_row_without_its_position_cannot_exist(shop: Shop, column: str) -> None:
    """Debezium skips such rows with an error; the change tables do not take them."""
    shop.create("t", "id int NOT NULL PRIMARY KEY")
    shop.run("INSERT INTO dbo.t VALUES (1)")
    shop.scan()
    (found,) = shop.control.rows(
        f"SELECT is_nullable FROM sys.columns WHERE object_id = OBJECT_ID(N'cdc.dbo_t_CT') AND name = N'{column}'",
        doing="testing",
    )
    assert not found.is_nullable
    with pytest.raises(MssqlCdcError):
        shop.run(f"UPDATE cdc.dbo_t_CT SET [{column}] = NULL")
    assert sum(batch.num_rows for batch in shop.changes("t").read()) == 1

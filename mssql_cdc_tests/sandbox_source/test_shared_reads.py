"""Several tables over one connection have the same rows, and the same doubts about them, as each by itself."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest

from mssql_cdc.capture.write_task import WriteTask, write, write_together
from mssql_cdc.errors import DataLostError, StaleReaderError, StaleStructureError
from mssql_cdc.lake.files import FileTarget
from mssql_cdc.lsn import Lsn
from mssql_cdc.source.sqlserver import commit_times, sql
from mssql_cdc.source.sqlserver.changes import ChangeReader
from mssql_cdc.source.sqlserver.source import SqlServerSource
from mssql_cdc_tests.sandbox_source.kit import Shop, rows

TABLES = ("a", "b", "c")


@pytest.fixture
def readers(shop: Shop) -> list[ChangeReader]:
    for name in TABLES:
        shop.create(name, "id int NOT NULL PRIMARY KEY, c nvarchar(10) NULL")
        shop.run(f"INSERT dbo.{name} VALUES (1, N'{name}1'), (2, N'{name}2')")
    # Cleanup compares times: those of the last commit and of the first ones have to be different.
    shop.run("WAITFOR DELAY '00:00:00.020'", "INSERT dbo.first_table VALUES (1)")
    return [shop.changes(name) for name in TABLES]


def spoiled_by(
    shop: Shop, readers: list[ChangeReader], *statements: str, source: SqlServerSource | None = None
) -> dict[int, type[Exception]]:
    """What is wrong with the readers when these statements run between their rows and the checks."""
    with (source or shop.source()).share(readers) as shared:
        for reader in readers:
            list(shared.read(reader))
        shop.run(*statements)
        shop.scan()
        return {number: type(error) for number, error in shared.spoiled().items()}  # type: ignore[union-attr]


def know_minima(source: SqlServerSource, shop: Shop) -> None:
    """Let the source know the minima of all instances, as a survey does."""
    with source.session(shop.catalog) as session:
        assert session.tables()
        assert all(session.catalog_minima().values())


def asked_by_checks(shop: Shop, source: SqlServerSource, readers: list[ChangeReader], pattern: str = "") -> list[str]:
    """The texts with the pattern that the checks behind the rows have sent."""
    with source.share(readers) as shared:
        shop.run("EXEC sandbox.statement_log")
        shared.spoiled()
        texts = shop.control.rows("SELECT text FROM sandbox.statements", doing="reading the log of statements")
    return [row[0] for row in texts if row[0] and pattern in row[0] and "sandbox." not in row[0]]


def test_shared_reads_return_the_rows_of_single_ones(shop: Shop, readers: list[ChangeReader]) -> None:
    with shop.source().share(readers) as shared:
        found = [[row for batch in shared.read(reader) for row in batch.to_pylist()] for reader in readers]
        assert not shared.spoiled()
    assert found == [rows(reader) for reader in readers]


@pytest.mark.parametrize(("most", "statements"), [(4000, 1), (3, 4)], ids=["all fit", "too many for one statement"])
def test_shared_reads_ask_for_the_commit_times_of_a_range_once(
    shop: Shop, readers: list[ChangeReader], monkeypatch: pytest.MonkeyPatch, most: int, statements: int
) -> None:
    monkeypatch.setattr(commit_times, "_MOST_LISTED", most)
    shop.run("EXEC sandbox.statement_log")
    with shop.source().share(readers) as shared:
        found = [[row for batch in shared.read(reader) for row in batch.to_pylist()] for reader in readers]
    texts = shop.control.rows("SELECT text FROM sandbox.statements", doing="reading the log of statements")
    assert len([row[0] for row in texts if row[0] and "AS [t] FROM [cdc].[lsn_time_mapping]" in row[0]]) == statements
    assert found == [rows(reader) for reader in readers]


CHANGES = {
    "altered": ["ALTER TABLE dbo.b ALTER COLUMN c nvarchar(30) NULL"],
    "disabled": ["EXEC sys.sp_cdc_disable_table N'dbo', N'b', N'dbo_b'"],
    "enabled anew": [
        "EXEC sys.sp_cdc_disable_table N'dbo', N'b', N'dbo_b'",
        "EXEC sys.sp_cdc_enable_table N'dbo', N'b', @role_name = NULL",
    ],
    "renamed": ["EXEC sp_rename 'cdc.dbo_b_CT', 'gone'"],
}


@pytest.mark.parametrize("statements", CHANGES.values(), ids=CHANGES)
def test_shared_reads_name_the_table_that_changed_meanwhile(
    shop: Shop, readers: list[ChangeReader], statements: list[str]
) -> None:
    assert list(spoiled_by(shop, readers, *statements)) == [1]


def test_shared_reads_name_the_tables_that_exchanged_their_names_meanwhile(
    shop: Shop, readers: list[ChangeReader]
) -> None:
    names = ("cdc.dbo_b_CT", "dbo_x_CT"), ("cdc.dbo_c_CT", "dbo_b_CT"), ("cdc.dbo_x_CT", "dbo_c_CT")
    found = spoiled_by(shop, readers, *(f"EXEC sp_rename '{old}', '{new}'" for old, new in names))
    assert found == {1: StaleStructureError, 2: StaleStructureError}


@pytest.mark.parametrize("known", [False, True], ids=["minima not known", "minima known"])
def test_shared_reads_name_the_table_whose_changes_were_removed_meanwhile(
    shop: Shop, readers: list[ChangeReader], *, known: bool
) -> None:
    shop.run("WAITFOR DELAY '00:00:00.020'", "INSERT dbo.b VALUES (3, N'late')")  # Cleanup compares times.
    end = shop.scan()
    source = shop.source()
    if known:
        know_minima(source, shop)

    found = spoiled_by(
        shop, readers, f"EXEC sys.sp_cdc_cleanup_change_table N'dbo_b', 0x{end.raw.hex()}", source=source
    )

    assert found == {1: DataLostError}


def test_shared_reads_call_the_function_of_minima_only_if_a_start_has_moved(
    shop: Shop, readers: list[ChangeReader]
) -> None:
    source = shop.source()
    know_minima(source, shop)
    assert asked_by_checks(shop, source, readers, "fn_cdc_get_min_lsn") == []
    start = shop.scan()
    shop.run(f"EXEC sys.sp_cdc_cleanup_change_table N'dbo_b', 0x{start.raw.hex()}")
    assert len(asked_by_checks(shop, source, readers, "fn_cdc_get_min_lsn")) == 1


def test_checks_of_shared_reads_have_the_same_texts_whichever_tables_are_read(
    shop: Shop, readers: list[ChangeReader]
) -> None:
    """A server compiles each text anew, and keeps a plan of it."""
    source = shop.source()
    texts = [set(asked_by_checks(shop, source, some)) for some in (readers, readers[:1], readers[1:], readers[::2])]
    assert texts[0]
    assert texts == [texts[0]] * len(texts)


def test_shared_reads_check_more_tables_than_one_statement_takes(
    shop: Shop, readers: list[ChangeReader], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql, "MOST_IDS", 2)
    shop.run("ALTER TABLE dbo.c ALTER COLUMN c nvarchar(30) NULL")
    assert spoiled_by(shop, readers) == {2: StaleStructureError}


def test_shared_reads_refuse_a_connection_that_does_not_see_the_end_of_the_range(
    shop: Shop, readers: list[ChangeReader]
) -> None:
    unseen = Lsn(bytes.fromhex("ff" * 10))
    ahead = shop.changes("a", to=unseen, visible=unseen)
    with pytest.raises(StaleReaderError), shop.source().share([*readers, ahead]):
        pass


def test_a_column_without_a_size_limit_needs_a_connection_of_its_own(shop: Shop) -> None:
    shop.create("long", "id int NOT NULL PRIMARY KEY, c nvarchar(max) NULL")
    shop.create("short", "id int NOT NULL PRIMARY KEY, c nvarchar(10) NULL")
    shop.run("INSERT dbo.long VALUES (1, N'x')", "INSERT dbo.short VALUES (1, N'x')")
    assert [shop.source().shares(shop.changes(name)) for name in ("long", "short")] == [False, True]


@pytest.mark.parametrize("many", [10, 10_000])
def test_tasks_that_fail_together_give_the_results_of_single_ones(
    shop: Shop, readers: list[ChangeReader], tmp_path: Path, many: int
) -> None:
    shop.create("long", "id int NOT NULL PRIMARY KEY, c nvarchar(max) NULL")
    shop.run("INSERT dbo.long VALUES (1, N'x')")
    every = [*readers, shop.changes("long"), *(shop.changes(name) for name in TABLES)]
    shop.run("ALTER TABLE dbo.b ALTER COLUMN c nvarchar(30) NULL")
    shop.scan()
    tasks = tasks_of(shop, every, tmp_path)

    results = write_together(shop.source(), tasks, rows=many)

    for number, (task, result) in enumerate(zip(tasks, results, strict=True)):
        if number in {1, 5}:
            assert isinstance(result.error, StaleStructureError)
            continue
        alone, together = write(task), result.unwrap()
        assert together["operations"] == alone["operations"]
        assert (together["first"], together["last"]) == (alone["first"], alone["last"])


def tasks_of(shop: Shop, readers: Sequence[ChangeReader], folder: Path) -> list[WriteTask]:
    return [
        WriteTask(reader, reader.instance.schema, FileTarget(str(folder / str(number))), 1, shop.connector)
        for number, reader in enumerate(readers)
    ]


@pytest.mark.parametrize(("tables", "many", "logins"), [(1, 10, 1), (3, 10, 1), (3, 10_000, 2), (1, 10_000, 1)])
def test_a_few_small_tables_are_read_over_one_connection(
    shop: Shop, readers: list[ChangeReader], tmp_path: Path, tables: int, many: int, logins: int
) -> None:
    shop.run("EXEC sandbox.statement_log")
    results = write_together(shop.source(), tasks_of(shop, readers[:tables], tmp_path), rows=many)
    assert [result.unwrap()["operations"] for result in results] == [{"c": 2}] * tables
    sessions = shop.control.rows("SELECT DISTINCT session_id FROM sandbox.statements", doing="counting connections")
    assert len(sessions) - 1 == logins


STRUCTURES = [
    ("nvarchar(10)", "nvarchar(30)", "N'ten chars.'"),
    ("varbinary(4)", "varbinary(8)", "0x01020304"),
    ("decimal(8, 2)", "decimal(12, 4)", "123456.78"),
    ("int", "bigint", "2147483647"),
    ("int", "decimal(12, 2)", "-5"),
    ("real", "float", "0.1"),
    ("date", "datetime2(7)", "'2024-02-29'"),
    ("datetime2(3)", "datetime2(7)", "'2024-02-29T01:02:03.004'"),
    ("time(0)", "time(7)", "'01:02:03'"),
]
LONGER_TEXTS = {"datetime2(7)", "time(7)"}
"""Their texts have seven digits, which the narrower types do not take."""


@pytest.mark.parametrize(("before", "meanwhile", "value"), STRUCTURES, ids=[f"{a} to {b}" for a, b, _ in STRUCTURES])
def test_a_structure_that_came_and_went_while_rows_were_read_has_changed_no_value(
    shop: Shop, before: str, meanwhile: str, value: str
) -> None:
    """The checks behind the rows see nothing of it, nor would checks before them: a value is the same or an error."""
    shop.create("t", f"id int NOT NULL PRIMARY KEY, c {before} NULL")
    shop.run(f"INSERT dbo.t VALUES (1, {value})")
    reader = shop.changes("t")
    shop.run(f"ALTER TABLE dbo.t ALTER COLUMN c {meanwhile} NULL")
    shop.scan()
    with shop.source().share([reader]) as shared:
        with pytest.raises(StaleStructureError) if meanwhile in LONGER_TEXTS else nullcontext():
            found = [row for batch in shared.read(reader) for row in batch.to_pylist()]
        shop.run(f"ALTER TABLE dbo.t ALTER COLUMN c {before} NULL")
        shop.scan()
        assert not shared.spoiled()
    assert meanwhile in LONGER_TEXTS or found == rows(reader)

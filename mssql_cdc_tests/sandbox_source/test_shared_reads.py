"""Several tables over one connection have the same rows, and the same doubts about them, as each by itself."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from mssql_cdc.capture.write_task import WriteTask, write, write_together
from mssql_cdc.errors import DataLostError, StaleReaderError, StaleStructureError
from mssql_cdc.lake.files import FileTarget
from mssql_cdc.lsn import Lsn
from mssql_cdc.source.sqlserver.changes import ChangeReader
from mssql_cdc_tests.sandbox_source.kit import Shop, rows

TABLES = ("a", "b", "c")


@pytest.fixture
def readers(shop: Shop) -> list[ChangeReader]:
    for name in TABLES:
        shop.create(name, "id int NOT NULL PRIMARY KEY, c nvarchar(10) NULL")
        shop.run(f"INSERT dbo.{name} VALUES (1, N'{name}1'), (2, N'{name}2')")
    return [shop.changes(name) for name in TABLES]


def spoiled_by(shop: Shop, readers: list[ChangeReader], *statements: str) -> dict[int, type[Exception]]:
    """What is wrong with the readers when these statements run between their rows and the checks."""
    with shop.source().share(readers) as shared:
        for reader in readers:
            list(shared.read(reader))
        shop.run(*statements)
        shop.scan()
        return {number: type(error) for number, error in shared.spoiled().items()}  # type: ignore[union-attr]


def test_shared_reads_return_the_rows_of_single_ones(shop: Shop, readers: list[ChangeReader]) -> None:
    with shop.source().share(readers) as shared:
        found = [[row for batch in shared.read(reader) for row in batch.to_pylist()] for reader in readers]
        assert not shared.spoiled()
    assert found == [rows(reader) for reader in readers]


CHANGES = {
    "altered": ["ALTER TABLE dbo.b ALTER COLUMN c nvarchar(30) NULL"],
    "disabled": ["EXEC sys.sp_cdc_disable_table N'dbo', N'b', N'dbo_b'"],
    "enabled anew": [
        "EXEC sys.sp_cdc_disable_table N'dbo', N'b', N'dbo_b'",
        "EXEC sys.sp_cdc_enable_table N'dbo', N'b', @role_name = NULL",
    ],
}


@pytest.mark.parametrize("statements", CHANGES.values(), ids=CHANGES)
def test_shared_reads_name_the_table_that_changed_meanwhile(
    shop: Shop, readers: list[ChangeReader], statements: list[str]
) -> None:
    assert list(spoiled_by(shop, readers, *statements)) == [1]


def test_shared_reads_name_the_table_whose_changes_were_removed_meanwhile(
    shop: Shop, readers: list[ChangeReader]
) -> None:
    shop.run("INSERT dbo.b VALUES (3, N'late')")
    end = shop.scan()

    found = spoiled_by(shop, readers, f"EXEC sys.sp_cdc_cleanup_change_table N'dbo_b', 0x{end.raw.hex()}")

    assert found == {1: DataLostError}


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


def test_tasks_that_fail_together_give_the_results_of_single_ones(
    shop: Shop, readers: list[ChangeReader], tmp_path: Path
) -> None:
    shop.create("long", "id int NOT NULL PRIMARY KEY, c nvarchar(max) NULL")
    shop.run("INSERT dbo.long VALUES (1, N'x')")
    every = [*readers, shop.changes("long"), *(shop.changes(name) for name in TABLES)]
    shop.run("ALTER TABLE dbo.b ALTER COLUMN c nvarchar(30) NULL")
    shop.scan()
    tasks = [
        WriteTask(reader, reader.instance.schema, FileTarget(str(tmp_path / str(number))), 1, shop.connector)
        for number, reader in enumerate(every)
    ]

    results = write_together(shop.source(), tasks)

    for number, (task, result) in enumerate(zip(tasks, results, strict=True)):
        if number in {1, 5}:
            assert isinstance(result.error, StaleStructureError)
            continue
        alone, together = write(task), result.unwrap()
        assert together["operations"] == alone["operations"]
        assert (together["first"], together["last"]) == (alone["first"], alone["last"])


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

"""`_offsets` is gone, though change logs have rows: nothing is read or written over, and what is advised helps (A5).

So it is with `_gaps`, the ledger, when somebody takes it back (A9).
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from mssql_cdc.lake.gaps import Gap, record_gaps
from mssql_cdc.lake.layout import Layout
from mssql_cdc_tests.end_to_end.kit import Place

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def offsets_of(place: Place) -> Path:
    return place.warehouse / "shop" / place.database / "_offsets"


@pytest.fixture
def captured(place: Place) -> Place:
    """A table with a key and one without, in the lake; what has changed since is not."""
    place.create("notes", "name nvarchar(50) NULL")
    place.sql("INSERT INTO dbo.notes VALUES (N'a'), (N'b')")
    place.create_orders()
    place.sql("UPDATE dbo.orders SET name = N'1' WHERE id = 1", "DELETE FROM dbo.orders WHERE id = 2")
    place.sql("DELETE FROM dbo.notes WHERE name = N'a'")
    place.settle()
    return place


def require_refused(place: Place, capsys: pytest.CaptureFixture[str], said: str) -> None:
    """Each command says it and ends with code 2; the change logs are as they were."""
    versions = [DeltaTable(place.uri(table, "changes")).version() for table in ("orders", "notes")]
    for command in (place.catch_up, place.check, lambda: place.command("status")):
        capsys.readouterr()
        assert command() == 2
        assert said in capsys.readouterr().err
    assert [DeltaTable(place.uri(table, "changes")).version() for table in ("orders", "notes")] == versions


def require_whole(place: Place) -> None:
    assert place.catch_up() == 0
    assert place.query("SELECT name FROM t", "orders") == [{"name": "1"}]
    assert place.check() == 0


def test_removed_offsets_stop_the_database_until_they_are_back(
    captured: Place, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    """Every table began as a new one: its change log lacked what had changed since, and nothing said so."""
    backup = shutil.move(offsets_of(captured), tmp_path / "backup")
    require_refused(captured, capsys, f"_offsets is gone, and the change logs of {captured.database}.dbo.notes, ")
    assert not offsets_of(captured).exists()
    shutil.move(backup, offsets_of(captured))
    require_whole(captured)
    ops = [row["op"] for row in captured.query("SELECT op FROM t ORDER BY _pos", "orders", "changes")]
    assert ops == ["r", "r", "u", "d"]


def test_behind_removed_offsets_a_new_lake_begins_where_the_old_one_is_moved_away(
    captured: Place, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    shutil.rmtree(offsets_of(captured))
    require_refused(captured, capsys, f"move {offsets_of(captured).parent} away and start again")
    shutil.move(offsets_of(captured).parent, tmp_path / "away")
    require_whole(captured)


@pytest.mark.parametrize("version", [0, 2])
def test_offsets_that_were_taken_back_stop_the_database_until_that_is_undone(
    captured: Place, capsys: pytest.CaptureFixture[str], version: int
):
    """Behind version 0, every table began as a new one; behind a later one, ends of snapshots and epochs were lost."""
    table = DeltaTable(offsets_of(captured))
    newest = table.version()
    table.restore(version)
    require_refused(captured, capsys, f"_offsets has {version} of the {newest} rows that were written")
    table.restore(newest)
    require_whole(captured)


def test_a_ledger_that_was_taken_back_stops_the_database_until_that_is_undone(
    captured: Place, capsys: pytest.CaptureFixture[str]
):
    """The loss that it had recorded was no longer named, and its table's check was green."""
    assert captured.catch_up() == 0
    layout = Layout(str(captured.warehouse), "shop", captured.database)
    lost = Gap(f"{captured.database}.dbo.notes", 0, "01", "02", "cleaned up")
    record_gaps(layout, [replace(lost, table=f"{captured.database}.dbo.orders")], run_id="r")
    record_gaps(layout, [lost], run_id="r")
    ledger = DeltaTable(layout.own("gaps"))
    newest = ledger.version()
    ledger.restore(newest - 1)
    require_refused(captured, capsys, "_gaps lacks the rows of 1 of its 2 commits")
    ledger.restore(newest)
    assert captured.catch_up() == 0
    assert f"not acknowledged: {lost.text}" in capsys.readouterr().err


@pytest.mark.parametrize("remedy", ["the newest copy", "a new lake"])
def test_an_older_copy_of_the_offsets_stops_the_database(
    captured: Place, capsys: pytest.CaptureFixture[str], tmp_path: Path, remedy: str
):
    """It looked like the state behind a crash: rows had numbers that had been given before, and cuts went back."""
    copy = shutil.copytree(offsets_of(captured), tmp_path / "older")
    assert captured.catch_up() == 0
    captured.sql("UPDATE dbo.orders SET name = N'again' WHERE id = 1", "UPDATE dbo.orders SET name = N'1' WHERE id = 1")
    captured.settle()
    assert captured.catch_up() == 0
    newest = shutil.move(offsets_of(captured), tmp_path / "newest")
    shutil.copytree(copy, offsets_of(captured))
    require_refused(captured, capsys, f"{offsets_of(captured)} is older than the change logs of ")
    shutil.rmtree(offsets_of(captured))
    if remedy == "the newest copy":
        shutil.move(newest, offsets_of(captured))
    else:
        shutil.move(offsets_of(captured).parent, tmp_path / "away")
    require_whole(captured)

"""`mssql-cdc check` in every state of a table, with a key and without: one result, a remedy, no defect's exit code."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from deltalake import DeltaTable

from mssql_cdc.capture.range import mark_status
from mssql_cdc.capture.snapshot import take
from mssql_cdc.capture.survey import survey
from mssql_cdc.check import looked
from mssql_cdc.config import load_connector
from mssql_cdc.errors import SourceError
from mssql_cdc.lake.gaps import open_gaps
from mssql_cdc.lake.offset_commits import load_offsets
from mssql_cdc.run.databases import open_databases
from mssql_cdc_tests.end_to_end.kit import Place

pytestmark = [pytest.mark.spark, pytest.mark.slow]

KEYS = {"keyed": "id int NOT NULL PRIMARY KEY", "keyless": "id int NOT NULL"}


def new(place: Place, columns: str) -> None:
    create(place, columns)


def in_a_snapshot(place: Place, columns: str) -> None:
    """The run has died behind the beginning of the snapshot."""
    create(place, columns)

    def dies(_: object) -> None:
        raise SourceError("stopped by the test")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(take, "read_locked_tables", dies)
        assert place.catch_up() != 0


def closed(place: Place, columns: str) -> None:
    """The rows are read, and capture has not passed the end of the snapshot."""
    create(place, columns)
    place.sql("EXEC sandbox.capture_pause", "INSERT dbo.orders VALUES (3, N'three')")
    assert place.command("run", "--until-caught-up", "--timeout", "5") == 3


def lost(place: Place, columns: str) -> None:
    streaming(place, columns)
    place.sql("EXEC sys.sp_cdc_disable_table N'dbo', N'orders', N'all'", "DELETE dbo.orders WHERE id = 2")
    place.enable("orders")
    place.settle()
    assert place.catch_up() == 4


def lost_unnoticed(place: Place, columns: str) -> None:
    """As `lost`, and no run has met it yet."""
    streaming(place, columns)
    place.sql("EXEC sys.sp_cdc_disable_table N'dbo', N'orders', N'all'", "DELETE dbo.orders WHERE id = 2")
    place.enable("orders")
    place.settle()


def failed(place: Place, columns: str) -> None:
    streaming(place, columns)
    mark(place, "orders", "failed")
    place.sql("DELETE dbo.orders WHERE id = 2")
    place.settle()


def mark(place: Place, name: str, status: Literal["lost", "failed"]) -> None:
    """Give a table a status, as a run does that has met its trouble."""
    with open_databases(load_connector(place.config), warehouse=str(place.warehouse)) as (database,):
        seen = survey(database)
        (found,) = (table for table in seen.tables if table.name == name)
        mark_status(database, seen, {found: "it could not be read; mssql-cdc run tries again"}, status)


def gone(place: Place, columns: str) -> None:
    streaming(place, columns)
    place.sql("EXEC sys.sp_cdc_disable_table N'dbo', N'orders', N'all'")


def log_restored(place: Place, columns: str) -> None:
    streaming(place, columns)
    place.sql("DELETE dbo.orders WHERE id = 2")
    place.settle()
    assert place.catch_up() == 0
    DeltaTable(place.uri("orders", "changes")).restore(1)


def log_removed(place: Place, columns: str) -> None:
    streaming(place, columns)
    shutil.rmtree(Path(place.uri("orders", "changes")))


def log_of_another(place: Place, columns: str) -> None:
    """A folder that no connector wrote stands where the change log belongs."""
    streaming(place, columns)
    changes = Path(place.uri("orders", "changes"))
    shutil.rmtree(changes)
    DeltaTable.create(str(changes), DeltaTable(place.uri("people", "changes")).schema())


def streaming(place: Place, columns: str) -> None:
    create(place, columns)
    assert place.catch_up() == 0


def create(place: Place, columns: str) -> None:
    place.create("orders", f"{columns}, name nvarchar(50) NULL")
    place.sql("INSERT dbo.orders VALUES (1, N'one'), (2, N'two')")
    place.settle()


@dataclass(frozen=True)
class State:
    """How a table gets there, the result of its check, the exit code, and what is said about it."""

    reach: Callable[[Place, str], None]
    result: str
    code: int
    says: str


STATES = {
    "new": State(new, "not caught up", 3, "run mssql-cdc run --until-caught-up"),
    "in a snapshot": State(in_a_snapshot, "not caught up", 3, "run mssql-cdc run --until-caught-up"),
    "closed": State(closed, "not caught up", 3, "run mssql-cdc run --until-caught-up"),
    "streaming": State(streaming, "equal", 0, ""),
    "lost": State(lost, "lost", 4, "Take a new snapshot of it (mssql-cdc snapshot --table)"),
    "lost, and no run since": State(
        lost_unnoticed, "lost", 4, "Take a new snapshot of it (mssql-cdc snapshot --table)"
    ),
    "failed": State(failed, "failed", 4, "mssql-cdc run tries again"),
    "gone": State(gone, "gone", 4, "sp_cdc_enable_table"),
    "change log restored": State(log_restored, "lost", 4, "Take a new snapshot of it (mssql-cdc snapshot --table)"),
    "change log removed": State(log_removed, "lost", 4, "Take a new snapshot of it (mssql-cdc snapshot --table)"),
    "change log of another": State(log_of_another, "failed", 4, "belongs to no connector"),
}


@pytest.mark.parametrize(
    ("state", "columns"),
    [
        pytest.param(STATES[state], KEYS[key], id=f"{state}-{key}", marks=[pytest.mark.long] * (key == "keyless"))
        for state in STATES
        for key in KEYS
    ],
)
def test_the_check_has_one_result_for_a_table_in_any_state(
    state: State, columns: str, place: Place, capsys: pytest.CaptureFixture[str]
):
    place.create("people", "id int NOT NULL PRIMARY KEY")
    place.sql("INSERT dbo.people VALUES (1)")
    place.settle()
    assert place.catch_up() == 0
    state.reach(place, columns)
    capsys.readouterr()
    try:
        code = place.command("check", "--json")
    finally:
        if state.reach is closed:
            place.sql("EXEC sandbox.capture_resume")
    shown = capsys.readouterr()
    found: dict[str, Any] = {one["table"].rsplit(".", 1)[1]: one for one in json.loads(shown.out)["tables"]}
    orders = found["orders"]
    assert (orders["status"], code) == (state.result, state.code), shown.out + shown.err
    assert found["people"]["result"] == "equal"
    said = " ".join([*orders["notes"], orders["error"] or ""])
    assert state.says in said
    assert "defect" not in said


RENAMES = {
    "renamed": (["EXEC sp_rename N'dbo.orders', N'purchases'"], "purchases"),
    "exchanged": (
        [
            "EXEC sp_rename N'dbo.orders', N'aside'",
            "EXEC sp_rename N'dbo.people', N'orders'",
            "EXEC sp_rename N'dbo.aside', N'people'",
        ],
        "people",
    ),
}
"""How `orders` gets another name, and which; `people` takes the former one, or keeps its own."""


def renamed(place: Place, how: str) -> str:
    statements, name = RENAMES[how]
    place.sql(*statements)
    return name


@pytest.mark.parametrize("how", RENAMES)
def test_a_lost_table_is_lost_under_its_new_name_and_no_other_table_is(
    how: str, place: Place, capsys: pytest.CaptureFixture[str]
):
    """It was looked for by its name, so it was equal, and the one that has its name now was lost."""
    place.create("people", "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
    streaming(place, KEYS["keyed"])
    mark(place, "orders", "lost")
    name = renamed(place, how)
    found = results(place, capsys, code=4)
    other = {"purchases": "people", "people": "orders"}[name]
    assert {short: one["status"] for short, one in found.items()} == {name: "lost", other: "equal"}
    assert place.catch_up() == 4


@pytest.mark.parametrize("how", RENAMES)
def test_a_renamed_table_with_a_newer_row_is_compared_before_its_new_name_is_in_the_lake(
    how: str, place: Place, capsys: pytest.CaptureFixture[str]
):
    """The fence asked for the entry of the new name: its status was unknown, or it was another table's."""
    place.create("people", "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
    streaming(place, KEYS["keyed"])
    name = renamed(place, how)
    place.sql(f"UPDATE dbo.{name} SET name = N'new' WHERE id = 1")
    found = results(place, capsys, code=0)
    assert {one["result"] for one in found.values()} == {"equal"}
    assert found[name]["source_rows"] == 2


@pytest.mark.parametrize("how", RENAMES)
def test_a_renamed_table_without_a_key_starts_at_its_last_snapshot(
    how: str, place: Place, capsys: pytest.CaptureFixture[str]
):
    """Its log was added up from the beginning, or from the snapshot of the table that has its name now."""
    place.create("people", "id int NOT NULL, name nvarchar(50) NULL")
    streaming(place, KEYS["keyless"])
    assert place.command("snapshot", "--table", "dbo.orders") == 0
    place.settle()
    assert place.catch_up() == 0
    assert set(results(place, capsys, code=0)) == {"orders", "people"}
    name = renamed(place, how)
    found = results(place, capsys, code=0)
    assert (found[name]["result"], found[name]["lake_rows"]) == ("equal", 2)


def results(place: Place, capsys: pytest.CaptureFixture[str], *, code: int) -> dict[str, dict[str, Any]]:
    """What `check --json` prints of each table, by its short name, and that it ends with this code."""
    capsys.readouterr()
    ended = place.command("check", "--json")
    shown = capsys.readouterr()
    assert ended == code, shown.out + shown.err
    return {one["table"].rsplit(".", 1)[1]: one for one in json.loads(shown.out)["tables"]}


def test_a_table_whose_name_another_one_has_is_gone_and_told_from_it(place: Place, capsys: pytest.CaptureFixture[str]):
    """It was listed as the other one, and as a table that cannot be captured."""
    place.create("people", "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
    streaming(place, KEYS["keyed"])
    place.sql("EXEC sys.sp_cdc_disable_table N'dbo', N'orders', N'all'")
    place.sql("EXEC sp_rename N'dbo.orders', N'aside'", "EXEC sp_rename N'dbo.people', N'orders'")
    found = {name: one["result"] for name, one in results(place, capsys, code=4).items()}
    (former,) = found.keys() - {"orders"}
    assert former.startswith("orders (object id ")
    assert (found["orders"], found[former]) == ("equal", "gone")


def test_a_database_that_cannot_be_surveyed_is_compared_and_ends_with_the_error(
    place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """Nobody has looked for lost changes then: a note said so, and the command ended with 0."""
    place.create("people", "id int NOT NULL PRIMARY KEY")
    streaming(place, KEYS["keyed"])

    def dies(*_: object, **__: object) -> None:
        raise SourceError("stopped by the test")

    monkeypatch.setattr(looked, "survey", dies)
    found = results(place, capsys, code=SourceError.exit_code)
    assert {name: one["result"] for name, one in found.items()} == {"orders": "equal", "people": "equal"}


AFTERWARDS = {
    "equal": ["INSERT dbo.orders VALUES (3, N'three')"],
    "not equal": ["INSERT dbo.orders VALUES (4, N'four')"],
    "not equal, and further on": [f"INSERT dbo.orders VALUES ({number}, N'new')" for number in range(4, 8)],
}
MODES = {
    "initial": (("equal", 4), ("error", 4)),
    "when_needed": (("equal", 0), ("not caught up", 3)),
}
ALWAYS = {
    ("initial", "equal", "keyless"),
    ("when_needed", "not equal, and further on", "keyless"),
}
"""Each mode and result once; all combinations take a minute and a half."""


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("mode", "rows", "columns"),
    [
        pytest.param(mode, rows, KEYS[key], id=f"{mode}-{rows}-{key}", marks=[pytest.mark.long] * is_long)
        for mode in MODES
        for rows in AFTERWARDS
        for key in KEYS
        for is_long in [(mode, rows, key) not in ALWAYS]
    ],
)
def test_the_check_of_a_restored_source_ends_as_a_run_would_and_begins_no_epoch(
    mode: str, rows: str, columns: str, place: Place, capsys: pytest.CaptureFixture[str]
):
    """It ended with 0 where the rows happened to be equal; with `when_needed` it began the epoch itself."""
    streaming(place, columns)
    place.sql("EXEC sandbox.restore_point", "INSERT dbo.orders VALUES (3, N'three')")
    place.settle()
    assert place.catch_up() == 0
    place.sql("EXEC sandbox.restore_database", *AFTERWARDS[rows])
    place.settle()
    place.configure(snapshot_mode=mode)
    capsys.readouterr()
    code = place.command("check", "--json")
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    (orders,) = found["tables"]
    assert (orders["result"], code) == MODES[mode][rows != "equal"], shown.out + shown.err
    (note,) = (one for one in found["notes"] if "the source was restored or failed over" in one)
    advice = "acknowledge --restored" if mode == "initial" else "The next run begins a new epoch"
    assert advice in note
    with open_databases(load_connector(place.config), warehouse=str(place.warehouse)) as (database,):
        assert load_offsets(database.layout, database.storage).epoch == 0
        assert open_gaps(database.layout, database.storage) == {}

    assert place.catch_up() == {"initial": 4, "when_needed": 0}[mode]
    if mode == "initial":
        assert place.command("acknowledge", "--restored") == 0
        assert place.catch_up() == 0
    assert place.check() == 0

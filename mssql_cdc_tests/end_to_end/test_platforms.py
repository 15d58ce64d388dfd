"""Azure SQL Database, a primary and a readable secondary, read by a login that has the documented rights and no others.

What is particular about each statement there is `sandbox_source/test_platforms.py`'s.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mssql_cdc_tests.end_to_end.kit import Place, open_place
from mssql_cdc_tests.end_to_end.load import writing
from mssql_cdc_tests.servers import Server, grant, sandbox_server
from mssql_cdc_tests.storm.lake import happening_at

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("spark")]

PAGE = (Path(__file__).parents[2] / "docs" / "getting-started.md").read_text(encoding="utf-8")
RIGHTS = re.findall(r"^GRANT ([A-Z :a-z]+) TO mssql_cdc;", PAGE, re.MULTILINE)
OF_THE_SERVER, IN_AZURE = "VIEW SERVER STATE", "VIEW DATABASE STATE"
CATCH_UP, CHECK = ("run", "--until-caught-up", "--timeout", "60"), ("check",)
PASSWORD = "Reader-of-the-test-1"
_NUMBERS = itertools.count(1)


def filled(place: Place, *, azure: bool = False, **properties: str) -> Place:
    """A table with a key of text, which the documented login reads."""
    assert len(RIGHTS) == 4
    assert OF_THE_SERVER in RIGHTS
    assert f"`GRANT {IN_AZURE} TO mssql_cdc` in the database instead of `{OF_THE_SERVER}`" in PAGE
    rights = [IN_AZURE if azure and right == OF_THE_SERVER else right for right in RIGHTS]
    reader = f"{place.database}_reader"
    place.create("words", "word varchar(20) NOT NULL PRIMARY KEY, n int NULL, body nvarchar(max) NULL")
    place.sql(
        *(f"INSERT INTO dbo.words VALUES ('word {number}', {number}, N'x')" for number in range(1, 21)),
        f"CREATE LOGIN [{reader}] WITH PASSWORD = '{PASSWORD}'",
        f"CREATE USER [{reader}] FOR LOGIN [{reader}]",
        *(grant(right, reader, place.database) for right in rights),
    )
    place.configure(database_user=reader, database_password=PASSWORD, **properties)
    place.settle()
    return place


def change(place: Place) -> None:
    place.sql(
        "UPDATE dbo.words SET n = -n WHERE word = 'word 7'",
        "DELETE dbo.words WHERE word = 'word 8'",
        "INSERT INTO dbo.words VALUES ('another', 21, NULL)",
    )
    place.settle()


def changed(place: Place) -> list[tuple[str, int]]:
    """What the lake has of the rows that `change` concerns, and of one that it leaves alone."""
    some = "'another', 'word 7', 'word 8', 'word 9'"
    found = place.query(f"SELECT word, n FROM t WHERE word IN ({some}) ORDER BY word", "words")
    return [(row["word"], row["n"]) for row in found]


def told(place: Place, capsys: pytest.CaptureFixture[str], *command: str, code: int = 0) -> str:
    """What a command says that ends with this code."""
    capsys.readouterr()
    ended = place.command(*command)
    shown = capsys.readouterr()
    said = " ".join((shown.out + shown.err).split())
    assert ended == code, said
    return said


@pytest.fixture(scope="module")
def azure_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with sandbox_server(tmp_path_factory.mktemp("azure"), "--server-version", "azure") as server:
        yield server


@pytest.fixture
def azure(azure_server: Server, tmp_path: Path) -> Iterator[Place]:
    with open_place(azure_server, tmp_path, f"azure{next(_NUMBERS)}") as place:
        yield place


@pytest.mark.feature("PRE-07")
def test_azure_is_captured_checked_and_repaired_with_the_documented_rights(
    azure: Place, spark: Any, capsys: pytest.CaptureFixture[str]
):
    captured_checked_and_repaired(filled(azure, azure=True), spark, capsys)


def captured_checked_and_repaired(place: Place, spark: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for change_more in (True, False):
        for command in (CATCH_UP, CHECK):
            assert "GRANT" not in told(place, capsys, *command)
        assert place.query("SELECT COUNT(*) AS n FROM t", "words") == [{"n": 20}]
        if change_more:
            change(place)
    spark.sql(f"UPDATE delta.`{place.uri('words')}` SET n = 0 WHERE word = 'word 9'").collect()
    assert "1 rows were read again" in told(place, capsys, "check", "--repair")
    assert changed(place) == [("another", 21), ("word 7", -7), ("word 9", 9)]


@pytest.fixture(scope="module", params=[pytest.param("2019", marks=pytest.mark.long), "2022"])
def version_server(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Server]:
    with sandbox_server(tmp_path_factory.mktemp("version"), "--server-version", request.param) as server:
        yield server


@pytest.mark.feature("PRE-04")
def test_a_primary_is_captured_checked_and_repaired_with_the_documented_rights(
    version_server: Server, tmp_path: Path, spark: Any, capsys: pytest.CaptureFixture[str]
):
    with open_place(version_server, tmp_path, f"primary{next(_NUMBERS)}") as place:
        captured_checked_and_repaired(filled(place), spark, capsys)


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with sandbox_server(tmp_path_factory.mktemp("sandbox")) as server:
        yield server


@pytest.fixture
def secondary(own_server: Server, tmp_path: Path) -> Iterator[Place]:
    """The connector reads a secondary that does not lag; `Place.control` stays on the primary."""
    with open_place(own_server, tmp_path, f"secondary{next(_NUMBERS)}") as place:
        place.sql("EXEC sandbox.replica_lag @seconds = 0")
        # Changes of this table show how far capture is, as a busy database does.
        place.create("clock", "id int NOT NULL PRIMARY KEY, n int NOT NULL")
        place.sql("INSERT INTO dbo.clock VALUES (1, 0)")
        yield filled(place, database_applicationIntent="ReadOnly", table_exclude_list="dbo.clock")
        place.sql("EXEC sandbox.replica_drop")


@pytest.mark.feature("HA-01")
def test_a_secondary_is_captured_and_checked_with_the_documented_rights(
    secondary: Place, spark: Any, capsys: pytest.CaptureFixture[str]
):
    """It shows no scans: a snapshot opens, and a check is sure, with the next captured transaction."""
    place = secondary
    with writing(owner_of(place), lambda number: [f"UPDATE dbo.clock SET n = {number}"], pause=0.2):
        for change_more in (True, False):
            for command in (CATCH_UP, CHECK):
                assert "GRANT" not in told(place, capsys, *command)
            if change_more:
                change(place)
        assert changed(place) == [("another", 21), ("word 7", -7), ("word 9", 9)]
        spark.sql(f"UPDATE delta.`{place.uri('words')}` SET n = 0 WHERE word = 'word 9'").collect()
        said = told(place, capsys, "check", "--repair", code=5)
        assert "not repaired" in said
        assert "a readable secondary ignores locks" in said, "it is one"


@pytest.mark.feature("HA-01")
def test_a_check_waits_for_the_rows_of_a_replica_that_is_behind_the_lake(
    secondary: Place, capsys: pytest.CaptureFixture[str]
):
    """Another run may capture from a server that is ahead: no change behind the lake's state explained the row."""
    place, owner = secondary, owner_of(secondary)
    run = replace(owner, folder=place.folder)  # Into the same lake.

    def meanwhile() -> None:
        place.sql("EXEC sandbox.replica_lag @seconds = 4", "UPDATE dbo.words SET n = -n WHERE word = 'word 7'")
        place.settle()
        run.configure(table_exclude_list="dbo.clock")
        assert run.catch_up() == 0

    with writing(owner, lambda number: [f"UPDATE dbo.clock SET n = {number}"], pause=0.2):
        told(place, capsys, *CATCH_UP)
        with happening_at("mssql_cdc.check.check_tables.pin_current", 1, meanwhile):
            assert place.command(*CHECK) == 0, capsys.readouterr()
    assert ("word 7", -7) in changed(place)


@pytest.mark.feature("HA-01")
def test_the_primary_of_a_group_is_caught_up_with_all_that_is_committed(
    own_server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """Capture waits for the secondary, and its scans find nothing: the run was caught up without the change."""
    with open_place(own_server, tmp_path, f"group{next(_NUMBERS)}") as place:
        place.sql("EXEC sandbox.replica_lag @seconds = 0")
        filled(place)
        told(place, capsys, *CATCH_UP)  # It rests, and its secondary is complete.
        place.sql("EXEC sandbox.replica_disconnect", "UPDATE dbo.words SET n = -7 WHERE word = 'word 7'")
        said = told(place, capsys, "run", "--until-caught-up", "--timeout", "8", code=3)
        assert "availability group" in said
        assert "next captured transaction" in said
        assert ("word 7", 7) in changed(place)
        place.sql("EXEC sandbox.replica_lag @seconds = 0")
        told(place, capsys, *CATCH_UP)
        assert ("word 7", -7) in changed(place)
        told(place, capsys, *CHECK)
        place.sql("EXEC sandbox.replica_drop")


def owner_of(place: Place) -> Place:
    """The place as the application sees it: on the primary, with every right."""
    owner = replace(place, folder=place.folder / "owner")
    owner.folder.mkdir()
    owner.configure()
    return owner

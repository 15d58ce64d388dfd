"""What the check says of columns that are dropped, altered or added again while it has a change log to read."""

from __future__ import annotations

import pytest

from mssql_cdc_tests.end_to_end.kit import Place
from mssql_cdc_tests.end_to_end.test_check import result

pytestmark = [pytest.mark.spark, pytest.mark.slow]

BROKEN = "change log: the before image differs from the preceding after image"


def drop_a_column(place: Place, *, net: bool = False) -> None:
    """Drop `x` of a table that is in the lake, between changes of its rows; they are captured and not in the lake."""
    place.sql("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, x int NULL, y int NULL)")
    place.sql(
        "EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N't', @role_name = NULL, "
        f"@supports_net_changes = {int(net)}"
    )
    place.sql("INSERT INTO dbo.t VALUES (1, 5, 1), (2, 5, 2), (3, 5, 3)")
    place.settle()
    assert place.catch_up() == 0
    place.sql("UPDATE dbo.t SET x = 6 WHERE id = 3", "ALTER TABLE dbo.t DROP COLUMN x")
    place.sql("UPDATE dbo.t SET y = 9 WHERE id = 1", "DELETE FROM dbo.t WHERE id = 2")
    place.sql("UPDATE dbo.t SET y = 8 WHERE id = 1", "UPDATE dbo.t SET y = 9 WHERE id = 3")
    place.settle()


@pytest.mark.parametrize("net", [False, True], ids=["all", "net"])
def test_a_dropped_column_is_null_from_then_on_and_no_break_of_the_story(
    place: Place, capsys: pytest.CaptureFixture[str], *, net: bool
):
    """Every row that was touched broke the story for good, and no snapshot of the instance could mend it."""
    drop_a_column(place, net=net)
    assert place.catch_up() == 0
    found = result(place, capsys, "t", code=0)
    assert (found["result"], found["not_compared"]) == ("equal", ["x (no longer at the source)"])


def test_a_wrong_value_is_found_in_the_dropped_column_and_beside_it(place: Place, capsys: pytest.CaptureFixture[str]):
    drop_a_column(place)
    place.sql(
        "UPDATE cdc.dbo_t_CT SET x = 7 WHERE id = 3 AND x = 5 AND [__$operation] = 3",
        "UPDATE cdc.dbo_t_CT SET y = 7 WHERE id = 2 AND [__$operation] = 1",
    )
    assert place.catch_up() == 0
    found = result(place, capsys, "t", code=5)
    assert found["change_log"] == [f"{BROKEN} (2 rows, _key 1:2, 1:3)"]


def test_an_ordinary_column_in_the_place_of_a_computed_one_breaks_no_story(place: Place):
    """CDC delivers nothing of a computed column, which the check took for a break once an ordinary one had its name."""
    place.create("t", "id int NOT NULL PRIMARY KEY, a int NULL, c AS a + 1")
    place.sql("INSERT INTO dbo.t VALUES (1, 5), (2, 5)")
    place.settle()
    assert place.catch_up() == 0
    place.sql("UPDATE dbo.t SET a = 6", "ALTER TABLE dbo.t DROP COLUMN c", "ALTER TABLE dbo.t ADD c int NULL")
    place.enable("t", instance="t_2")
    place.sql("UPDATE dbo.t SET c = 7 WHERE id = 1", "INSERT INTO dbo.t VALUES (3, 1, 2)")
    place.settle()
    assert place.catch_up() == 0
    assert place.check() == 0


@pytest.mark.parametrize("key", ["PRIMARY KEY", ""], ids=["keyed", "keyless"])
def test_a_column_that_was_dropped_and_added_again_is_not_captured_by_the_old_instance(
    place: Place, capsys: pytest.CaptureFixture[str], key: str
):
    """Its name was: every row differed in it, and `--repair` could not read the table."""
    place.create("t", f"id int NOT NULL {key}, x int NULL, y int NULL")
    place.sql("INSERT INTO dbo.t VALUES (1, 5, 1), (2, 5, 2)")
    place.settle()
    assert place.catch_up() == 0
    place.sql("ALTER TABLE dbo.t DROP COLUMN x", "ALTER TABLE dbo.t ADD x int NULL")
    place.sql("UPDATE dbo.t SET x = 6, y = 9 WHERE id = 1", "INSERT INTO dbo.t (id, x, y) VALUES (3, 7, 3)")
    place.settle()
    assert place.catch_up() == 0
    found = result(place, capsys, "t", code=0)
    assert found["not_compared"] == ["x (not captured: dropped and added again)"]
    place.sql("UPDATE dbo.t SET y = 4 WHERE id = 3")
    place.settle()
    place.sql("UPDATE cdc.dbo_t_CT SET y = 5 WHERE id = 3 AND y = 4")
    assert place.catch_up() == 0
    found = result(place, capsys, "t", code=5)
    assert found["not_compared"] == ["x (not captured: dropped and added again)"]
    if key:
        assert found["differences"] == ["key 3: differs in y"]


def test_a_mask_that_was_removed_is_in_the_lake_until_a_blocking_snapshot(
    place: Place, capsys: pytest.CaptureFixture[str]
):
    """Nothing in the lake says when it was removed, and the rows of before have it: they are read again anyway."""
    place.configure(column_mask_with_3_chars="dbo.t.x")
    place.create("t", "id int NOT NULL PRIMARY KEY, x nvarchar(20) NULL, y int NULL")
    place.sql("INSERT INTO dbo.t VALUES (1, N'one', 1), (2, N'two', 2)")
    place.settle()
    assert place.catch_up() == 0
    place.configure()
    place.sql("UPDATE dbo.t SET y = 9 WHERE id = 1")
    place.settle()
    assert place.catch_up() == 0
    found = result(place, capsys, "t", code=5)
    assert found["differences"] == ["key 2: differs in x"]
    assert found["change_log"] == [f"{BROKEN} (1 rows, _key 1:1)"]
    assert place.command("snapshot", "--table", "dbo.t") == 0
    assert place.catch_up() == 0
    found = result(place, capsys, "t", code=0)
    assert (found["result"], found["change_log"]) == ("equal", [])

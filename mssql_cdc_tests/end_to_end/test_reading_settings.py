"""Settings of reading against a source: what is locked, how changes are read, in pages and fetches of which size."""

from __future__ import annotations

import pytest

from mssql_cdc_tests.end_to_end.kit import Place


def statements(place: Place, pattern: str) -> list[str]:
    """The texts that the server has logged and that contain the pattern."""
    rows = place.control.rows("SELECT text FROM sandbox.statements", doing="reading the log of statements")
    return [row[0] for row in rows if row[0] and pattern in row[0]]


def fill(place: Place) -> None:
    place.create("orders", "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
    place.sql("INSERT INTO dbo.orders VALUES (1, N'one'), (2, N'two'), (3, N'three')")
    place.settle()
    place.sql("EXEC sandbox.statement_log")


@pytest.mark.sandbox
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.feature("SNP-14", "SNP-15")
def test_exclusive_isolation_locks_tables_with_a_key_until_they_are_read(place: Place):
    place.configure(snapshot_isolation_mode="exclusive", snapshot_max_threads="1", snapshot_fetch_size="2")
    fill(place)
    assert place.catch_up() == 0
    assert [text for text in statements(place, "TABLOCK, HOLDLOCK") if "[orders]" in text]
    assert place.check() == 0
    place.sql("DELETE FROM dbo.orders WHERE id = 1")
    assert place.catch_up() == 0
    assert place.check() == 0


@pytest.mark.sandbox
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.feature("SNP-16")
def test_a_snapshot_that_may_not_lock_refuses_tables_without_a_key_alone(
    place: Place, capsys: pytest.CaptureFixture[str]
):
    place.configure(snapshot_locking_mode="none")
    place.create("notes", "what nvarchar(50) NULL")
    fill(place)
    assert place.command("run", "--until-caught-up", "--timeout", "60") == 2
    said = capsys.readouterr().err
    assert "snapshot.locking.mode=none" in said
    assert "dbo.notes" in said
    assert not statements(place, "TABLOCK")
    assert len(place.query("SELECT op FROM t", "orders", "changes")) == 3


@pytest.mark.sandbox
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.feature("STR-05", "STR-09")
@pytest.mark.parametrize(("mode", "function"), [("function", True), ("direct", False)])
def test_changes_are_read_as_the_query_mode_says(place: Place, mode: str, *, function: bool):
    place.configure(data_query_mode=mode, query_fetch_size="1")
    fill(place)
    assert place.catch_up() == 0
    place.sql("UPDATE dbo.orders SET name = N'zwei' WHERE id = 2", "DELETE FROM dbo.orders WHERE id = 3")
    assert place.catch_up() == 0
    assert bool(statements(place, "fn_cdc_get_all_changes_dbo_orders")) is function
    assert [row["op"] for row in place.query("SELECT op FROM t ORDER BY _pos", "orders", "changes")] == [*"rrrud"]
    assert place.check() == 0

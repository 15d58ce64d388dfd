"""Rows that the lake was never to have: they are counted and are no differences, and everything else is judged."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mssql_cdc_tests.end_to_end.kit import Place
from mssql_cdc_tests.end_to_end.test_check import result

pytestmark = [pytest.mark.spark, pytest.mark.slow]
UNREAD = "3 rows of the source were never read (snapshot.select.statement.overrides), so they are not compared"


def filtered(place: Place, columns: str) -> None:
    """Capture a table of six rows, of which a statement reads three."""
    overrides = {"dbo.orders": "SELECT * FROM dbo.orders WHERE archived = 0"}
    place.configure(
        snapshot_select_statement_overrides=",".join(overrides),
        **{f"snapshot_select_statement_overrides_{name}": text for name, text in overrides.items()},
    )
    place.create("orders", f"{columns}, archived int NOT NULL")
    place.sql("INSERT INTO dbo.orders SELECT value, N'row', value % 2 FROM GENERATE_SERIES(1, 6)")
    settled(place)


def settled(place: Place) -> None:
    place.settle()
    assert place.catch_up() == 0


def uncaptured(place: Place, *statements: str) -> None:
    """Changes that capture loses."""
    known = place.control.value("SELECT MAX(__$seqval) FROM cdc.dbo_orders_CT", doing="testing") or bytes(10)
    place.sql(*statements)
    place.settle()
    place.sql(f"DELETE FROM cdc.dbo_orders_CT WHERE __$seqval > 0x{known.hex()}")


def ids(place: Place) -> list[int]:
    return [row["id"] for row in place.query("SELECT id FROM t ORDER BY id", "orders")]


@pytest.mark.parametrize(
    "kind", [pytest.param("nvarchar(50)", marks=pytest.mark.long), "sql_variant"], ids=["by checksums", "row by row"]
)
def test_rows_that_a_statement_leaves_out_are_counted_and_never_repaired(
    place: Place, capsys: pytest.CaptureFixture[str], spark: Any, kind: str
):
    """Review: each of them was missing in the lake for ever, and `--repair` gave them to consumers."""
    filtered(place, f"id int NOT NULL PRIMARY KEY, name {kind} NULL")
    found = result(place, capsys, "orders", code=0)
    assert (found["result"], found["source_rows"], found["lake_rows"]) == ("equal", 6, 3)
    assert found["notes"] == [UNREAD]
    spark.sql(f"UPDATE delta.`{place.uri('orders')}` SET archived = 7 WHERE id = 2").collect()
    found = result(place, capsys, "orders", code=5)
    assert (found["differences"], found["notes"]) == (["key 2: differs in archived"], [UNREAD])
    capsys.readouterr()
    assert place.command("check", "--repair", "--json") == 0
    (found,) = json.loads(capsys.readouterr().out)["tables"]
    assert (found["result"], found["repaired_rows"], found["notes"][0]) == ("equal", 1, UNREAD)
    assert ids(place) == [2, 4, 6]
    assert len(place.query("SELECT _key FROM t WHERE op = 'r'", "orders", "changes")) == 4


def test_a_row_that_the_log_tells_of_is_compared_whatever_was_never_read(
    place: Place, capsys: pytest.CaptureFixture[str]
):
    filtered(place, "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
    place.sql("UPDATE dbo.orders SET name = N'new' WHERE id = 1", "DELETE FROM dbo.orders WHERE id IN (2, 3)")
    settled(place)
    assert (ids(place), result(place, capsys, "orders", code=0)["source_rows"]) == ([1, 4, 6], 4)
    uncaptured(place, "INSERT INTO dbo.orders VALUES (2, N'again', 0)", "DELETE FROM dbo.orders WHERE id = 4")
    settled(place)
    found = result(place, capsys, "orders", code=5)
    assert found["differences"] == ["key 2: missing in the lake", "key 4: not in the source"]
    assert found["notes"] == [UNREAD.replace("3", "1")]


def test_rows_without_a_key_that_a_statement_leaves_out_are_counted(place: Place, capsys: pytest.CaptureFixture[str]):
    filtered(place, "id int NOT NULL, name nvarchar(50) NULL")
    assert result(place, capsys, "orders", code=0)["notes"] == [UNREAD]
    place.sql("UPDATE dbo.orders SET name = N'new' WHERE id IN (1, 2)", "DELETE FROM dbo.orders WHERE id IN (3, 4)")
    settled(place)
    found = result(place, capsys, "orders", code=0)
    assert (found["result"], found["notes"]) == ("equal", [UNREAD.replace("3", "1")])
    uncaptured(place, "DELETE FROM dbo.orders WHERE id = 6")
    settled(place)
    assert result(place, capsys, "orders", code=5)["differences"] == ["key (no key): not in the source"]


@pytest.mark.parametrize("key", ["PRIMARY KEY", ""], ids=["keyed", "keyless"])
@pytest.mark.parametrize("begun", ["no_data", "take-over"])
def test_a_table_that_was_never_read_and_never_changed_has_a_result_of_its_own(
    place: Place, capsys: pytest.CaptureFixture[str], begun: str, key: str
):
    """Review: it was not caught up for ever, and the advised run changed nothing."""
    place.create("orders", f"id int NOT NULL {key}, name nvarchar(50) NULL")
    place.create("people", "id int NOT NULL PRIMARY KEY")
    place.sql("INSERT INTO dbo.orders VALUES (1, N'one'), (2, N'two')", "INSERT INTO dbo.people VALUES (1)")
    place.settle()
    if begun == "no_data":
        place.configure(snapshot_mode="no_data")
    else:
        newest = place.control.value("SELECT CONVERT(char(20), MAX(__$start_lsn), 2) FROM cdc.dbo_people_CT", doing="x")
        lsn = f"{newest[:8]}:{newest[8:16]}:{newest[16:]}".lower()
        offset = {"commit_lsn": lsn, "change_lsn": None, "event_serial_no": 0}
        file = place.folder / "offsets.json"
        partition = {"server": "shop", "database": place.database}
        file.write_text(json.dumps({"offsets": [{"partition": partition, "offset": offset}]}))
        assert place.command("take-over", "--offsets", str(file)) == 0
    assert place.catch_up() == 0
    found = result(place, capsys, "orders", code=0)
    assert (found["result"], found["source_rows"], found["lake_rows"]) == ("never read", None, 0)
    why = "snapshot.mode=no_data" if begun == "no_data" else "it was taken over, or began in a mode that reads no rows"
    assert found["notes"] == [
        f"no row of it was ever read ({why}), and none has changed since: there is nothing to compare"
    ]
    place.sql("UPDATE dbo.orders SET name = N'new' WHERE id = 2")
    settled(place)
    found = result(place, capsys, "orders", code=0)
    assert (found["result"], found["source_rows"]) == ("equal", 2)
    assert found["notes"] == [f"1 rows of the source were never read ({why}), so they are not compared"]


def test_every_row_counts_once_an_incremental_snapshot_has_read_the_table(
    place: Place, capsys: pytest.CaptureFixture[str], spark: Any
):
    signals = {"signal_data_collection": f"{place.database}.dbo.signals"}
    place.configure(snapshot_mode="no_data", **signals)
    place.create("signals", "id varchar(42) NOT NULL PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048) NULL")
    place.create_orders()
    place.sql("INSERT INTO dbo.orders VALUES (3, N'three')")
    settled(place)
    spark.sql(f"DELETE FROM delta.`{place.uri('orders')}` WHERE id = 3").collect()
    assert result(place, capsys, "orders", code=5)["differences"] == []
    place.signal("all", **{"data-collections": ["dbo.orders"], "type": "incremental"})
    settled(place)
    assert ids(place) == [1, 2, 3]
    spark.sql(f"DELETE FROM delta.`{place.uri('orders')}` WHERE id = 1").collect()
    assert result(place, capsys, "orders", code=5)["differences"] == ["key 1: missing in the lake"]

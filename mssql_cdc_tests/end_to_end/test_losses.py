"""Lost changes and restores on the command line: exit codes, acknowledgment, a passing check afterwards."""

from __future__ import annotations

import json

import pytest

from mssql_cdc_tests.end_to_end.kit import Place

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_a_loss_ends_with_code_4_and_is_acknowledged_by_name(orders: Place, capsys: pytest.CaptureFixture[str]):
    place = orders
    place.sql("DELETE FROM dbo.orders WHERE id = 1", "WAITFOR DELAY '00:00:00.050'")
    place.sql("INSERT INTO dbo.orders VALUES (3, N'three')")
    place.settle()
    newest = place.control.value(
        "SELECT CONVERT(varchar(22), MAX(start_lsn), 1) FROM cdc.lsn_time_mapping WHERE tran_id <> 0x00", doing="asking"
    )
    place.sql(f"EXEC sys.sp_cdc_cleanup_change_table N'dbo_orders', {newest}, 100")
    assert place.catch_up() == 4
    assert place.command("acknowledge", "--table", "dbo.nothing") == 2
    capsys.readouterr()
    assert place.command("acknowledge", "--table", "dbo.orders") == 0
    assert "1 gaps acknowledged" in capsys.readouterr().err
    assert place.command("acknowledge") == 0
    assert place.catch_up() == 4
    place.configure(snapshot_mode="when_needed")
    assert place.catch_up() == 0
    assert place.check() == 0


@pytest.mark.feature("SIG-02")
def test_a_signal_table_that_lost_changes_continues_after_a_gap(signalled: Place, capsys: pytest.CaptureFixture[str]):
    """It stayed lost: no snapshot reads it, so that the one that was advised could not repair it."""
    place = signalled
    assert place.catch_up() == 0
    place.sql("EXEC sys.sp_cdc_disable_table N'dbo', N'signals', N'all'", "WAITFOR DELAY '00:00:01.100'")
    place.signal("unseen", type="BLOCKING", **{"data-collections": [f"{place.database}.dbo.orders"]})
    place.enable("signals")
    place.settle()
    capsys.readouterr()
    assert place.catch_up() == 0
    assert f"not acknowledged: {place.database}.dbo.signals: changes after" in capsys.readouterr().err

    place.signal("seen", type="BLOCKING", **{"data-collections": [f"{place.database}.dbo.orders"]})
    place.settle()
    assert place.catch_up() == 0
    found = place.query("SELECT COUNT(DISTINCT _snapshot) AS n FROM t WHERE op = 'r'", "orders", "changes")
    assert found == [{"n": 2}]
    assert place.command("acknowledge", "--table", "dbo.signals") == 0
    capsys.readouterr()
    assert place.catch_up() == 0
    assert "not acknowledged" not in capsys.readouterr().err
    assert place.check() == 0


@pytest.mark.sandbox
def test_a_restored_source_stops_with_code_4_until_capture_is_resumed(
    orders: Place, capsys: pytest.CaptureFixture[str]
):
    place = orders
    assert place.command("acknowledge", "--restored") == 2
    place.sql("INSERT INTO dbo.orders VALUES (3, N'in both histories')")
    place.settle()
    place.sql("EXEC sandbox.restore_point")
    place.sql("INSERT INTO dbo.orders VALUES (4, N'never happened')", "DELETE FROM dbo.orders WHERE id = 1")
    assert place.catch_up() == 0
    place.sql("EXEC sandbox.restore_database")
    place.sql("INSERT INTO dbo.orders VALUES (5, N'happened instead')", "DELETE FROM dbo.orders WHERE id = 2")
    place.settle()
    capsys.readouterr()
    assert place.catch_up() == 4
    assert "acknowledge --restored" in capsys.readouterr().err
    assert place.command("acknowledge", "--restored") == 0
    assert place.catch_up() == 0
    assert place.check() == 0
    place.sql("UPDATE dbo.orders SET name = N'in the new epoch' WHERE id = 3")
    assert place.catch_up() == 0
    assert place.check() == 0
    newest = place.query("SELECT _pos AS pos, op FROM t ORDER BY _pos DESC LIMIT 1", "orders", "changes")[0]
    assert (newest["pos"][:5], newest["op"]) == ("0001-", "u")
    output = place.folder / "records.jsonl"
    assert place.command("records", "--output", str(output)) == 0
    records = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    values = [one["value"] for one in records if one["topic"].endswith(".orders") and one["value"]]
    assert values[-1]["after"]["name"] == "in the new epoch"
    assert [value["op"] for value in values].count("r") == 5


@pytest.mark.feature("SNP-12")
@pytest.mark.parametrize("mode", ["direct", "function"])
def test_cleanup_that_overtakes_capture_is_data_loss_and_a_snapshot_repairs_it(signalled: Place, mode: str):
    signalled.configure(signal_data_collection=f"{signalled.database}.dbo.signals", data_query_mode=mode)
    # The mark moves down to the first commit of the same clock tick.
    signalled.sql("DELETE FROM dbo.orders WHERE id = 1", "WAITFOR DELAY '00:00:00.050'")
    signalled.sql("INSERT INTO dbo.orders VALUES (3, N'three')")
    signalled.settle()
    signalled.sql(
        "DECLARE @to binary(10) = sys.fn_cdc_get_max_lsn(); "
        "EXEC sys.sp_cdc_cleanup_change_table @capture_instance = N'dbo_orders', @low_water_mark = @to"
    )
    assert signalled.catch_up() == 4
    assert signalled.catch_up() == 4
    signalled.signal("mend", type="blocking", **{"data-collections": [f"{signalled.database}.dbo.orders"]})
    assert signalled.catch_up() == 0
    assert signalled.check() == 0

"""`ALTER TABLE … SWITCH` moves rows that CDC does not capture: a notice says so before, the check finds them after."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mssql_cdc.cli import main
from mssql_cdc.errors import MssqlCdcError
from mssql_cdc_tests.end_to_end.kit import Place

pytestmark = [pytest.mark.spark, pytest.mark.slow]

NOTICE = "is partitioned, and its capture instance dbo_sales allows ALTER TABLE … SWITCH"


@pytest.fixture
def sales(place: Place) -> Place:
    """A partitioned table of four rows, two in each partition, that is in the lake, and a table to switch with."""
    place.create_sales()
    place.settle()
    assert place.catch_up() == 0
    return place


def result(place: Place, capsys: pytest.CaptureFixture[str], *options: str, code: int) -> dict[str, Any]:
    capsys.readouterr()
    found = place.command("check", "--json", *options)
    shown = capsys.readouterr()
    assert found == code, shown.out + shown.err
    (one,) = json.loads(shown.out)["tables"]
    return one


def switch_out_and_in(place: Place) -> None:
    """Rows 200 and 201 go, rows 300 to 302 come: no change of any of them is captured."""
    place.sql(
        "ALTER TABLE dbo.sales SWITCH PARTITION 2 TO dbo.aside",
        "DELETE dbo.aside",
        "INSERT dbo.aside VALUES (300, 1), (301, 2), (302, 3)",
        "ALTER TABLE dbo.aside ADD CHECK (id >= 100)",
        "ALTER TABLE dbo.aside SWITCH TO dbo.sales PARTITION 2",
        "INSERT dbo.sales VALUES (3, 3)",
    )
    place.settle()


def test_rows_that_were_switched_are_found_by_the_check_and_mended_by_its_repair(
    sales: Place, capsys: pytest.CaptureFixture[str]
):
    switch_out_and_in(sales)
    assert sales.catch_up() == 0
    found = result(sales, capsys, code=5)
    assert sorted(found["differences"]) == [
        "key 200: not in the source", "key 201: not in the source",
        "key 300: missing in the lake", "key 301: missing in the lake", "key 302: missing in the lake",
    ]  # fmt: skip
    mended = result(sales, capsys, "--repair", code=0)
    assert (mended["result"], mended["repaired_rows"]) == ("equal", 5)
    assert [row["id"] for row in sales.query("SELECT id FROM t ORDER BY id", "sales")] == [1, 2, 3, 300, 301, 302]
    assert sales.catch_up() == 0
    assert result(sales, capsys, code=0)["result"] == "equal"


@pytest.mark.parametrize("command", ["discover", "run"])
def test_a_switch_that_is_allowed_is_said_once_at_the_start(
    command: str, sales: Place, capsys: pytest.CaptureFixture[str]
):
    assert said(sales, capsys, command).count(NOTICE) == 1


def test_the_instance_that_the_notice_advises_refuses_a_switch_and_ends_the_notice(
    sales: Place, capsys: pytest.CaptureFixture[str]
):
    assert "@allow_partition_switch = 0" in said(sales, capsys, "discover")
    sales.sql(
        "EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'sales', @role_name = NULL, "
        "@capture_instance = N'sales_2', @allow_partition_switch = 0",
        "INSERT dbo.sales VALUES (3, 3)",
    )
    sales.settle()
    assert sales.catch_up() == 0
    sales.sql(
        "EXEC sys.sp_cdc_disable_table @source_schema = N'dbo', @source_name = N'sales', "
        "@capture_instance = N'dbo_sales'",
        "INSERT dbo.sales VALUES (4, 4)",
    )
    with pytest.raises(MssqlCdcError, match="SWITCH"):
        sales.sql("ALTER TABLE dbo.sales SWITCH PARTITION 2 TO dbo.aside")
    sales.settle()
    assert "SWITCH" not in said(sales, capsys, "run")
    assert result(sales, capsys, code=0)["source_rows"] == 6


def said(place: Place, capsys: pytest.CaptureFixture[str], command: str) -> str:
    """What a command logs, in one line."""
    capsys.readouterr()
    assert (main(["discover", "--config", str(place.config)]) if command == "discover" else place.catch_up()) == 0
    return " ".join(capsys.readouterr().err.split())

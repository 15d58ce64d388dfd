"""`mssql-cdc offsets`: what it says of tables that stand before the end of an output (STR-22)."""

from __future__ import annotations

from pathlib import Path

import pytest

from mssql_cdc.errors import DataLostError, MssqlCdcError, NotCaughtUpError
from mssql_cdc.lake.steps import Status
from mssql_cdc.records import open_output, write_records
from mssql_cdc.records.left_behind import left_behind
from mssql_cdc_tests.lake_kit import Change, lsn
from mssql_cdc_tests.unit.records.kit import DATABASE, Lake, table


def said(lake: Lake) -> MssqlCdcError | None:
    """What is said behind an output that has every record of the lake."""
    name = str(lake.folder / "records.jsonl")
    with open_output(name, lake.connector) as output:
        write_records(lake.connector, output=output)
    with open_output(name, lake.connector) as output:
        assert output.kept is not None
        return left_behind(lake.connector, DATABASE, output.kept.databases[DATABASE])


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Two tables; the output ends at 3."""
    lake = Lake(tmp_path, {"include.schema.changes": False})
    for name in ("a", "b"):
        lake.append(lake.add(table(name)), Change(1, "c", after={"id": 1, "name": "x"}))
    lake.cut(1)
    return lake


def go_on(lake: Lake) -> None:
    """Table `a` has further changes, in a cut that goes on without `b`."""
    lake.append(table("a"), Change(3, "c", after={"id": 3, "name": "x"}))
    lake.cut(3, only=["a"])


def test_nothing_is_said_where_every_table_stands_at_the_end(lake: Lake):
    assert said(lake) is None
    lake.append(table("a"), Change(3, "c", after={"id": 3, "name": "x"}))
    lake.cut(3)
    assert said(lake) is None


@pytest.mark.parametrize(
    ("status", "kind", "code"), [("failed", NotCaughtUpError, 3), ("lost", DataLostError, 4)], ids=["given up", "lost"]
)
def test_a_table_that_was_left_behind_is_named(lake: Lake, status: Status, kind: type[MssqlCdcError], code: int):
    lake.cut(2, only=["b"], status=status, complete=False)
    go_on(lake)
    error = said(lake)
    assert isinstance(error, kind)
    assert error.exit_code == code
    assert f"{DATABASE}.dbo.b ({status}) was read up to {lsn(2).text}" in str(error)
    assert "dbo.a (" not in str(error)


def test_an_excluded_table_is_not_left_behind(lake: Lake):
    lake.cut(2, only=["b"], status="excluded", complete=False)
    go_on(lake)
    assert said(lake) is None

"""Changes that cannot be rendered: records stop, warn or go on, and the lake keeps every row."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from mssql_cdc.errors import ConversionError
from mssql_cdc.lake.read import read_table
from mssql_cdc.lake.steps import SnapshotBegun
from mssql_cdc.records.failures import Failures
from mssql_cdc.schema import TableId
from mssql_cdc_tests.lake_kit import Change, lsn, position_text
from mssql_cdc_tests.unit.config.samples import connector_with
from mssql_cdc_tests.unit.records.kit import Lake, table

MODE = "event__processing__failure__handling__mode"
BROKEN = {"after": {"name": "utf16:d8"}}
"""The exact form of a text that UTF-8 cannot encode, without its second byte."""
NAMES = ("a", "b", "c", "d", "e")


def streamed(tmp_path: Path, broken: int = 3) -> Lake:
    """Five rows that are created in one transaction, one of which has a text that cannot be converted."""
    lake = Lake(tmp_path)
    schema = lake.add(table("a"))
    changes = [
        Change(1, "c", after={"id": key, "name": name}, sequence=key, exact=BROKEN if key == broken else {})
        for key, name in enumerate(NAMES, start=1)
    ]
    lake.append(schema, *changes)
    lake.cut(1)
    return lake


def rows(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [record for record in records if "op" in record["value"]]


@pytest.mark.feature("ERR-01")
def test_records_stop_at_a_change_that_cannot_be_converted_and_name_its_position(tmp_path: Path):
    lake = streamed(tmp_path)
    with pytest.raises(ConversionError, match=r"at offset .* of testDB1\.dbo\.a \(0000-.*=warn") as raised:
        lake.records()
    assert f"Error while processing event at offset {{commit_lsn={lsn(1).text}, change_lsn=" in str(raised.value)


@pytest.mark.feature("ERR-01")
@pytest.mark.parametrize(("mode", "warnings"), [("warn", 1), ("skip", 0), ("ignore", 0)])
def test_such_a_change_is_left_out_of_the_records_and_of_nothing_else(
    tmp_path: Path, mode: str, warnings: int, caplog: pytest.LogCaptureFixture
):
    lake = streamed(tmp_path)
    with caplog.at_level(logging.WARNING, "mssql_cdc"):
        found = rows(lake.records(**{MODE: mode}, provide__transaction__metadata=True))
    assert [record["key"]["id"] for record in found] == [1, 2, 4, 5]
    # Debezium counts the row at its position, and not the event that never was.
    assert [record["value"]["source"]["event_serial_no"] for record in found] == [1, 1, 1, 1]
    assert [record["value"]["transaction"]["total_order"] for record in found] == [1, 2, 3, 4]
    assert len([line for line in caplog.messages if "Error while processing event at offset {" in line]) == warnings
    assert read_table(lake.layout.home(table("a").table_id).changes).num_rows == len(NAMES)


def test_the_warning_holds_neither_a_value_nor_a_secret(caplog: pytest.LogCaptureFixture):
    failures = Failures.of(connector_with({"event.processing.failure.handling.mode": "warn"}))
    failures.handle(TableId("a", "b", "c"), position_text(0, lsn(1), None, lsn(1), 2), ValueError("I say sesame"))
    (line,) = caplog.messages
    assert line.endswith(": ValueError; its records are left out")


@pytest.mark.feature("TYP-04")
@pytest.mark.parametrize("mode", ["warn", "skip", "fail"])
def test_a_value_that_cannot_be_converted_is_never_left_unset_whatever_its_mode(tmp_path: Path, mode: str):
    lake = streamed(tmp_path)
    converting = {"event__converting__failure__handling__mode": mode}
    with pytest.raises(ConversionError):
        lake.records(**converting)
    found = rows(lake.records(**converting, **{MODE: "skip"}))
    assert [record["value"]["after"]["name"] for record in found] == ["a", "b", "d", "e"]


@pytest.mark.feature("ERR-01")
@pytest.mark.parametrize("broken", [1, 2, 3, 4, 5])
def test_a_snapshot_ends_with_the_last_row_that_can_be_converted(tmp_path: Path, broken: int):
    lake = Lake(tmp_path)
    schema = lake.add(table("a"))
    reads = [
        Change(7, "r", after={"id": key, "name": name}, sequence=key, exact=BROKEN if key == broken else {})
        for key, name in enumerate(NAMES, start=1)
    ]
    lake.append(schema, *reads)
    lake.cut(7, kind="snapshot", partition="first", facts=SnapshotBegun(snapshot="first", number=1))
    with pytest.raises(ConversionError):
        lake.records()
    found = rows(lake.records(**{MODE: "skip"}))
    assert [record["key"]["id"] for record in found] == [key for key in range(1, 6) if key != broken]
    assert found[-1]["value"]["source"]["snapshot"] == "last"
    assert [record["sourceOffset"]["snapshot_completed"] for record in found] == [False, False, False, True]
    assert {record["sourceOffset"]["commit_lsn"] for record in found} == {lsn(7).text}

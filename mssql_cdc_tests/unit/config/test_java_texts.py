"""Texts of Java: the lines were written by Debezium 3.3.1's own classes."""

from __future__ import annotations

import pytest

from mssql_cdc.capture.notification_channels import LogChannel
from mssql_cdc.capture.notification_contract import Notification
from mssql_cdc.config.java_texts import line_with, map_text


@pytest.mark.feature("NOT-01", "NOT-02")
@pytest.mark.parametrize(
    ("more", "shown"),
    [
        ({}, "{connector_name=shop}"),
        ({"data_collections": "a,b"}, "{connector_name=shop, data_collections=a,b}"),
        (
            {"data_collections": "a,b", "current_collection_in_progress": "a"},
            "{current_collection_in_progress=a, connector_name=shop, data_collections=a,b}",
        ),
        (
            {"scanned_collection": "a", "status": "SQL_EXCEPTION"},
            "{connector_name=shop, scanned_collection=a, status=SQL_EXCEPTION}",
        ),
        (
            {"data_collections": "a,b", "scanned_collection": "a", "total_rows_scanned": "3", "status": "SUCCEEDED"},
            "{scanned_collection=a, connector_name=shop, total_rows_scanned=3, data_collections=a,b, status=SUCCEEDED}",
        ),
    ],
)
def test_channel_log_writes_a_notification_as_debezium_does(more: dict[str, str], shown: str) -> None:
    lines: list[str] = []
    data = {"connector_name": "shop", **more}
    notification = Notification(
        id="s1", aggregate_type="Initial Snapshot", type="X", additional_data=data, timestamp_ms=1767225600000
    )
    LogChannel(lines.append).send(notification)
    told = "id='s1', aggregateType='Initial Snapshot', type='X'"
    assert lines == [f"[Notification Service] {{{told}, additionalData={shown}, timestamp=1767225600000}}"]


def test_a_map_has_the_order_of_its_hashes() -> None:
    offset = {"commit_lsn": "c", "change_lsn": None, "event_serial_no": 1}
    assert map_text(offset) == "{event_serial_no=1, commit_lsn=c, change_lsn=null}"


@pytest.mark.parametrize(
    ("pattern", "line"),
    [("at {} and {}", "at O and {}"), (r"at \{} and {}", "at {} and O"), ("nowhere", "nowhere")],
)
def test_a_line_takes_its_value_once(pattern: str, line: str) -> None:
    assert line_with(pattern, "O") == line

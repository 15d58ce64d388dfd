"""Heartbeat records at complete cuts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mssql_cdc.lake.steps import OffsetRow
from mssql_cdc.lsn import Lsn, cut_text
from mssql_cdc.records.envelope import Envelopes, SourceInfo
from mssql_cdc.records.extending import Extensions
from mssql_cdc.records.heartbeats import Beat, beat_record, beats
from mssql_cdc_tests.unit.config.samples import connector

START = datetime(2026, 11, 21, tzinfo=UTC)


def cut(number: int, seconds: int) -> OffsetRow:
    to = Lsn(number.to_bytes(10, "big")).text
    return OffsetRow("range", START + timedelta(seconds=seconds), {}, to=to, complete=True)


@pytest.mark.feature("HB-01")
def test_heartbeats_keep_their_interval_and_zero_disables_them():
    cuts = [cut(1, 0), cut(2, 3), cut(3, 5), cut(4, 6)]
    found = list(beats(cuts, 5_000))
    assert [beat.position for beat in found] == [cut_text(0, Lsn.parse(one.to or "")) for one in (cuts[0], cuts[2])]
    assert found[1].at_ms - found[0].at_ms == 5_000
    assert list(beats(cuts, 0)) == []


@pytest.mark.feature("HB-04", "TOP-04")
def test_a_heartbeat_contains_the_server_and_the_position():
    envelopes = Envelopes(connector(), "shop", Extensions.of(connector()))
    assert list(beat_record(Beat("x", 17), envelopes)) == []
    envelopes.newest = SourceInfo("shop", "dbo", "orders", None, commit_lsn="00000027:00000ac0:0002")
    (record,) = beat_record(Beat("x", 17), envelopes)
    assert record["topic"] == f"__debezium-heartbeat.{connector().topic_prefix}"
    assert (record["key"], record["value"]) == ({"serverName": connector().topic_prefix}, {"ts_ms": 17})
    assert (record["partition"], record["sourceOffset"]["commit_lsn"]) == (0, "00000027:00000ac0:0002")


@pytest.mark.feature("HB-04", "EVT-19")
def test_a_heartbeat_behind_a_snapshot_has_the_offset_that_debezium_streams_on_from():
    envelopes = Envelopes(connector(), "shop", Extensions.of(connector()))
    envelopes.newest = SourceInfo("shop", "dbo", "orders", None, "last", commit_lsn="00000027:00000ac0:0002")
    (record,) = beat_record(Beat("x", 17), envelopes)
    assert record["sourceOffset"] == {
        "commit_lsn": "00000027:00000ac0:0002", "change_lsn": "NULL", "event_serial_no": 1,
    }  # fmt: skip

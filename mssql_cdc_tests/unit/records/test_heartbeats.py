"""Heartbeat records: at complete cuts, and at the end of each snapshot."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mssql_cdc.lake.known_states import KnownTables
from mssql_cdc.lake.recorded import Cut
from mssql_cdc.lake.steps import SnapshotBegun
from mssql_cdc.lsn import Lsn, cut_text
from mssql_cdc.records.cuts import Cuts, position_of
from mssql_cdc.records.envelope import Envelopes, SourceInfo
from mssql_cdc.records.extending import Extensions
from mssql_cdc.records.heartbeats import Beat, beat_record, beats, idle_beat, milliseconds
from mssql_cdc.records.write import Resumed, records_behind
from mssql_cdc_tests.lake_kit import AT, Change, lsn
from mssql_cdc_tests.unit.config.samples import connector
from mssql_cdc_tests.unit.records.kit import DATABASE, Lake, Looked, table
from mssql_cdc_tests.unit.records.test_notifications import SINK

START = datetime(2026, 11, 21, tzinfo=UTC)


def cut(number: int, seconds: int) -> Cut:
    return Cut(number, START + timedelta(seconds=seconds), 0, Lsn(number.to_bytes(10, "big")).text)


@pytest.mark.feature("HB-01")
def test_heartbeats_keep_their_interval_and_zero_disables_them():
    cuts = [cut(1, 0), cut(2, 3), cut(3, 5), cut(4, 6)]
    found = list(beats(cuts, 5_000))
    assert [beat.position for beat in found] == [cut_text(0, Lsn.parse(one.to)) for one in (cuts[0], cuts[2])]
    assert found[1].at_ms - found[0].at_ms == 5_000
    assert list(beats(cuts, 0)) == []


@pytest.mark.feature("HB-01")
@pytest.mark.parametrize(
    ("seconds", "known", "expected"),
    [(4, [0], False), (5, [0], True), (6, [0, 2], False), (6, [], True)],
)
def test_a_poll_that_finds_nothing_has_a_heartbeat_when_it_is_due(seconds: int, known: list[int], *, expected: bool):
    at = START + timedelta(seconds=seconds)
    known_ms = [milliseconds(START + timedelta(seconds=one)) for one in known]
    found = list(idle_beat(cut(3, 0), at, 5_000, known_ms=known_ms))
    assert found == ([Beat(cut_text(0, Lsn.parse(cut(3, 0).to)), milliseconds(at))] if expected else [])
    assert list(idle_beat(cut(3, 0), at, 0, known_ms=known_ms)) == []


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
def test_a_heartbeat_after_a_snapshot_has_the_offset_that_debezium_streams_on_from():
    envelopes = Envelopes(connector(), "shop", Extensions.of(connector()))
    envelopes.newest = SourceInfo("shop", "dbo", "orders", None, "last", commit_lsn="00000027:00000ac0:0002")
    (record,) = beat_record(Beat("x", 17), envelopes)
    assert record["sourceOffset"] == {
        "commit_lsn": "00000027:00000ac0:0002", "change_lsn": "NULL", "event_serial_no": 1,
    }  # fmt: skip


@pytest.mark.feature("SNP-34")
@pytest.mark.parametrize("has_rows", [True, False], ids=["with rows", "no_data"])
def test_the_end_of_every_snapshot_has_a_heartbeat_whatever_the_interval(tmp_path: Path, *, has_rows: bool):
    lake = Lake(tmp_path, {"heartbeat.interval.ms": 3_600_000, "include.schema.changes": True})
    schema = lake.add(table("a"))
    if has_rows:
        lake.append(schema, Change(7, "r", after={"id": 1}), Change(7, "r", after={"id": 2}, sequence=2))
    first = SnapshotBegun(snapshot="first", number=1, data=has_rows)
    lake.cut(7, complete=False, kind="snapshot", partition="first", facts=first, minutes=1)
    lake.cut(7, minutes=2)
    lake.append(schema, Change(8, "c", after={"id": 3}))
    lake.cut(8, minutes=3)
    lake.append(schema, Change(8, "r", after={"id": 3}, snapshot=2), snapshot="2")
    again = SnapshotBegun(snapshot="again", number=2)
    lake.cut(8, complete=False, kind="snapshot", partition="again", facts=again, minutes=4)
    lake.append(schema, Change(9, "c", after={"id": 4}))
    lake.cut(9, minutes=5)
    found = lake.records()
    places = [place for place, one in enumerate(found) if "-heartbeat" in one["topic"]]
    assert [found[place - 1]["value"]["source"]["snapshot"] for place in places] == ["last", "last"]
    assert [found[place]["sourceOffset"]["commit_lsn"] for place in places] == [lsn(7).text, lsn(8).text]
    minutes = [(found[place]["value"]["ts_ms"] - milliseconds(AT)) / 60_000 for place in places]
    assert minutes == [1, 4]
    assert not [one for one in lake.records(heartbeat__interval__ms=0) if "-heartbeat" in one["topic"]]


@pytest.mark.feature("HB-01", "SNP-34")
def test_the_interval_counts_from_the_end_of_a_snapshot():
    cuts = [cut(1, 0), cut(2, 6), cut(3, 10)]
    ends = [milliseconds(START + timedelta(seconds=4))]
    assert [beat.at_ms - milliseconds(START) for beat in beats(cuts, 5_000, ends_ms=ends)] == [0, 10_000]


@pytest.mark.feature("HB-01", "SNP-34")
@pytest.mark.parametrize("interval", [1_000, 7_000, 60_000])
def test_heartbeats_after_any_of_them_are_the_rest(interval: int):
    cuts, ends = Looked(200), [milliseconds(AT + timedelta(seconds=one)) for one in (0.5, 13, 100)]
    whole = list(beats(cuts, interval, ends_ms=ends))
    for place, beat in enumerate(whole):
        found = beats(cuts, interval, ends_ms=ends, last_ms=beat.at_ms, start=f"{beat.position}+")
        assert list(found) == whole[place + 1 :]


@pytest.mark.feature("HB-01")
def test_heartbeats_after_any_of_them_are_the_rest_although_clocks_differ():
    """The run that followed had another host, whose clock was behind; then the database was idle."""
    cuts = [cut(n, at) for n, at in [(1, 0), (2, 30), (3, 29), (4, 3), (5, 12), (5, 36), (5, 41), (5, 44), (6, 60)]]
    whole = list(beats(cuts, 10_000))
    assert [(beat.at_ms - milliseconds(START)) // 1000 for beat in whole] == [0, 30, 41, 60]
    for place, beat in enumerate(whole):
        found = beats(cuts, 10_000, last_ms=beat.at_ms, start=f"{beat.position}+")
        assert list(found) == whole[place + 1 :]


@pytest.mark.feature("HB-01")
def test_looking_for_heartbeats_costs_what_is_new(tmp_path: Path):
    """Every look of `records --follow` went through all cuts that were ever made."""
    cuts = Looked(1_000_000)
    last = milliseconds(AT + timedelta(seconds=999_990))
    assert len(list(beats(cuts, 2_000, last_ms=last, start=f"{position_of(cuts[999_990])}+"))) == 4
    assert cuts.looks < 50


def test_a_stream_that_goes_on_decodes_no_cut_of_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    lake = Lake(tmp_path, {"heartbeat.interval.ms": 60_000, **SINK})
    schema = lake.add(table("a"))
    for at in range(1, 41):
        lake.append(schema, Change(at, "c", after={"id": at}))
        lake.cut(at, minutes=at)
    known = KnownTables()
    whole = list(records_behind(lake.connector, DATABASE, Resumed(None), known=known))
    lake.cut(41, minutes=41)
    decoded: list[int] = []
    one = Cuts.__getitem__
    monkeypatch.setattr(Cuts, "__getitem__", lambda self, place: decoded.append(place) or one(self, place))
    rest = list(records_behind(lake.connector, DATABASE, Resumed(whole[-1].state), known=known))
    assert [text for batch in rest for text in batch.records.column("topic").to_pylist()] == [
        "__debezium-heartbeat.server1"
    ]
    assert len(decoded) < 20

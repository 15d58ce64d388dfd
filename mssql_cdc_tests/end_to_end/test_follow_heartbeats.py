"""Heartbeats of `records --follow`: on time, also while nothing happens at the source."""

from __future__ import annotations

import itertools

import pytest

from mssql_cdc_tests.end_to_end.followed import Followed, Line, followed
from mssql_cdc_tests.end_to_end.kit import Place

pytestmark = pytest.mark.slow


def heartbeats(found: Followed) -> list[Line]:
    return [one for one in found.records if one["topic"].startswith("__debezium-heartbeat.")]


@pytest.mark.feature("HB-01", "HB-04", "HB-05")
def test_heartbeats_come_at_their_interval_while_the_source_is_idle(place: Place):
    place.configure(heartbeat_interval_ms="400", poll_interval_ms="100")
    place.create("items", "id int NOT NULL PRIMARY KEY")
    place.sql("INSERT INTO dbo.items VALUES (1)")
    place.settle()
    with followed(place) as found:
        found.changes(1)
        place.sql("INSERT INTO dbo.items VALUES (2)")
        newest = found.changes(2)[-1]["sourceOffset"]["commit_lsn"]
        found.wait_for(lambda it: sum(one["sourceOffset"]["commit_lsn"] == newest for one in heartbeats(it)) >= 4)
        place.sql("INSERT INTO dbo.items VALUES (3)")
        found.changes(3)
        assert found.end() == 0
    times = [one["value"]["payload"]["ts_ms"] for one in heartbeats(found)][1:]  # The first one ends the snapshot.
    assert all(later - earlier >= 400 for earlier, later in itertools.pairwise(times)), times


@pytest.mark.feature("SNP-05", "SNP-34")
def test_a_snapshot_without_rows_describes_its_tables_and_has_a_heartbeat_before_any_change(place: Place):
    """Debezium's SnapshotIT.takeSchemaOnlySnapshotAndSendHeartbeat."""
    place.configure(snapshot_mode="no_data", heartbeat_interval_ms="300000")
    place.create("items", "id int NOT NULL PRIMARY KEY")
    place.sql("INSERT INTO dbo.items VALUES (1)")
    place.settle()
    with followed(place) as found:
        found.wait_for(heartbeats)
        assert found.end() == 0
    assert [one["topic"] for one in found.records] == ["shop", "__debezium-heartbeat.shop"]
    (beat,) = heartbeats(found)
    assert beat["sourceOffset"]["commit_lsn"] is not None

"""`records --follow` says that it has started once nothing is left that an operator would have to correct."""

from __future__ import annotations

from pathlib import Path

import pytest

from mssql_cdc_tests.end_to_end.followed import data_of, followed, keys_of, offsets_file
from mssql_cdc_tests.end_to_end.kit import Place

pytestmark = pytest.mark.slow


@pytest.fixture
def items(place: Place) -> Place:
    """A place with two captured tables, and no lake."""
    place.create("items", "id int NOT NULL PRIMARY KEY")
    place.create("others", "id int NOT NULL PRIMARY KEY")
    place.sql("INSERT INTO dbo.items VALUES (1)")
    place.settle()
    return place


def refused(place: Place, *options: str) -> str:
    """Follow in vain, and return why."""
    with followed(place, *options) as found:
        assert found.ended() == 2
    assert [one["event"] for one in found.events if one["event"] in {"started", "error"}] == ["error"]
    assert not found.records
    return found.events[-1]["message"]


@pytest.mark.feature("GRD-02")
def test_a_guardrail_that_fails_comes_before_the_start(items: Place):
    items.configure(guardrail_collections_max="1", guardrail_collections_limit_action="fail")
    assert (
        "Guardrail limit exceeded: 2 tables configured for capture, but guardrail.collections.max allows 1"
        in refused(items)
    )


@pytest.mark.feature("STR-16", "STR-17")
def test_tables_may_come_after_the_start(place: Place):
    """Debezium starts without a captured table, too, with a warning."""
    with followed(place) as found:
        found.wait_for(lambda one: any(event["event"] == "streaming" for event in one.events))
        assert [one["code"] for one in found.events if one.get("level") == "WARN"] == ["no-captured-tables"]
        states = [one["state"] for one in found.events if one["event"] == "snapshot"]
        assert states == ["started", "completed"], "the snapshot of no table"
        place.create("items", "id int NOT NULL PRIMARY KEY")
        place.sql("INSERT INTO dbo.items VALUES (1)")
        assert keys_of(found.changes(1)) == [("r", 1)]
        assert found.end() == 0


@pytest.mark.feature("SNP-06")
def test_recovery_without_anything_to_recover_comes_before_the_start(items: Place):
    items.configure(snapshot_mode="recovery")
    assert "snapshot.mode=recovery: the lake has no position" in refused(items)


def test_offsets_before_the_beginning_of_the_lake_are_refused(items: Place, tmp_path: Path):
    """Its first records would be those of a snapshot, and the changes in between would be missing unseen."""
    with followed(items) as found:
        found.changes(1)
        items.sql("INSERT INTO dbo.items VALUES (2)")
        old = found.changes(2)[-1]
        assert found.end() == 0
    items.sql("DELETE dbo.items WHERE id = 2")
    items.settle()
    options = ("--state-dir", str(tmp_path / "later"))
    with followed(items, *options) as later:
        later.changes(1)
        assert later.end() == 0
    assert len(data_of(later.records)) == 1
    why = refused(items, *options, "--offsets", str(offsets_file(tmp_path, old)))
    assert old["sourceOffset"]["commit_lsn"] in why
    assert "before the beginning of the lake" in why


@pytest.mark.feature("GRD-02")
def test_a_guardrail_that_warns_says_so_once(items: Place):
    items.configure(guardrail_collections_max="1")
    with followed(items) as found:
        found.changes(1)
        assert found.end() == 0
    names = [one["event"] for one in found.events if one["event"] == "started" or "code" in one]
    assert names == ["log", "started", "log"], "the last one is about the end"

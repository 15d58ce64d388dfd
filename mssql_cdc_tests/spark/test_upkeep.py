"""What a step does beside its rows: it compacts `_offsets` without delay, and creates no table that nothing needs."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import pytest
from deltalake import DeltaTable

from mssql_cdc.capture.requests import ask_for_snapshot
from mssql_cdc.follow import upkeep
from mssql_cdc.follow.slow_work import SlowWork
from mssql_cdc.lake.offset_commits import load_offsets
from mssql_cdc.lake.small_tables import SmallTable
from mssql_cdc.run.follower import Follower
from mssql_cdc.run.loop import catch_up
from mssql_cdc_tests.spark.model_lake import changes, settled, write_some

pytestmark = pytest.mark.spark


def files(database) -> int:
    return len(DeltaTable(database.layout.own("offsets")).file_uris())


def test_ranges_go_on_while_offsets_are_compacted(database, source, monkeypatch: pytest.MonkeyPatch):
    write_some(source)
    settled(database, source)
    begun, may_end, compact = Event(), Event(), SmallTable.compact

    def slowly(self: SmallTable) -> None:
        begun.set()
        assert may_end.wait(60)
        compact(self)

    monkeypatch.setattr(upkeep, "COMPACT_ROWS", 2)
    monkeypatch.setattr(SmallTable, "compact", slowly)
    follower, before = Follower(database, slow=SlowWork()), load_offsets(database.layout).number
    for number in range(6):
        source.put("orders", number, "later")
        source.capture()
        follower.step()
    assert begun.wait(60)
    assert load_offsets(database.layout).number >= before + 6
    last = load_offsets(database.layout)
    may_end.set()
    follower.close()
    assert files(database) < last.number
    assert load_offsets(database.layout) == last


def test_offsets_are_compacted_at_the_end_of_a_step_that_nothing_runs_beside(
    database, source, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(upkeep, "COMPACT_ROWS", 4)
    write_some(source)
    settled(database, source)
    follower = Follower(database)
    for number in range(8):
        source.put("orders", number, "later")
        source.capture()
        follower.step()
    assert files(database) < 4 < load_offsets(database.layout).number


def test_a_connector_without_a_signal_table_has_no_signals_until_one_is_given_by_hand(database, source):
    write_some(source)
    settled(database, source)
    source.put("orders", 1, "later")
    settled(database, source)
    signals = Path(database.layout.own("signals"))
    assert not signals.exists()
    ask_for_snapshot(database, "s1", ["shop.dbo.orders"], channel="test")
    catch_up([database], timeout=120)
    assert signals.exists()
    assert len([op for op, _, _ in changes(database, "orders") if op == "r"]) == 8

"""A current table that a user restores before a sweep looks shows rows of before: none of them is deleted (C19)."""

from __future__ import annotations

import shutil

import pytest
from deltalake import DeltaTable

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.requests import SnapshotKind, ask_for_snapshot
from mssql_cdc.follow import sweeps
from mssql_cdc.follow.slow_work import SlowWork
from mssql_cdc.run.follower import Follower
from mssql_cdc_tests.spark.model_lake import changes, same, settled, write_some
from mssql_cdc_tests.spark.model_source import ModelSource
from mssql_cdc_tests.spark.test_slow_work import swept, until

pytestmark = pytest.mark.spark


@pytest.fixture
def folder(database: Database, source: ModelSource) -> str:
    """The current table of `orders`, of which a row is gone that only a sweep can delete."""
    write_some(source)
    settled(database, source)
    del source.tables["orders"].rows[1]
    return database.layout.root + "/dbo/orders/current"


def deletes(database: Database) -> int:
    return [op for op, _, _ in changes(database, "orders")].count("d")


@pytest.mark.parametrize("kind", ["blocking", "incremental"])
@pytest.mark.parametrize("beside", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_table_that_is_restored_before_its_sweep_looks_loses_no_row(
    database: Database,
    source: ModelSource,
    folder: str,
    monkeypatch: pytest.MonkeyPatch,
    kind: SnapshotKind,
    beside: bool,  # noqa: FBT001 (parametrized)
):
    find, restored = sweeps._find, list[int]()

    def restore_first(*arguments, **more):
        if not restored:
            restored.append(DeltaTable(folder).version())
            DeltaTable(folder).restore(0)
        return find(*arguments, **more)

    monkeypatch.setattr(sweeps, "_find", restore_first)
    ask_for_snapshot(database, "again", ["shop.dbo.orders"], channel="test", kind=kind)
    if beside:
        follower = Follower(database, slow=SlowWork())
        # The table is noticed to be behind when a cut follows.
        source.put("people", 9, "another cut")
        until(follower, source, lambda: restored)
        source.put("people", 9, "another cut")
        until(follower, source, lambda: swept(database))
        follower.close()
    settled(database, source)
    assert restored
    assert swept(database) == {"shop.dbo.orders"}
    assert deletes(database) == 1, "living rows were deleted"
    same(database, source)
    shutil.rmtree(folder)
    source.put("people", 9, "a cut that has the deletes")
    settled(database.apart(), source)
    same(database, source)


@pytest.mark.parametrize("kind", [pytest.param("blocking", marks=pytest.mark.long), "incremental"])
def test_a_current_table_that_is_gone_when_its_sweep_looks_is_built_again_first(
    database: Database, source: ModelSource, folder: str, monkeypatch: pytest.MonkeyPatch, kind: SnapshotKind
):
    find, gone = sweeps._find, list[bool]()

    def remove_first(*arguments, **more):
        if not gone:
            gone.append(True)
            shutil.rmtree(folder)
        return find(*arguments, **more)

    monkeypatch.setattr(sweeps, "_find", remove_first)
    ask_for_snapshot(database, "again", ["shop.dbo.orders"], channel="test", kind=kind)
    settled(database, source)
    assert gone
    assert swept(database) == {"shop.dbo.orders"}
    assert deletes(database) == 1
    same(database, source)

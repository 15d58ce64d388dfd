"""A quiet source: what a user does to a current table is noticed all the same, within a minute."""

from __future__ import annotations

import shutil
from datetime import timedelta

import pytest
from deltalake import DeltaTable

from mssql_cdc.follow.slow_work import SlowWork
from mssql_cdc.lake import known_states
from mssql_cdc.run import follower
from mssql_cdc.run.follower import Follower
from mssql_cdc_tests.spark.model_lake import current, same, settled, write_some

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("moved", [False, True])
def test_a_current_table_that_is_restored_or_moved_away_while_nothing_changes_is_built_again(
    database,
    source,
    monkeypatch,
    moved: bool,  # noqa: FBT001 (parametrized)
):
    monkeypatch.setattr(follower, "LOOK_AGAIN", timedelta(0))  # Each look is a minute later.
    monkeypatch.setattr(known_states, "_KEPT_SECONDS", 0.0)
    write_some(source)
    settled(database, source)
    source.put("orders", 1, "later")
    settled(database, source)
    followed = Follower(database, slow=SlowWork())
    for _ in range(3):
        followed.attempt()
    uri = database.layout.root + "/dbo/orders/current"
    if moved:
        shutil.rmtree(uri)
    else:
        DeltaTable(uri).restore(0)
        assert current(database, "orders") != source.tables["orders"].rows
    for _ in range(3):
        followed.attempt()
    followed.close()
    same(database, source)

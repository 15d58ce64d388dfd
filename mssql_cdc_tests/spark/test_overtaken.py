"""A current table to which another writer commits all the time: its updates fail, and that is told."""

from __future__ import annotations

import pytest

from mssql_cdc.errors import OvertakenError
from mssql_cdc.follow.slow_work import SlowWork
from mssql_cdc.lake import current as lake_current
from mssql_cdc.run.follower import Follower
from mssql_cdc_tests.spark.model_lake import same, settled, write_some

pytestmark = pytest.mark.spark


def test_a_table_that_others_always_change_is_told_and_updated_once_they_rest(database, source, monkeypatch):
    write_some(source)
    settled(database, source)
    lines: list[str] = []
    object.__setattr__(database, "log", lines.append)
    follower = Follower(database, slow=SlowWork())
    with monkeypatch.context() as during:

        def overtaken(log, *_, **__):
            raise OvertakenError(f"Another writer has changed {log.uri}")

        during.setattr(lake_current, "commit", overtaken)
        found = []
        for _ in range(3):
            write_some(source)
            source.capture()
            found.append(dict(follower.step().merged.errors))
    assert [len(one) for one in found] == [0, 0, 2]
    assert sum("is not updated yet: Another writer" in line for line in lines) == 6
    follower.close()
    settled(database, source)
    same(database, source)

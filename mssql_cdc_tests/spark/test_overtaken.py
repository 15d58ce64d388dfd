"""A current table to which others commit: an update goes on from their state, and fails only if they never rest."""

from __future__ import annotations

import time

import pytest
from delta import exceptions

from mssql_cdc.capture.current_tables import behind_cut
from mssql_cdc.capture.survey import survey
from mssql_cdc.errors import FencedError, MssqlCdcError, OvertakenError
from mssql_cdc.follow.current import merge_table
from mssql_cdc.follow.slow_work import SlowWork
from mssql_cdc.lake import current as lake_current
from mssql_cdc.lake.spark_log import conflicts_fenced
from mssql_cdc.run.follower import Follower
from mssql_cdc.schema import TableId
from mssql_cdc_tests.spark.model_lake import current, same, settled, write_some

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


def test_a_long_update_that_others_always_overtake_is_told_as_well(database, source, monkeypatch):
    """In the background, each attempt rewrote the table, and nobody heard that it was in vain."""
    write_some(source)
    settled(database, source)
    lines: list[str] = []
    object.__setattr__(database, "log", lines.append)
    monkeypatch.setattr(lake_current, "_LITTLE", 0)
    follower = Follower(database, slow=SlowWork())
    source.switch("orders")
    with monkeypatch.context() as during:

        def overtaken(log, *_, **__):
            raise OvertakenError(f"Another writer has changed {log.uri}")

        during.setattr(lake_current, "commit", overtaken)
        source.put("orders", 1, "priced", price=1)
        end, errors = time.monotonic() + 120, dict[TableId, MssqlCdcError]()
        while not errors and time.monotonic() < end:
            source.capture()
            done = follower.attempt()
            errors = dict(done.merged.errors) if done is not None else errors
            time.sleep(0.05)
    assert [(table.name, type(error)) for table, error in errors.items()] == [("orders", OvertakenError)]
    assert sum("orders: the current table is not updated yet: Another writer" in line for line in lines) == 3
    follower.close()
    settled(database, source)
    same(database, source)


def test_a_merge_that_another_run_has_made_meanwhile_is_done(database, source, monkeypatch):
    """A sweep, or a repair, asks for one table; the run that streams was faster."""
    write_some(source)
    settled(database, source)
    write_some(source)
    source.capture()
    Follower(database, merge=False).step()
    seen = survey(database)
    table = next(one for one in seen.tables.values() if one.table.name == "orders")
    up_to = behind_cut(database, [table], seen.offsets, seen.history)[table.table]
    run_here, raced = lake_current.run_here, list[bool]()

    def rival_is_faster(*arguments, **more):
        found = run_here(*arguments, **more)
        if not raced:
            raced.append(True)
            merge_table(database.apart(), table, seen.history, up_to)
        return found

    monkeypatch.setattr(lake_current, "run_here", rival_is_faster)
    done = merge_table(database, table, seen.history, up_to)
    assert (bool(raced), done.batch, done.rows) == (True, up_to, 0)
    assert current(database, "orders") == source.tables["orders"].rows


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ConcurrentAppendException", OvertakenError),
        ("ConcurrentDeleteReadException", OvertakenError),
        ("MetadataChangedException", OvertakenError),
        ("ConcurrentTransactionException", FencedError),
    ],
)
def test_a_conflict_that_spark_meets_tells_a_rival_run_from_another_writer(name: str, kind: type[FencedError]):
    """A user's OPTIMIZE that always was faster looked like a run that had merged the same rows."""
    with pytest.raises(FencedError) as raised, conflicts_fenced("current"):
        raise getattr(exceptions, name)("DELTA_CONFLICT")
    assert type(raised.value) is kind

"""Two runs that begin the first snapshot of the same tables: the later one reads what the other's stream moves on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.requests import ask_for_snapshot
from mssql_cdc.capture.snapshot import begin, chunk_groups, take
from mssql_cdc.capture.snapshot.progress import Run, fail
from mssql_cdc.capture.survey import survey
from mssql_cdc.errors import ConfigurationError, SourceUnavailableError
from mssql_cdc.lake.offset_commits import load_offsets
from mssql_cdc.plan.decisions import Snapshot
from mssql_cdc.plan.planner import plan
from mssql_cdc.run.snapshots import take_snapshot
from mssql_cdc.schema import TableId
from mssql_cdc.source.values import Chunk
from mssql_cdc_tests.spark.model_lake import changes, same, settled, write_some
from mssql_cdc_tests.spark.model_source import ModelSource

pytestmark = pytest.mark.spark

OTHER = "snapshot-of-another-run"


@pytest.fixture
def ahead(database: Database, source: ModelSource, monkeypatch: pytest.MonkeyPatch) -> Snapshot:
    """The planned snapshot of a run; while it begins, another one takes its own, and streams on."""
    write_some(source)
    decision = _planned(database)
    write_status, rivals = begin._write_status, iter([True])

    def behind_another_run(*arguments: Any) -> Any:
        if next(rivals, False):
            rival = database.apart()
            take_snapshot(rival, replace(decision, id=OTHER))
            settled(rival, source)
            source.put("orders", 2, None)
            source.put("orders", 8, "came and went")
            source.put("orders", 8, None)
            source.capture()
        return write_status(*arguments)

    monkeypatch.setattr(begin, "_write_status", behind_another_run)
    return decision


def test_a_requested_snapshot_that_another_run_was_ahead_of_is_planned_anew(
    database: Database, source: ModelSource, ahead: Snapshot
):
    """Its plan knew of no row and no position of the stream: keys that went meanwhile stayed in the current table."""
    taken = take_snapshot(database, replace(ahead, by_hand=True))
    assert taken.snapshot is not None
    assert set(taken.snapshot.rows) == set(ahead.tables)
    settled(database, source)
    same(database, source)
    assert ("c", 8, "came and went") in changes(database, "orders"), "the stream goes on from where it stood"


def test_a_snapshot_that_nobody_requested_is_left_to_the_run_that_was_ahead(
    database: Database, source: ModelSource, ahead: Snapshot
):
    """Both saw that the tables need one: to read them twice would be correct, and twice the work."""
    taken = take_snapshot(database, ahead)
    assert taken.snapshot is not None
    assert not taken.snapshot.rows
    assert set(taken.snapshot.notes) == set(ahead.tables), "and each says why"
    settled(database, source)
    same(database, source)
    begun = {row.partition for row in load_offsets(database.layout, database.storage).snapshot_rows}
    assert begun == {OTHER}


def test_a_planned_snapshot_leaves_out_a_table_that_another_one_is_reading(
    database: Database, source: ModelSource, monkeypatch: pytest.MonkeyPatch
):
    """The other run has begun, and read nothing yet; the next look resumes what it leaves behind."""
    write_some(source)
    decision = _planned(database)
    with monkeypatch.context() as patched:
        patched.setattr(take, "read_groups", _stopped)
        with pytest.raises(SourceUnavailableError):
            take_snapshot(database.apart(), replace(decision, id=OTHER))
    taken = take_snapshot(database, decision)
    assert taken.snapshot is not None
    assert not taken.snapshot.rows
    assert set(taken.snapshot.notes) == set(decision.tables)
    resumed = _planned(database)
    assert resumed.id == OTHER
    take_snapshot(database, resumed)
    settled(database, source)
    same(database, source)


def test_a_planned_snapshot_reads_a_table_that_was_given_up(
    database: Database, source: ModelSource, monkeypatch: pytest.MonkeyPatch
):
    """The start that tries it again is the only one that sees it as new: no other run reads it."""
    write_some(source)
    with monkeypatch.context() as patched:
        patched.setattr(begin, "_table_plan", _refused)
        take_snapshot(database, _planned(database))
    decision = _planned(database, retry_failed=True)
    taken = take_snapshot(database, decision)
    assert taken.snapshot is not None
    assert set(taken.snapshot.rows) == set(decision.tables)
    settled(database, source)
    same(database, source)


def test_no_group_follows_a_snapshot_that_another_run_has_given_back(
    database: Database, source: ModelSource, monkeypatch: pytest.MonkeyPatch
):
    """The table streams on: a group that came behind that was not waited for (C18)."""
    write_some(source)
    settled(database, source)
    before = Counter(op for op, *_ in changes(database, "orders"))["r"]
    ask_for_snapshot(database, "again", ["shop.dbo.orders"], channel="test")
    decision = _planned(database)
    read, rivals = chunk_groups._commit, iter([True])

    def behind_another_run(*arguments: Any) -> Any:
        if next(rivals, False):
            with monkeypatch.context() as patched:
                patched.setattr(chunk_groups, "_read_group", _failed)
                failed = take_snapshot(database.apart(), _planned(database.apart())).snapshot
            assert failed is not None
            assert failed.failed
        return read(*arguments)

    monkeypatch.setattr(chunk_groups, "_commit", behind_another_run)
    taken = take_snapshot(database, decision)
    assert taken.snapshot is not None
    assert not taken.snapshot.failed, "it was fenced, and has taken the snapshot again"
    assert Counter(op for op, *_ in changes(database, "orders"))["r"] == before + len(source.tables["orders"].rows)
    settled(database, source)
    same(database, source)


def _planned(database: Database, *, retry_failed: bool = False) -> Snapshot:
    decision = plan(survey(database, currents=False, retry_failed=None if retry_failed else ()).facts)
    assert isinstance(decision, Snapshot)
    return decision


def _stopped(*_: Any, **__: Any) -> Any:
    raise SourceUnavailableError("the connection was reset")


def _failed(run: Run, group: Sequence[tuple[TableId, Chunk]], *_: Any, **__: Any) -> None:
    for table, _chunk in group:
        fail(run, table, ConfigurationError("the filter is no condition"))


def _refused(*_: Any, **__: Any) -> Any:
    raise ConfigurationError("the table cannot be read")

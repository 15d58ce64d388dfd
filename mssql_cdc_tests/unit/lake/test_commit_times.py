"""Commit times of a change log come from its files' statistics, and from rows where a file has both sides."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from mssql_cdc.lake.commit_times import CommitTimes, commit_times
from mssql_cdc.lake.known_commit_times import KnownCommitTimes

START = datetime(2026, 1, 2, tzinfo=UTC)


def at(minutes: int) -> datetime:
    return START + timedelta(minutes=minutes)


@pytest.fixture
def log(tmp_path: Path) -> str:
    """Three commits; the rows of the second were committed at the source before those of the first."""
    uri = str(tmp_path / "changes")
    for batch, minutes in ((1, (10, 20)), (2, (5, 15)), (3, (30, 31))):
        rows = pa.table({
            "_batch": pa.array([batch] * 2, pa.int64()),
            "_commit_ts": pa.array([at(one) for one in minutes], pa.timestamp("us", "UTC")),
        })  # fmt: skip
        write_deltalake(uri, rows, mode="append")
    return uri


@pytest.mark.parametrize(("after", "minutes"), [(0, 5), (1, 5), (2, 30), (3, None)])
@pytest.mark.parametrize("compacted", [False, True])
def test_the_oldest_row_after_a_batch_is_found_in_single_and_in_shared_files(
    log: str,
    after: int,
    minutes: int | None,
    compacted: bool,  # noqa: FBT001 (a parameter of the test)
):
    if compacted:
        DeltaTable(log).optimize.compact()
    assert commit_times(log, after=after) == CommitTimes(at(31), None if minutes is None else at(minutes))


def test_a_log_that_does_not_exist_or_has_no_rows_has_no_commit_times(tmp_path: Path):
    uri = str(tmp_path / "changes")
    assert commit_times(uri, after=0) == CommitTimes()
    schema = pa.schema([("_batch", pa.int64()), ("_commit_ts", pa.timestamp("us", "UTC"))])
    DeltaTable.create(uri, schema)
    assert commit_times(uri, after=0) == CommitTimes()


def test_what_is_known_of_a_log_follows_its_commits_and_its_compaction(log: str):
    known = KnownCommitTimes(log)
    batches = range(5)
    assert [known.oldest_after(one) for one in batches] == [
        commit_times(log, after=one).oldest_after for one in batches
    ]
    rows = pa.table({
        "_batch": pa.array([4], pa.int64()),
        "_commit_ts": pa.array([at(40)], pa.timestamp("us", "UTC")),
    })  # fmt: skip
    write_deltalake(log, rows, mode="append")
    assert (known.oldest_after(3), known.oldest_after(4)) == (at(40), None)
    DeltaTable(log).optimize.compact()
    assert [known.oldest_after(one) for one in range(5)] == [at(5), at(5), at(30), at(40), None]


def test_nothing_is_known_of_a_log_until_it_exists(tmp_path: Path):
    known = KnownCommitTimes(str(tmp_path / "changes"))
    assert known.oldest_after(0) is None
    rows = {"_batch": pa.array([1], pa.int64()), "_commit_ts": pa.array([at(1)], pa.timestamp("us", "UTC"))}
    write_deltalake(known.uri, pa.table(rows))
    assert known.oldest_after(0) == at(1)

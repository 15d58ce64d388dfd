"""Commit times of a change log come from its files' statistics, and from rows where a file has both sides."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from mssql_cdc.lake.commit_times import CommitTimes, commit_times

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

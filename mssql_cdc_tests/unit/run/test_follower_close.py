"""What the end of a run does with that which still runs in the background."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import pytest

from mssql_cdc.errors import ConfigurationError
from mssql_cdc.follow.daemon_work import DaemonWork
from mssql_cdc.run.execute import Done
from mssql_cdc.run.follower import Follower
from mssql_cdc.run.loop import run_for
from mssql_cdc.run.snapshots import SnapshotThread
from mssql_cdc.spark.lazy import LazySpark
from mssql_cdc_tests.spark.model_lake import model_database
from mssql_cdc_tests.spark.model_source import ModelSource


@pytest.fixture
def waiting() -> Iterator[DaemonWork[Done]]:
    """The work of a snapshot that takes longer than the run."""
    opened = threading.Event()
    work = DaemonWork[Done]("snapshot")
    work.begin(lambda: cast("Done", opened.wait(60)))
    yield work
    opened.set()
    work.wait(60)


def follower(folder: Path, start: Callable[[], Any], work: DaemonWork[Done]) -> Follower:
    with patch("mssql_cdc.spark.lazy.active_session", return_value=None):
        spark = LazySpark(start)
    database = replace(model_database(ModelSource(), cast("Any", None), folder), spark=spark)
    return Follower(database, beside=SnapshotThread(database, _work=work))


def test_the_end_of_a_run_starts_no_spark_in_order_to_cancel_its_jobs(tmp_path: Path, waiting: DaemonWork[Done]):
    starts = list[int]()

    def start() -> Any:
        starts.append(1)
        raise ConfigurationError("no Java")

    follower(tmp_path, start, waiting).close(patience=0)
    assert starts == []


def test_the_end_of_a_run_cancels_the_jobs_of_the_session_that_there_is(tmp_path: Path, waiting: DaemonWork[Done]):
    session = object()
    ends = follower(tmp_path, lambda: session, waiting)
    ends.database.spark()
    with patch("mssql_cdc.run.follower.cancel_jobs") as cancel:
        ends.close(patience=0)
    cancel.assert_called_once_with(session)


def test_the_end_of_a_run_goes_on_if_the_jobs_cannot_be_canceled(tmp_path: Path, waiting: DaemonWork[Done]):
    ends = follower(tmp_path, object, waiting)
    ends.database.spark()
    with patch("mssql_cdc.run.follower.cancel_jobs", side_effect=ConnectionRefusedError(111, "Connection refused")):
        ends.close(patience=0)


def test_every_database_is_closed_and_the_reason_of_the_end_stays_although_one_cannot_be(tmp_path: Path):
    lines, closed = list[str](), list[str]()
    one = replace(model_database(ModelSource(), cast("Any", None), tmp_path), log=lines.append)
    other = replace(one, catalog="other")

    def close(self: Follower, *, patience: float) -> None:
        closed.append(self.database.catalog)
        raise OSError("no place on the disk")

    with (
        patch.object(Follower, "close", close),
        patch("mssql_cdc.run.loop._guard", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        run_for([one, other], seconds=None)
    assert closed == ["shop", "other"]
    assert [line for line in lines if line.startswith("shop") and "no place" in line]

"""A snapshot whose Spark session is still starting: nothing waits for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from threading import Event
from unittest.mock import patch

import pytest
from pyspark.sql import SparkSession

from mssql_cdc.capture.snapshot.progress import Progress
from mssql_cdc.capture.snapshot.take import capture_snapshot
from mssql_cdc.capture.survey import survey
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.plan.decisions import Snapshot
from mssql_cdc.plan.planner import plan
from mssql_cdc.spark.lazy import LazySpark, is_ready
from mssql_cdc.spark.tasks import run_tasks
from mssql_cdc_tests.spark.model_lake import model_database, same, settled, write_some
from mssql_cdc_tests.spark.model_source import ModelSource

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_first_groups_are_read_while_spark_starts(spark: SparkSession, source: ModelSource, tmp_path: Path):
    read, groups = Event(), list[int]()

    def start() -> SparkSession:
        if not read.wait(60):
            raise ConfigurationError("nothing was read before the session was there")
        return spark

    def progress(now: Progress) -> None:
        if now.total.chunks_done in {0, *groups}:  # It begins, or a table has ended.
            return
        groups.append(now.total.chunks_done)
        if not read.is_set():
            read.set()
            lazy()

    with patch("mssql_cdc.spark.lazy.active_session", return_value=None):
        lazy = LazySpark(start)
    database = replace(model_database(source, spark, tmp_path), spark=lazy)
    write_some(source)
    source.capture()
    seen = survey(database)
    decision = plan(seen.facts)
    assert isinstance(decision, Snapshot)
    with (
        patch("mssql_cdc.capture.snapshot.take.CHUNK_ROWS", 1),
        patch("mssql_cdc.capture.snapshot.chunk_groups.run_tasks", wraps=run_tasks) as jobs,
    ):
        capture_snapshot(database, seen, decision, progress=progress).raise_failure()
    assert groups == [2, 10]
    assert jobs.call_count == 1
    settled(database, source)
    same(database, source)


def test_a_session_that_cannot_start_is_an_error_where_it_is_needed():
    def start() -> SparkSession:
        raise ConfigurationError("no Java")

    with patch("mssql_cdc.spark.lazy.active_session", return_value=None):
        lazy = LazySpark(start)
    while not is_ready(lazy):
        pass
    with pytest.raises(ConfigurationError, match="no Java"):
        lazy()

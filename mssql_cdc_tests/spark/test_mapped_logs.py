"""Appends to change logs whose files have other column names than the table, and wider columns (rules A6, B15).

Only Spark appends to those to which a user has added a feature with which others do not.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from mssql_cdc.errors import StorageError
from mssql_cdc.events import to_change_log
from mssql_cdc.lake.commit_times import commit_times
from mssql_cdc.lake.current import CurrentRequest, CurrentTables
from mssql_cdc.lake.current_logs import CurrentLogs
from mssql_cdc.lake.evolution import evolve
from mssql_cdc.lake.files import write_files
from mssql_cdc.lake.layout import TableHome
from mssql_cdc.lake.log import TableState, commit
from mssql_cdc.lake.properties import is_mapped
from mssql_cdc.lake.read import BatchSlice, query, read_table, scan
from mssql_cdc.lake.spark_sql import spark_identifier
from mssql_cdc.lake.storage import LOCAL
from mssql_cdc.lake.window import window
from mssql_cdc.schema import TableSchema, change_log_schema
from mssql_cdc_tests.lake_kit import AT, Change, change_log, column, home_in, lsn, neutral, orders

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ODD = "net price"
ONLY_SPARK = "SET TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
KEY = column("id", "int")
MAPPED_FIRST = (
    orders(KEY, column(ODD, "int")),
    orders(KEY, column(ODD, "bigint"), version=2),
)
"""The names of the files are others from the start, and then a column is widened."""
WIDENED_FIRST = (
    orders(KEY, column("n", "int")),
    orders(KEY, column("n", "bigint"), version=2),
    orders(KEY, column("n", "bigint"), column(ODD, "int"), version=3),
)
"""A column is widened, and then one comes whose name only column mapping takes."""


@dataclass(frozen=True)
class Logged:
    """A change log with a commit of two rows for each version, and one without rows."""

    home: TableHome
    versions: tuple[TableSchema, ...]
    state: TableState
    logs: CurrentLogs


def logged(session: SparkSession, folder: Path, versions: tuple[TableSchema, ...], *, by_spark: bool) -> Logged:
    home, logs = home_in(folder), CurrentLogs()
    state = change_log(home, versions[0], spark=lambda: session)
    for number, version in enumerate(versions, start=1):
        if by_spark and number == 2:
            session.sql(f"ALTER TABLE {spark_identifier(home.changes)} {ONLY_SPARK}")
            state = change_log(home, versions[0])
        state = evolve(state, change_log_schema(version), lambda: session)
        files = write_files([rows_for(state, version, *changes(number, version))], state.target)
        state = commit(state, files, {"to": lsn(number).text}, spark=lambda: session)
        logs.appended(state, files)
    assert is_mapped(state.properties)
    assert "typeWidening" in state.features
    assert state.needs_spark == by_spark
    state = commit(state, [], {"to": lsn(9).text}, spark=lambda: session)
    logs.appended(state, [])
    return Logged(home, versions, state, logs)


def rows_for(state: TableState, version: TableSchema, *changes: Change, behind: int = 1) -> pa.RecordBatch:
    """The rows of the changes for the next commit of the log."""
    return to_change_log(neutral(version, *changes), table_schema=version, batch_number=state.batch + behind)


BY_SPARK = [
    pytest.param((MAPPED_FIRST, True), id="by Spark, mapped first"),
    pytest.param((WIDENED_FIRST, True), id="by Spark, widened first"),
]
BY_US = [
    pytest.param((MAPPED_FIRST, False), id="mapped first"),
    pytest.param((WIDENED_FIRST, False), id="widened first"),
]
EACH = pytest.mark.parametrize("log", [*BY_SPARK, *BY_US], indirect=True)
OF_SPARK = pytest.mark.parametrize("log", BY_SPARK, indirect=True)


@pytest.fixture(scope="module")
def log(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Logged:
    versions, by_spark = request.param
    return logged(spark, tmp_path_factory.mktemp("log"), versions, by_spark=by_spark)


def changes(number: int, version: TableSchema) -> list[Change]:
    """Two rows of a commit, with a value in each column."""
    names = [one.name for one in version.columns if one.name != "id"]
    return [
        Change(number, "c", after={"id": 10 * number + n, **dict.fromkeys(names, 100 * number + n)}, sequence=n)
        for n in (1, 2)
    ]


def expected(versions: tuple[TableSchema, ...]) -> list[dict[str, Any]]:
    """What all commits have said of the columns of the newest version."""
    names = [one.name for one in versions[-1].columns]
    rows = [change.after or {} for n, version in enumerate(versions, start=1) for change in changes(n, version)]
    return [{name: row.get(name) for name in names} for row in rows]


@EACH
def test_every_value_is_in_a_log_with_column_mapping(spark: SparkSession, log: Logged):
    found = read_table(log.home.changes).sort_by("_pos")
    assert found.column("after").to_pylist() == expected(log.versions)
    assert found.column("_batch").to_pylist() == [n for n in range(1, len(log.versions) + 1) for _ in (1, 2)]
    never_null = ("_pos", "_commit_ts", "_schema", "_key", "op", "source", "key")
    assert {name: found.column(name).null_count for name in never_null} == dict.fromkeys(never_null, 0)
    by_spark = spark.read.format("delta").load(log.home.changes).orderBy("_pos").toArrow()
    assert by_spark.select(found.column_names).to_pylist() == found.to_pylist()
    for number in range(1, len(log.versions) + 1):
        (one,) = scan(log.home.changes, batches=BatchSlice(number - 1, number), columns=["after"])
        assert [row["after"]["id"] for row in one.to_pylist()] == [10 * number + n for n in (1, 2)]


@EACH
def test_position_of_a_mapped_and_widened_log_advances_without_rows(log: Logged):
    assert (log.state.to, log.state.batch) == (lsn(9).text, len(log.versions) + 1)


@EACH
@pytest.mark.parametrize("fresh", [True, False], ids=["another process", "the same process"])
def test_current_table_has_every_value_of_a_mapped_log(
    spark: SparkSession,
    tmp_path: Path,
    log: Logged,
    fresh: bool,  # noqa: FBT001 (parametrized)
):
    home = log.home if not fresh else home_in(tmp_path)
    if fresh:
        shutil.copytree(log.home.changes, home.changes)
    tables = CurrentTables(lambda: spark, logs=CurrentLogs() if fresh else log.logs)
    (outcome,) = tables.apply_all([CurrentRequest(home, log.versions, log.state.batch)])
    assert not isinstance(outcome, Exception), outcome
    names = ", ".join(f'"{one.name}"' for one in log.versions[-1].columns)
    rows = [row for batch in query(home.current, f"SELECT {names} FROM t ORDER BY id") for row in batch.to_pylist()]
    assert rows == expected(log.versions)


@OF_SPARK
def test_a_log_that_spark_writes_is_read_again_for_its_current_table(log: Logged):
    """The files that the tasks wrote are no part of the table."""
    everything = BatchSlice(0, log.state.batch)
    assert log.logs.section(log.home.changes, everything, LOCAL).files == window(log.home.changes, everything).files


@OF_SPARK
def test_files_of_a_commit_are_found_by_the_statistics_that_spark_writes(log: Logged):
    for number in range(1, len(log.versions) + 1):
        found = window(log.home.changes, BatchSlice(number - 1, number))
        assert (len(found.files), found.most_rows, found.certain) == (1, 2, True)
        assert [one.smallest for one in found.files] == [f"2:{number}1"]
    cut = AT.replace(microsecond=678000)  # Spark's statistics have milliseconds.
    assert commit_times(log.home.changes, after=0).oldest_after == cut


@OF_SPARK
def test_files_whose_columns_the_table_does_not_know_are_not_committed(spark: SparkSession, log: Logged):
    """Spark takes a column that it does not find for NULL."""
    rows = rows_for(log.state, log.versions[-1], Change(9, "c", after={"id": 9}))
    files = write_files([rows], replace(log.state.target, physical=True))
    with pytest.raises(StorageError, match=r"have columns that the table does not know: .*col-.*; nothing was written"):
        commit(load(log), files, {"to": "x"}, spark=lambda: spark)
    assert read_table(log.home.changes).num_rows == 2 * len(log.versions)


@OF_SPARK
def test_files_that_lack_rows_of_the_commit_are_not_committed(spark: SparkSession, log: Logged):
    rows = rows_for(log.state, log.versions[-1], Change(9, "c", after={"id": 9}), behind=7)
    with pytest.raises(StorageError, match=r"have 0 rows of batch \d, expected 1; nothing was written"):
        commit(load(log), write_files([rows], log.state.target), {"to": "x"}, spark=lambda: spark)
    assert read_table(log.home.changes).num_rows == 2 * len(log.versions)


def load(log: Logged) -> TableState:
    return change_log(log.home, log.versions[-1])

"""Partitioned and clustered current tables with Spark: what it reads, rewrites and merges (correctness D)."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mssql_cdc.config.data_layout import DataLayout
from mssql_cdc.lake import current
from mssql_cdc.lake.current_table import Vectors, new_table
from mssql_cdc.lake.layout import TableHome
from mssql_cdc.lake.maintenance import optimize
from mssql_cdc.lake.merge import merge
from mssql_cdc.lake.table_commit import Change as LogChange
from mssql_cdc.lake.table_commit import create
from mssql_cdc.lake.table_layout import TableLayout
from mssql_cdc.lake.table_log import load_log
from mssql_cdc_tests.lake_kit import Change, append, change_log, column, home_in, orders
from mssql_cdc_tests.spark.conftest import rows_of
from mssql_cdc_tests.spark.test_fold import Twin, table_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SCHEMA = orders(
    column("id", "int"),
    column("region", "nvarchar", length=50),
    column("day", "date"),
    column("note", "nvarchar", length=-1),
)
BY_BOTH = DataLayout(partition_by=("region", "day"))
REGIONS = (None, "", "ünï", "a/b=c%20 d")
DAYS = (None, date(1, 1, 1), date(2026, 2, 28))


@st.composite
def moves(draw: st.DrawFn, *, first: int) -> list[Change]:
    """Changes that move rows between partitions, any operation on any key, late and unknown ones too."""
    found: list[Change] = []
    for number in range(draw(st.integers(1, 10))):
        op, key = draw(st.sampled_from("cuuudr")), draw(st.integers(1, 6))
        at = first + number - draw(st.sampled_from([0, 0, 0, 4]))
        image: dict[str, Any] = {
            "id": key,
            "region": draw(st.sampled_from(REGIONS)),
            "day": draw(st.sampled_from(DAYS)),
        }
        unavailable = draw(st.sampled_from([[], [], ["region"], ["note"]])) if op == "u" else []
        image |= dict.fromkeys(unavailable)
        found.append(
            Change(
                max(1, at),
                op,
                before=image if op in "ud" else None,
                after=image if op != "d" else None,
                unavailable=unavailable or None,
                sequence=number + 1,
            )
        )
    return found


@pytest.mark.long
@settings(
    max_examples=3, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(data=st.data(), sections=st.integers(2, 4), vectors=st.sampled_from(["auto", "true", "false"]))
def test_partitioned_tables_have_the_rows_that_merge_gives_to_one(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, sections: int, vectors: Vectors
):
    ours = home_in(tmp_path_factory.mktemp("lake"))
    oracle = Twin(ours.folder, ours.app_id)
    layout = TableLayout(("region", "day"))
    protocol, metadata = new_table(oracle, SCHEMA, "true", layout)
    create(oracle.current, LogChange("CREATE TABLE", protocol=protocol, metadata=metadata), facts={})
    state, at = change_log(ours, SCHEMA), 0
    for _ in range(sections):
        found = data.draw(moves(first=at + 10))
        at = max(change.at for change in found)
        state = append(state, SCHEMA, *found)
        done = current.apply(spark, ours, [SCHEMA], up_to=state.batch, vectors=vectors, layout=BY_BOTH)
        assert done.because is None
        log = load_log(oracle.current)
        assert log is not None
        app_id = current.progress_id(log.table_id, SCHEMA)
        merge(spark, oracle, [SCHEMA], log, app_id=app_id, up_to=state.batch, because="it is the oracle")
        assert table_rows(ours) == table_rows(oracle)


def changed(home: TableHome, spark: SparkSession, layout: DataLayout) -> dict[str, tuple[Any, ...]]:
    """A table with vectors in several files, before and after which Spark does what users do; its rows."""
    state, model = change_log(home, SCHEMA), dict[int, tuple[Any, ...]]()
    table = f"delta.`{home.current}`"
    steps = ["", f"OPTIMIZE {table}", f"REORG TABLE {table} APPLY (PURGE)", f"DELETE FROM {table} WHERE id = 3", ""]
    for at, statement in enumerate(steps, start=1):
        found: list[Change] = []
        for number, key in enumerate(range(0, 40, at), start=1):
            image = {"id": key, "region": REGIONS[(key + at) % 4], "day": DAYS[key % 3]}
            found.append(Change(at, "u" if key in model else "c", image, image, sequence=number))
            model[key] = (image["region"], image["day"])
        state = append(state, SCHEMA, *found)
        assert current.apply(spark, home, [SCHEMA], up_to=state.batch, vectors="true", layout=layout).because is None
        if statement:
            spark.sql(statement).collect()
        if "DELETE" in statement:
            del model[3]
    return {f"{len(str(key))}:{key}": values for key, values in model.items()}


@pytest.mark.long
@pytest.mark.parametrize("layout", [BY_BOTH, DataLayout(cluster_by=("day", "id"))])
def test_spark_reads_and_rewrites_a_table_that_is_laid_out(spark: SparkSession, tmp_path: Path, layout: DataLayout):
    home = home_in(tmp_path)
    expected = changed(home, spark, layout)
    found = {
        key: ("" if row["_exact"] == {"region": ""} else row["region"], row["day"])
        for key, row in rows_of(spark, home.current).items()
    }
    assert found == expected
    detail = spark.sql(f"DESCRIBE DETAIL delta.`{home.current}`").collect()[0]
    assert (detail["partitionColumns"], detail["clusteringColumns"]) == (
        list(layout.partition_by),
        list(layout.cluster_by),
    )
    spark.sql(f"VACUUM delta.`{home.current}`").collect()
    only = spark.read.format("delta").load(home.current).where("region = 'ünï'")
    assert {row["_key"] for row in only.collect()} == {key for key, values in expected.items() if values[0] == "ünï"}


def test_maintenance_clusters_a_table_whose_columns_changed(spark: SparkSession, tmp_path: Path):
    """OPTIMIZE of Delta sorts the rows of files; ours goes on writing without rewriting what it has sorted."""
    home = home_in(tmp_path)
    layout = DataLayout(cluster_by=("id",))
    state = change_log(home, SCHEMA)
    for at in (1, 2):
        new = [Change(at, "c", after={"id": n}, sequence=n + 1) for n in range(at, 1000, 2)]
        state = append(state, SCHEMA, *new)
        current.apply(spark, home, [SCHEMA], up_to=state.batch, vectors="true", layout=layout)
    optimize(spark, home.current)
    log = load_log(home.current)
    assert log is not None
    assert {file.action.get("clusteringProvider") for file in log.files.values()} == {"liquid"}
    state = append(state, SCHEMA, Change(3, "d", {"id": 7}))
    done = current.apply(spark, home, [SCHEMA], up_to=state.batch, vectors="true", layout=layout)
    assert done.because is None
    log = load_log(home.current)
    assert log is not None
    assert any(file.action.get("clusteringProvider") == "liquid" and file.vector for file in log.files.values())
    assert len(rows_of(spark, home.current)) == 998


def test_a_partitioned_table_that_only_spark_writes_is_merged(spark: SparkSession, tmp_path: Path):
    home = home_in(tmp_path)
    state = append(change_log(home, SCHEMA), SCHEMA, Change(1, "c", after={"id": 1, "region": "a"}))
    current.apply(spark, home, [SCHEMA], up_to=state.batch, layout=BY_BOTH)
    spark.sql(f"ALTER TABLE delta.`{home.current}` SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    moved = {"id": 1, "region": "", "day": date(2026, 2, 28)}
    state = append(state, SCHEMA, Change(2, "u", moved, moved))
    done = current.apply(spark, home, [SCHEMA], up_to=state.batch, layout=BY_BOTH)
    assert done.because == "the table has a change data feed"
    row = rows_of(spark, home.current)["1:1"]
    assert (row["region"], row["_exact"], row["day"]) == (None, {"region": ""}, date(2026, 2, 28))


def test_a_partitioned_table_whose_log_only_spark_reads_keeps_the_empty_text(spark: SparkSession, tmp_path: Path):
    home = home_in(tmp_path)
    state = append(change_log(home, SCHEMA), SCHEMA, Change(1, "c", after={"id": 1, "region": "a"}))
    current.apply(spark, home, [SCHEMA], up_to=state.batch, layout=BY_BOTH)
    properties = "'delta.checkpointPolicy' = 'v2', 'delta.checkpointInterval' = '1'"
    spark.sql(f"ALTER TABLE delta.`{home.current}` SET TBLPROPERTIES ({properties})")
    empty = [{"id": number, "region": ""} for number in (1, 2)]
    changes = [Change(2, "u", empty[0], empty[0]), Change(2, "c", after=empty[1], sequence=2)]
    state = append(state, SCHEMA, *changes)
    done = current.apply(spark, home, [SCHEMA], up_to=state.batch, layout=BY_BOTH)
    assert done.because == "the table has checkpoints of the second kind"
    found = rows_of(spark, home.current)
    assert [(found[key]["region"], found[key]["_exact"]) for key in ("1:1", "1:2")] == [(None, {"region": ""})] * 2

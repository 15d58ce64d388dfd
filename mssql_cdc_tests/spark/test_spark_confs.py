"""What a session's own properties would make of our statements: they mean the same under each of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mssql_cdc.config.data_layout import DataLayout
from mssql_cdc.lake import current, merge
from mssql_cdc.lake.evolution import evolve
from mssql_cdc.lake.log import create_table, load_state
from mssql_cdc.lake.spark_sql import spark_identifier
from mssql_cdc.schema import change_log_schema
from mssql_cdc_tests.lake_kit import Change, append, change_log, column, home_in, orders

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

VARIABLES = ["${env:HOME}", "${system:user.dir}", "${HOME}"]


def test_a_key_that_reads_like_a_variable_is_a_key(spark: SparkSession, tmp_path: Path):
    """Spark put the variable's value into the range of keys: rows came twice, and none was deleted."""
    home = home_in(tmp_path)
    schema = orders(column("name", "nvarchar", length=50), column("n", "int"), keys=("name",))
    table = spark_identifier(home.current)
    created = [Change(1, "c", after={"name": name, "n": 1}, sequence=at) for at, name in enumerate(VARIABLES)]
    state = append(change_log(home, schema), schema, *created)
    current.apply(spark, home, [schema], up_to=state.batch)
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    for at, name in enumerate(VARIABLES, 2):  # One at a time: the range of keys is that key.
        change = Change(at, "u", before={"name": name, "n": 1}, after={"name": name, "n": at})
        state = append(state, schema, change)
        assert current.apply(spark, home, [schema], up_to=state.batch).because is not None
    found = spark.sql(f"SELECT name, n FROM {table} ORDER BY n").collect()
    assert [(row["name"], row["n"]) for row in found] == [(name, at) for at, name in enumerate(VARIABLES, 2)]
    for at, name in enumerate(VARIABLES, 9):
        state = append(state, schema, Change(at, "d", before={"name": name, "n": 1}))
        current.apply(spark, home, [schema], up_to=state.batch)
    assert spark.sql(f"SELECT name FROM {table}").collect() == []


def test_names_and_comments_that_read_like_variables_show_no_value(spark: SparkSession, tmp_path: Path):
    home = home_in(tmp_path)
    name, comment = "a {${env:HOME}}", "see ${env:HOME}"
    old = orders(column("id", "int"), column(name, "int"))
    new = orders(*old.columns, column("b", "int", description=comment), column(name + "2", "int"), version=2)
    create_table(
        home.changes, change_log_schema(old), owner=home.app_id, properties={"note": comment}, spark=lambda: spark
    )
    state = load_state(home.changes, owner=home.app_id)
    assert state is not None
    state = append(state, old, Change(1, "c", after={"id": 1, name: 2}))
    current.apply(spark, home, [old], up_to=state.batch)
    spark.sql(f"ALTER TABLE {spark_identifier(home.current)} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    state = evolve(state, change_log_schema(new), lambda: spark)
    state = append(state, new, Change(2, "c", after={"id": 2, name: 3, name + "2": 4, "b": 5}))
    current.apply(spark, home, [old, new], up_to=state.batch)
    for uri in (home.changes, home.current):
        for log in Path(uri, "_delta_log").glob("*.json"):
            assert os.environ["HOME"] + "}" not in log.read_text("utf-8")
            assert f"see {os.environ['HOME']}" not in log.read_text("utf-8")
    fields = {field.name: field for field in spark.read.format("delta").load(home.current).schema.fields}
    assert {"id", name, name + "2", "b"} <= fields.keys()
    assert comment in fields["b"].metadata["comment"]


def test_a_replaced_table_keeps_no_partition_of_before(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """`dynamic` among the connector's properties left the partitions that got no rows."""
    private: Callable[..., Any] = merge.private_session

    def dynamic(session: SparkSession, confs: Mapping[str, str]) -> Any:
        return private(session, {**confs, "spark.sql.sources.partitionOverwriteMode": "dynamic"})

    monkeypatch.setattr(merge, "private_session", dynamic)
    home, layout = home_in(tmp_path), DataLayout(partition_by=("name",))
    schema = orders()
    table = spark_identifier(home.current)
    state = append(
        change_log(home, schema),
        schema,
        *(Change(1, "c", after={"id": n, "name": place}, sequence=n) for n, place in enumerate(("north", "south"))),
    )
    version = current.apply(spark, home, [schema], up_to=state.batch, layout=layout).delta_version
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    state = append(state, schema, Change(2, "d", before={"id": 1, "name": "south"}))
    current.apply(spark, home, [schema], up_to=state.batch, layout=layout)
    spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF {version + 1}").collect()
    assert current.apply(spark, home, [schema], up_to=state.batch, layout=layout).restored is not None
    assert [row["name"] for row in spark.sql(f"SELECT name FROM {table}").collect()] == ["north"]

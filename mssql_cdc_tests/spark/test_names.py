"""Names on disk: Spark opens, merges, optimizes and vacuums tables of any name that SQL Server allows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mssql_cdc.lake import current
from mssql_cdc.lake.evolution import evolve
from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.maintenance import optimize, vacuum
from mssql_cdc.lake.read import read_table
from mssql_cdc.lake.spark_sql import spark_identifier
from mssql_cdc.schema import TableId, change_log_schema
from mssql_cdc_tests.lake_kit import NAMES, Change, append, change_log, column, orders
from mssql_cdc_tests.spark.conftest import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def by_four(names: list[str]) -> list[tuple[str, ...]]:
    """The four names that form a path: connector, database, schema and table."""
    return [tuple((names[start : start + 4] * 4)[:4]) for start in range(0, len(names), 4)]


@pytest.mark.long
@pytest.mark.parametrize(("connector", "database", "schema", "table"), by_four(list(NAMES.values())))
def test_spark_works_on_tables_of_any_name(
    spark: SparkSession, tmp_path: Path, connector: str, database: str, schema: str, table: str
):
    home = Layout(str(tmp_path), connector, database).home(TableId(database, schema, table))
    key = column("id", "int")
    old, new = orders(key, column("n", "int")), orders(key, column("n", "bigint"), version=2)
    state = append(change_log(home, old), old, Change(1, "c", after={"id": 1}))
    current.apply(spark, home, [old], up_to=1)
    state = append(state, old, Change(2, "c", after={"id": 2}))
    current.apply(spark, home, [old], up_to=2)
    assert optimize(spark, home.changes) == (2, 1)
    vacuum(spark, home.changes, retain_hours=168)
    state = evolve(change_log(home, old), change_log_schema(new), lambda: spark)
    append(state, new, Change(3, "c", after={"id": 3}), spark=lambda: spark)
    current.apply(spark, home, [old, new], up_to=3)
    assert set(rows_of(spark, home.current)) == {"1:1", "1:2", "1:3"}
    assert spark.sql(f"SELECT * FROM {spark_identifier(home.changes)}").count() == 3
    assert read_table(home.changes).num_rows == 3

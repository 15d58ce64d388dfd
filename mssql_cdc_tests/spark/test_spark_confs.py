"""What a session's own properties would make of our statements: they mean the same under each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mssql_cdc.config.data_layout import DataLayout
from mssql_cdc.lake import current, merge
from mssql_cdc.lake.spark_sql import spark_identifier
from mssql_cdc_tests.lake_kit import Change, append, change_log, home_in, orders

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


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

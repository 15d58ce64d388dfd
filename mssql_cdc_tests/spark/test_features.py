"""Tables to which a user's ALTER TABLE has given features that only Spark writes (rules A3, A5, A6)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mssql_cdc.errors import FencedError, StorageError
from mssql_cdc.lake.evolution import evolve
from mssql_cdc.lake.features import never_appended
from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.log import refresh
from mssql_cdc.lake.offset_commits import append_offsets, load_offsets
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.read import read_table
from mssql_cdc.lake.spark_sql import spark_identifier
from mssql_cdc.lake.tamper import verify_untouched
from mssql_cdc.schema import change_log_schema
from mssql_cdc_tests.lake_kit import Change, append, change_log, column, home_in, orders
from mssql_cdc_tests.unit.lake.test_offsets import at, offset_row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

CLUSTERED = "CLUSTER BY ({})"
NUMBERED = "SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true', 'delta.enableRowTracking' = 'true')"
SUPPORTED = (
    "SET TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported', "
    "'delta.feature.checkpointProtection' = 'supported', 'delta.feature.vacuumProtocolCheck' = 'supported', "
    "'delta.enableTypeWidening' = 'false', 'delta.feature.typeWidening' = 'supported')"
)
RESTORED = (
    "SET spark.databricks.delta.restore.protocolDowngradeAllowed=true",
    "RESTORE TABLE {} TO VERSION AS OF 1",
)
DROPPED = [f"ALTER TABLE {{}} DROP FEATURE {one}" for one in ("inCommitTimestamp", "rowTracking", "domainMetadata")]


@pytest.mark.parametrize(
    ("alter", "features"),
    [
        (CLUSTERED.format("_commit_ts"), {"clustering"}),
        (NUMBERED, {"inCommitTimestamp", "rowTracking"}),
        (SUPPORTED, {"allowColumnDefaults", "checkpointProtection"}),
    ],
    ids=["clustered", "numbered", "supported"],
)
def test_change_log_goes_on_with_spark_after_an_alter_that_changes_no_row(
    spark: SparkSession, tmp_path: Path, alter: str, features: set[str]
):
    home, schema = home_in(tmp_path), orders(column("id", "int"))
    known = append(change_log(home, schema), schema, Change(1, "c", after={"id": 1}))
    spark.sql(f"ALTER TABLE {spark_identifier(home.changes)} {alter}")
    state, late = change_log(home, schema), change_log(home, schema)
    assert set(never_appended(state.features)) == features
    verify_untouched(state, table_id=known.table_id, delta_version=known.delta_version, batch=known.batch)
    state = append(state, schema, Change(2, "c", after={"id": 2}), spark=lambda: spark)
    with pytest.raises(FencedError):
        append(late, schema, Change(2, "c", after={"id": 2}), spark=lambda: spark)
    wider = orders(column("id", "int"), column("name", "nvarchar", length=9), version=2)
    state = evolve(state, change_log_schema(wider), lambda: spark)
    state = append(state, wider, Change(3, "u", {"id": 2}, {"id": 2, "name": "a"}), spark=lambda: spark)
    verify_untouched(refresh(state), table_id=known.table_id, delta_version=known.delta_version, batch=known.batch)
    rows = read_table(home.changes, columns=["_pos", "_batch", "after"]).sort_by("_pos").to_pylist()
    assert [row["after"] for row in rows] == [{"id": 1, "name": None}, {"id": 2, "name": None}, {"id": 2, "name": "a"}]
    assert [row["_batch"] for row in rows] == [1, 2, 3]
    assert state.batch == state.own_batch == 3


@pytest.mark.parametrize(
    ("alter", "remedy"),
    [
        (CLUSTERED.format("_batch"), RESTORED),
        (NUMBERED, DROPPED),
    ],
    ids=["clustered", "numbered"],
)
def test_offsets_continue_after_the_remedy_that_the_error_names(
    spark: SparkSession, tmp_path: Path, alter: str, remedy: list[str]
):
    layout = Layout(str(tmp_path), "server1", "shop")
    seen = append_offsets(layout, offset_row("01", a=at("01")), seen=Offsets())
    table, session = spark_identifier(layout.own("offsets")), spark.newSession()
    session.sql(f"ALTER TABLE {table} {alter}")
    with pytest.raises(StorageError, match=r"with which only Spark writes.*DROP FEATURE.*RESTORE TABLE"):
        append_offsets(layout, offset_row("02", a=at("02")), seen=seen)
    for statement in remedy:
        session.sql(statement.format(table)).collect()
    append_offsets(layout, offset_row("02", a=at("02")), seen=load_offsets(layout))
    assert load_offsets(layout).number == 2

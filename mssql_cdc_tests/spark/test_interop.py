"""Spark and `deltalake` on the same tables: files, transactions, cleanup, tampering (rules A3, A5; C19)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mssql_cdc.errors import FencedError, TamperedTableError
from mssql_cdc.lake import current, current_structure
from mssql_cdc.lake.evolution import evolve
from mssql_cdc.lake.log import commit, refresh
from mssql_cdc.lake.properties import STATS
from mssql_cdc.lake.spark_sql import spark_identifier
from mssql_cdc.lake.sweep import Sweep, stale_files, stamped
from mssql_cdc.lake.table_log import load_log
from mssql_cdc.lake.tamper import verify_untouched
from mssql_cdc.schema import change_log_schema
from mssql_cdc_tests.lake_kit import AT, Change, append, change_log, column, home_in, lsn, orders
from mssql_cdc_tests.spark.conftest import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

pytestmark = pytest.mark.spark


def row(number: int, name: str = "a") -> dict[str, object]:
    return {"id": number, "name": name, "note": "n"}


def test_spark_reads_every_type_that_the_connector_writes(spark: SparkSession, tmp_path: Path):
    home = home_in(tmp_path)
    kinds = [
        "bit",
        "tinyint",
        "smallint",
        "int",
        "bigint",
        "money",
        "smallmoney",
        "real",
        "float",
        "char",
        "varchar",
        "nchar",
        "nvarchar",
        "text",
        "ntext",
        "xml",
        "uniqueidentifier",
        "binary",
        "varbinary",
        "image",
        "rowversion",
        "date",
        "datetime",
        "smalldatetime",
        "datetime2",
        "datetimeoffset",
        "time",
        "sql_variant",
        "hierarchyid",
        "geometry",
        "geography",
        "json",
    ]
    schema = orders(
        column("id", "int"), column("amount", "decimal", precision=38, scale=10), *(column(k, k) for k in kinds)
    )
    append(change_log(home, schema), schema, Change(1, "c", after={"id": 1, "int": 5}))
    (found,) = spark.read.format("delta").load(home.changes).collect()
    assert found["after"]["int"] == 5
    assert found["before"] is None
    stored = spark.read.format("delta").load(home.changes).schema["after"].dataType
    assert isinstance(stored, StructType)
    told = {field.name: field.dataType.simpleString() for field in stored}
    assert told["datetime2"] == "timestamp_ntz"
    assert told["datetimeoffset"] == "timestamp"
    assert told["amount"] == "decimal(38,10)"
    assert told["tinyint"] == "smallint"
    assert told["rowversion"] == "binary"


def test_optimize_keeps_transaction_progress_and_fence(spark: SparkSession, tmp_path: Path):
    home, schema = home_in(tmp_path), orders()
    state = change_log(home, schema)
    for number in (1, 2, 3):
        state = append(state, schema, Change(number, "c", after=row(number)))
    late = change_log(home, schema)
    version = state.delta_version
    spark.sql(f"OPTIMIZE {spark_identifier(home.changes)}")
    after = refresh(state)
    assert (after.batch, after.to, after.delta_version) == (3, state.to, version + 1)
    verify_untouched(after, table_id=state.table_id, delta_version=version)
    append(after, schema, Change(4, "c", after=row(4)))
    with pytest.raises(FencedError):
        append(late, schema, Change(4, "c", after=row(4)))
    assert spark.read.format("delta").load(home.changes).count() == 4


def test_append_succeeds_after_a_concurrent_optimize(spark: SparkSession, tmp_path: Path):
    home, schema = home_in(tmp_path), orders()
    state = change_log(home, schema)
    for number in (1, 2, 3):
        state = append(state, schema, Change(number, "c", after=row(number)))
    spark.sql(f"OPTIMIZE {spark_identifier(home.changes)}")
    assert append(state, schema, Change(4, "c", after=row(4))).batch == 4


def test_restore_is_detected(spark: SparkSession, tmp_path: Path):
    home, schema = home_in(tmp_path), orders()
    state = append(change_log(home, schema), schema, Change(1, "c", after=row(1)))
    known = append(state, schema, Change(2, "c", after=row(2)))
    spark.sql(f"RESTORE TABLE {spark_identifier(home.changes)} TO VERSION AS OF 1")
    after = refresh(known)
    assert after.to == lsn(2).text  # The fence cannot detect this: txn and history still look complete.
    with pytest.raises(TamperedTableError, match="RESTORE"):
        verify_untouched(after, table_id=known.table_id, delta_version=known.delta_version)


def test_append_by_another_writer_is_detected(spark: SparkSession, tmp_path: Path):
    home, schema = home_in(tmp_path), orders()
    state = append(change_log(home, schema), schema, Change(1, "c", after=row(1)))
    spark.read.format("delta").load(home.changes).write.format("delta").mode("append").save(home.changes)
    with pytest.raises(TamperedTableError, match="WRITE"):
        verify_untouched(refresh(state), table_id=state.table_id, delta_version=state.delta_version)


def test_late_run_is_fenced_on_a_widened_table(spark: SparkSession, tmp_path: Path):
    home = home_in(tmp_path)
    old, new = orders(column("id", "int")), orders(column("id", "bigint"), version=2)
    state = append(change_log(home, old), old, Change(1, "c", after={"id": 1}))
    state = evolve(state, change_log_schema(new), lambda: spark)
    late = change_log(home, new)
    append(state, new, Change(2, "c", after={"id": 2}), spark=lambda: spark)
    with pytest.raises(FencedError):
        append(late, new, Change(2, "c", after={"id": 2}), spark=lambda: spark)
    assert spark.read.format("delta").load(home.changes).count() == 2


def test_widening_after_another_run_added_rows_is_fenced(spark: SparkSession, tmp_path: Path):
    home = home_in(tmp_path)
    old, new = orders(column("id", "int")), orders(column("id", "bigint"), version=2)
    late = change_log(home, old)
    append(change_log(home, old), old, Change(1, "c", after={"id": 1}))
    with pytest.raises(FencedError, match="Another run"):
        evolve(late, change_log_schema(new), lambda: spark)
    assert spark.read.format("delta").load(home.changes).count() == 1


def test_a_column_that_spark_widens_to_more_digits_than_statistics_may_have_is_listed_no_longer(
    spark: SparkSession, tmp_path: Path
):
    home = home_in(tmp_path)
    old = orders(column("id", "int"), column("n", "bigint"))
    new = orders(column("id", "int"), column("n", "decimal", precision=20, scale=0), version=2)
    state = append(change_log(home, old), old, Change(1, "c", after={"id": 1, "n": 1}))
    current.apply(spark, home, [old], up_to=state.batch)
    spark.sql(f"ALTER TABLE {spark_identifier(home.current)} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    state = evolve(state, change_log_schema(new), lambda: spark)
    state = append(state, new, Change(2, "c", after={"id": 3, "n": Decimal(2**53 + 1)}), spark=lambda: spark)
    current.apply(spark, home, [old, new], up_to=state.batch)
    log = load_log(home.current)
    assert log is not None
    assert "typeWidening" in log.protocol["readerFeatures"]
    assert log.properties[STATS] == "`id`,`_key`,`_pos`,`_batch`"
    assert spark.sql(f"SELECT id FROM {spark_identifier(home.current)} WHERE n = {2**53 + 1}").count() == 1


@pytest.mark.parametrize("rounded", [True, False])
@pytest.mark.parametrize("by_spark", [pytest.param(True, marks=pytest.mark.long), False])
def test_rows_are_found_by_the_values_of_a_real_that_became_a_float(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    by_spark: bool,  # noqa: FBT001 (parametrized)
    rounded: bool,  # noqa: FBT001 (parametrized)
):
    """Spark writes the bounds of a `real` in its few digits: read as those of a `float`, they are below its values."""
    monkeypatch.setattr(current_structure, "LARGE_ROWS", 0)
    monkeypatch.setattr("mssql_cdc.lake.apply_task._ABSORB", 0)
    home, old = home_in(tmp_path), orders(column("id", "int"), column("x", "real"))
    new = orders(column("id", "int"), column("x", "float"), version=2)
    table = spark_identifier(home.current)
    state = append(change_log(home, old), old, *(Change(1, "c", after={"id": n, "x": 0.1}, sequence=n) for n in (1, 2)))
    current.apply(spark, home, [old], up_to=state.batch)
    if by_spark:
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    if rounded:
        spark.sql(f"UPDATE {table} SET x = x").collect()
    state = evolve(state, change_log_schema(new), lambda: spark)
    state = append(state, new, Change(2, "c", after={"id": 3, "x": 0.2}), spark=lambda: spark)
    current.apply(spark, home, [old, new], up_to=state.batch)
    assert spark.sql(f"SELECT id FROM {table} WHERE x > 0.1D").count() == 3
    assert spark.sql(f"SELECT id FROM {table} WHERE x BETWEEN 0.1000000001D AND 0.11D").count() == 2
    log = load_log(home.current)
    assert log is not None
    assert ("`x`" in log.properties[STATS]) == (not (by_spark and rounded))
    assert ("typeWidening" in log.protocol.get("readerFeatures", ())) == (by_spark or not rounded)


def test_of_many_concurrent_runs_that_widen_and_commit_one_commits(spark: SparkSession, tmp_path: Path):
    home = home_in(tmp_path)
    old = orders(column("id", "int"))
    new = orders(column("id", "bigint"), column("more", "int"), column("odd, name", "int"), version=2)
    change_log(home, old)
    states = [change_log(home, old) for _ in range(3)]

    def run(number: int) -> bool:
        try:
            state = evolve(states[number], change_log_schema(new), lambda: spark)
            append(state, new, Change(1, "c", after={"id": 2**40}), spark=lambda: spark)
        except FencedError:
            return False
        return True

    with ThreadPoolExecutor(3) as pool:
        done = sum(pool.map(run, range(3)))
    rows = spark.read.format("delta").load(home.changes).count()
    assert rows == done <= 1
    state = evolve(change_log(home, old), change_log_schema(new), lambda: spark)
    append(state, new, Change(2, "c", after={"id": 2**41}), spark=lambda: spark)
    assert spark.read.format("delta").load(home.changes).count() == rows + 1


def test_of_many_runs_on_a_widened_table_one_commits(spark: SparkSession, tmp_path: Path):
    home = home_in(tmp_path)
    old, new = orders(column("id", "int")), orders(column("id", "bigint"), version=2)
    evolve(change_log(home, old), change_log_schema(new), lambda: spark)
    states = [change_log(home, new) for _ in range(3)]

    def run(number: int) -> bool:
        try:
            append(states[number], new, Change(1, "c", after={"id": number}), spark=lambda: spark)
        except FencedError:
            return False
        return True

    with ThreadPoolExecutor(3) as pool:
        assert sum(pool.map(run, range(3))) == 1
    assert spark.read.format("delta").load(home.changes).count() == 1


def test_sweep_deletes_what_the_snapshot_did_not_see(spark: SparkSession, tmp_path: Path):
    home, schema = home_in(tmp_path), orders()
    state = append(change_log(home, schema), schema, *(Change(1, "c", after=row(n), sequence=n) for n in (1, 2, 3, 4)))
    state = append(
        state,
        schema,
        *(Change(10, "r", after=row(n, "snapshot"), sequence=n, snapshot=2) for n in (1, 2)),
        Change(12, "c", after=row(9, "streamed")),
    )
    version = current.apply(spark, home, [schema], up_to=state.batch).delta_version
    sweep = Sweep(number=2, epoch=0, low=lsn(10), at=AT)
    stale = stale_files(spark, home, schema, state, sweep, version=version)
    # A range commits meanwhile, and changes a row that the sweep deletes: the change is newer.
    state = append(state, schema, Change(13, "c", after=row(4, "anew")))
    state = commit(state, stamped(stale, state), {"to": lsn(13).text})
    version = current.apply(spark, home, [schema], up_to=state.batch).delta_version
    assert set(rows_of(spark, home.current)) == {"1:1", "1:2", "1:4", "1:9"}
    swept = spark.read.format("delta").load(home.changes).where("_snapshot = 'sweep:2'").collect()
    assert {(r["op"], r["_key"], r["before"]["name"], r["after"]) for r in swept} == {
        ("d", "1:3", "a", None),
        ("d", "1:4", "a", None),
    }
    assert {r["_batch"] for r in swept} == {state.batch}
    assert stamped(stale_files(spark, home, schema, state, sweep, version=version), state) == []


def test_sweep_of_rows_that_the_snapshot_has_read_deletes_none_of_them(spark: SparkSession, tmp_path: Path):
    """Whatever a current table shows: a user's INSERT may bring rows of before back under their old positions."""
    home, schema = home_in(tmp_path), orders()
    state = append(change_log(home, schema), schema, *(Change(10, "c", after=row(n), sequence=n) for n in (1, 2, 3)))
    state = append(state, schema, Change(10, "r", after=row(3, "earlier"), sequence=0, snapshot=2, chunk=7))
    before = current.apply(spark, home, [schema], up_to=state.batch).delta_version
    state = append(state, schema, *(Change(10, "r", after=row(n, "read"), sequence=n - 1, snapshot=3) for n in (1, 2)))
    current.apply(spark, home, [schema], up_to=state.batch)
    stale = stale_files(spark, home, schema, state, Sweep(3, 0, lsn(10), AT), version=before)
    state = commit(state, stamped(stale, state), {"to": lsn(10).text})
    current.apply(spark, home, [schema], up_to=state.batch)
    assert {key: found["name"] for key, found in rows_of(spark, home.current).items()} == {"1:1": "read", "1:2": "read"}

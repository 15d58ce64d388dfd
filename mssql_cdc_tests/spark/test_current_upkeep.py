"""What a user's Spark does to a current table between two updates (correctness D)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from mssql_cdc.errors import StorageError
from mssql_cdc.lake import current
from mssql_cdc.lake.evolution import evolve
from mssql_cdc.schema import change_log_schema
from mssql_cdc_tests.lake_kit import Change, append, applied_batch, change_log, column, home_in, orders
from mssql_cdc_tests.unit.lake.test_current_readers import SCHEMA, apply_without_spark, by_query, filled, told

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.long
def test_spark_reads_and_rewrites_a_table_with_vectors(spark: SparkSession, tmp_path: Path):
    """OPTIMIZE, DELETE, REORG, VACUUM and RESTORE of the user's; our folds go on after each."""
    home = home_in(tmp_path)
    expected = dict(filled(home, "true", checkpointed=True))
    table = f"delta.`{home.current}`"
    state = change_log(home, SCHEMA)

    def seen() -> dict[int, str]:
        return {row["id"]: row["name"] for row in spark.sql(f"SELECT id, name FROM {table}").collect()}

    assert seen() == expected
    at = 10
    statements = [
        f"OPTIMIZE {table}",
        f"DELETE FROM {table} WHERE id = 17",
        f"REORG TABLE {table} APPLY (PURGE)",
        f"VACUUM {table}",
    ]
    for statement in statements:
        spark.sql(statement).collect()
        if "DELETE" in statement:
            del expected[17]
        state = append(state, SCHEMA, *_updates(expected, at))
        at += 1
        apply_without_spark(home, state.batch, "true")
        assert seen() == expected
        assert told(by_query(home)) == sorted(expected.items())
    version = DeltaTable(home.current).version()
    state = append(state, SCHEMA, *_updates(expected, at))
    apply_without_spark(home, state.batch, "true")
    spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF {version}").collect()
    # Delta keeps txns over a restore, which would say that the section was applied.
    assert DeltaTable(home.current).history(1)[0]["operation"] == "RESTORE"
    assert seen() != expected
    assert applied_batch(home, SCHEMA) == 0
    apply_without_spark(home, state.batch, "true")
    # The row that the user has deleted is back, too: the table is what the change log adds up to.
    expected[17] = "a"
    assert seen() == expected
    assert told(by_query(home)) == sorted(expected.items())
    assert applied_batch(home, SCHEMA) == state.batch


@pytest.mark.long
@pytest.mark.parametrize("more", [False, True], ids=["nothing new", "new changes"])
def test_a_restored_table_that_only_spark_writes_is_built_again(spark: SparkSession, tmp_path: Path, *, more: bool):
    home = home_in(tmp_path)
    expected = dict(filled(home, "auto"))
    table = f"delta.`{home.current}`"
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    version = DeltaTable(home.current).version()
    state = append(change_log(home, SCHEMA), SCHEMA, *_updates(expected, 10))
    assert current.apply(spark, home, [SCHEMA], up_to=state.batch).because is not None
    spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF {version}").collect()
    if more:
        state = append(state, SCHEMA, *_updates(expected, 11))
    done = current.apply(spark, home, [SCHEMA], up_to=state.batch)
    assert (done.restored, done.because is not None) == (version + 2, True)
    assert told(by_query(home)) == sorted(expected.items())
    assert applied_batch(home, SCHEMA) == state.batch
    assert current.apply(spark, home, [SCHEMA], up_to=state.batch).rows == 0
    state = append(state, SCHEMA, *_updates(expected, 12))
    assert current.apply(spark, home, [SCHEMA], up_to=state.batch).restored is None
    assert told(by_query(home)) == sorted(expected.items())


@pytest.mark.long
def test_a_restore_to_a_structure_of_before_is_undone(spark: SparkSession, tmp_path: Path):
    home, old = home_in(tmp_path), orders()
    new = orders(*old.columns, column("price", "int"), version=2)
    state = append(change_log(home, old), old, Change(1, "c", after={"id": 1, "name": "a"}))
    current.apply(spark, home, [old], up_to=state.batch)
    state = evolve(state, change_log_schema(new))
    state = append(state, new, Change(2, "c", after={"id": 2, "name": "b", "price": 7}))
    current.apply(spark, home, [old, new], up_to=state.batch)
    spark.sql(f"RESTORE TABLE delta.`{home.current}` TO VERSION AS OF 0").collect()
    current.apply(spark, home, [old, new], up_to=state.batch)
    found = {
        row["id"]: (row["name"], row["price"], row["_unavailable"])
        for row in spark.read.format("delta").load(home.current).collect()
    }
    assert found == {1: ("a", None, ["price"]), 2: ("b", 7, None)}


@pytest.mark.parametrize(
    ("statement", "until_then"),
    [
        ("DELETE FROM {table} WHERE id = 17", {}),
        pytest.param("UPDATE {table} SET name = 'mine' WHERE id = 17", {17: "mine"}, marks=pytest.mark.long),
        pytest.param(
            "MERGE INTO {table} t USING (SELECT 17 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = 'mine'",
            {17: "mine"},
            marks=pytest.mark.long,
        ),
        pytest.param("INSERT INTO {table} SELECT * FROM {table} WHERE id = 17", {17: "a"}, marks=pytest.mark.long),
    ],
    ids=["DELETE", "UPDATE", "MERGE", "INSERT"],
)
def test_a_row_that_a_user_has_written_stays_until_its_next_change(
    spark: SparkSession, tmp_path: Path, statement: str, until_then: dict[int, str]
):
    home = home_in(tmp_path)
    expected = dict(filled(home, "true"))
    state = change_log(home, SCHEMA)
    spark.sql(statement.format(table=f"delta.`{home.current}`")).collect()
    state = append(state, SCHEMA, Change(10, "u", {"id": 18}, {"id": 18, "name": "b", "note": None}))
    apply_without_spark(home, state.batch, "true")
    expected |= {17: "a", 18: "b"}
    others = {key: name for key, name in expected.items() if key != 17}
    found = told(by_query(home))
    assert dict(found) == others | until_then
    assert len(found) == len(others) + (2 if "INSERT" in statement else len(until_then))
    row = {"id": 17, "name": "c", "note": None}
    state = append(state, SCHEMA, Change(11, "u", row, row))
    apply_without_spark(home, state.batch, "true")
    assert told(by_query(home)) == sorted((expected | {17: "c"}).items())


@pytest.mark.parametrize("statement", ["CREATE OR REPLACE TABLE {table} USING delta AS SELECT 1 AS id"])
def test_a_table_that_a_user_has_replaced_is_refused(spark: SparkSession, tmp_path: Path, statement: str):
    home = home_in(tmp_path)
    filled(home, "auto")
    spark.sql(statement.format(table=f"delta.`{home.current}`")).collect()
    with pytest.raises(StorageError, match=r"belongs to no connector.*move the table away"):
        current.apply(spark, home, [SCHEMA], up_to=change_log(home, SCHEMA).batch)


def _updates(expected: dict[int, str], at: int) -> list[Change]:
    found: list[Change] = []
    for number, key in enumerate(sorted(expected)[at::700], start=1):
        row = {"id": key, "name": f"v{at}", "note": None}
        expected[key] = f"v{at}"
        found.append(Change(at, "u", row, row, sequence=number))
    return found

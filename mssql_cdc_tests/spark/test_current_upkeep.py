"""What a user's Spark does to a current table between two updates (correctness D)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from mssql_cdc.lake import current
from mssql_cdc_tests.lake_kit import Change, append, change_log, home_in
from mssql_cdc_tests.unit.lake.test_current_readers import SCHEMA, apply_without_spark, by_query, filled, told

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


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
    # The restored table still says that the section was applied: Delta keeps txns over a restore.
    assert current.applied_batch(home, SCHEMA) == state.batch
    assert len(seen()) == len(expected)


def _updates(expected: dict[int, str], at: int) -> list[Change]:
    found: list[Change] = []
    for number, key in enumerate(sorted(expected)[at::700], start=1):
        row = {"id": key, "name": f"v{at}", "note": None}
        expected[key] = f"v{at}"
        found.append(Change(at, "u", row, row, sequence=number))
    return found

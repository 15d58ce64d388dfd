"""Tasks give a current table the rows that Spark's MERGE gives to one: each kind of history, step by step (rule D).

`test_fold.py` compares the folds of random sections of one structure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mssql_cdc.lake import current
from mssql_cdc.lake.current_table import Vectors, new_table
from mssql_cdc.lake.evolution import evolve
from mssql_cdc.lake.layout import TableHome
from mssql_cdc.lake.spark_sql import spark_identifier
from mssql_cdc.lake.table_commit import Change as LogChange
from mssql_cdc.lake.table_commit import create
from mssql_cdc.schema import TableSchema, change_log_schema
from mssql_cdc_tests.lake_kit import Change, append, change_log, column, excluding, home_in, orders
from mssql_cdc_tests.spark.conftest import rows_of
from mssql_cdc_tests.spark.test_fold import Twin

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PLAIN = orders()
ID, N = column("id", "int"), column("n", "int")
ONLY_SPARK = "SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"


@dataclass(frozen=True)
class Step:
    """A commit with rows of a structure; the current tables are updated afterwards."""

    schema: TableSchema
    changes: Sequence[Change]


def row(number: int, name: str | None = "a", note: str | None = "n") -> dict[str, Any]:
    return {"id": number, "name": name, "note": note}


def created(at: int, *rows: dict[str, Any], op: str = "c") -> list[Change]:
    return [Change(at, op, after=one, sequence=number) for number, one in enumerate(rows, start=1)]


WIDER = orders(ID, column("n", "bigint"), version=2)
ODD = orders(ID, N, column("unit price", "int"), version=2)
ODD_AND_WIDER = orders(ID, column("n", "bigint"), column("unit price", "bigint"), version=3)
BY_NAME = orders(keys=("name",), version=2, key_since=2)
BY_ID_AGAIN = orders(version=3, key_since=3)
WITHOUT_NOTE = orders(*PLAIN.columns[:2], version=2)
NOTE_IS_BACK = orders(version=3)

HISTORIES = {
    "changed keys": [
        Step(PLAIN, created(1, row(1), row(2), row(3))),
        Step(PLAIN, [Change(2, "u", row(1), row(7, "moved")), Change(3, "u", row(2), row(1, "took its place"))]),
        Step(PLAIN, [Change(4, "u", row(7), row(2)), Change(5, "u", row(2), row(7)), Change(6, "d", row(7))]),
    ],
    "incarnations": [
        Step(PLAIN, created(1, row(1, "a", "long"), row(2, "b", "long"))),
        Step(
            PLAIN,
            [
                Change(2, "d", row(1)),
                Change(3, "c", after=row(1, "again", None), unavailable=["note"]),
                Change(4, "u", row(2), row(2, "c", None), unavailable=["note"]),
                Change(5, "u", row(3), row(3, "never seen", None), unavailable=["note"]),
            ],
        ),
        Step(PLAIN, [Change(6, "u", row(1), row(1, "d", None), unavailable=["note"]), Change(7, "d", row(2))]),
    ],
    "exact texts": [
        Step(PLAIN, [Change(1, "c", after=row(1), exact={"after": {"name": "utf16:d800", "note": "utf16:dc00"}})]),
        Step(PLAIN, [Change(2, "u", row(1), row(1, "b", None), unavailable=["note"])]),
        Step(PLAIN, [Change(3, "u", row(1), row(1, "c"), exact={"after": {"name": "utf16:d801"}})]),
    ],
    "rows of snapshots and sweeps that are late": [
        Step(PLAIN, created(9, row(1, "new"), row(2, "new"))),
        Step(PLAIN, created(5, row(1, "old"), row(3, "read"), op="r")),
        Step(PLAIN, [Change(6, "d", row(2)), Change(6, "d", row(3), sequence=2), Change(6, "d", row(4), sequence=3)]),
    ],
    "a widened column": [
        Step(orders(ID, N), created(1, {"id": 1, "n": 1}, {"id": 2, "n": 2})),
        Step(WIDER, [Change(2, "u", {"id": 1, "n": 1}, {"id": 1, "n": 2**40}), Change(3, "d", {"id": 2, "n": 2})]),
        Step(WIDER, created(4, {"id": 3, "n": None})),
    ],
    "a name that needs column mapping, and a widened column": [
        Step(orders(ID, N), created(1, {"id": 1, "n": 1}, {"id": 2, "n": 2})),
        Step(ODD, created(2, {"id": 3, "n": 3, "unit price": 4})),
        Step(ODD_AND_WIDER, [Change(3, "u", {"id": 1, "n": 1}, {"id": 1, "n": 2**40, "unit price": 2**41})]),
    ],
    "another key, and the former one again": [
        Step(PLAIN, created(1, row(1, "x"), row(2, "y"))),
        Step(BY_NAME, created(2, row(1, "x"), row(3, "z"), op="r")),
        Step(BY_ID_AGAIN, created(3, row(3, "z"), op="r")),
        Step(BY_ID_AGAIN, [Change(4, "u", row(3), row(3, "changed"))]),
    ],
    "a column that was gone for a while": [
        Step(PLAIN, created(1, row(1), row(2))),
        Step(WITHOUT_NOTE, [Change(2, "u", {"id": 1}, {"id": 1, "name": "b"}), *created(3, {"id": 3, "name": "c"})]),
        Step(NOTE_IS_BACK, [Change(4, "u", row(2), row(2, "d", "new"))]),
    ],
    "a column that a filter excludes": [
        Step(PLAIN, created(1, row(1), row(2))),
        Step(
            excluding(orders(version=2), ["note"]),
            [Change(2, "u", {"id": 1}, {"id": 1, "name": "b"}), *created(3, {"id": 3, "name": "c"})],
        ),
        Step(orders(version=3), [Change(4, "u", row(2), row(2, "d", "new"))]),
    ],
}


IN_CI = {"changed keys", "a widened column", "another key, and the former one again"}


def by_merge(spark: SparkSession, ours: TableHome, schema: TableSchema) -> TableHome:
    """Another current table of the same change log, which has a feature that only Spark writes."""
    twin = Twin(ours.folder, ours.app_id)
    protocol, metadata = new_table(twin, schema, "auto")
    create(twin.current, LogChange("CREATE TABLE", protocol=protocol, metadata=metadata), facts={})
    spark.sql(f"ALTER TABLE {spark_identifier(twin.current)} {ONLY_SPARK}")
    return twin


@pytest.mark.parametrize("vectors", ["auto", pytest.param("true", marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "history",
    [pytest.param(steps, id=name, marks=[pytest.mark.long] * (name not in IN_CI)) for name, steps in HISTORIES.items()],
)
def test_tasks_give_what_merge_gives_after_each_step(
    spark: SparkSession, tmp_path: Path, history: list[Step], vectors: Vectors
):
    ours = home_in(tmp_path)
    state, versions = change_log(ours, history[0].schema, spark=lambda: spark), list[TableSchema]()
    oracle = by_merge(spark, ours, history[0].schema)
    for step in history:
        if step.schema not in versions:
            versions.append(step.schema)
        state = evolve(state, change_log_schema(step.schema), lambda: spark)
        state = append(state, step.schema, *step.changes, spark=lambda: spark)
        tasks = current.apply(spark, ours, versions, up_to=state.batch, vectors=vectors)
        merge = current.apply(spark, oracle, versions, up_to=state.batch)
        assert (tasks.because, merge.because) == (None, "the table has a change data feed")
        assert rows_of(spark, ours.current) == rows_of(spark, oracle.current)
    assert rows_of(spark, ours.current)

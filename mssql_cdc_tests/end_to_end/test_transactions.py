"""`_transactions` and the rendered records tell the same of transactions over several tables at a source."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from mssql_cdc_tests.end_to_end.kit import Place

pytestmark = [pytest.mark.spark, pytest.mark.slow]
TABLES = ("orders", "people", "items")


def statement(chance: random.Random) -> str:
    """A statement on one of the tables that changes some rows, or their keys, or nothing in them."""
    table, key = chance.choice(TABLES), chance.randrange(40)
    missing = f"NOT EXISTS (SELECT 1 FROM dbo.{table} WHERE id ="
    statements = [
        f"INSERT INTO dbo.{table} SELECT {key}, N'new', N'x' WHERE {missing} {key})",
        f"UPDATE dbo.{table} SET name = N'{chance.choice('abc')}' WHERE id BETWEEN {key} AND {key + 5}",
        f"UPDATE dbo.{table} SET name = name WHERE id BETWEEN {key} AND {key + 9}",
        f"UPDATE dbo.{table} SET id = id + 100 WHERE id = {key} AND {missing} {key + 100})",
        f"DELETE FROM dbo.{table} WHERE id = {key}",
    ]
    return chance.choice(statements)


def in_order(place: Place) -> list[dict[str, Any]]:
    """The rows of `_transactions` in order."""
    table = DeltaTable(f"{place.warehouse}/shop/{place.database}/_transactions").to_pyarrow_table()
    return sorted(table.to_pylist(), key=lambda row: (row["_pos"], row["status"]))


@pytest.mark.feature("TXN-04", "TXN-07", "EVT-22")
@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"skipped_operations": "c", "skip_messages_without_change": "true"},
        pytest.param(
            {"message_key_columns": "dbo.people:name", "skip_messages_without_change": "true"}, marks=pytest.mark.long
        ),
        pytest.param({"skipped_operations": "d,u"}, marks=pytest.mark.long),
    ],
    ids=str,
)
def test_random_transactions_have_the_counts_of_the_records(place: Place, properties: dict[str, str], tmp_path: Path):
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")  # noqa: T201 (a failure is repeated with it)
    chance = random.Random(seed)
    place.configure(provide_transaction_metadata="true", include_schema_changes="false", **properties)
    for table in TABLES:
        place.create(table, "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL, note nvarchar(50) NULL")
        place.sql(*(f"INSERT INTO dbo.{table} VALUES ({key}, N'old', N'n')" for key in range(0, 40, 2)))
    place.settle()
    assert place.catch_up() == 0
    for _ in range(3):
        for _ in range(6):
            place.sql("BEGIN TRAN; " + "; ".join(statement(chance) for _ in range(chance.randint(1, 5))) + "; COMMIT")
        assert place.catch_up() == 0
    # Debezium writes the END of the newest transaction when the next one begins.
    place.sql(
        "BEGIN TRAN; INSERT INTO dbo.items VALUES (999, N'a', N'b'); DELETE FROM dbo.items WHERE id = 999; COMMIT"
    )
    assert place.catch_up() == 0
    rows = in_order(place)
    assert [row["status"] for row in rows] == ["BEGIN", "END"] * (len(rows) // 2)
    found = [
        (row["transaction_id"], row["status"], row["event_count"], dict(row["data_collections"] or {})) for row in rows
    ]
    output = tmp_path / "records.jsonl"
    assert place.command("records", "--output", str(output)) == 0
    values = [json.loads(line)["value"] for line in output.read_text(encoding="utf-8").splitlines()]
    told = [
        (
            one["id"],
            one["status"],
            one["event_count"],
            {each["data_collection"]: each["event_count"] for each in one["data_collections"] or ()},
        )
        for one in values
        if one and "status" in one
    ]
    assert len(told) > 10
    assert found[: len(told)] == told
    assert [status for _, status, _, _ in found[len(told) :]] == ["END"]

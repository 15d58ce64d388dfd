"""Columns that are altered while they are read: no value is cut, whenever the ALTER comes (E26)."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from mssql_cdc.capture.snapshot import chunk_groups, take
from mssql_cdc.plan.decisions import Range
from mssql_cdc.run import follower
from mssql_cdc_tests.end_to_end.kit import Place
from mssql_cdc_tests.end_to_end.test_signals import own_rows

pytestmark = [pytest.mark.spark, pytest.mark.slow]

LONG = "thirty characters, every one of"
WIDEN = (
    "ALTER TABLE dbo.orders ALTER COLUMN name nvarchar(40) NULL",
    "ALTER TABLE dbo.orders ALTER COLUMN at datetime2(7) NULL",
    f"UPDATE dbo.orders SET name = N'{LONG}', at = '2026-01-01T00:00:00.1234567' WHERE id = 3",
)


def once(then: Callable[[], object]) -> Callable[[], None]:
    left = [then]

    def run() -> None:
        if left:
            left.pop()()

    return run


def assert_nothing_is_cut(place: Place) -> None:
    assert place.catch_up() == 0
    assert place.check() == 0
    assert place.query("SELECT name FROM t WHERE id = 3", "orders") == [{"name": LONG}]
    for row in place.query("SELECT after['name'] AS name FROM t WHERE after['id'] = 3", "orders", "changes"):
        assert row["name"] in {LONG, "three"}


@pytest.fixture
def narrow(place: Place) -> Place:
    place.create("orders", "id int NOT NULL PRIMARY KEY, name nvarchar(10) NULL, at datetime2(3) NULL")
    place.sql("INSERT INTO dbo.orders VALUES (1, N'one', NULL), (2, N'two', NULL), (3, N'three', NULL)")
    place.settle()
    return place


def test_a_column_that_is_widened_between_two_groups_of_chunks(narrow: Place, monkeypatch: pytest.MonkeyPatch):
    """Review, bug 3: the rows of later groups were cut to the old length, for ever."""
    widen = once(lambda: narrow.sql(*WIDEN))
    monkeypatch.setattr(take, "CHUNK_ROWS", 1)
    monkeypatch.setattr(take, "GROUP_CHUNKS", 1)
    run_here = chunk_groups.run_here

    def alter_behind_the_first_group(*given: Any, **more: Any) -> Any:
        done = run_here(*given, **more)
        widen()
        return done

    monkeypatch.setattr(chunk_groups, "run_here", alter_behind_the_first_group)
    assert_nothing_is_cut(narrow)


def test_a_column_that_is_widened_between_the_look_and_the_range(narrow: Place, monkeypatch: pytest.MonkeyPatch):
    """Review, bug 4: the range was read with the lengths of the look before it."""
    assert narrow.catch_up() == 0
    widen = once(lambda: [narrow.sql(*WIDEN), narrow.settle()])
    execute = follower.execute

    def alter_before_a_range(database: Any, seen: Any, decision: Any, **more: Any) -> Any:
        if isinstance(decision, Range) and decision.slices:
            widen()
        return execute(database, seen, decision, **more)

    monkeypatch.setattr(follower, "execute", alter_before_a_range)
    narrow.sql("UPDATE dbo.orders SET name = N'drei' WHERE id = 2")
    narrow.settle()
    assert_nothing_is_cut(narrow)


def test_an_integer_that_becomes_decimal_keeps_its_values(place: Place, tmp_path: Path, spark: SparkSession):
    """Delta widens it in the change log and in the current table; records of older rows have the older type."""
    place.create("orders", "id int NOT NULL PRIMARY KEY, few tinyint NULL, middle int NULL, many bigint NULL")
    place.sql(f"INSERT INTO dbo.orders VALUES (1, 255, {-(2**31)}, {2**63 - 1}), (2, NULL, 7, NULL)")
    place.settle()
    assert place.catch_up() == 0
    place.sql(
        "ALTER TABLE dbo.orders ALTER COLUMN few decimal(12, 1) NULL",
        "ALTER TABLE dbo.orders ALTER COLUMN middle decimal(18, 4) NULL",
        "ALTER TABLE dbo.orders ALTER COLUMN many decimal(38, 10) NULL",
        "UPDATE dbo.orders SET few = 0.5, middle = 12345678901234.5678, many = 0.0000000001 WHERE id = 2",
    )
    place.settle()
    assert place.catch_up() == 0
    assert place.check() == 0
    current = spark.sql(f"SELECT few, middle, many FROM delta.`{place.uri('orders')}` ORDER BY id").collect()
    assert [tuple(row) for row in current] == [
        (Decimal(255), Decimal(-(2**31)), Decimal(2**63 - 1)),
        (Decimal("0.5"), Decimal("12345678901234.5678"), Decimal("0.0000000001")),
    ]
    place.configure(**{"decimal.handling.mode": "string"})
    found = images(place, tmp_path / "records.jsonl")
    assert found[0] == {"id": 1, "few": 255, "middle": -(2**31), "many": 2**63 - 1}
    assert found[-1] == {"id": 2, "few": "0.5", "middle": "12345678901234.5678", "many": "0.0000000001"}


def test_records_of_rows_before_a_column_was_widened_stay_as_they_were(place: Place, tmp_path: Path):
    place.create(
        "orders", "id int NOT NULL PRIMARY KEY, price decimal(9, 2) NULL, ratio real NULL, day date NULL, n int NULL"
    )
    place.sql("INSERT INTO dbo.orders VALUES (1, 1.5, 0.1, '2026-01-02', 7)", "UPDATE dbo.orders SET n = 8")
    place.settle()
    assert place.catch_up() == 0
    before = images(place, tmp_path / "before.jsonl")
    place.sql(
        "ALTER TABLE dbo.orders ALTER COLUMN price decimal(12, 4) NULL",
        "ALTER TABLE dbo.orders ALTER COLUMN ratio float NULL",
        "ALTER TABLE dbo.orders ALTER COLUMN day datetime2(3) NULL",
        "ALTER TABLE dbo.orders ALTER COLUMN n decimal(18, 2) NULL",
        "UPDATE dbo.orders SET n = 9.25, price = 1.1234",
    )
    place.settle()
    assert place.catch_up() == 0
    after = images(place, tmp_path / "after.jsonl")
    assert after[: len(before)] == before
    assert len(after) == len(before) + 1
    assert after[-1]["price"] == base64.b64encode((11234).to_bytes(2, "big")).decode()


def images(place: Place, output: Path) -> list[dict[str, Any]]:
    """The images behind all changes, as a new output has them."""
    assert place.command("records", "--output", str(output)) == 0
    found = [json.loads(line, parse_float=str)["value"] for line in output.read_text().splitlines()]
    return [one["after"] for one in found if one and one.get("op")]


@pytest.mark.feature("EVO-07")
@pytest.mark.parametrize(
    ("altered", "announced"),
    [
        ("ADD CONSTRAINT df_name DEFAULT N'none' FOR name", []),
        pytest.param("ALTER COLUMN name nvarchar(10) NOT NULL", [], marks=pytest.mark.long),
        pytest.param("ALTER COLUMN name nvarchar(10) COLLATE Polish_CS_AS NULL", [], marks=pytest.mark.long),
        ("ALTER COLUMN name nvarchar(20) NULL", ["ALTER"]),
    ],
    ids=["default", "nullability", "collation", "length"],
)
def test_what_changes_under_the_same_instance_takes_effect_after_the_rows_of_before(
    narrow: Place, tmp_path: Path, altered: str, announced: list[str]
):
    """Review, D1: the new structure began where the instance did, so that its record came before all older events."""
    assert narrow.catch_up() == 0
    narrow.sql("INSERT INTO dbo.orders VALUES (4, N'four', NULL)")
    narrow.settle()
    assert narrow.catch_up() == 0
    before = told(narrow, tmp_path / "before.jsonl")
    assert before == ["CREATE", 1, 2, 3, 4]
    narrow.sql(f"ALTER TABLE dbo.orders {altered}", "INSERT INTO dbo.orders VALUES (5, N'five', NULL)")
    narrow.settle()
    assert narrow.catch_up() == 0
    assert told(narrow, tmp_path / "after.jsonl") == [*before, *announced, 5]
    versions = own_rows(narrow, "schema_history", "SELECT schema AS version, from_lsn FROM t ORDER BY schema")
    rows = narrow.query(
        "SELECT _schema AS version, source['commit_lsn'] AS lsn FROM t WHERE op = 'c' ORDER BY _pos",
        "orders",
        "changes",
    )
    assert [row["version"] for row in rows] == [one["version"] for one in versions] == [1, 2]
    assert rows[0]["lsn"] < versions[1]["from_lsn"] <= rows[1]["lsn"]
    assert narrow.check() == 0


def told(place: Place, output: Path) -> list[str | int]:
    """The records in their order: the kind of a structure's, the id of a row's."""
    assert place.command("records", "--output", str(output)) == 0
    found: list[str | int] = []
    for line in output.read_text(encoding="utf-8").splitlines():
        value = json.loads(line)["value"] or {}
        if "tableChanges" in value:
            found += [one["type"] for one in value["tableChanges"]]
        elif value.get("after"):
            found.append(value["after"]["id"])
    return found

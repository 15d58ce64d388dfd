"""Capture instances by age, the key that identifies rows, and questionable columns (rules B12, B14, E27)."""

from __future__ import annotations

from datetime import datetime
from types import SimpleNamespace

import pytest

from mssql_cdc.schema import NO_CONSTRAINT, Column, SqlServerType, UniqueKey
from mssql_cdc.source.sqlserver.catalog import by_age, sql_type
from mssql_cdc.source.sqlserver.keys import doubtful_columns, shown_key, usable_keys
from mssql_cdc.source.values import CapturedTable
from mssql_cdc_tests.unit.source.raw import TABLE, instance, lsn

OLD = instance(name="old", start_lsn=lsn(10))
DATABASE = "Latin1_General_CI_AS"


def index(number: int, *names: str, **more: object) -> list[SimpleNamespace]:
    blank = {
        "index_id": number, "index_name": f"i{number}", "is_primary_key": False, "has_filter": False,
        "is_disabled": False, "is_computed": False, "collation_name": None, "type_name": "int", "constraint_id": None,
    }  # fmt: skip
    return [
        SimpleNamespace(**(blank | more), column_name=name, key_ordinal=place + 1) for place, name in enumerate(names)
    ]


@pytest.mark.feature("EVO-04")
def test_of_two_instances_with_the_same_start_the_later_one_is_used() -> None:
    later = instance(name="later", start_lsn=lsn(10), created=datetime(2026, 2, 1), object_id=3)  # noqa: DTZ001

    assert CapturedTable(TABLE, 5, by_age([later, OLD])).newest.name == "later"


@pytest.mark.parametrize(
    ("indexes", "keys"),
    [
        (index(2, "u") + index(1, "b", "a", is_primary_key=True), [("b", "a"), ("u",)]),
        (index(3, "u") + index(2, "v"), [("v",), ("u",)]),
        (index(2, "u", has_filter=True) + index(3, "v"), [("v",)]),
        (index(2, "u", is_computed=True) + index(3, "v"), [("v",)]),
        (index(2, "u", is_disabled=True) + index(3, "v"), [("v",)]),
        (index(2, "left out") + index(3, "v"), [("v",)]),
        (index(2, "a", "u")[1:] + index(3, "v"), [("v",)]),  # Not every column of it is shown.
        (index(2, "a", "u", "b")[::2] + index(3, "v"), [("v",)]),
        (index(2, "u", type_name="varchar", collation_name="Polish_CI_AS") + index(3, "v"), [("v",)]),
        (index(2, "u", type_name="varchar", collation_name=DATABASE), [("u",)]),
        ([], []),
    ],
)
def test_the_key_is_the_primary_key_or_the_first_unique_index_that_can_identify(
    indexes: list[SimpleNamespace], keys: list[tuple[str, ...]]
) -> None:
    assert [key.columns for key in usable_keys(indexes, {"a", "b", "u", "v"}, DATABASE)] == keys


@pytest.mark.feature("EVT-02")
@pytest.mark.parametrize(
    ("indexes", "key", "shown"),
    [
        (index(2, "u", index_name="z") + index(3, "v", index_name="a"), ("u",), ("v",)),
        (index(2, "v", index_name="a") + index(1, "u", index_name="z"), ("u",), ("u",)),
        (index(2, "u", has_filter=True), (), ("u",)),
        (index(2, "u", has_filter=True) + index(3, "v"), ("v",), ("u",)),
        (index(2, "gone", "u", is_computed=True) + index(3, "v"), ("v",), ("u",)),
        (index(2, "u") + index(3, "a", "gone", is_primary_key=True), ("u",), ("a",)),
        (index(2, "u") + index(3, "b", "a", is_primary_key=True), ("b", "a"), ("b", "a")),
        (index(2, "u", "hidden") + index(3, "v"), ("v",), ("v",)),
        (index(2, "u", "hidden"), ("u", "hidden"), ("u", "hidden")),
        (index(2, "u", "hidden", is_primary_key=True), (), ("u",)),
        ([], (), ()),
    ],
)
def test_records_show_the_primary_key_or_the_first_unique_index_by_name_as_debezium(
    indexes: list[SimpleNamespace], key: tuple[str, ...], shown: tuple[str, ...]
) -> None:
    """What identifies a row decides for the lake: it takes the oldest index, and none with a filter."""
    columns = [Column(name, SqlServerType("int"), excluded=name == "hidden") for name in ("a", "b", "u", "v", "hidden")]

    assert shown_key(indexes, columns, key) == shown


def test_a_key_is_known_by_its_constraint() -> None:
    indexes = index(1, "a", is_primary_key=True, constraint_id=77) + index(2, "u")

    assert usable_keys(indexes, {"a", "u"}, DATABASE) == (UniqueKey(("a",), 77), UniqueKey(("u",), NO_CONSTRAINT))


@pytest.mark.parametrize(
    ("former", "now", "continues"),
    [(77, 77, True), (77, 78, False), (77, NO_CONSTRAINT, False), (NO_CONSTRAINT, 77, False), (None, 77, True)],
)
def test_a_key_goes_on_while_its_constraint_is_the_same(former: int | None, now: int, continues: bool) -> None:  # noqa: FBT001 (a parameter)
    assert UniqueKey(("a",), now).continues(UniqueKey(("a",), former)) is continues
    assert not UniqueKey(("b",), now).continues(UniqueKey(("a",), former))


def test_a_varchar_column_of_another_collation_is_flagged() -> None:
    columns = [
        Column("a", SqlServerType("varchar", length=5, collation="Polish_CI_AS")),
        Column("b", SqlServerType("nvarchar", length=5, collation="Polish_CI_AS")),
        Column("c", SqlServerType("varchar", length=5, collation=DATABASE)),
    ]
    (line,) = doubtful_columns(TABLE, columns, DATABASE)

    assert "'a'" in line


@pytest.mark.parametrize(
    ("row", "declaration"),
    [
        (("nvarchar", 100, 0, 0), "nvarchar(50)"),
        (("nvarchar", -1, 0, 0), "nvarchar(max)"),
        (("varchar", 50, 0, 0), "varchar(50)"),
        (("decimal", 9, 12, 3), "decimal(12, 3)"),
        (("datetime2", 8, 27, 7), "datetime2(7)"),
        (("time", 3, 8, 0), "time(0)"),
        (("int", 4, 10, 0), "int"),
        (("text", 16, 0, 0), "text"),
    ],
)
def test_catalog_types_are_read_as_declared(row: tuple[str, int, int, int], declaration: str) -> None:
    name, length, precision, scale = row
    found = sql_type(
        SimpleNamespace(type_name=name, max_length=length, precision=precision, scale=scale, collation_name=None)
    )

    assert found.declaration == declaration

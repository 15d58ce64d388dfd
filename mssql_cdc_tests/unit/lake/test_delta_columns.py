"""A source column keeps its Delta column while its type fits, and continues in a new one of a name of its own else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_cdc.lake.delta_columns import continued, with_delta_columns
from mssql_cdc.lake.delta_schema import is_wider
from mssql_cdc.lake.history import load_history, record_versions
from mssql_cdc.lake.layout import Layout
from mssql_cdc.schema import (
    Column,
    FormerColumn,
    SqlServerType,
    TableSchema,
    change_log_schema,
    current_names,
    current_schema,
    former_names,
)
from mssql_cdc.schema.arrow import RESERVED_CURRENT
from mssql_cdc_tests.lake_kit import AT, column, excluding, orders


def versions(*structures: TableSchema) -> list[TableSchema]:
    """The structures as versions of one table, one after the other."""
    found: list[TableSchema] = []
    for structure in structures:
        found.append(replace(with_delta_columns(structure, found), version=len(found) + 1))
    return found


def of(*columns: Column, keys: Sequence[str] = ("id",)) -> TableSchema:
    return orders(column("id", "int"), *columns, keys=keys)


def names(schema: TableSchema) -> list[str]:
    return [one.stored_name for one in schema.columns[1:]]


def homes(*kinds: tuple[str, dict[str, int]]) -> list[str]:
    """The Delta column of a column `c` that has these types, one after the other."""
    return [names(one)[0] for one in versions(*(of(column("c", kind, **more)) for kind, more in kinds))]


@pytest.mark.parametrize(
    ("kinds", "found"),
    [
        ([("int", {}), ("bigint", {}), ("smallint", {}), ("int", {})], ["c", "c", "c", "c"]),
        ([("int", {}), ("nvarchar", {"length": 9})], ["c", "c_2"]),
        ([("varchar", {"length": 9}), ("int", {})], ["c", "c_2"]),
        ([("varchar", {"length": 9}), ("nvarchar", {"length": -1}), ("xml", {})], ["c", "c", "c"]),
        ([("datetime", {}), ("datetime2", {"scale": 7}), ("datetimeoffset", {"scale": 7})], ["c", "c", "c_2"]),
        ([("decimal", {"precision": 9, "scale": 4}), ("decimal", {"precision": 9, "scale": 2})], ["c", "c_2"]),
        ([("decimal", {"precision": 9, "scale": 4}), ("decimal", {"precision": 5, "scale": 0})], ["c", "c"]),
        ([("int", {}), ("nvarchar", {"length": 9}), ("int", {})], ["c", "c_2", "c_3"]),
        # The Delta column is a bigint already, so a decimal needs 20 digits before the point.
        ([("bigint", {}), ("int", {}), ("decimal", {"precision": 12, "scale": 0})], ["c", "c", "c_2"]),
    ],
)
def test_the_delta_column_of_a_column_whose_type_changes(kinds: list[tuple[str, dict[str, int]]], found: list[str]):
    assert homes(*kinds) == found


def test_a_column_remembers_the_delta_columns_it_had_with_their_widest_types():
    newest = versions(of(column("c", "bigint")), of(column("c", "int")), of(column("c", "xml")), of(column("c", "bit")))
    found = newest[-1].column("c")
    assert found.former == (FormerColumn("c", SqlServerType("bigint")), FormerColumn("c_2", SqlServerType("xml")))
    assert [(one.column.name, one.former.name, one.since) for one in continued(newest[3], newest[:3])] == [
        ("c", "c_2", 4)
    ]
    assert not continued(newest[1], newest[:1])


def test_the_number_is_the_next_that_no_other_column_has_in_any_case_of_letters():
    before = of(column("c", "int"), column("C_2", "int"), column("c_3", "int"))
    after = of(column("c", "bit"), column("c_3", "int"), column("c_4", "int"))
    # C_2 is gone at the source, but its Delta column is not.
    assert names(versions(before, after)[-1]) == ["c_5", "c_3", "c_4"]


def test_a_source_column_whose_name_a_delta_column_has_gets_another():
    first, second = of(column("c", "int")), of(column("c", "bit"))
    third = of(column("c", "bit"), column("c_2", "int"))
    assert names(versions(first, second, third)[-1]) == ["c_2", "c_2_2"]
    assert names(versions(first, of(column("C", "int")))[-1]) == ["C_2"]


def test_a_column_that_is_dropped_and_added_continues_where_it_was_if_its_type_fits():
    gone = of(column("other", "int"))
    assert names(versions(of(column("c", "int")), gone, of(column("c", "bigint")))[-1]) == ["c"]
    newest = versions(of(column("c", "int")), gone, of(column("c", "bit")))[-1]
    assert newest.column("c").former == (FormerColumn("c", SqlServerType("int")),)


def test_a_column_that_a_filter_hides_has_no_delta_column():
    hidden = excluding(of(column("c", "bit"), column("d", "bit")), ["c"])
    assert names(versions(hidden, of(column("c", "int"), column("d", "bit")))[-1]) == ["c", "d"]


def test_the_current_table_has_the_former_columns_after_the_others():
    newest = versions(of(column("_key", "int"), column("d", "int")), of(column("_key", "xml"), column("d", "int")))[-1]
    assert current_names(newest) == {"id": "id", "_key": "_key_2", "d": "d"}
    assert former_names(newest) == {"_key": {"_key": "_key_"}}
    assert current_schema(newest).names[:5] == ["id", "_key_2", "d", "_key_", "_key"]
    assert [field.name for field in change_log_schema(newest).field("after").type] == ["id", "_key_2", "d"]


def test_every_reader_and_a_retry_find_the_delta_columns_of_a_version(tmp_path: Path):
    place = Layout(str(tmp_path), "server1", "shop")

    def recorded(schema: TableSchema) -> TableSchema:
        return record_versions(place, [schema], known=load_history(place), at=AT)[0][0]

    first, second, third = of(column("c", "int")), of(column("c", "xml")), of(column("c", "int"))
    found = [recorded(one).columns for one in (first, second, second, third, third)]
    history = load_history(place).versions[first.table_id.text]
    for columns, version in zip(found, (1, 2, 2, 3, 3), strict=True):
        assert [repr(one) for one in columns] == [repr(one) for one in history[version - 1].columns]
    assert [names(one) for one in history] == [["c"], ["c_2"], ["c_3"]]


def test_two_runs_that_see_a_change_at_the_same_time_agree(tmp_path: Path):
    place, first, second = Layout(str(tmp_path), "server1", "shop"), of(column("c", "int")), of(column("c", "xml"))
    record_versions(place, [first], known=load_history(place), at=AT)
    stale = load_history(place)
    found = [record_versions(place, [second], known=stale, at=AT)[0][0] for _ in range(2)]
    assert [(one.version, names(one)) for one in found] == [(2, ["c_2"])] * 2
    assert len(load_history(place).versions[first.table_id.text]) == 2


KINDS = st.sampled_from(
    [
        SqlServerType("int"),
        SqlServerType("bigint"),
        SqlServerType("nvarchar", length=9),
        SqlServerType("decimal", precision=9, scale=2),
        SqlServerType("datetime2", scale=3),
        SqlServerType("varbinary", length=9),
    ]
)
TABLES = st.dictionaries(st.sampled_from(["c", "c_2", "c_2_2", "c_3", "C_3", "_key", "_key_2"]), KINDS, min_size=1)


@given(st.lists(TABLES, min_size=1, max_size=8))
def test_delta_columns_belong_to_one_column_of_one_type_for_good(tables: list[dict[str, SqlServerType]]):
    """Of any sequence of structures; a Delta column that was left is never written again."""
    distinct = [{n: k for n, k in one.items() if n != "C_3" or "c_3" not in one} for one in tables]
    found = versions(*(of(*(Column(name, kind) for name, kind in one.items())) for one in distinct))
    owners: dict[str, str] = {}
    left: set[str] = set()
    before: dict[str, str] = {}
    types: dict[str, SqlServerType] = {}
    for schema in found:
        lower = [name.lower() for name in current_schema(schema).names]
        assert len(set(lower)) == len(lower), "Delta tells names apart without their case"
        assert not {one.stored_name for one in schema.columns if one.delta_name} & set(RESERVED_CURRENT)
        for one in schema.columns:
            stored = one.stored_name
            assert owners.setdefault(stored.lower(), one.name) == one.name
            assert stored not in left
            was = before.get(one.name)
            if was is not None and was != stored:
                left.add(was)
                assert one.former[-1].name == was
                old, new = types[was].arrow, one.type.arrow
                assert old != new
                assert not is_wider(old, new)
                assert not is_wider(new, old)
            before[one.name] = stored
            known = types.get(stored)
            if known is None or is_wider(one.type.arrow, known.arrow):
                types[stored] = one.type
            assert types[stored].arrow.equals(one.type.arrow) or is_wider(types[stored].arrow, one.type.arrow)

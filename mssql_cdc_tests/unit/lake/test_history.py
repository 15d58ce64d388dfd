"""`_schema_history`: versions are numbered per table and are found again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mssql_cdc.errors import SchemaError
from mssql_cdc.lake.history import load_history, record_versions
from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.small_tables import SMALL_TABLES, small_table
from mssql_cdc.schema import TableId, TableSchema
from mssql_cdc_tests.lake_kit import AT, column, orders


def layout(folder: Path) -> Layout:
    return Layout(str(folder), "server1", "shop")


def recorded(place: Layout, schemas: list[TableSchema]) -> list[TableSchema]:
    """The schemas by version."""
    return record_versions(place, schemas, known=load_history(place), at=AT)[0]


def test_known_structure_keeps_its_version_and_writes_nothing(tmp_path: Path):
    place, schema = layout(tmp_path), orders(capture_object_id=5, from_lsn="0")
    (first,) = recorded(place, [schema])
    (again,) = recorded(place, [replace(schema, version=99)])
    assert first == again
    assert again.version == 1
    assert small_table(place, "schema_history").state().batch == 1


@pytest.mark.feature("EVT-02", "SCH-01")
def test_what_records_show_as_their_key_makes_no_version_and_stays_in_a_lake_that_has_none(tmp_path: Path):
    """Versions of before that fact show the row's key: consumers know the rows by it."""
    place, one = layout(tmp_path / "old"), orders(capture_object_id=5)
    shown = replace(one, shown_key=("name",))
    added = replace(orders(*one.columns, column("more", "int"), capture_object_id=6), shown_key=("name",))
    for schema in (one, shown, added, replace(added, incarnation=2, object_id=8)):
        recorded(place, [schema])
    kept = load_history(place).versions[one.table_id.text]
    assert [(schema.version, schema.record_key) for schema in kept] == [(1, ("id",)), (2, ("id",)), (3, ("name",))]

    new = layout(tmp_path / "new")
    for schema in (shown, replace(shown, shown_key=("id",)), added, replace(added, shown_key=())):
        recorded(new, [schema])
    kept = load_history(new).versions[one.table_id.text]
    assert [(schema.version, schema.record_key) for schema in kept] == [(1, ("name",)), (2, ("name",))]


@pytest.mark.feature("SCH-01")
def test_new_structure_instance_and_incarnation_get_the_next_version(tmp_path: Path):
    place, one = layout(tmp_path), orders(capture_object_id=5)
    added = orders(*one.columns, column("more", "int"), capture_object_id=6)
    found = [recorded(place, [schema])[0] for schema in (one, added, replace(added, incarnation=2))]
    assert [schema.version for schema in found] == [1, 2, 3]
    history = load_history(place)
    assert history.newest(one.table_id) == found[2]
    assert [history.version(one.table_id, number) for number in (1, 2, 3)] == found


def test_a_structure_that_comes_back_is_a_new_version_and_the_newest(tmp_path: Path):
    """Review, bug 6: A, B, A was taken for A again, and B stayed the newest."""
    place, one = layout(tmp_path), orders()
    without = replace(one, key_columns=())
    assert [recorded(place, [schema])[0].version for schema in (one, without, one, one)] == [1, 2, 3, 3]
    history = load_history(place)
    assert history.newest(one.table_id) == replace(one, version=3, key_since=3)
    assert [history.is_filled(one, filled) for filled in (None, 1, 2, 3)] == [False, False, False, True]


def test_a_key_has_been_the_same_since_its_definition_changed_in_any_detail(tmp_path: Path):
    """Review, bug 14: another length or scale is another `_key` of the same row."""
    place, others = layout(tmp_path), orders().columns[1:]
    kinds = [
        column("id", "decimal", precision=8, scale=2),
        column("id", "decimal", precision=12, scale=4),
        column("id", "char", length=4, collation="Latin1_General_CI_AS"),
        column("id", "char", length=8, collation="Latin1_General_CI_AS"),
        column("id", "char", length=8, collation="Latin1_General_CS_AS"),
    ]
    schemas = [orders(kind, *others) for kind in kinds]
    assert [recorded(place, [schema])[0].key_since for schema in schemas] == [1, 2, 3, 4, 5]
    assert recorded(place, [orders(kinds[-1], *others, column("more", "int"))])[0].key_since == 5


def test_a_constraint_that_was_added_again_is_another_key_of_the_same_definition(tmp_path: Path):
    place, one = layout(tmp_path), replace(orders(), key_constraint=77)
    unknown, again = replace(one, key_constraint=None), replace(one, key_constraint=78)
    found = [recorded(place, [schema])[0] for schema in (one, unknown, again, again)]
    assert [(schema.version, schema.key_since) for schema in found] == [(1, 1), (1, 1), (2, 2), (2, 2)]
    history = load_history(place)
    assert [history.is_filled(again, filled) for filled in (1, 2)] == [False, True]
    assert not history.is_filled(one, 2)


def test_versions_count_per_table(tmp_path: Path):
    place, one = layout(tmp_path), orders()
    other = replace(one, table_id=TableId("shop", "dbo", "items"))
    assert [s.version for s in recorded(place, [one, other])] == [1, 1]


def test_version_that_was_never_written_is_an_error(tmp_path: Path):
    with pytest.raises(SchemaError, match="no version 4"):
        load_history(layout(tmp_path)).version(orders().table_id, 4)


@pytest.mark.parametrize("name", sorted(SMALL_TABLES))
def test_small_tables_return_the_rows_that_were_written(tmp_path: Path, name: str):
    table = small_table(layout(tmp_path), name)
    assert table.rows() == []
    text_columns = [c for c in table.schema.names if str(table.schema.field(c).type) == "string"]
    state = table.append(table.state(), [dict.fromkeys(text_columns, "x")], {"kind": name})
    table.append(state, [{}], {"kind": name})
    assert [(row["_batch"], row[text_columns[0]]) for row in table.rows()] == [(1, "x"), (2, None)]


@pytest.mark.parametrize(
    ("met", "is_back"),
    [
        pytest.param({1, 2, 5}, True, id="orders-is-back"),
        pytest.param(set(), True, id="another-epoch"),
        pytest.param({1, 5}, False, id="another-epoch-in-which-orders-is-not-captured"),
    ],
)
def test_an_identity_that_a_restore_gave_to_another_table_moves_no_versions(
    tmp_path: Path, met: set[int], *, is_back: bool
):
    """`orders` was made anew and the source restored; `people`, made anew then, got the identity that `orders` had."""
    place = layout(tmp_path)
    first = orders(object_id=1, instance="dbo_orders")
    people = replace(first, table_id=TableId("shop", "dbo", "people"), object_id=5, instance="dbo_people")
    recorded(place, [first, people])
    recorded(place, [replace(first, object_id=2, incarnation=2)])
    present = {people.table_id: 2, **({first.table_id: 1} if is_back else {})}
    history = load_history(place).identified(present, frozenset(met))
    assert [one.object_id for one in history.versions["shop.dbo.orders"]] == [1, 2]
    assert [one.object_id for one in history.versions["shop.dbo.people"]] == [5]
    again = replace(people, object_id=2, incarnation=2)
    (written,), _ = record_versions(place, [again], known=history, at=AT)
    assert written.version == 2
    for loaded in (load_history(place), load_history(place).identified(present, frozenset({*met, 2}))):
        chains = {name: [one.object_id for one in own] for name, own in loaded.versions.items()}
        assert chains == {"shop.dbo.orders": [1, 2], "shop.dbo.people": [5, 2]}


def test_a_new_table_with_the_identity_of_another_one_of_before_a_restore_has_its_own_versions(tmp_path: Path):
    """Its first version was taken for a rename of the other one, and its rows read by that one's first structure."""
    place = layout(tmp_path)
    recorded(place, [former := orders(object_id=2, instance="dbo_orders")])
    fresh = replace(former, table_id=TableId("shop", "dbo", "fresh"), instance="dbo_fresh")
    present = {fresh.table_id: 2}
    history = load_history(place).identified(present, frozenset())
    (written,), _ = record_versions(place, [fresh], known=history, at=AT)
    assert written.version == 1
    for loaded in (load_history(place), load_history(place).identified(present, frozenset({2}))):
        assert {name: own[0].table_id.name for name, own in loaded.versions.items()} == {
            "shop.dbo.orders": "orders",
            "shop.dbo.fresh": "fresh",
        }

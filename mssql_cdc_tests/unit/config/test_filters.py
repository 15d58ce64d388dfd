"""Filters for tables and columns of a connector."""

import pytest

from mssql_cdc.config.filters import split_name, spoken_name
from mssql_cdc_tests.unit.config.samples import connector, connector_with


@pytest.mark.feature("FLT-04")
@pytest.mark.parametrize(
    ("include", "table", "expected"),
    [
        ("dbo.customers", ("testDB", "dbo", "customers"), True),
        ("DBO.CUSTOMERS", ("testDB", "dbo", "customers"), True),
        ("dbo.cust.*", ("testDB", "dbo", "customers"), True),
        ("customers", ("testDB", "dbo", "customers"), False),
        ("dbo.orders,dbo.customers", ("testDB", "dbo", "customers"), True),
        (r"testDB\.dbo\.customers", ("testDB", "dbo", "customers"), True),
        (r"testDB.dbo.customers", ("otherDB", "dbo", "customers"), False),
        (r".*\.dbo\.customers", ("testDB", "dbo", "customers"), True),
    ],
)
def test_table_include_list_matches_both_names(include: str, table: tuple[str, str, str], expected: bool) -> None:  # noqa: FBT001
    assert connector(table__include__list=include).filters.tables.matches(*table) is expected


@pytest.mark.feature("FLT-04")
@pytest.mark.parametrize("include", [r"sales\..*", "sales.*", r"sales[.].+"])
def test_schema_expression_never_matches_a_database_of_that_name(include: str) -> None:
    tables = connector(table__include__list=include).filters.tables
    assert tables.matches("sales", "sales", "orders")
    assert not tables.matches("sales", "dbo", "orders")


@pytest.mark.feature("FLT-04")
def test_table_exclude_list_removes_tables() -> None:
    tables = connector(table__exclude__list="dbo.secret.*").filters.tables
    assert tables.matches("testDB", "dbo", "customers")
    assert not tables.matches("testDB", "dbo", "Secret_stuff")


@pytest.mark.feature("FLT-03")
def test_schema_lists_combine_with_the_table_lists() -> None:
    included = connector(schema__include__list="sales", table__include__list=".*orders").filters.tables
    assert included.matches("testDB", "sales", "orders")
    assert not included.matches("testDB", "dbo", "orders")
    assert not included.matches("testDB", "sales", "people")
    excluded = connector(schema__exclude__list="audit|tmp.*").filters.tables
    assert not excluded.matches("testDB", "tmp1", "a")
    assert excluded.matches("testDB", "dbo", "a")


@pytest.mark.feature("PRE-12")
@pytest.mark.parametrize("name", [("cdc", "dbo_a_CT"), ("SYS", "a"), ("dbo", "SysTranSchemas")])
def test_builtin_tables_are_excluded_unless_configured(name: tuple[str, str]) -> None:
    assert not connector().filters.tables.matches("testDB", *name)
    assert connector(table__ignore__builtin="false").filters.tables.matches("testDB", *name)


@pytest.mark.feature("EVT-23")
def test_signal_table_is_always_captured() -> None:
    tables = connector(
        table__include__list="dbo.a", signal__data__collection="testDB.dbo.debezium_signal"
    ).filters.tables
    assert tables.matches("testDB", "dbo", "debezium_signal")
    assert tables.is_signal_table("TESTDB", "dbo", "Debezium_Signal")
    assert not tables.matches("testDB", "dbo", "b")


@pytest.mark.feature("SNP-26")
def test_snapshot_order_follows_the_include_list_with_the_signal_table_last() -> None:
    tables = connector(
        table__include__list="dbo.signals,dbo.z,dbo.m.*", signal__data__collection="testDB.dbo.signals"
    ).filters.tables
    names = ["signals", "m2", "z", "m1"]
    assert sorted(names, key=lambda name: tables.order("testDB", "dbo", name)) == ["z", "m1", "m2", "signals"]


@pytest.mark.feature("SNP-25")
def test_snapshot_collections_match_the_full_name_and_the_short_one() -> None:
    everything = connector().snapshot.collections
    assert everything.matches("testDB", "dbo", "a")
    some = connector(snapshot__include__collection__list=r"testDB.dbo.a,dbo\.b").snapshot.collections
    assert some.matches("TestDB", "DBO", "A")
    assert some.matches("testDB", "dbo", "b")
    assert not some.matches("testDB", "dbo", "c")


@pytest.mark.feature("FLT-05")
def test_column_lists_keep_or_drop_columns() -> None:
    included = connector(column__include__list=r"dbo.a.id,testDB\.dbo\.b\.x").filters.columns
    assert included.matches("testDB", "dbo", "a", "ID")
    assert not included.matches("testDB", "dbo", "a", "name")
    assert included.matches("testDB", "dbo", "b", "x")
    assert not included.matches("otherDB", "dbo", "b", "x")
    excluded = connector(column__exclude__list="dbo.a.secret").filters.columns
    assert excluded.matches("testDB", "dbo", "a", "id")
    assert not excluded.matches("testDB", "dbo", "a", "secret")


@pytest.mark.feature("EVT-05")
def test_message_key_columns_define_the_record_key() -> None:
    keys = connector_with({"message.key.columns": r"dbo.a:y,x;(.*).customers:pk1,PK2;testDB\.dbo\.c:id"}).records.keys
    assert keys.columns_for("testDB", "dbo", "a", ["x", "y", "z"]) == ("y", "x")
    assert keys.columns_for("testDB", "sales", "Customers", ["pk2", "pk1"]) == ("pk1", "pk2")
    assert keys.columns_for("testDB", "dbo", "c", ["id"]) == ("id",)
    assert keys.columns_for("otherDB", "dbo", "c", ["id"]) == ()
    assert keys.columns_for("testDB", "dbo", "b", ["x"]) == ()


@pytest.mark.feature("INC-02")
@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("db.dbo.t", ("db", "dbo", "t")),
        ('db."public"."My.Table"', ("db", "public", "My.Table")),
        ("[db].[dbo].[a.b c]", ("db", "dbo", "a.b c")),
        ("[db].dbo.[a]]b]", ("db", "dbo", "a]b")),
        ('db.dbo."a""b.c"', ("db", "dbo", 'a"b.c')),
    ],
)
def test_quoted_name_keeps_its_dots(name: str, parts: tuple[str, ...]) -> None:
    assert split_name(name) == parts


@pytest.mark.parametrize(
    "table", ["orders", "price$", "a[b", "[a", "a]b", 'a"b', '"', "a.b", " a ", "[x]", "]", "日本"]
)
def test_a_spoken_name_is_read_as_the_parts_that_it_has(table: str) -> None:
    assert split_name(spoken_name(("db", "dbo", table))) == ("db", "dbo", table)
    assert spoken_name(("db", "dbo", "price$")) == "db.dbo.price$"


@pytest.mark.feature("FLT-03", "FLT-04")
@pytest.mark.parametrize(
    ("lists", "name", "expected"),
    [
        ({}, ("dbo", "orders"), ()),
        ({"table__include__list": "dbo.orders"}, ("dbo", "orders"), ()),
        ({"table__include__list": "dbo.orders"}, ("dbo", "people"), ("table.include.list",)),
        ({"table__exclude__list": "dbo.orders"}, ("dbo", "orders"), ("table.exclude.list",)),
        (
            {"schema__include__list": "dbo", "table__include__list": "dbo.orders"},
            ("old", "orders"),
            ("schema.include.list", "table.include.list"),
        ),
        ({"schema__exclude__list": "old"}, ("old", "orders"), ("schema.exclude.list",)),
        ({}, ("cdc", "dbo_orders_CT"), ("table.ignore.builtin",)),
    ],
)
def test_the_properties_that_exclude_a_table_are_named(
    lists: dict[str, str], name: tuple[str, str], expected: tuple[str, ...]
) -> None:
    tables = connector(**lists).filters.tables
    assert tables.excluded_by("testDB", *name) == expected
    assert tables.matches("testDB", *name) is not bool(expected)

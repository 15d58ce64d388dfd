"""The catalog's metadata of captured tables (PRE-*, STR-16, SNP-21, EVO-*)."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal

import pytest

from mssql_cdc.config.filters import ColumnFilter, TableFilter
from mssql_cdc.config.patterns import PatternList
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.schema import TableId
from mssql_cdc.source.sqlserver.absences import absences
from mssql_cdc.source.sqlserver.catalog import captured_tables, database
from mssql_cdc.source.sqlserver.connect import control
from mssql_cdc.source.sqlserver.signal_table import signal_table
from mssql_cdc.source.sqlserver.sql import quote, text
from mssql_cdc.source.sqlserver.structures import structures
from mssql_cdc_tests.lake_kit import NAMES
from mssql_cdc_tests.sandbox_source.kit import Shop, rows


def test_a_database_name_is_returned_in_its_actual_case(shop: Shop) -> None:
    found = database(shop.control, shop.catalog.upper())

    assert found.name == shop.catalog


def test_a_database_without_cdc_fails_with_advice(shop: Shop) -> None:
    with control(shop.connection, "master") as master, pytest.raises(ConfigurationError, match="sp_cdc_enable_db"):
        database(master, "master")


@pytest.mark.feature("TYP-03")
def test_a_table_is_read_with_types_nullability_defaults_identity_and_key(shop: Shop) -> None:
    shop.create(
        "orders",
        "id int IDENTITY(1, 1) NOT NULL, code nvarchar(20) NOT NULL, price decimal(10, 2) NULL DEFAULT (1.5), "
        "at datetime2(3) NULL, twice AS (id * 2), CONSTRAINT pk PRIMARY KEY (code, id)",
    )
    found = shop.table("orders")
    columns = {column.name: column for column in found.newest.schema.columns}

    assert [c.type.declaration for c in found.newest.schema.columns] == [
        "int", "nvarchar(20)", "decimal(10, 2)", "datetime2(3)", "int",
    ]  # fmt: skip
    assert found.newest.schema.key_columns == ("code", "id")
    assert columns["id"].identity
    assert not columns["code"].nullable
    assert columns["price"].nullable
    assert columns["price"].default_text == "((1.5))"
    assert columns["twice"].computed
    assert columns["code"].key_ordinal == 1
    assert columns["code"].type.collation
    assert found.newest.name == "dbo_orders"
    assert found.newest.change_table == ("cdc", "dbo_orders_CT")
    assert found.newest.has_command_id
    assert found.object_id == found.newest.source_object_id


@pytest.mark.feature("SNP-21")
def test_only_captured_columns_are_read_and_keep_their_ordinal_in_the_mask(shop: Shop) -> None:
    shop.create("partly", "id int NOT NULL PRIMARY KEY, a int, b int, c int", capture=False)
    shop.enable("partly", columns="id, c")
    found = shop.instance("partly")

    assert [column.name for column in found.schema.columns] == ["id", "c"]
    assert found.ordinals == (1, 2)


BY_FUNCTIONS = (
    "SELECT ON dbo.t",
    "VIEW DATABASE STATE",
    *(f"SELECT ON cdc.{name}" for name in ("change_tables", "captured_columns", "lsn_time_mapping")),
)
"""The rights of a login that sees no change table."""

COLUMNS = (
    "id int NOT NULL PRIMARY KEY, a nvarchar(10) COLLATE Polish_CS_AS, b decimal(12, 3), c datetime2(3), "
    "d varbinary(max), e hierarchyid, f sysname NULL, g rowversion"
)


@pytest.mark.parametrize("ddl", ["DROP COLUMN {0}", "DROP COLUMN {0};ADD {0} bigint NULL"], ids=["gone", "again"])
def test_a_dropped_column_has_its_type_where_its_function_alone_is_visible(shop: Shop, ddl: str) -> None:
    """It was left out, and the values of the rows before the DDL that were not read yet with it."""
    shop.create("t", COLUMNS)
    seen = shop.seen_by("functions", *BY_FUNCTIONS)
    shop.run("INSERT dbo.t (id, a, b) VALUES (1, N'zażółć', 1.234)")
    shop.scan()
    for column in "abcdefg":
        shop.run(*(f"ALTER TABLE dbo.t {one.format(column)}" for one in ddl.split(";")))
    shop.scan()
    with control(seen.connection, seen.catalog) as opened:
        (table,) = captured_tables(opened)
    whole = shop.instance("t")

    assert table.newest.change_table is None
    assert [column.type for column in table.newest.schema.columns] == [column.type for column in whole.schema.columns]
    assert table.newest.schema.columns == whole.schema.columns
    assert table.newest.ordinals == whole.ordinals
    (row,) = rows(seen.changes("t", instance=table.newest))
    assert {name: row["after"][name] for name in "ab"} == {"a": "zażółć", "b": Decimal("1.234")}


def test_a_dropped_column_that_not_even_its_function_shows_is_a_problem_of_its_table(shop: Shop) -> None:
    shop.create("t", "id int NOT NULL PRIMARY KEY, a int NULL")
    shop.run("ALTER TABLE dbo.t DROP COLUMN a")
    shop.scan()
    seen = shop.seen_by("functions", *BY_FUNCTIONS)
    shop.run("EXEC sandbox.fail_statement @pattern = N'sys.dm_exec_describe_first_result_set', @number = 208")
    problems: dict[TableId, str] = {}
    with control(seen.connection, seen.catalog) as opened:
        assert captured_tables(opened, problems=problems) == []
    (reason,) = problems.values()
    assert "has a column 'a'" in reason
    assert "GRANT SELECT ON SCHEMA::cdc" in reason


def test_a_column_of_the_name_of_a_dropped_one_tells_nothing_about_it(shop: Shop) -> None:
    shop.create("t", "id int NOT NULL PRIMARY KEY, a varchar(10) NULL")
    shop.run("ALTER TABLE dbo.t DROP COLUMN a", "ALTER TABLE dbo.t ADD a rowversion NOT NULL")
    shop.run("CREATE UNIQUE INDEX own ON dbo.t (a)")
    shop.scan()
    found = shop.instance("t")
    (column,) = (one for one in found.schema.columns if one.name == "a")

    assert (column.type.declaration, column.nullable) == ("varchar(10)", True)
    assert [key.columns for key in found.keys] == [("id",)]


@pytest.mark.feature("EVO-04")
def test_two_instances_of_one_table_come_oldest_first(shop: Shop) -> None:
    shop.create("twice", "id int NOT NULL PRIMARY KEY, a int", instance="z_old")
    shop.scan()
    shop.run("INSERT dbo.twice VALUES (1, 1)", "ALTER TABLE dbo.twice ADD b int")
    shop.scan()
    shop.enable("twice", "a_new")
    shop.scan()
    old, new = shop.table("twice").instances

    assert [old.name, new.name] == ["z_old", "a_new"]
    assert old.start_lsn < new.start_lsn
    assert [len(i.schema.columns) for i in (old, new)] == [2, 3]


def test_a_table_without_a_key_has_none_unless_a_unique_index_replaces_it(shop: Shop) -> None:
    shop.create("heap", "a int, b int")
    shop.create("indexed", "a int NOT NULL, b int, CONSTRAINT u UNIQUE (b)")

    assert shop.instance("heap").schema.key_columns == ()
    assert shop.instance("indexed").schema.key_columns == ("b",)


@pytest.mark.feature("EVT-02")
def test_records_show_the_first_unique_index_by_name_as_their_key(shop: Shop) -> None:
    """As `sp_statistics` has them; rows are told apart by the oldest one."""
    shop.run(
        "CREATE TABLE dbo.t (a int NOT NULL, b int NOT NULL, c int)",
        "CREATE UNIQUE INDEX z ON dbo.t (b)",
        "CREATE UNIQUE INDEX a ON dbo.t (a)",
        "CREATE TABLE dbo.part (a int NOT NULL, b int)",
        "CREATE UNIQUE INDEX a ON dbo.part (b) WHERE b IS NOT NULL",
    )
    shop.enable("t")
    shop.enable("part")
    shop.scan()
    found, part = shop.instance("t").schema, shop.instance("part").schema

    assert (found.key_columns, found.shown_key) == (("b",), ("a",))
    assert (part.key_columns, part.shown_key) == ((), ("b",))
    described = {one.table_id.name: one.key_columns for one in structures(shop.control)}
    assert (described["t"], described["part"]) == (("a",), ("b",)), "as in the records of tables that are not captured"


def test_a_varchar_key_with_another_collation_is_rejected_by_name(shop: Shop) -> None:
    shop.create("t", "k varchar(20) COLLATE Polish_CI_AS NOT NULL PRIMARY KEY, n int")
    found = shop.instance("t")

    assert found.schema.key_columns == ()
    assert "'k'" in found.warnings[0]


@pytest.mark.feature("FLT-04", "FLT-05")
def test_filters_select_tables_and_hide_columns(shop: Shop) -> None:
    shop.create("kept", "id int NOT NULL PRIMARY KEY, secret int")
    shop.create("dropped", "id int NOT NULL PRIMARY KEY")
    filters = replace(
        shop.connector.filters,
        tables=TableFilter(table_include=PatternList("dbo.kept", 2, long_form=True)),
        columns=ColumnFilter(exclude=PatternList("dbo.kept.secret", 3, long_form=True)),
    )
    (found,) = captured_tables(shop.control, filters)

    assert found.table_id.name == "kept"
    assert [c.name for c in found.newest.schema.value_columns] == ["id"]
    assert len(found.newest.schema.columns) == 2


def test_a_renamed_table_keeps_its_identity(shop: Shop) -> None:
    shop.create("before_it", "id int NOT NULL PRIMARY KEY")
    known = shop.table("before_it")
    shop.run("EXEC sp_rename 'dbo.before_it', 'after_it'")

    assert shop.table("after_it").object_id == known.object_id
    assert shop.instance("after_it").name == "dbo_before_it"


def _describe(text: str, table: str, column: str | None = None) -> str:
    levels = f"@level0type = N'SCHEMA', @level0name = N'dbo', @level1type = N'TABLE', @level1name = N'{table}'"
    levels += f", @level2type = N'COLUMN', @level2name = N'{column}'" if column else ""
    return f"EXEC sys.sp_addextendedproperty @name = N'MS_Description', @value = N'{text}', {levels}"


def test_a_table_and_its_columns_are_read_with_their_descriptions(shop: Shop) -> None:
    shop.create("orders", "id int NOT NULL PRIMARY KEY, note nvarchar(20), price int")
    shop.create("items", "id int NOT NULL PRIMARY KEY")
    shop.run(_describe("What customers ordered, ünï", "orders"), _describe(" Net price ", "orders", "price"))
    schema = shop.table("orders").newest.schema
    assert schema.description == "What customers ordered, ünï"
    assert {c.name: c.description for c in schema.columns} == {"id": None, "note": None, "price": "Net price"}
    assert shop.table("items").newest.schema.description is None


@pytest.mark.sandbox
def test_a_login_that_may_not_read_descriptions_sees_none(shop: Shop) -> None:
    shop.create("orders", "id int NOT NULL PRIMARY KEY")
    shop.run(_describe("What customers ordered", "orders"))
    shop.run("EXEC sandbox.fail_statement @pattern = N'FROM sys.extended_properties', @number = 229")
    found = captured_tables(shop.control)
    assert {table.newest.schema.description for table in found} == {None}
    assert "What customers ordered" in {table.newest.schema.description for table in captured_tables(shop.control)}


@pytest.mark.feature("SNP-19", "SCH-11")
def test_structures_are_those_of_all_tables_and_cut_down_to_what_the_newest_instance_captures(shop: Shop) -> None:
    shop.run(
        "CREATE SCHEMA other",
        "CREATE TABLE other.plain (b int NOT NULL, a bigint IDENTITY(1, 1), note varchar(10) DEFAULT 'x', "
        "CONSTRAINT second UNIQUE (b), CONSTRAINT first UNIQUE (a))",
        "CREATE TABLE dbo.cut (id int NOT NULL, hidden int, also int NOT NULL, PRIMARY KEY (id, also))",
        "EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'cut', @role_name = NULL, "
        "@captured_column_list = N'id', @supports_net_changes = 0",
    )
    shop.scan()
    found = {one.table_id.text.split(".", 1)[1]: one for one in structures(shop.control)}
    plain, cut = found["other.plain"], found["dbo.cut"]

    assert plain.key_columns == ("a",)
    assert [(column.name, column.type.name, column.nullable, column.identity) for column in plain.columns] == [
        ("b", "int", False, False), ("a", "bigint", False, True), ("note", "varchar", True, False),
    ]  # fmt: skip
    assert plain.columns[2].default_text == "('x')"
    assert ([column.name for column in cut.columns], cut.key_columns) == (["id"], ("id",))


@pytest.mark.parametrize(
    ("place", "allowed", "noticed"), [("ON both (id)", 1, 1), ("ON both (id)", 0, 0), ("", 1, 0)],
    ids=["allowed", "refused", "not partitioned"],
)  # fmt: skip
def test_a_partitioned_table_whose_partitions_may_be_switched_has_a_warning(
    shop: Shop, place: str, allowed: int, noticed: int
) -> None:
    """Rows that are switched in or out are no change rows."""
    shop.run(
        "CREATE PARTITION FUNCTION halves (int) AS RANGE RIGHT FOR VALUES (100)",
        "CREATE PARTITION SCHEME both AS PARTITION halves ALL TO ([PRIMARY])",
        f"CREATE TABLE dbo.sales (id int NOT NULL PRIMARY KEY CLUSTERED) {place}",
        "EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'sales', @role_name = NULL, "
        f"@allow_partition_switch = {allowed}",
    )
    found = shop.instance("sales").warnings
    assert [("SWITCH" in line and "@allow_partition_switch = 0" in line) for line in found] == [True] * noticed


def test_a_table_whose_identity_another_one_has_is_looked_for_by_its_name(shop: Shop) -> None:
    """B15: behind a restore. It is told whether it is there without CDC, or gone."""
    shop.run("CREATE TABLE dbo.dark (id int NOT NULL PRIMARY KEY)")
    dark, gone = (TableId(shop.catalog, "dbo", name) for name in ("dark", "gone"))
    found = absences(shop.control, {dark: None, gone: None}, shop.connector.filters.tables)
    assert "CDC is no longer enabled on it; enable it" in found[dark].reason
    assert "it was dropped" in found[gone].reason
    assert all(one.lost for one in found.values())


def _quoted(shop: Shop) -> TableId:
    """A table whose name has an apostrophe, in a schema whose name has one, without CDC."""
    table = TableId(shop.catalog, "o'schema", NAMES["shell"])
    name = f"{quote(table.schema)}.{quote(table.name)}"
    shop.run(
        f"CREATE SCHEMA {quote(table.schema)}",
        "CREATE PARTITION FUNCTION halves (int) AS RANGE RIGHT FOR VALUES (100)",
        "CREATE PARTITION SCHEME both AS PARTITION halves ALL TO ([PRIMARY])",
        f"CREATE TABLE {name} (id int NOT NULL PRIMARY KEY, type int NULL, data int NULL) ON both (id)",
    )
    return table


def _advised(said: str) -> str:
    """The statement that a message advises to run."""
    found = re.search(r"EXEC sys\.sp_cdc_enable_table .*@(role_name = NULL|allow_partition_switch = 0)", said)
    assert found is not None, said
    return found[0].replace("<another name>", "another")


def _instances(shop: Shop, table: TableId) -> list[str]:
    found = [one for one in captured_tables(shop.control) if one.table_id == table]
    return [instance.name for one in found for instance in one.instances]


def test_the_advice_to_enable_cdc_again_can_be_run_for_a_name_with_an_apostrophe(shop: Shop) -> None:
    table = _quoted(shop)
    number = shop.control.value(
        f"SELECT OBJECT_ID({text(f'{quote(table.schema)}.{quote(table.name)}')})", doing="asking"
    )
    said = absences(shop.control, {table: number}, TableFilter())[table].reason
    shop.run(_advised(said))
    assert len(_instances(shop, table)) == 1


def test_the_advice_to_capture_the_signal_table_can_be_run_for_a_name_with_an_apostrophe(shop: Shop) -> None:
    table = _quoted(shop)
    signals = replace(shop.connector.signals, tables=(table.text,))
    with pytest.raises(ConfigurationError) as raised:
        signal_table(replace(shop.connector, signals=signals), shop.catalog, captured_tables(shop.control))
    shop.run(_advised(str(raised.value)))
    assert len(_instances(shop, table)) == 1


def test_the_advice_to_refuse_switches_can_be_run_for_a_name_with_an_apostrophe(shop: Shop) -> None:
    table = _quoted(shop)
    shop.run(
        f"EXEC sys.sp_cdc_enable_table @source_schema = {text(table.schema)}, @source_name = {text(table.name)}, "
        "@role_name = NULL, @capture_instance = N'first', @allow_partition_switch = 1"
    )
    (found,) = (one for one in captured_tables(shop.control) if one.table_id == table)
    (said,) = found.newest.warnings
    shop.run(_advised(said))
    assert sorted(_instances(shop, table)) == ["another", "first"]

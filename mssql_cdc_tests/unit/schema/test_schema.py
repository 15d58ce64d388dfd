"""Table models, the type table, and the Arrow schemas."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from mssql_cdc.errors import SchemaError
from mssql_cdc.schema import (
    SqlServerType,
    TableId,
    TableSchema,
    change_log_schema,
    current_names,
    current_schema,
    neutral_schema,
)
from mssql_cdc_tests.lake_kit import column, excluding, orders


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (SqlServerType("tinyint"), pa.int16()),
        (SqlServerType("decimal", precision=38, scale=10), pa.decimal128(38, 10)),
        (SqlServerType("money"), pa.decimal128(19, 4)),
        (SqlServerType("smallmoney"), pa.decimal128(10, 4)),
        (SqlServerType("uniqueidentifier"), pa.string()),
        (SqlServerType("rowversion"), pa.binary()),
        (SqlServerType("datetime"), pa.timestamp("us")),
        (SqlServerType("datetime2", scale=7), pa.timestamp("us")),
        (SqlServerType("datetimeoffset"), pa.timestamp("us", tz="UTC")),
        (SqlServerType("time", scale=3), pa.string()),
        (SqlServerType("sql_variant"), pa.string()),
        (SqlServerType("REAL"), pa.float32()),
    ],
)
def test_type_is_stored_as(kind: SqlServerType, expected: pa.DataType):
    assert kind.arrow == expected


def test_unknown_type_is_an_error_even_where_a_filter_excludes_its_column():
    """Excluded columns are still read, so the advice must not be to exclude one."""
    schema = excluding(orders(column("id", "int"), column("where", "point")), {"where"})
    with pytest.raises(SchemaError, match=r"'point' is unknown.*@captured_column_list"):
        neutral_schema(schema)


def test_type_lossiness_describes_what_arrow_cannot_represent():
    assert SqlServerType("datetime2", scale=7).loss == "digits"
    assert SqlServerType("datetime2", scale=6).loss == "never"
    assert SqlServerType("datetimeoffset", scale=0).loss == "offset"
    assert SqlServerType("nvarchar", length=5).loss == "surrogates"
    assert SqlServerType("time", scale=7).loss == "never"


def test_type_without_a_size_limit_is_large():
    slow = [SqlServerType("varchar", length=-1), *map(SqlServerType, ("xml", "ntext", "sql_variant", "geography"))]
    assert all(kind.is_large for kind in slow)
    assert not SqlServerType("nvarchar", length=4000).is_large


@pytest.mark.parametrize(
    ("kind", "declaration"),
    [
        (SqlServerType("nvarchar", length=-1), "nvarchar(max)"),
        (SqlServerType("varbinary", length=8), "varbinary(8)"),
        (SqlServerType("numeric", precision=9, scale=2), "numeric(9, 2)"),
        (SqlServerType("datetime2", scale=0), "datetime2(0)"),
        (SqlServerType("int"), "int"),
    ],
)
def test_type_declaration_is_t_sql(kind: SqlServerType, declaration: str):
    assert kind.declaration == declaration


def test_table_schema_survives_json():
    schema = orders(
        column("id", "int", nullable=False, position=1, identity=True, key_ordinal=1),
        column("größe", "decimal", precision=9, scale=2, default_text="((0))", computed=True),
        version=3,
        incarnation=2,
        object_id=7,
        instance="dbo_orders",
        from_lsn="00000027:00000ac0:0002",
    )
    schema = excluding(schema, {"größe"})
    assert TableSchema.from_json(schema.to_json()) == schema


def test_schema_another_description_is_kept_and_is_no_other_structure():
    plain = orders()
    columns = (replace(plain.columns[0], description="Number"), *plain.columns[1:])
    described = replace(plain, columns=columns, description="Orders")
    again = TableSchema.from_json(described.to_json())
    assert (again.description, again.columns[0].description) == ("Orders", "Number")
    assert described.same_structure(plain)
    assert "description" not in plain.to_json()


def test_table_schema_rejects_names_that_differ_only_by_case():
    with pytest.raises(SchemaError, match="differ only by case"):
        orders(column("id", "int"), column("ID", "int"))


def test_table_schema_rejects_a_key_that_is_not_captured():
    with pytest.raises(SchemaError, match="not captured"):
        orders(column("a", "int"), keys=("id",))


def test_table_schema_key_fingerprint_follows_the_key_only():
    plain = orders()
    assert plain.key_fingerprint == orders(*plain.columns, column("more", "int")).key_fingerprint
    assert plain.key_fingerprint != orders(keys=("name",)).key_fingerprint
    assert plain.key_fingerprint != orders(keys=("id", "name")).key_fingerprint
    assert orders(keys=()).key_fingerprint is None


def test_excluded_column_stays_in_the_key_but_not_in_the_images():
    schema = excluding(orders(), {"id", "note"})
    log = change_log_schema(schema)
    assert log.field("key").type.field(0).name == "id"
    assert [field.name for field in log.field("after").type] == ["name"]
    assert [field.name for field in neutral_schema(schema).field("after").type] == ["id", "name", "note"]


def test_change_log_of_a_keyless_table_has_no_key_struct():
    assert "key" not in change_log_schema(orders(keys=())).names


def test_current_table_renames_source_columns_that_clash_with_its_own():
    schema = orders(*(column(name, "int") for name in ("id", "_Key", "_pos", "_pos_")))
    assert current_names(schema) == {"id": "id", "_Key": "_Key_", "_pos": "_pos__", "_pos_": "_pos_"}
    assert current_schema(schema).names[-5:] == ["_key", "_pos", "_batch", "_exact", "_unavailable"]


def test_table_id_text_has_debeziums_format():
    assert TableId("shop", "dbo", "orders").text == "shop.dbo.orders"
    assert TableId(None, "public", "orders").text == "public.orders"

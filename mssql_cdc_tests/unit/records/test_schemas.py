"""Records with schemas, and the defaults in them; the values were seen in the real Debezium's records."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from mssql_cdc.config.json_forms import JsonForm
from mssql_cdc.records import database_records, pieces
from mssql_cdc.records.converters import default_text
from mssql_cdc.records.names import schema_name
from mssql_cdc.records.schema_changes import as_first_seen
from mssql_cdc.records.schemas import key_schema
from mssql_cdc_tests.lake_kit import Change, column
from mssql_cdc_tests.unit.config.samples import connector_with
from mssql_cdc_tests.unit.records.kit import DATABASE, Lake, table

WIDE = [f"a_column_with_a_long_name_{number}" for number in range(300)]
KEY = f"dbo.a:{','.join(WIDE)}"
WITH_SCHEMAS: dict[str, object] = {f"{side}.converter.schemas.enable": "true" for side in ("key", "value")}


@pytest.mark.feature("TYP-03", "EVT-20")
def test_a_record_has_the_schemas_of_key_and_value(tmp_path: Path):
    lake = Lake(tmp_path, WITH_SCHEMAS | {"column.propagate.source.type": r"dbo\.a\.name"})
    name = column("name", "nvarchar", length=50, default_text="(N'x')")
    schema = lake.add(table("a", column("id", "int", nullable=False), name))
    lake.append(schema, Change(1, "c", after={"id": 1}), Change(2, "d", before={"id": 1}))
    lake.cut(2)
    created, deleted, tombstone = lake.records(include__schema__changes=False)
    topic = "server1.testDB1.dbo.a"
    identity = {"type": "int32", "optional": False, "field": "id"}
    assert created["key"] == {
        "schema": {"type": "struct", "fields": [identity], "optional": False, "name": f"{topic}.Key"},
        "payload": {"id": 1},
    }
    before, after, source, block, *rest = created["value"]["schema"]["fields"]
    types = {"type": "NVARCHAR", "length": "50", "name": "name"}
    assert after["fields"] == [
        identity,
        {
            "type": "string", "optional": True, "default": "x", "field": "name",
            "parameters": {f"__debezium.source.column.{one}": text for one, text in types.items()},
        },
    ]  # fmt: skip
    assert before == after | {"field": "before"}
    assert (source["name"], source["version"]) == ("io.debezium.connector.sqlserver.Source", 1)
    assert (block["name"], [one["field"] for one in rest]) == ("event.block", ["op", "ts_ms", "ts_us", "ts_ns"])
    assert created["value"]["payload"]["after"] == {"id": 1, "name": "x"}  # Connect's converter hides NULL.
    assert deleted["value"]["schema"] == created["value"]["schema"]
    assert (tombstone["key"], tombstone["value"]) == (deleted["key"], None)


@pytest.mark.parametrize(
    ("kind", "default", "shown"),
    [
        ({"type_name": "int"}, "((1.0))", None),
        ({"type_name": "int"}, "((-5))", "-5"),
        ({"type_name": "int"}, "((2147483648))", None),
        ({"type_name": "bigint"}, "((3147483648.))", "3147483648"),
        ({"type_name": "bit"}, "(NULL)", "false"),
        ({"type_name": "varchar", "length": 9}, "('NULL')", None),
        ({"type_name": "varchar", "length": 9}, "('a (b) c')", '"b"'),
        ({"type_name": "varchar", "length": 9}, "('a (b) (c)')", None),
        ({"type_name": "varchar", "length": 9}, "(left(newid(),(8)))", None),
        ({"type_name": "varchar", "length": 9}, "([dbo].[it's]())", None),
        ({"type_name": "nvarchar", "length": 36}, "(CONVERT([nvarchar](36),newid()))", None),
        ({"type_name": "varchar", "length": 9}, "(getdate())", '""'),
        ({"type_name": "varbinary", "length": 9}, "(NULL)", None),
        ({"type_name": "date"}, "('2019-02-03')", "17930"),
        ({"type_name": "date"}, "('03.02.2019')", None),
        ({"type_name": "datetime2", "scale": 3}, "('2019-01-01')", "1546300800000"),
        ({"type_name": "smalldatetime"}, "('2019-01-01 12:34:56')", "1546346100000"),
        ({"type_name": "datetime"}, "('2019-01-01 12:34:56.125')", "1546346096127"),
        ({"type_name": "datetimeoffset", "scale": 3}, "('2019-01-01 00:00:00.1234567 +02:00')",
         '"2019-01-01T00:00:00.1234567+02:00"'),
        ({"type_name": "decimal", "precision": 38, "scale": 30}, "((1))", '"DJ8snNBGdO3qQAAAAA=="'),
        ({"type_name": "decimal", "precision": 38, "scale": 18}, "((10000000000))", '"IE/OXj4lAmEQAAAA"'),
        ({"type_name": "decimal", "precision": 38, "scale": 0}, "((" + "9" * 38 + "))", '"SztMqFqGxHoJiiI//////w=="'),
        ({"type_name": "decimal", "precision": 5, "scale": 2}, "((10000000000))", None),
        ({"type_name": "uniqueidentifier"}, "('01234567-89ab-cdef-0123-456789abcdef')", None),
    ],
)  # fmt: skip
def test_a_default_is_shown_as_debezium_reads_it(kind: dict[str, Any], default: str, shown: str | None):
    type_name = kind.pop("type_name")
    one = column("c", type_name, default_text=default, **kind)
    assert default_text(one, connector_with({}).records, JsonForm()) == shown


@pytest.mark.parametrize(("mode", "shown"), [("precise", '"CcQ="'), ("double", "2.5"), ("string", '"2.5"')])
def test_the_default_of_a_decimal_has_its_own_digits_as_a_text(mode: str, shown: str):
    one = column("c", "decimal", precision=9, scale=3, default_text="((2.5))")
    settings = connector_with({"decimal.handling.mode": mode}).records
    assert default_text(one, settings, JsonForm()) == shown


@pytest.mark.parametrize(
    ("scale", "default", "shown"),
    [(2, "123456789012345678.12", "123456789012345678.12"), (2, "0.10", "0.10"), (7, "0.0000001", "1E-7")],
)
def test_a_default_in_numeric_form_has_the_digits_of_the_value(scale: int, default: str, shown: str):
    """It went through a double: a sink made the column with another default."""
    one = column("c", "decimal", precision=20, scale=scale, default_text=f"(({default}))", nullable=False)
    form = JsonForm(numeric=True)
    settings = connector_with({}).records
    assert f'"default":{shown},' in key_schema("t", [("c", one)], settings, form)
    assert default_text(one, settings, form) == default


def test_a_column_of_an_alias_type_shows_no_default():
    one = replace(column("c", "nvarchar", length=128, default_text="(N'x')"), alias="sysname")
    assert default_text(one, connector_with({}).records, JsonForm()) is None


@pytest.mark.feature("EVT-05")
def test_a_key_changes_between_null_and_the_default_that_is_shown_for_it(tmp_path: Path):
    lake = Lake(tmp_path, {"key.converter.schemas.enable": "false", "message.key.columns": "dbo.a:name"})
    name = column("name", "nvarchar", length=50, default_text="(N'x')")
    schema = lake.add(table("a", column("id", "int", nullable=False), name))
    lake.append(schema, Change(1, "u", before={"id": 1, "name": "x"}, after={"id": 1}))
    lake.cut(1)
    records = lake.records(include__schema__changes=False)
    assert [(one["key"], one["value"] and one["value"]["op"]) for one in records] == [
        ({"name": "x"}, "d"), ({"name": "x"}, None), ({"name": "x"}, "c"),
    ]  # fmt: skip


@pytest.mark.feature("TOP-08")
@pytest.mark.parametrize(
    ("mode", "name", "expected"),
    [
        ("none", "a-b.ü", "a-b.ü"),
        ("avro", "1a-b.ü", "_1a_b._"),
        ("avro_unicode", "a_b.-ü日", "a_u005fb._u002d_u00fc_u65e5"),
    ],
)
def test_schema_names_follow_their_adjustment(mode: str, name: str, expected: str):
    assert schema_name(name, mode) == expected  # type: ignore[arg-type]


@pytest.mark.feature("SCH-10")
def test_a_capture_instance_keeps_the_default_that_it_began_with():
    first = table("a", column("id", "int", nullable=False), column("b", "int", default_text="((1))"), instance="v1")
    changed = [replace(one, default_text="((2))") if one.name == "b" else one for one in first.columns]
    again = replace(first, columns=tuple(changed), version=2)
    second = replace(again, version=3, instance="v2")
    assert [s.column("b").default_text for s in as_first_seen([first, again, second])] == [
        "((1))", "((1))", "((2))",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("op", "properties"),
    [
        ("c", WITH_SCHEMAS),
        ("r", WITH_SCHEMAS),
        ("c", WITH_SCHEMAS | {"datatype.propagate.source.type": ".+"}),
        ("u", {"header.converter.schemas.enable": "true", "message.key.columns": KEY}),
        ("u", {}),
    ],
    ids=["stream", "snapshot", "types", "headers", "names"],
)
def test_records_of_wide_tables_come_in_batches_of_bounded_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, op: str, properties: dict[str, object]
):
    """A record repeats the table's schema, and its names: 15,000 of 450 columns were more than Arrow's 2 GiB."""
    monkeypatch.setattr(pieces, "ROW_TEXT", 40)  # 600 KB a window.
    lake = Lake(tmp_path, properties)
    wide = lake.add(table("a", column("id", "int", nullable=False), *(column(name, "bit") for name in WIDE)))
    for schema, more in ((wide, {WIDE[-1]: True}), (lake.add(table("b")), {"name": "n"})):
        before = [{"id": at} if op == "u" else None for at in range(1, 61)]
        changes = [Change(at, op, old, {"id": at} | more, sequence=at) for at, old in enumerate(before, start=1)]
        lake.append(schema, *changes)
    lake.cut(60)
    found = [one.records for one in database_records(lake.connector, DATABASE)]
    assert max(batch.nbytes for batch in found) < 1_200_000
    for window in (pieces.streamed, pieces.snapshot_rows):
        monkeypatch.setattr(window, "__kwdefaults__", {**(window.__kwdefaults__ or {}), "window_rows": 1})
    others = [one.records for one in database_records(lake.connector, DATABASE)]
    assert [batch.num_rows for batch in others] != [batch.num_rows for batch in found]
    assert pa.Table.from_batches(others).equals(pa.Table.from_batches(found))

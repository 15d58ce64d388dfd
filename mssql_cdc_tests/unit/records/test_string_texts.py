"""Keys and headers as Kafka Connect's StringConverter writes them: Java's `toString`."""

from __future__ import annotations

import io
import json
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from mssql_cdc.config.json_forms import STRINGS
from mssql_cdc.errors import SchemaError
from mssql_cdc.records import JsonLinesStream, Selection, write_records
from mssql_cdc.records.string_texts import string_text
from mssql_cdc_tests.lake_kit import Change, column
from mssql_cdc_tests.unit.config.samples import connector_with
from mssql_cdc_tests.unit.records.kit import Lake, table

OLD = {
    "id": 1, "name": 'a, "b"=\\', "price": Decimal("0.0000001"), "ratio": 1.5e10, "raw": b"\x01\x02\x03", "yes": True,
    "day": date(2026, 1, 2),
}  # fmt: skip
NEW = OLD | {"name": None, "price": Decimal("8.5000000"), "raw": b""}
KEYS = {"message.key.columns": "dbo.a:id,name,price,ratio,raw,yes,day"}
SHOWN = (
    'Struct{id=1,name=a, "b"=\\,price=1E-7,ratio=1.5E10,'
    "raw=java.nio.HeapByteBuffer[pos=0 lim=3 cap=3],yes=true,day=20455}"
)


def lake(folder: Path) -> Lake:
    made = Lake(folder, KEYS)
    schema = made.add(
        table(
            "a",
            column("id", "int", nullable=False),
            column("name", "nvarchar", length=50, default_text="('n')"),
            column("price", "decimal", precision=18, scale=7),
            column("ratio", "float"),
            column("raw", "varbinary", length=9),
            column("yes", "bit"),
            column("day", "date"),
            column("at", "datetime2", scale=3),
        )
    )
    at = {"at": datetime(2026, 1, 2)}  # noqa: DTZ001
    made.append(schema, Change(1, "u", OLD | at, NEW | at, changed=["name", "price", "raw"]))
    made.cut(1)
    return made


def named(found: list[dict[str, Any]], topic: str) -> list[dict[str, Any]]:
    return [one for one in found if one["topic"].endswith(topic)]


@pytest.mark.feature("DEP-02")
def test_key_is_the_text_of_a_struct_without_escapes_and_without_null(tmp_path: Path):
    delete, tombstone, create = named(lake(tmp_path).records(key__converter=STRINGS), "dbo.a")
    assert delete["key"] == tombstone["key"] == SHOWN
    assert create["key"] == (
        "Struct{id=1,price=8.5000000,ratio=1.5E10,raw=java.nio.HeapByteBuffer[pos=0 lim=0 cap=0],yes=true,day=20455}"
    )


@pytest.mark.feature("DEP-02")
def test_every_record_with_a_key_has_it_as_text(tmp_path: Path):
    found = lake(tmp_path).records(
        key__converter=STRINGS, provide__transaction__metadata=True, heartbeat__interval__ms=1
    )
    keys = {one["topic"]: one["key"] for one in found}
    assert keys["server1"] == "Struct{databaseName=testDB1}"
    assert keys["server1.transaction"].startswith("Struct{id=0")
    assert keys["__debezium-heartbeat.server1"] == "Struct{serverName=server1}"


@pytest.mark.feature("DEP-02")
def test_header_is_a_text_whatever_the_key(tmp_path: Path):
    delete, _, create = named(lake(tmp_path).records(header__converter=STRINGS), "dbo.a")
    assert create["headers"]["__debezium.oldkey"] == SHOWN
    assert delete["headers"]["__debezium.context.taskId"] == "0"
    assert delete["key"]["id"] == 1


def test_selected_key_is_given_as_json(tmp_path: Path):
    made = Lake(tmp_path, {"key.converter": STRINGS, "include.schema.changes": False})
    schema = made.add(table("a"))
    made.append(schema, *(Change(at, "c", after={"id": at, "name": "n"}) for at in (1, 2)))
    made.cut(2)
    output = io.BytesIO()
    write_records(made.connector, output=JsonLinesStream(output), selection=Selection(key='{"id": 2}'))
    assert [json.loads(line)["key"] for line in output.getvalue().splitlines()] == ["Struct{id=2}"]


@pytest.mark.parametrize("name", ["key.converter", "header.converter"])
def test_date_that_java_shows_in_its_time_zone_is_an_error(tmp_path: Path, name: str):
    given = {name.replace(".", "__"): STRINGS, "time__precision__mode": "connect"}
    with pytest.raises(
        SchemaError, match=rf"{name}: StringConverter writes the field day of server1.testDB1.dbo.a.Key"
    ):
        lake(tmp_path).records(**given)


def test_nested_values_have_the_texts_of_javas_collections():
    inner = {"type": "struct", "fields": [{"type": "string", "field": "a"}], "field": "inner"}
    items = {"type": "array", "items": {"type": "int32", "optional": True}, "field": "items"}
    schema = {"type": "struct", "fields": [inner, items]}
    assert string_text(schema, {"inner": {"a": "x"}, "items": [1, None]}) == "Struct{inner=Struct{a=x},items=[1, null]}"


@pytest.mark.parametrize("name", ["key.converter.schemas.enable", "header.converter.decimal.format"])
def test_option_that_the_converter_does_not_read_is_told(name: str):
    converter = ".".join(name.split(".")[:2])
    told = connector_with({converter: STRINGS, name: "true" if "schemas" in name else "NUMERIC"}).notices
    assert any(f"{converter}: StringConverter does not read" in line for line in told)


def test_converter_of_values_is_refused_with_its_reason():
    found = connector_with({"value.converter": STRINGS})
    assert found.unrendered == ("value.converter",)
    assert any("StringConverter is for keys and headers" in line for line in found.notices)

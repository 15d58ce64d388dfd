"""Names with any character: databases, schemas, tables, columns and instances, through every command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mssql_cdc.cli import main
from mssql_cdc.config import load_connector
from mssql_cdc.defs.build import build_definitions
from mssql_cdc.run.discover import read_table_list
from mssql_cdc.source.sqlserver.sql import quote
from mssql_cdc_tests.end_to_end.kit import Place, open_place
from mssql_cdc_tests.lake_kit import NAMES
from mssql_cdc_tests.servers import Server

pytestmark = [pytest.mark.spark, pytest.mark.slow]
DATABASE = "näme's [odd] 50% #1/x"
SCHEMA = "s'%/ü]"


@pytest.fixture
def odd(server: Server, spark: object, tmp_path: Path) -> Iterator[Place]:
    with open_place(server, tmp_path, DATABASE) as opened:
        yield opened


def literal(text: str) -> str:
    return "N'" + text.replace("'", "''") + "'"


def test_names_with_any_character_are_captured_and_checked(odd: Place, capsys: pytest.CaptureFixture[str]):
    names = [name.replace("\x00", "") for name in NAMES.values()]
    odd.sql(f"CREATE SCHEMA {quote(SCHEMA)}")
    for number, name in enumerate(names):
        table, column = f"{quote(SCHEMA)}.{quote(name)}", quote(name)
        odd.sql(
            f"CREATE TABLE {table} (id int NOT NULL PRIMARY KEY, {column} nvarchar(20) NULL)",
            f"EXEC sys.sp_cdc_enable_table @source_schema = {literal(SCHEMA)}, @source_name = {literal(name)}, "
            f"@role_name = NULL, @capture_instance = {literal(f'{number} {name}'[:100])}",
            f"INSERT INTO {table} VALUES (1, N'one'), (2, N'two')",
        )
    odd.settle()
    assert main(["discover", "--config", str(odd.config)]) == 0
    assert odd.catch_up() == 0
    for name in names:
        table = f"{quote(SCHEMA)}.{quote(name)}"
        odd.sql(f"UPDATE {table} SET {quote(name)} = N'new' WHERE id = 1", f"DELETE FROM {table} WHERE id = 2")
    odd.settle()
    assert odd.catch_up() == 0
    capsys.readouterr()
    assert odd.command("check", "--json") == 0
    checked = json.loads(capsys.readouterr().out)["tables"]
    assert {one["table"]: one["result"] for one in checked} == {
        f"{DATABASE}.{SCHEMA}.{name}": "equal" for name in names
    }
    assert odd.command("status") == 0
    (listed,) = read_table_list(odd.config).values()
    assert {schema.table_id.name for schema in listed} == set(names)
    output = odd.folder / "records.jsonl"
    assert odd.command("records", "--output", str(output)) == 0
    records = [json.loads(line) for line in output.read_text(encoding="utf-8").split("\n")[:-1]]
    told = [one["value"] for one in records if one["value"] and one["value"].get("op") in {"r", "u", "d"}]
    counts = {(name, op): count for name in names for op, count in (("r", 2), ("u", 1), ("d", 1))}
    found = [(one["source"]["table"], one["op"]) for one in told]
    assert {pair: found.count(pair) for pair in found} == counts
    assert all(one["after"][one["source"]["table"]] == "new" for one in told if one["op"] == "u")
    assert {(one["source"]["db"], one["source"]["schema"]) for one in told} == {(DATABASE, SCHEMA)}
    definitions = build_definitions(load_connector(odd.config), tables=listed, since=datetime.now(UTC))
    logs = [key for key in definitions.get_repository_def().asset_graph.get_all_asset_keys() if key.path[0] == "shop"]
    assert len([key for key in logs if len(key.path) == 4]) == 2 * len(names)


@pytest.mark.parametrize(
    ("schemas", "transactions"),
    [
        ("true", "true"),
        ("false", "false"),
        pytest.param("true", "false", marks=pytest.mark.long),
        pytest.param("false", "true", marks=pytest.mark.long),
    ],
)
def test_records_of_a_renamed_table_are_selected_by_each_of_its_names(place: Place, transactions: str, schemas: str):
    """Also where another table has the old name now: then that name is the other one's."""
    own = {"provide.transaction.metadata": transactions, "key.converter.schemas.enable": schemas}
    place.configure(**own, **{"value.converter.schemas.enable": "false"})
    place.create_orders()
    place.sql("INSERT INTO dbo.orders VALUES (3, N'three')")
    place.settle()
    assert place.catch_up() == 0
    place.sql("EXEC sp_rename N'dbo.orders', N'purchases'", "UPDATE dbo.purchases SET name = N'x' WHERE id = 3")
    place.settle()
    assert place.catch_up() == 0
    everything = [("orders", "r"), ("orders", "r"), ("orders", "c"), ("purchases", "u")]
    for name in ("dbo.orders", "dbo.purchases"):
        assert shown(place, "--table", name) == everything, name
        assert shown(place, "--table", name, "--key", '{"id": 3}') == everything[2:], name
    assert shown(place, "--key", '{"id": 3}') == everything[2:]
    place.create("orders", "id int NOT NULL PRIMARY KEY", instance="second")
    place.sql("INSERT INTO dbo.orders VALUES (4)")
    place.settle()
    assert place.catch_up() == 0
    assert shown(place, "--table", "dbo.purchases") == everything
    assert [table for table, _ in shown(place, "--table", "dbo.orders")] == ["orders"]


def shown(place: Place, *options: str) -> list[tuple[str, str]]:
    """The table and the operation of the selected records."""
    path = place.folder / f"selected-{len(list(place.folder.glob('selected-*')))}.jsonl"
    assert place.command("records", "--output", str(path), *options) == 0
    values = [json.loads(line)["value"] for line in path.read_text(encoding="utf-8").splitlines()]
    return [(one["source"]["table"], one["op"]) for one in values if one and "op" in one]

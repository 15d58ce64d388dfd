"""Values that Debezium cannot convert, in each mode: what it does and counts, and this connector's records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mssql_cdc_tests.conformance.beside import SCHEMAS, debezium_beside, own_records
from mssql_cdc_tests.conformance.compare import payload
from mssql_cdc_tests.conformance.debezium import DebeziumMachine, Record
from mssql_cdc_tests.end_to_end.kit import Place

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(600)]

MODE = "event.processing.failure.handling.mode"
COUNT = "NumberOfErroneousEvents"


@pytest.fixture
def changed(place: Place) -> Place:
    """A captured column that may not be NULL, and a table beside it."""
    place.create("items", "id int NOT NULL PRIMARY KEY, v bigint NOT NULL")
    place.create("others", "id int NOT NULL PRIMARY KEY")
    place.sql("INSERT INTO dbo.items VALUES (1, 1)", "INSERT INTO dbo.others VALUES (1)")
    place.settle()
    return place


def change_type(place: Place) -> None:
    """Give the column texts; Debezium goes on with the type that it knows."""
    place.sql(
        "ALTER TABLE dbo.items ALTER COLUMN v varchar(30) NOT NULL",
        "INSERT INTO dbo.items VALUES (2, 'b')",
        "INSERT INTO dbo.others VALUES (2)",
    )
    place.settle()


@pytest.mark.feature("ERR-01")
@pytest.mark.parametrize("mode", ["warn", "skip"])
def test_debezium_leaves_the_change_out_and_counts_none(
    changed: Place, machine: DebeziumMachine, tmp_path: Path, mode: str
):
    changed.configure(**{MODE.replace(".", "_"): mode})
    with debezium_beside(machine, changed, tmp_path, SCHEMAS | {MODE: mode}) as beside:
        beside.engine.wait_until(
            lambda found: any(one.source_offset.get("snapshot_completed") is True for one in found)
        )
        change_type(changed)
        found = beside.engine.wait_until(lambda records: 2 in keys_of(records, "others"))
        assert keys_of(found, "items") == [1]
        assert erroneous(machine) == {0}
    assert own_values(changed, tmp_path) == ["1", "b"]


@pytest.mark.feature("ERR-01")
def test_debezium_ends_at_the_change(changed: Place, machine: DebeziumMachine, tmp_path: Path):
    with debezium_beside(machine, changed, tmp_path, SCHEMAS) as beside:
        beside.engine.wait_until(
            lambda found: any(one.source_offset.get("snapshot_completed") is True for one in found)
        )
        change_type(changed)
        assert beside.engine.completion.done.wait(120)
        assert keys_of(beside.engine.records, "items") == [1]
        assert "Error while processing event at offset {" in beside.log
    assert own_values(changed, tmp_path) == ["1", "b"]


def keys_of(records: list[Record], table: str) -> list[int]:
    return [one.key["payload"]["id"] for one in records if one.topic.endswith(f".{table}") and one.value is not None]


def erroneous(machine: DebeziumMachine) -> set[int]:
    """`NumberOfErroneousEvents` of all beans of Debezium that have it."""
    java = machine.java
    server = java.java.lang.management.ManagementFactory.getPlatformMBeanServer()
    kind = java.java.lang.Class.forName("javax.management.MBeanServer")
    # The server's own class is not open to reflection, its interface is.
    methods = {(one.getName(), one.getParameterCount()): one for one in kind.getMethods()}

    def call(name: str, *arguments: Any) -> Any:
        given = machine.objects(*arguments)
        return methods[name, len(arguments)].invoke(server, given)

    beans = list(call("queryNames", java.javax.management.ObjectName("debezium.sql_server:*"), None))
    names = {bean: [one.getName() for one in call("getMBeanInfo", bean).getAttributes()] for bean in beans}
    having = [bean for bean, attributes in names.items() if COUNT in attributes]
    assert having
    return {call("getAttribute", bean, COUNT) for bean in having}


def own_values(place: Place, folder: Path) -> list[str]:
    assert place.catch_up() == 0
    return [
        str(payload(one["value"])["after"]["v"])
        for one in own_records(place, folder)
        if one["topic"].endswith(".items")
    ]

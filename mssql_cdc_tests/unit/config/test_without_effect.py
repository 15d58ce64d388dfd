"""Properties that do nothing because another one is missing: one notice at each start names them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from mssql_cdc.config.catalogue import find
from mssql_cdc.config.documentation import default_text
from mssql_cdc.config.json_forms import CLOUD_EVENTS
from mssql_cdc.config.without_effect import CONDITIONS
from mssql_cdc_tests.unit.config.samples import connector_with
from mssql_cdc_tests.unit.extension_kit import install

BY_CONFIGURATION = "snapshot.mode.configuration.based"
ONLY_CAPTURED = "schema.history.internal.store.only.captured"
HEARTBEATS: dict[str, object] = {"heartbeat.interval.ms": "1000"}
SCHEMAS: dict[str, object] = {"value.converter.schemas.enable": "true"}
EVENTS: dict[str, object] = {"value.converter": CLOUD_EVENTS}
CASES: Mapping[str, tuple[str, dict[str, object]]] = {
    "heartbeat.action.query": ("UPDATE dbo.beat SET n = 1", HEARTBEATS),
    "topic.heartbeat.prefix": ("p", HEARTBEATS),
    "topic.heartbeat.name": ("n", HEARTBEATS),
    **{
        f"{BY_CONFIGURATION}.{name}": ("true", {"snapshot.mode": "configuration_based"})
        for name in (
            "snapshot.data", "start.stream", "snapshot.on.data.error", "snapshot.schema", "snapshot.on.schema.error"
        )
    },
    "signal.file": ("signals.txt", {"signal.enabled.channels": "file"}),
    "signal.poll.interval.ms": ("7", {"signal.enabled.channels": "source,file"}),
    "guardrail.collections.limit.action": ("fail", {"guardrail.collections.max": "1"}),
    "incremental.snapshot.hours.time.zone": ("Asia/Tokyo", {"incremental.snapshot.hours": "08:00-09:00"}),
    "topic.transaction": ("t", {"provide.transaction.metadata": "true"}),
    "column.propagate.source.type": ("dbo.a.b", SCHEMAS),
    "datatype.propagate.source.type": ("dbo.a.int", {"key.converter.schemas.enable": "true"}),
    "schema.name.adjustment.mode": ("avro", {"value.converter": CLOUD_EVENTS}),
    "value.converter.json.schemas.enable": ("false", EVENTS),
    "value.converter.json.replace.null.with.default": ("false", EVENTS),
    "value.converter.json.decimal.format": ("numeric", EVENTS),
    "value.converter.extension.attributes.enable": ("false", EVENTS),
    f"{ONLY_CAPTURED}.tables.ddl": ("true", {"table.exclude.list": "dbo.a"}),
    f"{ONLY_CAPTURED}.databases.ddl": ("true", {"schema.include.list": "dbo"}),
}  # fmt: skip

OWN_TESTS = {"database.instance", "transaction.metadata.factory", "value.converter.metadata.source"}


def test_every_property_with_a_condition_has_a_case() -> None:
    names = [name for one in CONDITIONS for name in one.names]
    assert sorted(names) == sorted({*CASES, *OWN_TESTS})


@pytest.mark.parametrize("name", CASES)
def test_a_property_is_named_unless_it_has_what_it_needs(name: str) -> None:
    value, needed = CASES[name]
    why = next(one.why for one in CONDITIONS if name in one.names)
    assert connector_with({name: value}).notices == (f"{name} has no effect {why}",)
    assert connector_with({name: value, **needed}).notices == ()


@pytest.mark.parametrize("name", CASES)
def test_a_property_with_its_default_is_not_named(name: str) -> None:
    found = find(name)
    assert found is not None
    assert connector_with({name: default_text(found[0])}).notices == ()


@pytest.mark.feature("HA-06")
def test_an_instance_beside_a_port_is_named() -> None:
    beside = {"database.instance": "prod", "database.port": "1444"}
    assert connector_with({"database.instance": "prod"}).notices == ()
    assert connector_with(beside).notices == ("database.instance has no effect beside database.port",)


@pytest.mark.feature("EVT-26")
def test_the_source_of_metadata_is_named_without_cloud_events() -> None:
    name, given = (
        "value.converter.metadata.source",
        {"value.converter.metadata.source": "value,id:generate,type:generate"},
    )
    assert connector_with(given).notices == (f"{name} has no effect without value.converter={CLOUD_EVENTS}",)
    assert connector_with(given | EVENTS).notices == ()


@pytest.mark.feature("SPI-11")
def test_a_factory_of_transactions_is_named_without_transactions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = "mssql_cdc.transaction_metadata_factories"
    monkeypatch.syspath_prepend(install(tmp_path, "mine", {group: {"numbered": "mine:Numbered"}}))
    name, given = "transaction.metadata.factory", {"transaction.metadata.factory": "numbered"}
    (line,) = connector_with(given).notices
    assert line == f"{name} has no effect without provide.transaction.metadata=true"
    assert connector_with({**given, "provide.transaction.metadata": "true"}).notices == ()


def test_all_of_them_are_named_on_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_TEST_FILE", "file.txt")
    given: dict[str, object] = {
        "signal.file": "${env:CDC_TEST_FILE}",
        "topic.heartbeat.prefix": "p",
        "heartbeat.action.query": "UPDATE dbo.beat SET n = 1",
        "topic.heartbeat.name": " ",
    }
    (line,) = connector_with(given).notices
    assert line == (
        "3 settings have no effect in this configuration: heartbeat.action.query, topic.heartbeat.prefix without "
        "heartbeat.interval.ms; signal.file without file in signal.enabled.channels"
    )


@pytest.mark.feature("SIG-02")
def test_a_signal_table_that_no_channel_reads_is_named() -> None:
    table = {"signal.data.collection": "dbo.signals"}
    (line,) = connector_with({**table, "signal.enabled.channels": "file"}).notices
    assert line == ("signal.data.collection: signals in it are not read, because signal.enabled.channels lacks source")
    assert connector_with({**table, "signal.enabled.channels": "file,source"}).notices == ()

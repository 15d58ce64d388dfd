"""Connector files load unchanged."""

import json
from pathlib import Path

import pytest

from mssql_cdc.config import Connector, Secret, load_connector, load_connectors
from mssql_cdc.errors import ConfigurationError
from mssql_cdc_tests.unit.config.samples import MINIMAL, connector_with, sent

DEBEZIUM_EXAMPLE = """
{
    "name": "inventory-connector",
    "config": {
        "connector.class": "io.debezium.connector.sqlserver.SqlServerConnector",
        "database.hostname": "192.168.99.100",
        "database.port": "1433",
        "database.user": "sa",
        "database.password": "Password!",
        "database.names": "testDB1,testDB2",
        "topic.prefix": "fullfillment",
        "table.include.list": "dbo.customers",
        "schema.history.internal.kafka.bootstrap.servers": "kafka:9092",
        "schema.history.internal.kafka.topic": "schemahistory.fullfillment",
        "database.ssl.truststore": "path/to/trust-store",
        "database.ssl.truststore.password": "password-for-trust-store"
    }
}
"""


def write(folder: Path, name: str, document: object) -> Path:
    path = folder / name
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return path


@pytest.mark.feature("DEP-01")
def test_debezium_example_loads_unchanged(tmp_path: Path) -> None:
    connector = load_connector(write(tmp_path, "inventory.json", DEBEZIUM_EXAMPLE))
    assert connector.name == "inventory-connector"
    assert connector.topic_prefix == "fullfillment"
    assert connector.databases == ("testDB1", "testDB2")
    assert (connector.connection.hostname, connector.connection.port) == ("192.168.99.100", 1433)
    assert connector.connection.password == Secret("Password!")
    assert connector.filters.tables.matches("testDB1", "dbo", "customers")
    assert not connector.filters.tables.matches("testDB1", "dbo", "orders")
    kafka, java = connector.notices
    assert kafka == (
        "2 Kafka and Java settings have no meaning here: schema.history.internal.kafka.bootstrap.servers, "
        "schema.history.internal.kafka.topic"
    )
    assert java.startswith("database.ssl.truststore, database.ssl.truststore.password: no effect: it belongs to")


def test_debezium_example_shows_no_secret(tmp_path: Path) -> None:
    connector = load_connector(write(tmp_path, "inventory.json", DEBEZIUM_EXAMPLE))
    shown = repr(connector) + str(connector) + "".join(connector.notices)
    assert "Password!" not in shown
    assert "password-for-trust-store" not in shown


def test_connector_survives_a_pickle_and_can_be_hashed(tmp_path: Path) -> None:
    connector = load_connector(write(tmp_path, "inventory.json", DEBEZIUM_EXAMPLE))
    assert connector.filters.tables.matches("testDB1", "dbo", "customers")
    again = sent(connector)
    assert again == connector
    assert hash(again) == hash(connector)
    assert again.filters.tables.matches("testDB1", "dbo", "customers")


def test_flat_file_takes_its_name_from_the_file(tmp_path: Path) -> None:
    assert load_connector(write(tmp_path, "orders.json", MINIMAL)).name == "orders"


def test_flat_file_with_a_name_keeps_it(tmp_path: Path) -> None:
    assert load_connector(write(tmp_path, "orders.json", MINIMAL | {"name": "mine"})).name == "mine"


def test_inner_and_outer_name_must_match(tmp_path: Path) -> None:
    path = write(tmp_path, "a.json", {"name": "one", "config": MINIMAL | {"name": "two"}})
    with pytest.raises(ConfigurationError, match="'one' outside and 'two' inside"):
        load_connector(path)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("{", "invalid JSON at line 1"),
        ("[]", "expected a JSON object"),
        ('{"name": "a", "config": 1}', "is not a JSON object"),
        ('{"name": "a", "config": {}, "topic.prefix": "x"}', "topic.prefix is next to"),
        ('{"topic.prefix": "a", "topic.prefix": "b"}', "topic.prefix twice; keep one"),
    ],
)
def test_unreadable_file_says_what_is_wrong(tmp_path: Path, document: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as caught:
        load_connector(write(tmp_path, "a.json", document))
    assert caught.value.exit_code == 2
    assert "a.json" in str(caught.value)


def test_missing_file_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no such file"):
        load_connector(tmp_path / "none.json")


def test_loading_a_folder_returns_its_connectors_and_ignores_table_lists(tmp_path: Path) -> None:
    write(tmp_path, "b.json", MINIMAL | {"topic.prefix": "b"})
    write(tmp_path, "a.json", MINIMAL | {"topic.prefix": "a"})
    write(tmp_path, "a.tables.json", {"tables": []})
    connectors, problems = load_connectors(tmp_path)
    assert [one.topic_prefix for one in connectors.values()] == ["a", "b"]
    assert problems == {}


def test_a_wrong_file_does_not_keep_the_other_connectors_from_loading(tmp_path: Path) -> None:
    write(tmp_path, "a.json", {"topic.prefix": "a"})
    good = write(tmp_path, "b.json", MINIMAL)
    connectors, problems = load_connectors(tmp_path)
    assert list(connectors) == [good]
    assert [path.name for path in problems] == ["a.json"]


def test_a_file_that_breaks_a_check_does_not_keep_the_others_from_loading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = write(tmp_path, "a.json", MINIMAL), write(tmp_path, "b.json", MINIMAL)

    def breaks(path: str | Path) -> Connector:
        if path == bad:
            raise AssertionError("hunter2")
        return load_connector(path)

    monkeypatch.setattr("mssql_cdc.config.load.load_connector", breaks)
    connectors, problems = load_connectors(tmp_path)
    assert list(connectors) == [good]
    assert f"(AssertionError); mssql-cdc discover --config {bad} shows where" in str(problems[bad])
    assert "hunter2" not in str(problems[bad])


def test_two_connectors_cannot_share_a_prefix(tmp_path: Path) -> None:
    first = write(tmp_path, "a.json", MINIMAL)
    second = write(tmp_path, "b.json", MINIMAL | {"topic.prefix": "SERVER1"})
    connectors, problems = load_connectors(tmp_path)
    assert list(connectors) == [first]
    assert "is already used by" in str(problems[second])


def test_missing_folder_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no such folder"):
        load_connectors(tmp_path / "none")


def test_relative_warehouse_becomes_absolute_and_a_uri_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert connector_with({"delta.warehouse": "lake"}).delta.warehouse == str(tmp_path / "lake")
    assert connector_with({}).delta.warehouse == str(tmp_path / "warehouse")
    assert connector_with({"delta.warehouse": "s3://bucket/lake"}).delta.warehouse == "s3://bucket/lake"


def test_a_file_that_is_nested_too_deeply_is_an_error_of_the_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"deep\.json: the JSON is nested too deeply"):
        load_connector(write(tmp_path, "deep.json", '{"config":' * 2000))

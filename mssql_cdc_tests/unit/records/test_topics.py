"""Topics as Debezium's strategies name them, and as a strategy of a user does (TOP-01 to TOP-11)."""

from __future__ import annotations

from pathlib import Path

import pytest

from mssql_cdc.errors import ConfigurationError
from mssql_cdc.records.names import field_name, schema_name
from mssql_cdc.records.topics import TopicNamingStrategy, topics_of
from mssql_cdc.schema import TableId
from mssql_cdc_tests.lake_kit import Change
from mssql_cdc_tests.unit.config.samples import connector_with
from mssql_cdc_tests.unit.extension_kit import install
from mssql_cdc_tests.unit.records.kit import Lake, table

GROUP = "mssql_cdc.topic_naming_strategies"
ORDERS = TableId("testDB", "dbo", "my_ördérs")
SOURCE = """
class ByTable:
    def configure(self, properties):
        self.prefix = properties["topic.prefix"]

    def data_change_topic(self, table):
        return f"{self.prefix}-{table.name}"

    def schema_change_topic(self):
        return f"{self.prefix}-schema"

    def heartbeat_topic(self):
        return f"{self.prefix}-beat"

    def transaction_topic(self):
        return f"{self.prefix}-tx"


class Broken(ByTable):
    def data_change_topic(self, table):
        return f"{table.schema} {table.name}"
"""


def topics(**properties: object) -> TopicNamingStrategy:
    return topics_of(connector_with({name.replace("__", "."): value for name, value in properties.items()}))


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site"
    points = {"by_table": "naming_of_a_test:ByTable", "broken": "naming_of_a_test:Broken"}
    install(folder, "naming", {GROUP: points}, {"naming_of_a_test": SOURCE})
    monkeypatch.syspath_prepend(folder)
    return folder


@pytest.mark.feature("TOP-01", "TOP-02", "TOP-03")
def test_topics_are_named_after_prefix_database_schema_and_table():
    named = topics()
    assert named.data_change_topic(TableId("testDB", "dbo", "my orders")) == "server1.testDB.dbo.my_orders"
    assert named.schema_change_topic() == "server1"
    assert named.transaction_topic() == "server1.transaction"


@pytest.mark.feature("TOP-05", "TOP-06")
def test_topics_contain_only_characters_that_kafka_accepts():
    named = topics(topic__delimiter="_", topic__transaction="tx")
    assert named.data_change_topic(TableId("testDB", "dbo", "t")) == "server1_testDB_dbo_t"
    assert named.transaction_topic() == "server1_tx"
    long = named.data_change_topic(TableId("testDB", "dbo", "é" * 300))
    assert long == ("server1_testDB_dbo_" + "_" * 300)[:249]


@pytest.mark.feature("TOP-06", "TOP-08")
def test_a_character_beyond_the_bmp_is_two_in_java():
    assert topics().data_change_topic(TableId("shop", "dbo", "𠮷野家")) == "server1.shop.dbo.____"
    assert field_name("a𠮷野", "avro") == "a___"
    assert schema_name("𠮷.野", "avro") == "__._"


@pytest.mark.feature("TOP-11")
@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("SchemaTopicNamingStrategy", "server1.testDB.dbo.my__rd_rs"),
        ("DefaultTopicNamingStrategy", "server1.testDB.my__rd_rs"),
        ("SchemaUnicodeTopicNamingStrategy", "server1.testDB.dbo.my_u005f_u00f6rd_u00e9rs"),
        ("DefaultUnicodeTopicNamingStrategy", "server1.testDB.my_u005f_u00f6rd_u00e9rs"),
    ],
)
def test_strategies_of_debezium_are_built_in_under_their_java_names(strategy: str, expected: str):
    named = topics(topic__naming__strategy=f"io.debezium.schema.{strategy}")
    assert named.data_change_topic(ORDERS) == expected
    assert named.heartbeat_topic() == "__debezium-heartbeat.server1"


@pytest.mark.feature("SPI-09", "TOP-11")
def test_strategy_of_a_user_names_every_topic_of_the_records(installed: Path, tmp_path: Path):
    lake = Lake(tmp_path / "lake", {"topic.naming.strategy": "by_table"})
    orders = lake.add(table("orders"))
    lake.append(orders, Change(5, "c", after={"id": 1, "name": "a"}))
    lake.append(orders, Change(6, "c", after={"id": 2, "name": "b"}))
    lake.cut(6)
    found = lake.records(
        provide__transaction__metadata="true", heartbeat__interval__ms="1", value__converter__schemas__enable="true"
    )
    assert {one["topic"] for one in found} == {"server1-orders", "server1-schema", "server1-tx", "server1-beat"}
    rows = [one for one in found if one["topic"] == "server1-orders"]
    assert rows[0]["value"]["schema"]["name"] == "server1-orders.Envelope"


@pytest.mark.feature("SPI-09")
def test_topic_that_kafka_would_refuse_is_an_error_with_the_name_of_the_strategy(installed: Path):
    named = topics(topic__naming__strategy="broken")
    with pytest.raises(ConfigurationError, match=r"broken names the topic of .*'dbo my_ördérs'; expected 1 to 249"):
        named.data_change_topic(ORDERS)


@pytest.mark.feature("TOP-11")
@pytest.mark.parametrize("name", ["io.debezium.schema.MyTopicNamingStrategy", "org.example.Mine", "nobody"])
def test_strategy_that_is_not_installed_refuses_records_and_names_the_remedy(name: str):
    connector = connector_with({"topic.naming.strategy": name})
    assert connector.unrendered == ("topic.naming.strategy",)
    assert any(name in notice and GROUP in notice for notice in connector.notices)
    with pytest.raises(ConfigurationError, match=GROUP):
        topics_of(connector)

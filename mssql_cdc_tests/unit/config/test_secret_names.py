"""Which properties hold secrets: by their names, by what they refer to, and by what stands inside their values."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from mssql_cdc.config import Connector
from mssql_cdc.config.catalogue import ALL
from mssql_cdc.config.secret import is_sensitive
from mssql_cdc.run.lineage_events import LineageEvents
from mssql_cdc_tests.unit.config.samples import MINIMAL, connector_with, problems_of, sent

NAMES = (
    "value.converter.basic.auth.user.info",
    "key.converter.schema.registry.basic.auth.user.info",
    "value.converter.schema.registry.auth.client-secret",
    "producer.override.sasl.jaas.config",
    "signal.consumer.ssl.key.pem",
    "schema.history.internal.producer.ssl.keystore.key",
    "spark.hadoop.fs.azure.account.key.acc.dfs.core.windows.net",
    "spark.hadoop.fs.azure.sas.box.acc.blob.core.windows.net",
    "spark.hadoop.fs.azure.encryption.encoded.client-provided-key.acc.dfs.core.windows.net",
    "spark.hadoop.fs.azure.account.oauth2.client.secret.acc.dfs.core.windows.net",
    "spark.hadoop.fs.s3a.encryption.key",
    "spark.hadoop.fs.s3a.bucket.lake.access.key",
    "spark.hadoop.fs.gs.auth.service.account.private.key",
    "spark.hadoop.parquet.encryption.key.list",
    "spark.sql.catalog.lake.header.Authorization",
    "delta.storage.AWS_SSE_CUSTOMER_KEY_BASE64",
    "delta.storage.aws_session_token",
    "delta.storage.AZURE_STORAGE_SAS_KEY",
    "delta.storage.azure_storage_client_secret",
    "delta.storage.GOOGLE_SERVICE_ACCOUNT_KEY",
)
INNOCENT = (
    "sasl.mechanism", "sasl.username", "message.key.columns", "key.converter", "spark.sql.shuffle.partitions",
    "delta.storage.AWS_SSE_KMS_KEY_ID", "delta.storage.AWS_REGION", "spark.sassy.mode", "topic.key.field.name",
)  # fmt: skip
VALUES = {
    "delta.storage.proxy_url": ("http://user:hidden-1@proxy:8080", "http://user:***@proxy:8080"),
    "spark.remote": ("sc://host:15002/;use_ssl=true;token=hidden-2", "sc://host:15002/;use_ssl=true;token=***"),
    "transforms.a.url": ("https://h/c?sv=2024&sig=hidden%2F3&se=9", "https://h/c?sv=2024&sig=***&se=9"),
    "spark.jars.repositories": (
        "https://a:hidden-4@one/m2,https://b:hidden-5@two/m2",
        "https://a:***@one/m2,https://b:***@two/m2",
    ),
    "spark.executor.extraJavaOptions": (
        "-Xmx1g -Djavax.net.ssl.trustStorePassword=hidden-6 -Dx.y=z",
        "-Xmx1g -Djavax.net.ssl.trustStorePassword=*** -Dx.y=z",
    ),
    "spark.sql.catalog.sales.url": (
        "jdbc:sqlserver://host:1433;user=sa;password=hidden-7@8;encrypt=true",
        "jdbc:sqlserver://host:1433;user=sa;password=***;encrypt=true",
    ),
    "spark.driver.extraJavaOptions": ("-Da.password=http://b:hidden-8@c -Dd=e", "-Da.password=*** -Dd=e"),
    "producer.metrics.url": ("http://u:p@h", "http://u:***@h"),
}
"""Values with a secret inside, and what is shown of them."""


def told(connector: Connector) -> dict[str, str]:
    """The configuration as OpenLineage is told of it."""
    pytest.importorskip("openlineage.client")
    event = LineageEvents(connector).build("START", datetime.now(UTC))
    facets: Any = event.run.facets
    return dict(line.split("=", 1) for line in facets["debezium_config"].configs)


@pytest.mark.parametrize("name", NAMES)
def test_a_secret_by_its_name_is_told_to_nobody(name: str) -> None:
    connector = sent(connector_with({name: "hidden-value"}))
    assert connector.redact("see hidden-value") == "see ***"
    assert told(connector)[name] == "***"
    assert "hidden-value" not in repr(connector)


@pytest.mark.parametrize("name", INNOCENT)
def test_a_name_like_that_of_a_secret_is_none(name: str) -> None:
    assert not is_sensitive(name)


def test_no_property_with_a_meaning_here_has_the_name_of_a_secret_without_being_one() -> None:
    declared = {one.name for one in ALL if one.kind != "secret" and not one.is_family and is_sensitive(one.name)}
    assert declared == set()


@pytest.mark.parametrize("name", VALUES)
def test_a_secret_inside_a_value_is_hidden_and_the_rest_is_shown(name: str) -> None:
    value, shown = VALUES[name]
    connector = connector_with({name: value})
    assert told(connector)[name] == shown
    if name != "producer.metrics.url":  # Texts of a character are in every message.
        assert connector.redact(f"cannot reach {value}") == f"cannot reach {shown}"


def test_a_secret_in_a_url_is_hidden_decoded_too() -> None:
    connector = connector_with({"delta.storage.proxy_url": "http://user:p%40ss%2Fw@proxy"})
    assert connector.redact("407 for p@ss/w and p%40ss%2Fw") == "407 for *** and ***"


def test_a_problem_with_a_value_does_not_show_the_secret_in_it() -> None:
    problems = problems_of(MINIMAL | {"database.hostname": "http://sa:hunter2@db"})
    assert "database.hostname: found 'http://sa:***@db'" in problems


def test_a_secret_inside_a_value_that_is_referred_to_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_TEST_REMOTE", "sc://host:15002/;token=whispered")
    connector = connector_with({"spark.remote": "${env:CDC_TEST_REMOTE}"})
    assert connector.redact("host refuses whispered") == "host refuses ***"


@pytest.mark.parametrize(
    "name", ["spark.hadoop.my.thing", "delta.storage.other", "producer.own", "driver.applicationName", "odbc.Own"]
)
def test_what_a_free_property_refers_to_is_a_secret_whatever_its_name(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDC_TEST_FREE", "whispered")
    connector = connector_with({name: "${env:CDC_TEST_FREE}"})
    assert connector.redact("it is whispered") == "it is ***"
    assert told(connector)[name] == "***"


def test_references_to_what_messages_need_hide_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What declared properties refer to is known to be none; the rest is short, a number, or shown elsewhere."""
    given = {
        "database.hostname": "db.example.com",
        "database.names": "production",
        "topic.prefix": "production-server",
        "delta.warehouse": "s3://bucket/warehouse",
        "spark.sql.warehouse.dir": "s3://bucket/warehouse",
        "spark.executor.instances": "12345678",
        "spark.mode": "cluster",
        "driver.applicationName": "production",
        "odbc.Driver": "ODBC Driver 18 for SQL Server",
    }
    for number, value in enumerate(given.values()):
        monkeypatch.setenv(f"CDC_TEST_{number}", value)
    connector = connector_with({name: f"${{env:CDC_TEST_{number}}}" for number, name in enumerate(given)})
    text = "\n".join(given.values())
    assert connector.redact(text) == text

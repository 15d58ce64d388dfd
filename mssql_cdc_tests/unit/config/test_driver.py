"""JDBC settings become ODBC keywords."""

import pytest

from mssql_cdc.config import Connector, Secret
from mssql_cdc_tests.unit.config.samples import connector_with

MICROSOFT = "ODBC Driver 18 for SQL Server"


def keywords(connector: Connector, driver: str = MICROSOFT) -> dict[str, str]:
    return {one.keyword: one.read() for one in connector.connection.odbc_settings(driver)}


@pytest.mark.feature("PRE-09")
@pytest.mark.parametrize("prefix", ["driver", "database"])
def test_jdbc_settings_are_translated_under_both_prefixes(prefix: str) -> None:
    connector = connector_with(
        {
            f"{prefix}.encrypt": "false",
            f"{prefix}.trustServerCertificate": "true",
            f"{prefix}.applicationIntent": "ReadOnly",
            f"{prefix}.multiSubnetFailover": True,
            f"{prefix}.applicationName": "cdc",
        }
    )
    assert keywords(connector) == {
        "Encrypt": "no",
        "TrustServerCertificate": "yes",
        "ApplicationIntent": "ReadOnly",
        "MultiSubnetFailover": "yes",
        "APP": "cdc",
    }
    assert connector.notices == ()


@pytest.mark.feature("PRE-09")
@pytest.mark.parametrize("driver", ["FreeTDS", "/usr/lib/libtdsodbc.so"])
def test_freetds_gets_its_own_keywords(driver: str) -> None:
    connector = connector_with(
        {"driver.encrypt": "true", "driver.trustServerCertificate": "true", "driver.applicationName": "cdc"}
    )
    assert keywords(connector, driver) == {"Encryption": "require", "APP": "cdc"}


@pytest.mark.feature("HA-07")
def test_directory_authentication_is_translated() -> None:
    connector = connector_with({"driver.authentication": "ActiveDirectoryManagedIdentity"})
    assert keywords(connector) == {"Authentication": "ActiveDirectoryMsi"}
    assert keywords(connector_with({"driver.authentication": "NotSpecified"})) == {}


def test_odbc_settings_pass_verbatim_and_take_precedence() -> None:
    connector = connector_with(
        {"driver.encrypt": "true", "odbc.Driver": "FreeTDS", "odbc.encrypt": "optional", "odbc.TDS_Version": "7.4"}
    )
    assert connector.connection.odbc_driver == "FreeTDS"
    assert keywords(connector) == {"encrypt": "optional", "TDS_Version": "7.4"}


def test_settings_without_an_equivalent_are_reported_by_their_configured_name() -> None:
    connector = connector_with(
        {
            "driver.foobar": "false",
            "database.ssl.truststore": "x",
            "driver.sendStringParametersAsUnicode": "false",
            "driver.user": "x",
        }
    )
    assert keywords(connector) == {}
    assert sorted(one.split(":")[0] for one in connector.notices) == [
        "database.ssl.truststore",
        "driver.foobar",
        "driver.sendStringParametersAsUnicode",
        "driver.user",
    ]


def test_secret_settings_are_masked_and_resolved_lazily(monkeypatch: pytest.MonkeyPatch) -> None:
    connector = connector_with({"odbc.ClientKey": "${env:CDC_TEST_KEY}", "driver.keyStoreSecret": "hunter2"})
    monkeypatch.setenv("CDC_TEST_KEY", "pepper")
    assert "hunter2" not in repr(connector.connection)
    assert keywords(connector) == {"KeystoreSecret": "hunter2", "ClientKey": "pepper"}
    assert Secret("hunter2") in [one.value for one in connector.connection.driver_settings]


@pytest.mark.feature("HA-01")
@pytest.mark.parametrize("name", ["driver.applicationIntent", "database.applicationIntent", "odbc.ApplicationIntent"])
def test_read_only_intent_forces_snapshot_isolation(name: str) -> None:
    connector = connector_with({name: "readonly", "snapshot.isolation.mode": "exclusive"})
    assert connector.connection.read_only
    assert connector.snapshot.isolation == "snapshot"
    assert any("becomes snapshot" in one for one in connector.notices)
    assert not connector_with({name: "ReadWrite"}).connection.read_only


@pytest.mark.feature("HA-01")
def test_read_only_intent_in_a_reference_is_recognized(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_TEST_INTENT", "ReadOnly")
    assert connector_with({"driver.applicationIntent": "${env:CDC_TEST_INTENT}"}).connection.read_only


def test_login_timeout_comes_from_the_driver_setting_then_the_connection_timeout() -> None:
    assert connector_with({}).connection.login_timeout_s == 30
    assert connector_with({"database.connection.timeout.ms": "1500"}).connection.login_timeout_s == 2
    both = connector_with({"database.connection.timeout.ms": "1500", "driver.loginTimeout": "7"})
    assert both.connection.login_timeout_s == 7


@pytest.mark.feature("HA-06")
def test_named_instance_is_looked_up_unless_a_port_is_given() -> None:
    assert connector_with({"database.instance": "sql1"}).connection.port is None
    assert connector_with({"database.instance": "sql1", "database.port": 1500}).connection.port == 1500

"""JDBC settings become ODBC keywords."""

import pytest

from mssql_cdc.config import Connector, Secret, connector_from_mapping
from mssql_cdc.config.driver import TWINS, Twin
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.source.sqlserver import connect
from mssql_cdc.source.sqlserver.connect import connection_string
from mssql_cdc.source.sqlserver.reach import MOST_SECONDS, probe_seconds
from mssql_cdc.source.sqlserver.source import SqlServerSource
from mssql_cdc_tests.unit.config.samples import MINIMAL, connector_with, problems_of

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


def test_odbc_settings_pass_verbatim_and_take_the_place_of_translated_ones() -> None:
    connector = connector_with(
        {"driver.encrypt": "false", "odbc.Driver": "FreeTDS", "odbc.encryption": "OFF", "odbc.TDS_Version": "7.4"}
    )
    assert connector.connection.odbc_driver == "FreeTDS"
    assert keywords(connector) == {"Encrypt": "no", "encryption": "OFF", "TDS_Version": "7.4"}
    assert keywords(connector, "FreeTDS") == {"encryption": "OFF", "TDS_Version": "7.4"}


CONTRADICTIONS = [
    ({"driver.encrypt": "true", "database.encrypt": "false"}, "database.encrypt", "driver.encrypt"),
    ({"database.Encrypt": "true", "odbc.ENCRYPT": "no"}, "odbc.ENCRYPT", "database.Encrypt"),
    ({"driver.encrypt": "strict", "odbc.Encryption": "require"}, "odbc.Encryption", "driver.encrypt"),
    ({"odbc.Encrypt": "yes", "odbc.Encryption": "off"}, "odbc.Encryption", "odbc.Encrypt"),
    ({"driver.applicationName": "a", "odbc.APP": "b"}, "odbc.APP", "driver.applicationName"),
    ({"driver.keyStoreSecret": "a", "database.keyStoreSecret": "b"}, "database.keyStoreSecret", "driver.keyStoreS"),
    ({"driver.loginTimeout": "3", "database.loginTimeout": "4"}, "database.loginTimeout", "driver.loginTimeout"),
    ({"driver.encrypt": "${env:CDC_TEST_A}", "database.encrypt": "true"}, "database.encrypt", "driver.encrypt"),
]


@pytest.mark.feature("PRE-09")
@pytest.mark.parametrize(
    ("given", "name", "other"), CONTRADICTIONS, ids=lambda one: one if isinstance(one, str) else ""
)
def test_two_families_that_contradict_each_other_are_refused(given: dict[str, object], name: str, other: str) -> None:
    said = problems_of(MINIMAL | given)
    assert f"{name}: contradicts {other}" in said
    assert "1 problem" not in said
    assert "env:" not in said


@pytest.mark.feature("PRE-09")
def test_one_value_in_several_families_is_one_setting() -> None:
    agreeing = {
        "driver.encrypt": "true", "database.encrypt": "Mandatory", "odbc.Encrypt": "Yes", "odbc.Encryption": "require",
        "driver.trustServerCertificate": "true", "database.trustservercertificate": "TRUE",
        "driver.loginTimeout": "3", "database.loginTimeout": "3",
        "driver.keyStoreSecret": "${env:CDC_TEST_A}", "odbc.KeystoreSecret": "${env:CDC_TEST_A}",
        "driver.fetchSize": "3", "database.fetchSize": "4",
    }  # fmt: skip
    found = [one.keyword for one in connector_with(agreeing).connection.odbc_settings(MICROSOFT)]
    assert sorted(found) == ["Encrypt", "Encryption", "KeystoreSecret", "TrustServerCertificate"]


AS_BY_DEFAULT = {("encrypt", "true"), ("encrypt", "mandatory"), ("authentication", "notspecified")}
EVERY_VALUE = [
    (twin, value)
    for twin in TWINS
    for value in (twin.values or {"other": "", "disabled": ""})
    if (twin.jdbc, value) not in AS_BY_DEFAULT
]


@pytest.mark.feature("PRE-09", "HA-01")
@pytest.mark.parametrize("family", ["driver", "database"])
@pytest.mark.parametrize("driver", [MICROSOFT, "FreeTDS"])
@pytest.mark.parametrize(("twin", "value"), EVERY_VALUE, ids=lambda one: getattr(one, "jdbc", one))
def test_every_setting_differs_or_is_named_or_is_refused(twin: Twin, value: str, driver: str, family: str) -> None:
    name, base = f"{family}.{twin.jdbc}", MINIMAL | {"odbc.Driver": driver}
    if driver == "FreeTDS" and twin.freetds is None and twin.guards and value not in twin.harmless:
        assert f"{name}: FreeTDS has no keyword" in problems_of(base | {name: value})
        return
    connector = connector_from_mapping("c", base | {name: value})
    without = connector_from_mapping("c", base).connection
    said = SqlServerSource(connector).notices()
    differs = connection_string(connector.connection, "shop") != connection_string(without, "shop")
    assert differs is (said == [])
    assert differs or said == [f"{name}: no effect, FreeTDS has no such keyword"]


GUARDS = {
    "trustServerCertificate": "false", "hostNameInCertificate": "db", "serverCertificate": "/cert.pem",
    "authentication": "ActiveDirectoryPassword", "clientCertificate": "/cert.pem", "clientKey": "/key.pem",
    "columnEncryptionSetting": "Enabled",
}  # fmt: skip


@pytest.mark.feature("PRE-09", "HA-07")
@pytest.mark.parametrize("name", GUARDS)
def test_what_guards_a_connection_is_refused_with_freetds_however_it_was_chosen(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {f"driver.{name}": GUARDS[name]}
    assert f"driver.{name}: FreeTDS" in problems_of(MINIMAL | given | {"odbc.Driver": "FreeTDS"})
    monkeypatch.setenv("CDC_TEST_VALUE", GUARDS[name])
    monkeypatch.setattr(connect, "find_driver", lambda _: "/usr/lib/libtdsodbc.so")
    for properties in (given, {f"driver.{name}": "${env:CDC_TEST_VALUE}"}):
        with pytest.raises(ConfigurationError, match=f"driver.{name}: FreeTDS .* Microsoft's driver"):
            connection_string(connector_with(properties).connection, "shop")


def test_settings_that_freetds_only_lacks_are_named_on_one_line() -> None:
    given = {"driver.multiSubnetFailover": "true", "database.trustServerCertificate": "true", "odbc.Driver": "FreeTDS"}
    assert SqlServerSource(connector_with(given)).notices() == [
        "driver.multiSubnetFailover, database.trustServerCertificate: no effect, FreeTDS has no such keyword"
    ]


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


@pytest.mark.parametrize("name", ["driver.loginTimeout", "database.loginTimeout", "database.connection.timeout.ms"])
def test_no_login_is_waited_for_without_end(name: str) -> None:
    """0 is JDBC's default there; here it took the limit away, and left a server one second to answer."""
    connection = connector_with({name: "0"}).connection
    assert (connection.login_timeout_s, probe_seconds(connection)) == (30, MOST_SECONDS)


@pytest.mark.feature("HA-06")
def test_named_instance_is_looked_up_unless_a_port_is_given() -> None:
    assert connector_with({"database.instance": "sql1"}).connection.port is None
    assert connector_with({"database.instance": "sql1", "database.port": 1500}).connection.port == 1500

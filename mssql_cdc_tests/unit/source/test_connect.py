"""ODBC connection strings: both drivers, quoting, lazily resolved secrets (PRE-09, HA-01, HA-06)."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from mssql_cdc.config import Connection, Secret
from mssql_cdc.config.driver import DriverSetting, OdbcSetting
from mssql_cdc.errors import ConfigurationError, MissingSecretError
from mssql_cdc.source.sqlserver.connect import connection_string, find_driver
from mssql_cdc_tests.unit.config.samples import connector_with

FREETDS = Connection(hostname="db.example", user=Secret("sa"), password=Secret("p w"), odbc_driver="FreeTDS", port=1444)
MICROSOFT = replace(FREETDS, odbc_driver="ODBC Driver 18 for SQL Server")


def parts(connection: Connection, catalog: str = "shop") -> list[str]:
    return connection_string(connection, catalog).split(";")


def test_freetds_gets_its_own_keywords() -> None:
    assert parts(FREETDS) == [
        "DRIVER={FreeTDS}", "SERVER=db.example", "PORT=1444", "DATABASE=shop", "TDS_Version=7.4",
        "ClientCharset=UTF-8", "APP=mssql_cdc", "Encryption=require", "UID=sa", "PWD={p w}",
    ]  # fmt: skip


def test_the_microsoft_driver_gets_its_own_keywords() -> None:
    assert parts(MICROSOFT) == [
        "DRIVER={ODBC Driver 18 for SQL Server}", "SERVER=tcp:db.example,1444", "DATABASE=shop",
        "APP=mssql_cdc", "ConnectRetryCount=0", "Encrypt=yes", "UID=sa", "PWD={p w}",
    ]  # fmt: skip


@pytest.mark.feature("PRE-09", "HA-01")
def test_jdbc_settings_appear_as_their_odbc_equivalents() -> None:
    settings = (
        DriverSetting("encrypt", "false"),
        DriverSetting("applicationIntent", "ReadOnly"),
        DriverSetting("applicationName", "mine"),
    )
    freetds = parts(replace(FREETDS, driver_settings=settings))
    microsoft = parts(replace(MICROSOFT, driver_settings=settings))

    assert {"Encryption=off", "ApplicationIntent=ReadOnly", "APP=mine"} <= set(freetds)
    assert {"Encrypt=no", "ApplicationIntent=ReadOnly", "APP=mine"} <= set(microsoft)
    assert "APP=mssql_cdc" not in freetds + microsoft


@pytest.mark.feature("HA-01")
def test_the_driver_never_restores_a_connection_by_itself() -> None:
    """It would lead a session to another readable secondary, whose end of the log is that of no other reader."""
    given = {"driver.connectRetryCount": "3", "database.connectRetryInterval": "5", "odbc.ConnectRetryCount": "4"}
    connector = connector_with(given)
    made = replace(connector.connection, odbc_driver=MICROSOFT.odbc_driver)
    assert [part for part in parts(made) if part.startswith("ConnectRetry")] == ["ConnectRetryCount=0"]
    told = " ".join(notice for notice in map(str, connector.notices) if "may lead to another server" in notice)
    assert all(name.lower() in told.lower() for name in given)


@pytest.mark.feature("PRE-09")
@pytest.mark.parametrize(
    ("driver", "on", "off"),
    [
        ("FreeTDS", "Encryption=require", "Encryption=off"),
        ("ODBC Driver 17 for SQL Server", "Encrypt=yes", "Encrypt=no"),
        ("ODBC Driver 18 for SQL Server", "Encrypt=yes", "Encrypt=no"),
    ],
)
def test_tls_is_on_with_every_driver_unless_it_is_turned_off(driver: str, on: str, off: str) -> None:
    connection = replace(FREETDS, odbc_driver=driver)
    plain = replace(connection, driver_settings=(DriverSetting("encrypt", "false"),))

    assert on in parts(connection)
    assert off in parts(plain)
    assert on not in parts(plain)


@pytest.mark.feature("HA-06")
@pytest.mark.parametrize("driver", ["FreeTDS", "ODBC Driver 18 for SQL Server"])
def test_a_named_instance_is_looked_up_only_without_a_port(driver: str) -> None:
    named = replace(FREETDS, odbc_driver=driver, instance="prod", port=None)

    assert "SERVER={db.example\\prod}" in parts(named) or "SERVER=db.example\\prod" in parts(named)
    assert not any("prod" in part for part in parts(replace(named, port=1433)))


@pytest.mark.parametrize(
    ("driver", "password", "written"),
    [
        ("ODBC Driver 18 for SQL Server", "a;b}c", "PWD={a;b}}c}"),
        ("FreeTDS", "a;b", "PWD={a;b}"),
        ("FreeTDS", "a}b", "PWD=a}b"),
    ],
)
def test_a_password_is_quoted_for_its_driver(driver: str, password: str, written: str) -> None:
    connection = replace(FREETDS, odbc_driver=driver, password=Secret(password))

    assert connection_string(connection, "shop").endswith(written)


def test_a_password_that_freetds_does_not_support_is_rejected_without_showing_it() -> None:
    with pytest.raises(ConfigurationError, match="PWD") as caught:
        connection_string(replace(FREETDS, password=Secret("a;b}c")), "shop")

    assert "a;b}c" not in str(caught.value)


def test_odbc_settings_override_the_defaults() -> None:
    extra = (OdbcSetting("TDS_Version", "7.3"), OdbcSetting("ClientCharset", "UTF-8"))

    assert parts(replace(FREETDS, odbc_extra=extra)).count("ClientCharset=UTF-8") == 1
    assert "TDS_Version=7.3" in parts(replace(FREETDS, odbc_extra=extra))


def test_a_secret_travels_unresolved_and_is_resolved_when_connecting(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = replace(FREETDS, password=Secret("${env:SOURCE_PASSWORD}"))
    travelled = pickle.dumps(connection)
    monkeypatch.setenv("SOURCE_PASSWORD", "s3cret")

    assert b"s3cret" not in travelled
    assert "PWD=s3cret" in parts(pickle.loads(travelled))  # noqa: S301 - pickled two lines above
    monkeypatch.delenv("SOURCE_PASSWORD")
    with pytest.raises(MissingSecretError):
        connection_string(connection, "shop")


def test_a_named_driver_is_used_unchanged() -> None:
    assert find_driver(FREETDS) == "FreeTDS"

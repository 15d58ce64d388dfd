"""A driver error becomes the exception that tells the caller what to do (ERR-*)."""

from __future__ import annotations

from collections.abc import Callable

import pyodbc
import pytest

from mssql_cdc.config import Connection, Secret
from mssql_cdc.errors import (
    AccessDeniedError,
    ConfigurationError,
    DeadlockError,
    MssqlCdcError,
    SourceError,
    SourceUnavailableError,
)
from mssql_cdc.source.sqlserver.classify import classify, driver_message
from mssql_cdc.source.sqlserver.connect import translated
from mssql_cdc_tests.unit.config.samples import connector_with


def odbc(state: str, number: int, text: str) -> pyodbc.Error:
    return pyodbc.Error(state, f"[{state}] [FreeTDS][SQL Server]{text} ({number}) (SQLExecDirectW)")


def arrow(state: str, number: int, text: str) -> Exception:
    """An error with only a text: arrow-odbc's own class cannot be constructed."""
    return RuntimeError(
        f"ODBC emitted an error calling 'SQLExecDirect':\nState: {state}, Native error: {number}, "
        f"Message: [FreeTDS][SQL Server]{text}"
    )


@pytest.mark.feature("ERR-02")
@pytest.mark.parametrize("make", [odbc, arrow])
@pytest.mark.parametrize(
    ("state", "number", "expected"),
    [
        ("40001", 1205, DeadlockError),
        ("42000", 1222, SourceUnavailableError),
        ("08S01", 0, SourceUnavailableError),
        ("08001", 0, SourceUnavailableError),
        ("HYT00", 0, SourceUnavailableError),
        ("42000", 3960, SourceUnavailableError),
        ("08S01", 10054, SourceUnavailableError),
        ("42000", 40613, SourceUnavailableError),
        ("42000", 18456, ConfigurationError),
        ("28000", 0, ConfigurationError),
        ("28000", 40613, SourceUnavailableError),
        ("28000", 18401, SourceUnavailableError),
        ("28000", 18451, SourceUnavailableError),
        ("28000", 18461, SourceUnavailableError),
        ("42000", 17142, SourceUnavailableError),
        ("42000", 17809, SourceUnavailableError),
        ("42000", 952, SourceUnavailableError),
        ("42000", 988, SourceUnavailableError),
        ("28000", 18452, ConfigurationError),
        ("28000", 18486, ConfigurationError),
        ("42000", 229, AccessDeniedError),
        ("42S02", 208, SourceError),
        ("42000", 313, SourceError),
        ("22012", 8134, SourceError),
    ],
)
def test_an_error_is_classified_by_its_number_or_state(
    make: object, state: str, number: int, expected: type[MssqlCdcError]
) -> None:
    found = classify(make(state, number, "Something."), "testing")  # type: ignore[operator]

    assert type(found) is expected
    assert "while testing" in str(found)


@pytest.mark.feature("ERR-02")
@pytest.mark.parametrize("make", [odbc, arrow])
@pytest.mark.parametrize(
    ("state", "number", "text"),
    [
        ("IMC06", 0, "The connection is broken and recovery is not possible. No attempt was made to restore it."),
        ("IMC01", 0, "The connection is broken and recovery is not possible."),
        ("HY000", 0, "Unspecified error occurred on SQL Server. Connection may have been terminated by the server."),
        ("HY000", 0, "Protocol error in TDS stream"),
        ("42000", 3948, "The transaction was terminated because of the availability replica config/state change."),
        ("42000", 3947, "The transaction was aborted because the secondary compute failed to catch up redo."),
        ("42000", 601, "Could not continue scan with NOLOCK due to data movement."),
        ("42000", 40552, "The session has been terminated because of excessive transaction log space usage."),
    ],
)
def test_a_connection_that_broke_and_an_error_that_says_retry_are_retried(
    make: Callable[[str, int, str], Exception], state: str, number: int, text: str
) -> None:
    """A restart of the server ended `mssql-cdc run` if the driver was to restore connections (IMC06)."""
    assert type(classify(make(state, number, text), "reading")) is SourceUnavailableError


def test_a_message_of_the_driver_that_only_mentions_a_connection_is_not_retried() -> None:
    error = odbc("HY000", 0, "Connection is busy with results for another command")
    assert type(classify(error, "reading")) is SourceError


def test_the_messages_of_both_libraries_have_the_same_parts() -> None:
    text = "Invalid object name 'cdc.x'."

    assert driver_message(odbc("42S02", 208, text)) == driver_message(arrow("42S02", 208, text))


def test_a_missing_permission_names_the_grant() -> None:
    error = odbc(
        "42000", 229, "The SELECT permission was denied on the object 'dbo_t_CT', database 'shop', schema 'cdc'."
    )

    assert "GRANT SELECT ON [cdc].[dbo_t_CT] TO" in str(classify(error, "reading"))


DENIED = {
    "German": "Die SELECT-Berechtigung wurde für das '{}'-Objekt, '{}'-Datenbank, '{}'-Schema, verweigert.",
    "French": "L'autorisation SELECT a été refusée sur l'objet '{}', base de données '{}', schéma '{}'.",
    "Japanese": "SELECT 権限がオブジェクト '{}'、データベース '{}'、スキーマ '{}' で拒否されました。",
    "Korean": "개체 '{}', 데이터베이스 '{}', 스키마 '{}'에 대한 SELECT 권한이 거부되었습니다.",
    "Russian": 'Запрещено разрешение "SELECT" на объект "{}" базы данных "{}", схема "{}".',
    "English": "The SELECT permission was denied on the object '{}', database '{}', schema '{}'.",
}
DENIED_COLUMN = {
    "German": "Die SELECT-Berechtigung wurde für die '{}'-Spalte des '{}'-Objekts, '{}'-Datenbank, '{}'-Schema, "
    "verweigert.",
    "French": "L'autorisation SELECT a été refusée sur la colonne '{}' de l'objet '{}', base de données '{}', "
    "schéma '{}'.",
    "English": "The SELECT permission was denied on the column '{}' of the object '{}', database '{}', schema '{}'.",
}


@pytest.mark.parametrize("make", [odbc, arrow])
@pytest.mark.parametrize("language", DENIED)
@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("dbo_t_CT", "[dbo_t_CT]"),
        ("o'brien", "[o'brien]"),
        ("größe]", "[größe]]]"),
        ("a b", "[a b]"),
        ("表", "[表]"),
        ("ORDERS", "[ORDERS]"),
        ("E", "[E]"),
    ],
)
def test_a_missing_permission_names_the_object_in_every_language(
    make: Callable[[str, int, str], Exception], language: str, name: str, shown: str
) -> None:
    """The language is the login's; the names are the parameters of the message."""
    error = make("42000", 229, DENIED[language].format(name, "shop", "cdc"))
    assert f"Needed: GRANT SELECT ON [cdc].{shown} TO" in str(classify(error, "reading"))


@pytest.mark.parametrize("language", DENIED_COLUMN)
def test_a_missing_permission_on_a_column_names_it_after_its_table(language: str) -> None:
    error = odbc("42000", 230, DENIED_COLUMN[language].format("pay", "staff", "shop", "hr"))
    assert "Needed: GRANT SELECT ON [hr].[staff] ([pay]) TO" in str(classify(error, "reading"))


def test_a_message_whose_names_may_stand_in_another_order_names_no_object() -> None:
    """In Japanese the column of a table is the table's column; which name is which is not known."""
    error = odbc("42000", 230, "オブジェクト 'staff' の列 'pay' で SELECT 権限が拒否されました ('shop'、'hr')。")
    assert "Needed: GRANT SELECT ON the object TO" in str(classify(error, "reading"))


@pytest.mark.parametrize("text", ["Refusé sur 'a', 'b'.", "The SELECT permission was denied.", "'a', 'b', 'c', 'd'"])
def test_a_message_with_other_names_than_expected_names_no_object(text: str) -> None:
    assert "Needed: GRANT SELECT ON the object TO" in str(classify(odbc("42000", 229, text), "reading"))


@pytest.mark.parametrize(
    ("number", "text", "needed"),
    [
        (262, "Die VIEW DATABASE STATE-Berechtigung wurde in der 'shop'-Datenbank verweigert.", "VIEW DATABASE STATE"),
        (262, "Autorisation VIEW DATABASE STATE refusée dans la base de données 'shop'.", "VIEW DATABASE STATE"),
        (300, "オブジェクト 'server'、データベース 'master' で VIEW SERVER STATE 権限が拒否されました。",
         "VIEW SERVER STATE"),
        (229, "Die EXECUTE-Berechtigung wurde für das 'p'-Objekt, 'shop'-Datenbank, 'sys'-Schema, verweigert.",
         "EXECUTE ON [sys].[p]"),
    ],
)  # fmt: skip
def test_the_permission_is_found_in_every_language(number: int, text: str, needed: str) -> None:
    assert f"Needed: GRANT {needed} TO" in str(classify(odbc("42000", number, text), "reading"))


def test_a_database_permission_names_the_grant() -> None:
    error = odbc("42000", 262, "VIEW DATABASE STATE permission denied in database 'shop'.")

    assert "GRANT VIEW DATABASE STATE TO" in str(classify(error, "reading"))


def test_a_password_that_a_driver_repeats_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_PASSWORD", "hunter-2")
    connection = Connection(hostname="h", user=Secret("sa"), password=Secret("${env:THE_PASSWORD}"))

    with pytest.raises(SourceError) as caught, translated(connection, "connecting"):
        raise odbc("HY000", 0, "bad string PWD=hunter-2;")

    assert "hunter-2" not in str(caught.value)
    assert "***" in str(caught.value)


@pytest.mark.parametrize(
    ("number", "text", "shown"),
    [
        (245, "Conversion failed when converting the varchar value 'it's 12' to data type int.", "value ***"),
        (248, "The conversion of the nvarchar value '99999999999' overflowed an int column.", "value ***"),
        (
            2628,
            "String or binary data would be truncated in table 'a'. Truncated value: 'Ada'.",
            "value: ***",
        ),
        (220, "Arithmetic overflow error for data type tinyint, value = 99999999999.", "tinyint, value = ***"),
        (2627, "Violation of PRIMARY KEY constraint 'p'. The duplicate key value is (Ada, 7).", "value is ***"),
    ],
)
def test_values_of_rows_do_not_enter_messages(number: int, text: str, shown: str) -> None:
    error = pyodbc.Error("22018", f"[22018] [FreeTDS][SQL Server]{text} ({number}) (SQLExecDirectW)")
    said = str(classify(error, "reading"))
    assert shown in said
    assert not any(value in said for value in ("12'", "99999999999", "Ada"))


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (245, "Fehler beim Konvertieren des varchar-Werts 'Ada' in den int-Datentyp."),
        (2627, "Verletzung der PRIMARY KEY-Einschränkung 'p'. Der doppelte Schlüsselwert ist (Ada, 7)."),
        (2628, "Les données de chaîne ou binaires seraient tronquées. Valeur tronquée : 'Ada'."),
    ],
)
def test_values_of_rows_do_not_enter_messages_in_another_language(number: int, text: str) -> None:
    """The language is the login's: of a message whose words are unknown only the number is shown."""
    error = pyodbc.Error("22018", f"[22018] [FreeTDS][SQL Server]{text} ({number}) (SQLExecDirectW)")
    said = str(classify(error, "reading"))
    assert "Ada" not in said
    assert f"(error {number})" in said


@pytest.mark.parametrize(
    ("text", "property_"),
    [
        ("SSL Provider: [error:0A000086:SSL routines::certificate verify failed:self-signed certificate]", "driver.tr"),
        ("SSL Provider: [error:0A000086:SSL routines::certificate verify failed:subject name does not match host name]",
         "driver.hostNameInCertificate"),
        ("Encryption not supported on SQL Server.", "database.encrypt=false"),
        ("SSL Provider: [error:0A000102:SSL routines::unsupported protocol]", "no TLS version in common"),
    ],
)  # fmt: skip
def test_refused_tls_is_the_configurations_fault_and_names_the_property(text: str, property_: str) -> None:
    error = pyodbc.Error("08001", f"[08001] [Microsoft][ODBC Driver 18 for SQL Server]{text} (-1) (SQLDriverConnect)")
    found = classify(error, "connecting")
    assert isinstance(found, ConfigurationError)
    assert property_ in str(found)


UNTRUSTED = "SSL Provider: [error:0A000086:SSL routines::certificate verify failed:self-signed certificate]"
OTHER_NAME = (
    "SSL Provider: [error:0A000086:SSL routines::certificate verify failed:subject name does not match host name]"
)


@pytest.mark.feature("PRE-09")
@pytest.mark.parametrize(
    ("given", "text", "says"),
    [
        ({"driver.encrypt": "true"}, "Encryption not supported", "off with driver.encrypt=false"),
        ({"database.Encrypt": "true"}, "Encryption not supported", "off with database.Encrypt=false"),
        ({"odbc.Encrypt": "yes"}, "Encryption not supported", "off with odbc.Encrypt=no"),
        ({"odbc.Encryption": "require"}, "Encryption not supported", "off with odbc.Encryption=off and database.encry"),
        (
            {"driver.encrypt": "true", "database.encrypt": "true"},
            "Encryption not supported",
            "off with driver.encrypt=false and database.encrypt=false",
        ),
        ({"database.trustServerCertificate": "false"}, UNTRUSTED, "with database.trustServerCertificate=true"),
        ({"odbc.TrustServerCertificate": "no"}, UNTRUSTED, "with odbc.TrustServerCertificate=yes"),
        ({"odbc.ServerCertificate": "/a.pem"}, UNTRUSTED, "set odbc.ServerCertificate to"),
        ({"database.hostNameInCertificate": "db"}, OTHER_NAME, "Set database.hostNameInCertificate to"),
        ({"odbc.HostnameInCertificate": "db"}, OTHER_NAME, "Set odbc.HostnameInCertificate to"),
    ],
)
def test_advice_about_tls_names_the_property_that_is_given(given: dict[str, object], text: str, says: str) -> None:
    error = pyodbc.Error("08001", f"[08001] [Microsoft][ODBC Driver 18 for SQL Server]{text} (-1) (SQLDriverConnect)")
    assert says in str(classify(error, "connecting", connector_with(given).connection))


def test_trust_is_no_way_out_in_strict_mode() -> None:
    error = pyodbc.Error("08001", f"[08001] [Microsoft][ODBC Driver 18 for SQL Server]{UNTRUSTED} (-1)")
    said = str(classify(error, "connecting", connector_with({"driver.encrypt": "strict"}).connection))
    assert "install its certificate authority on this machine or set driver.serverCertificate" in said
    assert "trustServerCertificate" not in said

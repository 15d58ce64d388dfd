"""JDBC driver settings and their ODBC twins: one table (features PRE-09, HA-01, HA-06, HA-07, INC-16).

`driver.*` and `database.*` pass-through settings are written for Microsoft's JDBC driver; the ones that have a twin in
Microsoft's ODBC driver or in FreeTDS are translated. Building the connection string is the business of
`source/sqlserver/`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Literal

from mssql_cdc.config.secret import Secret, has_reference, reveal

Translate = Literal["same", "yes_no", "encrypt", "authentication"]
_SENSITIVE = re.compile(
    r"password|pwd|secret|token|passphrase|credential|jaas|(?:access|account|sas|private|ssl).?key", re.IGNORECASE
)
_YES_NO = {"true": "yes", "false": "no", "yes": "yes", "no": "no"}
_ENCRYPT = {"true": "yes", "false": "no", "mandatory": "yes", "optional": "no", "strict": "strict"}
_FREETDS_ENCRYPT = {"yes": "require", "no": "off", "strict": "strict"}
_AUTHENTICATION = {
    "notspecified": "",
    "activedirectorymanagedidentity": "ActiveDirectoryMsi",
    "activedirectorymsi": "ActiveDirectoryMsi",
}


@dataclass(frozen=True, slots=True)
class Twin:
    """One JDBC setting: its keyword in Microsoft's ODBC driver and in FreeTDS; without either, why not."""

    jdbc: str
    odbc: str | None = None
    freetds: str | None = None
    translate: Translate = "same"
    note: str = ""


@dataclass(frozen=True, slots=True)
class DriverSetting:
    """A configured `driver.*` or `database.*` setting, under its JDBC name."""

    name: str
    value: str | Secret


@dataclass(frozen=True, slots=True)
class OdbcSetting:
    """One keyword of an ODBC connection string; `read()` gives its text, references resolved."""

    keyword: str
    value: str | Secret

    def read(self) -> str:
        """The value's text (raises MissingSecretError)."""
        return reveal(self.value)


_JAVA_STORE = "it is a Java trust or key store; use the system's certificates or odbc.ServerCertificate"
_NOT_NEEDED = "it is not needed: rows are read in bounded pages with typed parameters"
_ELSEWHERE = "it has a property of its own: use "

TWINS: tuple[Twin, ...] = (
    Twin("encrypt", "Encrypt", "Encryption", "encrypt"),
    Twin("trustServerCertificate", "TrustServerCertificate", None, "yes_no"),
    Twin("hostNameInCertificate", "HostnameInCertificate"),
    Twin("serverCertificate", "ServerCertificate"),
    Twin("applicationIntent", "ApplicationIntent", "ApplicationIntent"),
    Twin("applicationName", "APP", "APP"),
    Twin("workstationID", "WSID", "WSID"),
    Twin("multiSubnetFailover", "MultiSubnetFailover", None, "yes_no"),
    Twin("connectRetryCount", "ConnectRetryCount"),
    Twin("connectRetryInterval", "ConnectRetryInterval"),
    Twin("authentication", "Authentication", None, "authentication"),
    Twin("integratedSecurity", "Trusted_Connection", "Trusted_Connection", "yes_no"),
    Twin("serverSpn", "ServerSPN", "ServerSPN"),
    Twin("ipAddressPreference", "IpAddressPreference"),
    Twin("columnEncryptionSetting", "ColumnEncryption"),
    Twin("keyStoreAuthentication", "KeystoreAuthentication"),
    Twin("keyStorePrincipalId", "KeystorePrincipalId"),
    Twin("keyStoreSecret", "KeystoreSecret"),
    Twin("clientCertificate", "ClientCertificate"),
    Twin("clientKey", "ClientKey"),
    Twin("failoverPartner", "Failover_Partner"),
    Twin("loginTimeout", note="used as the time limit of a login"),
    Twin("sendStringParametersAsUnicode", note=_NOT_NEEDED),
    *(
        Twin(name, note=_NOT_NEEDED)
        for name in (
            "responseBuffering",
            "fetchSize",
            "selectMethod",
            "packetSize",
            "sendTimeAsDatetime",
            "sendTemporalDataTypesAsStringForBulkCopy",
            "disableStatementPooling",
            "statementPoolingCacheSize",
            "enablePrepareOnFirstPreparedStatementCall",
            "serverPreparedStatementDiscardThreshold",
            "prepareMethod",
            "useFmtOnly",
            "useBulkCopyForBatchInsert",
            "calcBigDecimalPrecision",
            "delayLoadingLobs",
            "ignoreOffsetOnDateTimeOffsetConversion",
            "xopenStates",
            "lastUpdateCount",
            "cacheBulkCopyMetadata",
            "replication",
            "maxResultBuffer",
            "lockTimeout",
        )
    ),
    *(
        Twin(name, note=_JAVA_STORE)
        for name in (
            "trustStore",
            "trustStorePassword",
            "trustStoreType",
            "trustManagerClass",
            "trustManagerConstructorArg",
            "ssl.truststore",
            "ssl.truststore.password",
            "ssl.keystore",
            "ssl.keystore.password",
            "ssl.mode",
            "sslProtocol",
            "fips",
            "clientKeyPassword",
            "socketFactoryClass",
            "socketFactoryConstructorArg",
        )
    ),
    *(
        Twin(name, note="it has no ODBC twin; log in with odbc.Trusted_Connection and a Kerberos ticket")
        for name in ("authenticationScheme", "domain", "realm", "jaasConfigurationName", "useDefaultJaasConfig",
                     "useDefaultGSSCredential", "gsscredential")
    ),
    *(
        Twin(name, note="it has no ODBC twin")
        for name in ("socketTimeout", "cancelQueryTimeout", "accessToken", "accessTokenCallbackClass", "msiClientId",
                     "transparentNetworkIPResolution", "serverNameAsACE", "datetimeParameterType", "retryExec",
                     "retryConn", "quotedIdentifier", "concatNullYieldsNull", "vectorTypeSupport",
                     "enclaveAttestationUrl", "enclaveAttestationProtocol", "keyStoreLocation",
                     "keyVaultProviderClientId", "keyVaultProviderClientKey", "AADSecurePrincipalId",
                     "AADSecurePrincipalSecret")
    ),
    Twin("user", note=_ELSEWHERE + "database.user"),
    Twin("userName", note=_ELSEWHERE + "database.user"),
    Twin("password", note=_ELSEWHERE + "database.password"),
    Twin("serverName", note=_ELSEWHERE + "database.hostname"),
    Twin("server", note=_ELSEWHERE + "database.hostname"),
    Twin("portNumber", note=_ELSEWHERE + "database.port"),
    Twin("instanceName", note=_ELSEWHERE + "database.instance"),
    Twin("databaseName", note=_ELSEWHERE + "database.names"),
    Twin("queryTimeout", note=_ELSEWHERE + "database.query.timeout.ms"),
)  # fmt: skip


def knows_jdbc_name(name: str) -> bool:
    """Whether it is a setting of Microsoft's JDBC driver, whatever its case."""
    return name.lower() in _twins()


def guarded(name: str, text: str) -> str | Secret:
    """The text as a Secret when its name says so or when it holds a reference, else as it is."""
    return Secret(text) if _SENSITIVE.search(name) or has_reference(text) else text


def driver_notice(configured: str, jdbc_name: str) -> str | None:
    """One line about a setting (by its configured and its JDBC name) that ODBC cannot take over; else None."""
    twin = _twins().get(jdbc_name.lower())
    if twin is None:
        return f"{configured}: no JDBC setting with a known ODBC twin; it has no effect (ODBC's own: odbc.<keyword>)"
    if twin.odbc is not None or twin.jdbc == "loginTimeout":
        return None
    return f"{configured}: no effect here, {twin.note}"


def translate(settings: tuple[DriverSetting, ...], driver: str) -> tuple[OdbcSetting, ...]:
    """The twins of all settings for an ODBC driver (a registered name or a library's path).

    Raises:
        ValueError: a value that the keyword cannot carry; a reference is taken as it is.
    """
    freetds = is_freetds(driver)
    found: list[OdbcSetting] = []
    for setting in settings:
        twin = _twins().get(setting.name.lower())
        keyword = None if twin is None else (twin.freetds if freetds else twin.odbc)
        if twin is None or keyword is None:
            continue
        value = setting.value
        if isinstance(value, str):
            value = _translate_value(twin, value, freetds=freetds)
        if value != "":
            found.append(OdbcSetting(keyword, value))
    return tuple(found)


def is_freetds(driver: str) -> bool:
    """Whether the driver is FreeTDS, by its registered name or its library's file name."""
    name = driver.lower()
    return "freetds" in name or "tdsodbc" in name


def _translate_value(twin: Twin, text: str, *, freetds: bool) -> str:
    value = text.strip().lower()
    match twin.translate:
        case "yes_no":
            return _looked_up(_YES_NO, value, twin)
        case "encrypt":
            encrypt = _looked_up(_ENCRYPT, value, twin)
            return _FREETDS_ENCRYPT[encrypt] if freetds else encrypt
        case "authentication":
            return _AUTHENTICATION.get(value, text)
        case "same":
            return text


def _looked_up(table: dict[str, str], value: str, twin: Twin) -> str:
    if value not in table:
        raise ValueError(f"{twin.jdbc}: found {value!r}, expected {' or '.join(table)}")
    return table[value]


@cache
def _twins() -> Mapping[str, Twin]:
    return MappingProxyType({twin.jdbc.lower(): twin for twin in TWINS})

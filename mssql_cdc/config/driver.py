"""JDBC driver settings and their ODBC equivalents: one table (PRE-09, HA-01, HA-06, HA-07, INC-16).

`driver.*` and `database.*` settings are meant for Microsoft's JDBC driver; those with an equivalent in Microsoft's ODBC
driver or in FreeTDS are translated. `source/sqlserver/` builds the connection string.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType

from mssql_cdc.config.property import GivenProperty, either
from mssql_cdc.config.report import Report
from mssql_cdc.config.secret import Secret, reveal

_YES_NO = {"true": "yes", "false": "no", "yes": "yes", "no": "no"}
_ENCRYPT = {"true": "yes", "false": "no", "mandatory": "yes", "optional": "no", "strict": "strict"}
_FREETDS_KEYWORD = "Encryption"
_FREETDS_ENCRYPT = {"yes": "require", "no": "off", "strict": "strict"}
_ENCRYPT_OF_FREETDS = {theirs: ours for ours, theirs in _FREETDS_ENCRYPT.items()}
_MSI = "ActiveDirectoryMsi"
_AUTHENTICATION = {"notspecified": "", "activedirectorymanagedidentity": _MSI, "activedirectorymsi": _MSI}


@dataclass(frozen=True, slots=True)
class Twin:
    """One JDBC setting and its keywords in Microsoft's ODBC driver and in FreeTDS.

    `values` are ODBC's by JDBC's, in lower case; others are an error unless `open`. Without `values`, all pass.
    A setting that `guards` decides who is trusted, which login is used or whether values are decrypted: a driver that
    has no keyword for it cannot be used, unless the value is one of the `harmless` ones (JDBC's, in lower case).
    """

    jdbc: str
    odbc: str
    freetds: str | None = None
    values: Mapping[str, str] = field(default_factory=dict[str, str])
    open: bool = False
    guards: bool = False
    harmless: tuple[str, ...] = ()

    def keyword(self, *, freetds: bool) -> str | None:
        """The keyword of FreeTDS or of Microsoft's driver; None: there is none."""
        return self.freetds if freetds else self.odbc

    def meaning(self, text: str) -> str:
        """A value of any family in one form; if a setting has named values, their case is ignored."""
        if not self.values:
            return text
        word = text.strip().lower()
        return self.values.get(word) or _ENCRYPT_OF_FREETDS.get(word, word).lower()

    def word(self, value: str, keyword: str) -> str:
        """A JDBC value as this keyword spells it."""
        word = self.values.get(value, value)
        return _FREETDS_ENCRYPT.get(word, word) if keyword.lower() == _FREETDS_KEYWORD.lower() else word


@dataclass(frozen=True, slots=True)
class DriverSetting:
    """A configured `driver.*` or `database.*` setting, under its JDBC name."""

    name: str
    value: str | Secret


@dataclass(frozen=True, slots=True)
class OdbcSetting:
    """One keyword of an ODBC connection string; `read()` returns its value with references resolved."""

    keyword: str
    value: str | Secret

    def read(self) -> str:
        """The value's text (raises MissingSecretError)."""
        return reveal(self.value)


TWINS: tuple[Twin, ...] = (
    Twin("encrypt", "Encrypt", _FREETDS_KEYWORD, _ENCRYPT),
    Twin("trustServerCertificate", "TrustServerCertificate", None, _YES_NO, guards=True, harmless=("true", "yes")),
    Twin("hostNameInCertificate", "HostnameInCertificate", guards=True),
    Twin("serverCertificate", "ServerCertificate", guards=True),
    Twin("applicationIntent", "ApplicationIntent", "ApplicationIntent"),
    Twin("applicationName", "APP", "APP"),
    Twin("workstationID", "WSID", "WSID"),
    Twin("multiSubnetFailover", "MultiSubnetFailover", None, _YES_NO),
    Twin(
        "authentication",
        "Authentication",
        None,
        _AUTHENTICATION,
        open=True,
        guards=True,
        harmless=("notspecified", "sqlpassword"),
    ),
    Twin("integratedSecurity", "Trusted_Connection", "Trusted_Connection", _YES_NO),
    Twin("serverSpn", "ServerSPN", "ServerSPN"),
    Twin("ipAddressPreference", "IpAddressPreference"),
    Twin("columnEncryptionSetting", "ColumnEncryption", guards=True, harmless=("disabled",)),
    Twin("keyStoreAuthentication", "KeystoreAuthentication"),
    Twin("keyStorePrincipalId", "KeystorePrincipalId"),
    Twin("keyStoreSecret", "KeystoreSecret"),
    Twin("clientCertificate", "ClientCertificate", guards=True),
    Twin("clientKey", "ClientKey", guards=True),
    Twin("failoverPartner", "Failover_Partner"),
)

RESTORING = frozenset({"connectretrycount", "connectretryinterval"})
"""Keywords that make a driver restore a connection (which may then lead to another replica), in lower case."""
WITHOUT_TWIN: Mapping[str, str] = MappingProxyType(
    {
        "rows are read in bounded pages with typed parameters": """
            sendStringParametersAsUnicode responseBuffering fetchSize selectMethod packetSize sendTimeAsDatetime
            sendTemporalDataTypesAsStringForBulkCopy disableStatementPooling statementPoolingCacheSize
            enablePrepareOnFirstPreparedStatementCall serverPreparedStatementDiscardThreshold prepareMethod useFmtOnly
            useBulkCopyForBatchInsert calcBigDecimalPrecision delayLoadingLobs ignoreOffsetOnDateTimeOffsetConversion
            xopenStates lastUpdateCount cacheBulkCopyMetadata replication maxResultBuffer lockTimeout""",
        "the connector opens a connection anew itself: one that the driver restores may lead to another server": """
            connectRetryCount connectRetryInterval""",
        "it belongs to Java's trust or key store; use the system's certificates or odbc.ServerCertificate": """
            trustStore trustStorePassword trustStoreType trustManagerClass trustManagerConstructorArg ssl.truststore
            ssl.truststore.password ssl.keystore ssl.keystore.password ssl.mode sslProtocol fips clientKeyPassword
            socketFactoryClass socketFactoryConstructorArg""",
        "ODBC has no such keyword; log in with odbc.Trusted_Connection and a Kerberos ticket": """
            authenticationScheme domain realm jaasConfigurationName useDefaultJaasConfig useDefaultGSSCredential
            gsscredential""",
        "ODBC has no such keyword": """
            socketTimeout cancelQueryTimeout accessToken accessTokenCallbackClass msiClientId serverNameAsACE
            transparentNetworkIPResolution datetimeParameterType retryExec retryConn quotedIdentifier
            concatNullYieldsNull vectorTypeSupport enclaveAttestationUrl enclaveAttestationProtocol keyStoreLocation
            keyVaultProviderClientId keyVaultProviderClientKey AADSecurePrincipalId AADSecurePrincipalSecret""",
        "use database.user": "user userName",
        "use database.password": "password",
        "use database.hostname": "serverName server",
        "use database.port": "portNumber",
        "use database.instance": "instanceName",
        "use database.names": "databaseName",
        "use database.query.timeout.ms": "queryTimeout",
    }
)
"""Other JDBC settings by the reason why they have no effect. Only `loginTimeout` needs no twin."""


def knows_jdbc_name(name: str) -> bool:
    """Whether this is a setting of Microsoft's JDBC driver, ignoring case."""
    return name.lower() in {"logintimeout", *_twins(), *_reasons()}


def jdbc_reason(name: str) -> str | None:
    """Why a JDBC setting, ignoring case, has no effect; None: it may have one."""
    return _reasons().get(name.lower())


def driver_setting(one: GivenProperty, report: Report) -> DriverSetting:
    """Parse `driver.<name>` or `database.<name>`; a notice says if it has no ODBC equivalent.

    Raises:
        ValueError: the keyword cannot express the value.
    """
    (name,) = one.parts
    setting = DriverSetting(name, one.value)
    if name.lower() in _twins():
        translate((setting,), "")
    elif reason := jdbc_reason(name):
        report.notice(one.name, f"no effect: {reason}")
    elif name.lower() != "logintimeout":
        report.notice(
            one.name,
            "a JDBC setting without a known ODBC equivalent; it has no effect (set ODBC keywords as odbc.<keyword>)",
        )
    return setting


def translate(settings: tuple[DriverSetting, ...], driver: str) -> tuple[OdbcSetting, ...]:
    """The twins of all settings for an ODBC driver (a registered name or a library's path).

    Raises:
        ValueError: the keyword cannot express a value; references are passed as they are.
    """
    freetds = is_freetds(driver)
    found: list[OdbcSetting] = []
    for setting in settings:
        twin = _twins().get(setting.name.lower())
        keyword = None if twin is None else twin.keyword(freetds=freetds)
        if twin is None or keyword is None:
            continue
        value = setting.value
        if isinstance(value, str):
            value = _translate_value(twin, value, freetds=freetds)
        if value != "":
            found.append(OdbcSetting(keyword, value))
    return tuple(found)


def twin_of(name: str) -> Twin | None:
    """The twin of a JDBC setting, ignoring case; None: it has none."""
    return _twins().get(name.lower())


def twin_of_keyword(keyword: str) -> Twin | None:
    """The twin that an ODBC keyword of either driver belongs to, ignoring case."""
    return next((one for one in TWINS if keyword.lower() in {one.odbc.lower(), (one.freetds or "").lower()}), None)


def is_freetds(driver: str) -> bool:
    """Whether the driver is FreeTDS, by its registered name or its library's file name."""
    name = driver.lower()
    return "freetds" in name or "tdsodbc" in name


def _translate_value(twin: Twin, text: str, *, freetds: bool) -> str:
    if not twin.values:
        return text
    value = twin.values.get(text.strip().lower(), text if twin.open else None)
    if value is None:
        raise ValueError(f"found {text!r}, expected {either(tuple(twin.values))}")
    return _FREETDS_ENCRYPT[value] if freetds and twin.freetds == _FREETDS_KEYWORD else value


@cache
def _twins() -> Mapping[str, Twin]:
    return MappingProxyType({twin.jdbc.lower(): twin for twin in TWINS})


@cache
def _reasons() -> Mapping[str, str]:
    return MappingProxyType({name.lower(): why for why, names in WITHOUT_TWIN.items() for name in names.split()})

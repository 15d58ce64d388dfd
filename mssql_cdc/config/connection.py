"""How the server is reached: the `database.*`, `driver.*` and `odbc.*` properties.

`driver.py` translates JDBC settings; `source/sqlserver/` builds the connection string and connects.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, cast

from pydantic import AfterValidator, BeforeValidator, ValidationInfo, model_validator

from mssql_cdc.config.driver import RESTORING, DriverSetting, OdbcSetting, driver_setting, jdbc_reason, translate
from mssql_cdc.config.driver_given import NOT_OF_FREETDS, GivenSetting, conflicts, dropped, given_settings
from mssql_cdc.config.java_regex import java_pattern
from mssql_cdc.config.property import Effect, GivenProperty, Group, iana_zone, members, plain, prop, section
from mssql_cdc.config.redaction import Redactor
from mssql_cdc.config.report import Report
from mssql_cdc.config.secret import Secret, reveal, sensitive
from mssql_cdc.errors import MissingSecretError

_JDBC_LOGIN_TIMEOUT_S = 30


def _odbc_settings(value: Any) -> Any:
    """`odbc.*` without the driver; of two spellings of a keyword, the later one wins."""
    given = cast("tuple[object, ...]", value)
    found = {
        one.parts[0].lower(): OdbcSetting(one.parts[0], one.value) for one in given if isinstance(one, GivenProperty)
    }
    found.pop("driver", None)
    return (*found.values(), *(one for one in given if isinstance(one, OdbcSetting)))


def _expression(text: str) -> str:
    java_pattern(text)
    return text


@section(Group.CONNECT)
class Connection:
    """How the server is reached.

    `port` is None when a named instance is to be looked up by the browser service. `odbc_driver` is None when the
    configuration names none: the caller chooses an installed one. `odbc_driver`, `read_only` and `login_timeout_s`
    come from `driver.*` and `odbc.*` settings that are read when the configuration is loaded.
    """

    hostname: Annotated[str, AfterValidator(plain)] = prop("database.hostname", ..., "HA-06")
    """Names the host of the server, or of the availability group's listener."""
    port: int | None = prop("database.port", 1433, "HA-06", ge=1, le=65535)
    """Sets the TCP port of the server."""
    instance: str | None = prop("database.instance", None, "HA-06")
    """Names an instance. The browser service finds it, unless `database.port` is set as well."""
    user: Secret | None = prop("database.user", None, "HA-07")
    """Names the login. Integrated and directory authentication need none."""
    password: Secret | None = prop("database.password", None, "HA-07")
    """Sets the password; write it as `${env:NAME}` or `${file:path:key}`."""
    driver_settings: Annotated[tuple[DriverSetting, ...], members(driver_setting)] = prop(
        "driver.*", (), "HA-01 PRE-09", effect=Effect.TRANSLATED, late=True
    )
    """Sets an option of Microsoft's JDBC driver. It becomes the ODBC keyword in the table below."""
    database_settings: Annotated[tuple[DriverSetting, ...], members(driver_setting)] = prop(
        "database.*", (), "HA-01 PRE-09", effect=Effect.TRANSLATED, late=True
    )
    """Also sets an option of the JDBC driver, if no other property has that name."""
    odbc_extra: Annotated[tuple[OdbcSetting, ...], BeforeValidator(_odbc_settings)] = prop("odbc.*", (), late=True)
    """Adds a keyword to the ODBC connection string as is. `odbc.Driver` chooses the driver by its registered name or by
    the path of its library."""
    connection_timeout_ms: int = prop("database.connection.timeout.ms", 600_000, ge=0)
    """Limits the wait for a connection in milliseconds. `driver.loginTimeout` wins; if neither is set, or the one that
    applies is 0, the limit is 30 s."""
    query_timeout_ms: int = prop("database.query.timeout.ms", 600_000, "ERR-04", ge=0)
    """Limits the time of one statement in milliseconds; 0 = no limit."""
    validation_timeout_ms: int | None = prop("connection.validation.timeout.ms", None, "PRE-05", debezium=60_000, ge=1)
    """Limits how many milliseconds the server may take to accept a connection on its port, which is tried before each
    login; 4,000 by default. The limit never exceeds that of a login (`driver.loginTimeout`)."""
    retriable_messages: Annotated[str, AfterValidator(_expression)] | None = prop(
        "custom.retriable.exception", None, "ERR-02", group=Group.STREAM
    )
    """Makes further server errors retriable: those whose whole message matches this regular expression."""
    initial_statements: Secret | None = prop("database.initial.statements", None)
    """Runs these statements first on each new connection, separated by `;` (`;;` is a semicolon), such as `EXECUTE AS
    LOGIN = 'reader'`. They cannot truncate results or expose uncommitted rows: `TEXTSIZE`, `ROWCOUNT` and the isolation
    level are set after them. `USE` is an error because a connection stays in its database. Quoted text is hidden in all
    messages, except such a login and values that other properties show."""
    agent_status_query: str | None = prop("database.sqlserver.agent.status.query", None, "STR-14")
    """Checks, when capture is stalled, whether SQL Server Agent is running (1) or not (0); `#db` or `[#db]` stands for
    the quoted database name. By default `sys.dm_server_services` is queried if the login has permission."""
    server_timezone: Annotated[str, AfterValidator(iana_zone)] | None = prop("database.server.timezone", None, "STR-13")
    """Names the time zone of commit times (an IANA name); by default the server reports its offset."""
    odbc_driver: str | None = None
    login_timeout_s: int = _JDBC_LOGIN_TIMEOUT_S
    read_only: bool = False

    @model_validator(mode="before")
    @classmethod
    def _derive(cls, data: Any, info: ValidationInfo) -> Any:
        """Add what follows from several configured properties; values that code creates are complete."""
        if not isinstance(data, dict):
            return data
        given, report = cast("dict[str, Any]", data), Report.of(info)
        jdbc = _by_name(given, "driver.*") | _by_name(given, "database.*")
        odbc = _by_name(given, "odbc.*")
        for keyword in odbc.keys() & RESTORING:
            report.notice(f"odbc.{keyword}", f"no effect: {jdbc_reason(keyword)}")
        intent = odbc.get("applicationintent", jdbc.get("applicationintent"))
        derived: dict[str, Any] = {
            "odbc_driver": _read_now(odbc.get("driver"), report),
            "read_only": (_read_now(intent, report) or "").strip().lower() == "readonly",
            "login_timeout_s": _login_timeout(
                jdbc.get("logintimeout"), given.get("database.connection.timeout.ms"), report
            ),
        }
        if "database.instance" in given and "database.port" not in given:
            derived["port"] = None
        return derived | given

    @model_validator(mode="after")
    def _check_driver(self, info: ValidationInfo) -> Connection:
        report = Report.of(info)
        for name, problem in conflicts(self.given_settings):
            report.complain(name, problem)
        try:
            guards, _ = dropped(self.given_settings, self.odbc_driver or "")
        except MissingSecretError:
            return self  # It is resolved where the value is used, and this is checked again there.
        for name in guards:
            report.complain(name, NOT_OF_FREETDS)
        return self

    @property
    def given_settings(self) -> tuple[GivenSetting, ...]:
        """The driver's settings, by property."""
        return tuple(given_settings(self.driver_settings, self.database_settings, self.odbc_extra))

    @property
    def address(self) -> str:
        """The server, as messages name it."""
        if self.port is not None:
            return f"{self.hostname}:{self.port}"
        return f"{self.hostname}\\{self.instance}" if self.instance else self.hostname

    @property
    def redact(self) -> Redactor:
        """Removes the password and every secret driver setting from a text."""
        named = [(one.name, one.value) for one in (*self.driver_settings, *self.database_settings)]
        named += [(one.keyword, one.value) for one in self.odbc_extra]
        return Redactor((*([self.password] if self.password else []), *sensitive(named)))

    def read_initial_statements(self) -> tuple[str, ...]:
        """The statements of `database.initial.statements`, split as Debezium splits them.

        Raises:
            MissingSecretError: a reference in them cannot be resolved.
        """
        text = self.initial_statements.read() if self.initial_statements else ""
        found = (part.replace(";;", ";").strip() for part in re.findall(r"(?:;;|[^;])+", text))
        return tuple(statement for statement in found if statement)

    def is_retriable(self, message: str) -> bool:
        """Whether `custom.retriable.exception` matches the message of an error."""
        expression = self.retriable_messages
        return expression is not None and java_pattern(expression).fullmatch(message) is not None

    def odbc_settings(self, driver: str) -> tuple[OdbcSetting, ...]:
        """Keywords other than driver, server, port, database, UID and PWD: translated ones, then those of `odbc.*`."""
        own = {setting.keyword.lower() for setting in self.odbc_extra}
        translated = translate((*self.driver_settings, *self.database_settings), driver)
        once = {one.keyword: one for one in translated if one.keyword.lower() not in own}
        return (*once.values(), *self.odbc_extra)


def _by_name(given: Mapping[str, Any], family: str) -> dict[str, GivenProperty]:
    return {one.parts[0].lower(): one for one in given.get(family, ())}


def _read_now(one: GivenProperty | None, report: Report) -> str | None:
    """The text of a setting that decides something while the configuration is loaded, or None."""
    if one is None:
        return None
    try:
        return reveal(one.value)
    except MissingSecretError as error:
        report.complain(one.name, str(error))
        return None


def _login_timeout(one: GivenProperty | None, timeout_ms: int | None, report: Report) -> int:
    """The seconds of `driver.loginTimeout`, else of the connection timeout; JDBC's default if unset or 0."""
    text = _read_now(one, report)
    if one is not None and text is not None:
        if text.strip().isdecimal():
            return int(text) or _JDBC_LOGIN_TIMEOUT_S
        report.complain(one.name, f"found {text!r}, expected a whole number of seconds")
    return -(-(timeout_ms or 0) // 1000) or _JDBC_LOGIN_TIMEOUT_S

"""Connections: the only builder of ODBC strings, control connections, and the installed drivers.

This module resolves secrets, as late as possible, and removes them from every error text. `bulk` reads rows.
"""

from __future__ import annotations

import importlib.util
import platform
import re
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import arrow_odbc
import pyodbc

from mssql_cdc.config import Connection, Secret
from mssql_cdc.config.driver import RESTORING, DriverSetting, is_freetds, twin_of, twin_of_keyword
from mssql_cdc.config.driver_given import NOT_OF_FREETDS, dropped
from mssql_cdc.config.redaction import literals, redacted
from mssql_cdc.errors import ConfigurationError, LoginRefusedError, MssqlCdcError, SourceUnavailableError
from mssql_cdc.source.sqlserver import tls
from mssql_cdc.source.sqlserver.address import address_pairs
from mssql_cdc.source.sqlserver.classify import CANNOT_OPEN, LOGIN_FAILED, classify, driver_message
from mssql_cdc.source.sqlserver.logins import log_in, too_slow
from mssql_cdc.source.sqlserver.reach import require_reachable

# A pooled connection would keep another reader's transaction, isolation level and time-outs.
pyodbc.pooling = False

_SESSION = "SET NOCOUNT ON; SET TEXTSIZE -1; SET ROWCOUNT 0; SET TRANSACTION ISOLATION LEVEL READ COMMITTED"
"""CDC tables are never read at READ UNCOMMITTED (rule A2); a snapshot's readers set the level that they need."""

_PREFERRED = ("ODBC Driver 18 for SQL Server", "ODBC Driver 17 for SQL Server", "FreeTDS")
_TIMED_OUT = "HYT"
"""The prefix of the SQLSTATEs for a time-out."""
_PLAIN = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-+:/\\,")


def connection_string(connection: Connection, catalog: str, *, with_login: bool = True) -> str:
    """The ODBC connection string for one database, secrets resolved: never log or store it.

    Args:
        connection: server, login and driver settings.
        catalog: the database.
        with_login: False leaves out user and password.

    Raises:
        ConfigurationError: no driver is installed, it is FreeTDS and would drop a protective setting, or a secret
            cannot be resolved.
    """
    driver = find_driver(connection)
    freetds = is_freetds(driver)
    guards, _ = dropped(connection.given_settings, driver)
    if guards:
        raise ConfigurationError(f"{', '.join(guards)}: {NOT_OF_FREETDS}")
    pairs: list[tuple[str, str]] = [("DRIVER", driver), *address_pairs(connection, freetds=freetds)]
    pairs.append(("DATABASE", catalog))
    settings = [
        (one.keyword, one.read())
        for one in connection.odbc_settings(driver)
        if one.keyword.lower() not in RESTORING or freetds
    ]
    given = {keyword.lower() for keyword, _ in settings}
    for keyword, value in _defaults(freetds=freetds):
        if keyword.lower() not in given:
            pairs.append((keyword, value))
    pairs += [(keyword, value) for keyword, value in settings if keyword.lower() != "driver"]
    if with_login:
        pairs += [("UID", connection.user.read())] if connection.user else []
        pairs += [("PWD", connection.password.read())] if connection.password else []
    return ";".join(f"{keyword}={_value(keyword, value, freetds=freetds)}" for keyword, value in pairs)


def find_driver(connection: Connection) -> str:
    """The driver that the configuration names, else the best one that is installed.

    Raises:
        ConfigurationError: there is none.
    """
    if connection.odbc_driver:
        return connection.odbc_driver
    installed = pyodbc.drivers()
    for name in _PREFERRED:
        if name in installed:
            return name
        if name == _PREFERRED[0] and (packaged := _packaged_driver()):
            return packaged
    raise ConfigurationError(
        "No ODBC driver for SQL Server is installed; install msodbcsql18 or FreeTDS (tdsodbc), or name a driver "
        f"with odbc.Driver. Registered drivers: {', '.join(installed) or 'none'}"
    )


@contextmanager
def control(
    connection: Connection, catalog: str, *, autocommit: bool = True, opened_before: bool = False
) -> Generator[Control, None, None]:
    """Open a connection that is closed at the end of the block.

    Args:
        connection: server, login, driver settings and time-outs.
        catalog: the database.
        autocommit: False opens a transaction, which is rolled back at the end of the block.
        opened_before: see `refused`.
    """
    opened = open_control(connection, catalog, autocommit=autocommit, opened_before=opened_before)
    try:
        yield opened
    finally:
        opened.close()


def open_control(
    connection: Connection, catalog: str, *, autocommit: bool = True, opened_before: bool = False
) -> Control:
    """A connection for metadata, control statements and rows that must be fetched one by one.

    Args:
        connection: server, login, driver settings and time-outs.
        catalog: the database.
        autocommit: False opens a transaction, which is rolled back when the connection is closed.
        opened_before: see `refused`.

    Raises:
        SourceUnavailableError, ConfigurationError: the connection cannot be made; see `classify`.
    """
    require_reachable(connection)
    try:
        raw = _connect(connection, catalog, autocommit=autocommit)
    except pyodbc.Error as error:
        raise refused(connection, catalog, error, opened_before=opened_before) from None
    opened = Control(raw, connection, catalog)
    try:
        raw.timeout = -(-connection.query_timeout_ms // 1000)
        prepare(opened, connection)
    except BaseException:
        opened.close()
        raise
    return opened


class Control:
    """A pyodbc connection whose errors are the project's (`classify`).

    `doing` of every method completes "while …" in the text of an error. `altered`: a user's statement may have
    changed the session's settings, so nothing else may use the connection.
    """

    def __init__(self, raw: pyodbc.Connection, connection: Connection, catalog: str) -> None:
        self.raw = raw
        self.catalog = catalog
        self.altered = False
        self._connection = connection

    def rows(self, sql: str, *parameters: Any, doing: str) -> list[Any]:
        """All rows of a statement, in memory; columns are attributes of a row."""
        with translated(self._connection, doing), closing(self.raw.cursor()) as cursor:
            return cursor.execute(sql, *parameters).fetchall()

    def row(self, sql: str, *parameters: Any, doing: str) -> Any:
        """The first row of a statement, or None."""
        with translated(self._connection, doing), closing(self.raw.cursor()) as cursor:
            return cursor.execute(sql, *parameters).fetchone()

    def value(self, sql: str, *parameters: Any, doing: str) -> Any:
        """The first column of the first row, or None."""
        row = self.row(sql, *parameters, doing=doing)
        return None if row is None else row[0]

    def stream(self, sql: str, *parameters: Any, size: int, doing: str) -> Generator[Any]:
        """The rows of a statement one by one.

        Args:
            sql: one SELECT, with `?` for each parameter.
            *parameters: their values.
            size: how many rows are fetched at a time.
            doing: completes "while …" in the text of an error.
        """
        with closing(self.pages(sql, *parameters, take=lambda cursor: cursor.fetchmany(size), doing=doing)) as pages:
            for page in pages:
                yield from page

    def pages(
        self, sql: str, *parameters: Any, take: Callable[[pyodbc.Cursor], list[Any]], doing: str
    ) -> Generator[list[Any]]:
        """The rows of a statement, several at a time.

        Args:
            sql: one SELECT, with `?` for each parameter.
            *parameters: their values.
            take: fetches the next rows; an empty list is the end.
            doing: completes "while …" in the text of an error.
        """
        with translated(self._connection, doing):
            cursor = self.raw.cursor()
            cursor.execute(sql, *parameters)
        try:
            while True:
                with translated(self._connection, doing):
                    rows = take(cursor)
                if not rows:
                    return
                yield rows
        finally:
            cursor.close()

    def execute(self, sql: str, *parameters: Any, doing: str) -> None:
        """Run a statement without rows, consuming the messages and counts of every statement in it."""
        with translated(self._connection, doing), closing(self.raw.cursor()) as cursor:
            cursor.execute(sql, *parameters)
            while cursor.nextset():
                pass

    def commit(self) -> None:
        """Commit the transaction."""
        with translated(self._connection, "committing"):
            self.raw.commit()

    def rollback(self) -> None:
        """Roll back the transaction."""
        with translated(self._connection, "rolling back"):
            self.raw.rollback()

    def close(self) -> None:
        """Roll back and close; errors of a broken connection are ignored because they are already known."""
        try:
            if not self.raw.autocommit:
                self.raw.rollback()
        except pyodbc.Error:
            pass
        finally:
            self.raw.close()


class Session(Protocol):
    """What `prepare` needs from a new connection."""

    def execute(self, sql: str, *, doing: str) -> None:
        """Run a statement without rows."""
        ...

    def commit(self) -> None:
        """Commit the transaction."""
        ...


def prepare(session: Session, connection: Connection) -> None:
    """Prepare a new connection: `database.initial.statements`, then what the connector relies on (rules A2, E26).

    Raises:
        ConfigurationError: a statement is `USE`, or its secrets cannot be resolved.
        SourceError: a statement failed.
    """
    statements = connection.read_initial_statements()
    for number, statement in enumerate(statements, 1):
        doing = f"running statement {number} of {len(statements)} of database.initial.statements"
        if re.match(r"use\b", statement, re.IGNORECASE):
            raise ConfigurationError(
                f"USE is not possible, while {doing}: a connection stays in its database. Remove the statement"
            )
        try:
            session.execute(statement, doing=doing)
        except MssqlCdcError as error:
            raise type(error)(redacted(str(error), literals(statement))) from None
    if statements:
        session.commit()  # A reader's transaction holds none of their locks.
    session.execute(_SESSION, doing="preparing the session")


def _connect(connection: Connection, catalog: str, *, autocommit: bool = True) -> pyodbc.Connection:
    text, seconds = connection_string(connection, catalog), connection.login_timeout_s
    return log_in(connection, catalog, lambda: pyodbc.connect(text, autocommit=autocommit, timeout=seconds))


def refused(
    connection: Connection, catalog: str, error: pyodbc.Error | arrow_odbc.Error, *, opened_before: bool
) -> MssqlCdcError:
    """Why a server that accepts connections refused this one; where the driver gives no reason, the server is probed.

    Args:
        connection: how the connection was to be made.
        catalog: the database.
        error: what the driver raised.
        opened_before: whether the database could be opened before, by this process or the one that planned the work:
            then it is recovering or failing over, which looks like a database that does not exist (4060).
    """
    found = classify(error, f"connecting to database {catalog!r} on {connection.address}", connection)
    number = driver_message(error).number
    if connection.is_retriable(driver_message(error).text):
        return SourceUnavailableError(without_secrets(connection, str(found)))
    if driver_message(error).state.startswith(_TIMED_OUT):
        return too_slow(connection, catalog)
    if number in LOGIN_FAILED:
        # Azure SQL Database lets few logins open `master`: a refusal says nothing if the error was about the database.
        is_known, of_master = number == CANNOT_OPEN, None
        if catalog.lower() != "master" and not (is_known and opened_before):
            of_master = _refused_by_master(connection)
        if isinstance(of_master, SourceUnavailableError):
            return of_master
        if catalog.lower() == "master" or (of_master is not None and not is_known):
            return LoginRefusedError(without_secrets(connection, str(found)))
        if opened_before:
            return SourceUnavailableError(
                f"Database {catalog!r} on {connection.address} cannot be opened now, and could before (error "
                f"{number}): it recovers, fails over, is offline or gone, or the login's user in it is"
            )
        return ConfigurationError(
            f"The login is known on {connection.address}, but cannot open database {catalog!r} (error {number}): there "
            "is no such database, or no user for the login in it. Check database.names, or CREATE USER in the database"
        )
    if number == 0 and not isinstance(found, ConfigurationError) and _answers_without_tls(connection, catalog):
        return ConfigurationError(
            f"{connection.address} does not encrypt connections, and TLS is asked for. "
            f"{tls.turn_off(connection, driver=find_driver(connection))}"
        )
    return type(found)(without_secrets(connection, str(found)))


def _refused_by_master(connection: Connection) -> MssqlCdcError | None:
    """Why the login may not open `master`; None if it may: then only the database can be wrong."""
    try:
        _connect(connection, "master").close()
    except pyodbc.Error as error:
        found = classify(error, f"connecting to database 'master' on {connection.address}", connection)
        return type(found)(without_secrets(connection, str(found)))
    return None


def _answers_without_tls(connection: Connection, catalog: str) -> bool:
    """Whether FreeTDS, which gives no reason, reaches the server's login without encryption; no secret is sent."""
    if not is_freetds(find_driver(connection)):
        return False
    encrypt = twin_of("encrypt")
    stranger = replace(
        connection,
        driver_settings=(
            *(one for one in connection.driver_settings if twin_of(one.name) is not encrypt),
            DriverSetting("encrypt", "false"),
        ),
        database_settings=tuple(one for one in connection.database_settings if twin_of(one.name) is not encrypt),
        odbc_extra=tuple(one for one in connection.odbc_extra if twin_of_keyword(one.keyword) is not encrypt),
        user=Secret("mssql_cdc_encryption_probe"),
        password=None,
    )
    try:
        _connect(stranger, catalog).close()
    except pyodbc.Error as error:
        return driver_message(error).number in LOGIN_FAILED
    return True


@contextmanager
def translated(connection: Connection, doing: str) -> Generator[None, None, None]:
    """Turn driver errors into the project's, without the secrets that a driver may repeat."""
    try:
        yield
    except (pyodbc.Error, arrow_odbc.Error) as error:
        found = classify(error, doing, connection)
        kind = type(found)
        if connection.is_retriable(driver_message(error).text):
            kind = SourceUnavailableError
        raise kind(without_secrets(connection, str(found))) from None


def without_secrets(connection: Connection, text: str) -> str:
    """The text with every secret of the connection replaced by `***`, however the driver has escaped it."""
    return connection.redact(text)


def _defaults(*, freetds: bool) -> Sequence[tuple[str, str]]:
    """TLS is on with every driver, as it is with Debezium's; `database.encrypt=false` turns it off."""
    if freetds:
        return [("TDS_Version", "7.4"), ("ClientCharset", "UTF-8"), ("APP", "mssql_cdc"), ("Encryption", "require")]
    return [("APP", "mssql_cdc"), ("ConnectRetryCount", "0"), ("Encrypt", "yes")]


def _value(keyword: str, value: str, *, freetds: bool) -> str:
    """A value, quoted for an ODBC connection string.

    FreeTDS ends a braced value at the first `}` that is followed by `;`, and does not unescape `}}`.
    """
    if keyword != "DRIVER" and set(value) <= _PLAIN:
        return value
    if not freetds:
        return "{" + value.replace("}", "}}") + "}"
    if "}" not in value:
        return "{" + value + "}"
    if ";" in value or value[0] in "{ " or value[-1] == " ":
        raise ConfigurationError(
            f"FreeTDS cannot take the value of {keyword}: with a '}}' in it, it must not hold ';' or begin with '{{'"
        )
    return value


def _packaged_driver() -> str | None:
    """Microsoft's driver from the Python package `mssql-python-odbc`, if that is installed."""
    spec = importlib.util.find_spec("mssql_python_odbc")
    if spec is None or not spec.submodule_search_locations:
        return None
    machine = {"AMD64": "x86_64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    root = Path(next(iter(spec.submodule_search_locations))) / "libs" / "linux" / "debian_ubuntu" / machine
    found = sorted(root.glob("lib/libmsodbcsql-*.so*"))
    return str(found[-1]) if found else None

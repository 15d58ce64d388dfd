"""Maps a driver's error to the project's exception that says what the caller can do (ERR-*, rule A2).

Both drivers and both libraries report an SQLSTATE and SQL Server's error number, in different texts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mssql_cdc.config import Connection
from mssql_cdc.errors import (
    AccessDeniedError,
    ConfigurationError,
    DeadlockError,
    MssqlCdcError,
    SourceError,
    SourceUnavailableError,
)
from mssql_cdc.source.sqlserver import grants, tls

DEADLOCK = 1205

_RETRIABLE_STATES = ("08", "HYT", "IMC", "40001", "40003")
"""IMC: Microsoft's driver could not restore a connection (`ConnectRetryCount`)."""
_RETRIABLE_NUMBERS = frozenset(
    {
        -2, 20, 64, 121, 233, 258, 596, 601, 615, 617, 669, 701, 802, 844, 845, 904, 921, 922, 924, 927, 941, 952, 976,
        978, 979, 982, 983, 988, 1203, 1204, 1221, 1222, 3935, 3947, 3948, 3950, 3953, 3957, 3960, 3961, 3966, 4221,
        6002, 6005, 8628, 8645, 8651, 10053, 10054, 10060, 10061, 10922, 10928, 10929, 10930, 10936, 11001, 17142,
        17187, 17188, 17197, 17809, 18401, 18451, 18461, 22984, 40020, 40143, 40166, 40189, 40197, 40501, 40540, 40549,
        40550, 40551, 40552, 40553, 40613, 42108, 42109, 49802, 49918, 49919, 49920,
    }
)  # fmt: skip
"""Some of them refuse a valid login: the server is starting, being upgraded, paused or shut down, serves only its
administrators, or has no connection left. Their SQLSTATE is that of a wrong login, 28000. The others mean "retry": of
the errors that EF Core's SqlServerTransientExceptionDetector lists, those that a read can encounter, from readable
secondaries (3947, 3948), snapshot isolation, READ UNCOMMITTED (601), and sessions that Azure ends (40549 to 40553)."""
_BROKEN = re.compile(r"terminated by the server|TDS stream|connection (?:is|was) (?:broken|closed|lost)", re.IGNORECASE)
"""What Microsoft's driver says about a broken connection, with the general SQLSTATE (HY000) and no number."""
CANNOT_OPEN = 4060
"""The login is valid, but the database cannot be opened: it does not exist, fails over, or does not know the login."""
LOGIN_FAILED = {CANNOT_OPEN, 18456}
"""A wrong login, or `CANNOT_OPEN`: FreeTDS reports 18456 for both."""
_LOGIN = {CANNOT_OPEN, 18452, 18456, 18470, 18486, 18487, 18488, 40532, 40615}
_ADVICE = {
    207: "the table's columns changed during the read (the retry uses the new structure), or the filter of a signal or "
    "a SELECT of snapshot.select.statement.overrides names a column that the table does not have",
    208: "CDC was disabled for the database or the table, or the capture instance was dropped",
    313: "the range is outside the validity interval of the capture instance",
    911: "check database.names",
    3952: "ALTER DATABASE … SET ALLOW_SNAPSHOT_ISOLATION ON, or choose another snapshot.isolation.mode",
    22901: "EXEC sys.sp_cdc_enable_db in this database",
}
_PYODBC_NUMBER = re.compile(r"\((-?\d+)\) \(SQL\w+\)")
_ARROW = re.compile(r"State: (\w{5}), Native error: (-?\d+), Message: (.*)", re.DOTALL)
_ROW_VALUE = re.compile(
    r"(\bvalue:? (?:is |= )?)('.*'|\(.*\)|[-+.\dEe]+)(?=( to (?:data )?type| overflowed| is out of range|\.|$))",
    re.IGNORECASE | re.DOTALL,
)
_QUOTING = frozenset({220, 232, 244, 245, 248, 2601, 2627, 2628, 8115})
"""Messages that quote a value of a row, whatever the login's language."""
_PREFIX = re.compile(r"^(?:\[[^\]]*\]\s*)+")


@dataclass(frozen=True, slots=True)
class DriverMessage:
    """What a driver reported: SQLSTATE, SQL Server's number (0: the driver's own), the text without prefixes."""

    state: str
    number: int
    text: str


def driver_message(error: BaseException) -> DriverMessage:
    """The parts of a pyodbc or arrow-odbc exception."""
    arrow = _ARROW.search(str(error))
    if arrow:
        return DriverMessage(arrow[1], int(arrow[2]), _PREFIX.sub("", arrow[3]).strip())
    arguments = getattr(error, "args", ())
    if len(arguments) >= 2 and isinstance(arguments[0], str):
        message = str(arguments[1])
        numbers = _PYODBC_NUMBER.findall(message)
        shown = _PYODBC_NUMBER.split(_PREFIX.sub("", message))[0].strip()
        return DriverMessage(arguments[0], int(numbers[0]) if numbers else 0, shown)
    return DriverMessage("", 0, str(error))


def classify(error: BaseException, doing: str, connection: Connection | None = None) -> MssqlCdcError:
    """Return the exception to raise instead.

    Args:
        error: what a driver raised.
        doing: completes "while …".
        connection: the configuration, whose properties the advice names.
    """
    if isinstance(error, MssqlCdcError):
        return error
    found = driver_message(error)
    number = f" (error {found.number})" if found.number else f" (SQLSTATE {found.state})" if found.state else ""
    shown = f"{_without_values(found)}{number}, while {doing}"
    if found.number == DEADLOCK:
        return DeadlockError(shown)
    passing = found.number in _RETRIABLE_NUMBERS
    if found.number in _LOGIN or (found.state == "28000" and not passing):
        return ConfigurationError(f"{shown}. Check database.user, database.password and database.names")
    remedy = tls.remedy(found.text, connection)
    if remedy:
        return ConfigurationError(f"TLS failed: {shown}. {remedy}")
    if found.number in grants.NUMBERS:
        kind = AccessDeniedError if found.number in grants.OF_ONE_OBJECT else ConfigurationError
        return kind(f"{shown}. Needed: {grants.needed(found.number, found.text)}")
    if found.state == "IM002" or "Can't open lib" in found.text:
        return ConfigurationError(f"{shown}. Install an ODBC driver, or name one with odbc.Driver")
    if passing or found.state.startswith(_RETRIABLE_STATES) or (not found.number and _BROKEN.search(found.text)):
        return SourceUnavailableError(shown)
    advice = _ADVICE.get(found.number)
    return SourceError(f"{shown}; {advice}" if advice else shown)


def _without_values(found: DriverMessage) -> str:
    """The text without the row values that SQL Server quotes for failed conversions, truncations and duplicate keys."""
    text, count = _ROW_VALUE.subn(r"\1***", found.text)
    if not count and found.number in _QUOTING and re.search(r"['(:=]", found.text):
        return "The server's message may quote a value of a row and is left out"
    return text

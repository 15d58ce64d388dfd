"""The project's exceptions, grouped by what the caller can do about them, and how other exceptions are named in logs.

A message states what was found, what was expected and what to do. `source/` converts driver errors to these classes;
`run/` handles them.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterable
from typing import ClassVar


class MssqlCdcError(Exception):
    """The base class: a bug unless a subclass says otherwise."""

    exit_code: ClassVar[int] = 1
    retriable: ClassVar[bool] = False


# -- The user changes the configuration ------------------------------------------------------------


class ConfigurationError(MssqlCdcError):
    """A property, a permission or a file is wrong; nothing was read or written."""

    exit_code = 2


class InvalidPropertiesError(ConfigurationError):
    """Properties of a connector are wrong: `problems` are pairs of a property and what was found and expected."""

    def __init__(self, message: str, problems: Iterable[tuple[str, str]] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)


class MissingSecretError(ConfigurationError):
    """A `${env:…}` or `${file:…}` reference could not be resolved; the message names it, never its value."""


class AccessDeniedError(ConfigurationError):
    """The login may not read an object; the message names it, and the permission that is needed."""


class LoginRefusedError(ConfigurationError):
    """The server refuses the login itself: every further attempt would fail as well and might lock the account."""


class StorageError(ConfigurationError):
    """The warehouse does not support exactly-once commits (A10), or its path belongs to another connector."""


class BusyOutputError(StorageError):
    """Another run writes to the output of records; it may be free again soon."""


# -- A retry may help ------------------------------------------------------------------------------


class SourceUnavailableError(MssqlCdcError):
    """The source did not answer, closed the connection, chose this session as the deadlock victim or timed out."""

    exit_code = 3
    retriable = True


class DeadlockError(SourceUnavailableError):
    """SQL Server chose this session as the deadlock victim (1205); the same work may be retried immediately."""


class StaleReaderError(SourceUnavailableError):
    """The connection reads from a replica that does not see the end of the range yet (rule A2)."""


class StaleStructureError(SourceUnavailableError):
    """A table's columns are no longer those that it was read with: it is planned again from its present columns."""


class NotCaughtUpError(MssqlCdcError):
    """The lake does not contain the requested data yet: `mssql-cdc run --until-caught-up` captures it."""

    exit_code = 3


# -- A retry does not help -------------------------------------------------------------------------


class SourceError(MssqlCdcError):
    """The source answered with an error that would occur again on a retry."""

    exit_code = 3


class SchemaError(MssqlCdcError):
    """A table's schema, the configuration and the schemas of its Delta tables do not fit together.

    Not a bug: a change to the configuration, such as leaving out a column, resolves it, or the lake's tables have to be
    restored.
    """

    exit_code = 2


class ContractError(MssqlCdcError):
    """A batch violates the contract of the change log; it was not written."""


class ConversionError(MssqlCdcError):
    """A record cannot be rendered because a value of its change cannot be converted."""


class TaskError(MssqlCdcError):
    """A task failed with an unclassified exception; the message contains its last traceback lines."""


class WorkerError(TaskError):
    """A task brought down its Spark job, as no Python exception can: its worker was killed, or native code crashed."""


# -- Another run is or was active ------------------------------------------------------------------


class FencedError(MssqlCdcError):
    """Another run has advanced the state from which this run started; this run wrote nothing (rule A3)."""


class OvertakenError(FencedError):
    """Another run committed to the table since its state was loaded; a retry from the new state may succeed."""


# -- Data are, or may be, lost ---------------------------------------------------------------------


class DataLostError(MssqlCdcError):
    """The source no longer has the rows that the table needs next (rule A9): a new snapshot is needed."""

    exit_code = 4


class SourceRestoredError(DataLostError):
    """The source went back in time (rule A7): a new epoch and a new snapshot are needed."""


class TamperedTableError(DataLostError):
    """Another writer changed a Delta table that only this connector may write (rule A5)."""


# -- A check has completed -------------------------------------------------------------------------


class CheckDiffersError(MssqlCdcError):
    """A check completed and found a difference between the source and the lake."""

    exit_code = 5


def error_named(name: str, message: str) -> MssqlCdcError:
    """Return the exception of class `name` (a class of this module) that a Spark task reported."""
    found = globals().get(name)
    if isinstance(found, type) and issubclass(found, MssqlCdcError):
        return found(message)
    return TaskError(f"{name}: {message}")


def placed(error: BaseException) -> str:
    """Name an error and where it was raised, without its message: errors in conversions or user code quote values."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{type(error).__name__}{f' at {frames[-1].filename}:{frames[-1].lineno}' if frames else ''}"

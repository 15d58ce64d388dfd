"""Every exception of the project, grouped by what the caller can do about it.

A message says what was found, what was expected and what to do. Turning a driver's error into one of these
belongs to `source/`; what a run does about one belongs to `run/`.
"""

from __future__ import annotations

from typing import ClassVar


class MssqlCdcError(Exception):
    """The base of all: a defect unless a subclass says otherwise."""

    exit_code: ClassVar[int] = 1
    retriable: ClassVar[bool] = False


# -- The user changes the configuration ------------------------------------------------------------


class ConfigurationError(MssqlCdcError):
    """A property, a permission or a file is wrong; nothing was read or written."""

    exit_code = 2


class MissingSecretError(ConfigurationError):
    """A `${env:…}` or `${file:…}` reference could not be resolved; the message names it, never its value."""


class StorageError(ConfigurationError):
    """The warehouse cannot do what exactly-once needs (A10), or its path belongs to another connector."""


# -- Trying again helps ----------------------------------------------------------------------------


class SourceUnavailableError(MssqlCdcError):
    """The source did not answer, broke the connection, chose us as a deadlock victim or timed out."""

    exit_code = 3
    retriable = True


class DeadlockError(SourceUnavailableError):
    """SQL Server chose us as a deadlock victim (1205): it asks to run the same again, and that may be done at once."""


class StaleReaderError(SourceUnavailableError):
    """The connection reads a replica which does not yet see the end of the range (rule A2)."""


class StaleStructureError(SourceUnavailableError):
    """A table's columns are not those that it was read with: it is planned anew from what they are now."""


class NotCaughtUpError(MssqlCdcError):
    """The lake does not hold yet what is asked of it: `mssql-cdc run --until-caught-up` brings it there."""

    exit_code = 3


class InterruptedRunError(MssqlCdcError):
    """The run was asked to stop; what was committed stays, the rest is asked for again."""

    exit_code = 3
    retriable = True


# -- Trying again does not help --------------------------------------------------------------------


class SourceError(MssqlCdcError):
    """The source answered with an error that a second try would meet again."""

    exit_code = 3


class SchemaError(MssqlCdcError):
    """A table's structure and the structure of its Delta tables do not fit together."""


class ContractError(MssqlCdcError):
    """A batch breaks the contract of the change log; it was not written."""


class TaskError(MssqlCdcError):
    """A task failed with an exception that no rule knows; the message carries its last traceback lines."""


# -- Another run is, or was, at work ---------------------------------------------------------------


class FencedError(MssqlCdcError):
    """Another run has passed the state that this run started from; this run wrote nothing (rule A3)."""


class OvertakenError(FencedError):
    """Another run has committed to the table since its state was loaded; made again from the new state it may pass."""


# -- Data are, or may be, lost ---------------------------------------------------------------------


class DataLostError(MssqlCdcError):
    """The source no longer has the rows which the table needs next (rule A9): a new snapshot is needed."""

    exit_code = 4


class SourceRestoredError(DataLostError):
    """The source went back in time (rule A7): a new epoch and a new snapshot are needed."""


class TamperedTableError(DataLostError):
    """Someone else changed a Delta table that only this connector may write (rule A5)."""


# -- A check has its answer ------------------------------------------------------------------------


class CheckDiffersError(MssqlCdcError):
    """A check ran to its end and found a difference between the source and the lake."""

    exit_code = 5


def error_named(name: str, message: str) -> MssqlCdcError:
    """The exception of class `name` (a class of this module), as it comes back from a Spark task."""
    found = globals().get(name)
    if isinstance(found, type) and issubclass(found, MssqlCdcError):
        return found(message)
    return TaskError(f"{name}: {message}")

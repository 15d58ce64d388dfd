"""What every step and the sensor show of their configuration and of errors: the same notices, and never a secret.

Dagster stores the text, the trace, the cause and the context of whatever is raised, so only failures whose texts were
redacted here leave a step. The message of an error that is not ours is left out if it may quote a row's value.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager

import dagster as dg

from mssql_cdc.config import Connector
from mssql_cdc.errors import MssqlCdcError
from mssql_cdc.spark import tasks


def say_notices(connector: Connector, log: Callable[[str], None]) -> None:
    """Log which properties have no meaning here."""
    for line in connector.notices:
        log(connector.redact(line))


@contextmanager
def shown(connector: Connector, log: Callable[[str], None] | None = None) -> Generator[None]:
    """Log the notices, and turn every error into a failure without secrets; an interruption passes.

    Args:
        connector: The configuration, which knows the secrets.
        log: Receives the notices; None: they were already logged.

    Raises:
        dagster.Failure: There was an error.
    """
    try:
        if log is not None:
            say_notices(connector, log)
        yield
    except dg.Failure as error:
        text = connector.redact(error.description or "")
        raise dg.Failure(text, metadata=error.metadata, allow_retries=error.allow_retries) from None
    except MssqlCdcError as error:
        raise dg.Failure(described(connector, error), allow_retries=False) from None
    except Exception as error:  # noqa: BLE001 (any: what we do not know may hold a secret, too)
        trace = connector.redact("".join(traceback.format_tb(error.__traceback__)))
        metadata = {"mssql_cdc/trace": dg.MetadataValue.md(f"```\n{trace}\n```")}
        text = f"{connector.redact(tasks.described(error))}. This is not expected: please report it with its trace"
        raise dg.Failure(text, metadata=metadata, allow_retries=False) from None


def told(error: BaseException) -> str:
    """Return an error's type and text, with secrets; for one that is not ours, no text that may quote a row's value.

    Args:
        error: The error.
    """
    return f"{type(error).__name__}: {error}" if isinstance(error, MssqlCdcError) else tasks.described(error)


def described(connector: Connector, error: BaseException) -> str:
    """An error's type and text, without secrets."""
    return connector.redact(f"{type(error).__name__}: {error}")

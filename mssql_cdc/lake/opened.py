"""Opens Delta tables with `deltalake`: the one place where its errors become ours.

A damaged log concerns only its own table; callers recognize it by `StorageError`. `lake/table_log.py` reads logs
without `deltalake`.
"""

from __future__ import annotations

from textwrap import shorten

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from mssql_cdc.errors import StorageError
from mssql_cdc.lake.storage import LOCAL, Storage, unreachable

LAKE_ERRORS = (OSError, DeltaError)
"""What a lake that is currently unusable raises where no function here converts it to one of our errors."""
_SAID = 160  # The description of a log with a gap has several kilobytes.


def find_table(uri: str, storage: Storage = LOCAL, *, version: int | None = None) -> DeltaTable | None:
    """Return the opened table; None when there is none.

    Args:
        uri: The table's folder.
        storage: How to reach the folder.
        version: A Delta version instead of the newest.

    Raises:
        StorageError: There is a table that cannot be opened, or the store does not answer.
    """
    try:
        return DeltaTable(uri, version=version, storage_options=storage.resolved())
    except TableNotFoundError:
        return None
    except DeltaError as error:
        said = shorten(str(error).partition("\n")[0], _SAID)
        raise StorageError(
            f"The Delta table {uri} cannot be opened: {said}. Its log is damaged, or another program wrote to it; "
            "restore the folder"
        ) from error
    except OSError as error:
        raise unreachable(uri, error) from error


def open_table(uri: str, storage: Storage = LOCAL, *, version: int | None = None) -> DeltaTable:
    """Return the opened table.

    Args:
        uri: The table's folder.
        storage: How to reach the folder.
        version: A Delta version instead of the newest.

    Raises:
        StorageError: There is no table, it cannot be opened, or the store does not answer.
    """
    table = find_table(uri, storage, version=version)
    if table is None:
        raise StorageError(f"There is no Delta table in {uri}: restore the folder")
    return table

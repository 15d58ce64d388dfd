"""Checkpoints of Delta logs, which only make reading faster: tables that are written in the same steps take turns.

Otherwise, all of them would reach a multiple of the interval in the same step, which would take a second longer.
"""

from __future__ import annotations

from zlib import crc32

from deltalake.exceptions import DeltaError

from mssql_cdc.errors import StorageError
from mssql_cdc.lake.opened import open_table
from mssql_cdc.lake.properties import is_on
from mssql_cdc.lake.storage import LOCAL, Storage

_NAME = 3
"""How many trailing parts of a folder's path identify a table, such as `dbo/orders/current`."""


def is_due(uri: str, before: int, after: int, interval: int) -> bool:
    """Whether it is the table's turn: once every `interval` versions.

    Args:
        uri: The table's folder.
        before: The version before a commit.
        after: The version of the commit; other commits may lie between.
        interval: How many commits lie between two checkpoints.
    """
    shift = crc32("/".join(uri.rstrip("/").split("/")[-_NAME:]).encode()) % interval
    return (after + shift) // interval > (before + shift) // interval


def checkpoint(uri: str, storage: Storage = LOCAL) -> None:
    """Write a checkpoint of a table's newest version, and delete commits before it that are older than its retention.

    If something prevents it, such as another run doing the same, the table stays as it is: the commit before was made.

    Args:
        uri: The table's folder.
        storage: How to reach the folder.
    """
    try:
        table = open_table(uri, storage)
        table.create_checkpoint()
        if is_on(table.metadata().configuration, "delta.enableExpiredLogCleanup", default=True):
            table.cleanup_metadata()
    except (StorageError, DeltaError, OSError):
        return

"""The contract of snapshot locks: how a table that a snapshot may lock is locked (SNP-16, SPI-03).

A lock is an entry point in the group `mssql_cdc.snapshot_locks`, named by `snapshot.locking.mode.custom.name`. In which
cases a snapshot locks at all is not decided here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, cast

from mssql_cdc.config import Connector
from mssql_cdc.config.extension_names import ExtensionGroup, ExtensionProperties
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.extensions import load_extension
from mssql_cdc.schema import TableSchema

_SETTING = "snapshot.locking.mode.custom.name"


class SnapshotLock(Protocol):
    """Debezium's `SnapshotLock`; the constructor gets the keyword argument `properties`."""

    def table_locking_statement(self, lock_timeout_ms: int, table: str) -> str | None:
        """Return the statement that locks a table until its transaction ends, or None if it is not to be locked.

        It runs before the shared lock that makes the read exact, in the same transaction.

        Args:
            lock_timeout_ms: `snapshot.lock.timeout.ms`; the session's `LOCK_TIMEOUT` is already set to it.
            table: `db.schema.table`.
        """
        ...


def custom_statements(connector: Connector, schemas: Sequence[TableSchema]) -> list[str]:
    """The statements of the configured lock for these tables.

    Args:
        connector: The configuration.
        schemas: The tables.

    Raises:
        ConfigurationError: The lock is faulty, or returns no statement for one of the tables.
    """
    name, most = connector.snapshot.custom_locking or "", connector.snapshot.lock_timeout_ms
    lock: SnapshotLock = load_extension(
        ExtensionGroup.SNAPSHOT_LOCKS,
        name,
        setting=_SETTING,
        methods=("table_locking_statement",),
        arguments={"properties": ExtensionProperties(connector.properties)},
    )
    return [_statement(lock, most, name, schema.table_id.text) for schema in schemas]


def _statement(lock: SnapshotLock, most: int, name: str, table: str) -> str:
    try:
        found = cast("object", lock.table_locking_statement(most, table))
    except Exception as error:
        raise ConfigurationError(f"{_SETTING}={name} fails for {table}: {type(error).__name__}: {error}") from error
    if found is None:
        raise ConfigurationError(
            f"{_SETTING}={name} gives no statement for {table}, whose rows can be read exactly only under a lock, "
            "because it has no usable key or snapshot.isolation.mode is exclusive. Return a statement, or add a key"
        )
    if not isinstance(found, str) or not found.strip():
        raise ConfigurationError(f"{_SETTING}={name} returned {found!r} for {table}, expected a statement or None")
    return found

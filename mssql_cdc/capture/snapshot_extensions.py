"""User-defined snapshotters and snapshot queries: the policy of `snapshot.mode`, and the statement to read a table."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import cast

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.snapshot_contract import SnapshotQuery, Snapshotter
from mssql_cdc.config.extension_names import ExtensionGroup
from mssql_cdc.config.filters import split_name
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.plan.policy import SnapshotPolicy, policy_of
from mssql_cdc.schema import TableSchema

_MODE, _QUERY = "snapshot.mode.custom.name", "snapshot.query.mode.custom.name"
_SNAPSHOTTER = (
    "should_snapshot_data",
    "should_snapshot_schema",
    "should_stream",
    "should_snapshot_on_schema_error",
    "should_snapshot_on_data_error",
)
_WHOLE = re.compile(r"\s*SELECT\s+\*\s+FROM\s+(?P<name>\S.*?)\s*;?\s*", re.IGNORECASE | re.DOTALL)


def policy(database: Database, offsets: Offsets) -> SnapshotPolicy:
    """The policy of `snapshot.mode`.

    Args:
        database: The database.
        offsets: How far its tables have progressed.

    Raises:
        ConfigurationError: The snapshotter is faulty.
    """
    settings = database.connector.snapshot
    flags = settings.decisions
    if settings.mode != "custom":
        return policy_of(
            settings.mode,
            data=flags.data,
            schema=flags.schema,
            stream=flags.stream,
            on_schema_error=flags.on_schema_error,
            on_data_error=flags.on_data_error,
        )
    name, own = settings.custom_mode or "", _snapshotter(database)
    exists, begun = bool(offsets.entries), bool(offsets.begun_snapshots)

    def ask(method: str, *arguments: bool) -> bool:
        return _asked(f"{_MODE}={name}", method, partial(getattr(own, method), *arguments))

    return SnapshotPolicy(
        f"custom ({name})",
        data=ask("should_snapshot_data", False, begun),
        stream=ask("should_stream"),
        on_data_error=ask("should_snapshot_on_data_error"),
        on_schema_error=ask("should_snapshot_on_schema_error"),
        schema=ask("should_snapshot_schema", exists, begun),
        at_start=ask("should_snapshot_data", True, begun),
    )


def _snapshotter(database: Database) -> Snapshotter:
    name = database.connector.snapshot.custom_mode or ""
    return database.extensions.get(
        database.connector, ExtensionGroup.SNAPSHOTTERS, name, setting=_MODE, methods=_SNAPSHOTTER
    )


def tell_end(database: Database, *, completed: bool) -> None:
    """Tell a snapshotter that a snapshot has ended. An error is logged: the rows are there anyway.

    Args:
        database: The database.
        completed: Whether every table was read.
    """
    if database.connector.snapshot.mode != "custom":
        return
    method = "snapshot_completed" if completed else "snapshot_aborted"
    tell = getattr(_snapshotter(database), method, None)
    try:
        if callable(tell):
            tell()
    except Exception as error:  # noqa: BLE001 - whatever a snapshotter raises
        name = database.connector.snapshot.custom_mode
        database.log(f"{_MODE}={name}: {method} failed: {type(error).__name__}: {error}")


def _asked(what: str, method: str, ask: Callable[[], object]) -> bool:
    try:
        found = ask()
    except Exception as error:
        raise ConfigurationError(f"{what}: {method} failed: {type(error).__name__}: {error}") from error
    if not isinstance(found, bool):
        raise ConfigurationError(f"{what}: {method} returned {found!r}, expected True or False")
    return found


@dataclass(frozen=True, slots=True)
class Chosen:
    """How a table is read: by a statement, as usual (None), or not at all, for the reason in `skipped`."""

    statement: str | None = None
    skipped: str | None = None


def chosen_query(database: Database, schema: TableSchema) -> Chosen:
    """How the configuration has a table read: by its own statement first, then by the snapshot query.

    Args:
        database: The database.
        schema: The table.

    Raises:
        ConfigurationError: The snapshot query is faulty, for this table at least.
    """
    settings, table = database.connector.snapshot, schema.table_id
    overridden = settings.statement_for(*table.parts)
    if settings.query_mode != "custom" or overridden is not None:
        return Chosen(overridden)
    name = settings.custom_query or ""
    query: SnapshotQuery = database.extensions.get(
        database.connector, ExtensionGroup.SNAPSHOT_QUERIES, name, setting=_QUERY, methods=("snapshot_query",)
    )
    try:
        found = cast("object", query.snapshot_query(table.text, [column.name for column in schema.columns]))
    except Exception as error:
        raise ConfigurationError(f"{_QUERY}={name} fails for {table}: {type(error).__name__}: {error}") from error
    if found is None:
        return Chosen(skipped=f"{_QUERY}={name} has no statement for it")
    if not isinstance(found, str) or not found.strip():
        raise ConfigurationError(f"{_QUERY}={name} returned {found!r} for {table}, expected a statement or None")
    whole = _WHOLE.fullmatch(found)
    names = (table.parts, table.parts[1:])
    return Chosen() if whole is not None and split_name(whole["name"]) in names else Chosen(found)

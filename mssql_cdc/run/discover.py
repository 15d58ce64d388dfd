"""The list of a connector's tables, stored next to its configuration and loaded by Dagster's code location.

Loading a code location must not query a database, so `mssql-cdc discover` does it beforehand.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mssql_cdc.capture.notices import notices
from mssql_cdc.config import Connector
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.run.preflight import preflight
from mssql_cdc.run.start import guard
from mssql_cdc.schema import TableSchema
from mssql_cdc.source.registry import open_source

VERSION = 1


def table_list_path(config: Path) -> Path:
    """Return the path `<stem>.tables.json` next to the configuration."""
    return config.with_name(f"{config.stem}.tables.json")


def write_table_list(connector: Connector, config: Path, *, warn: Callable[[str], None]) -> tuple[Path, list[str]]:
    """Query every database of the connector and write the list.

    Args:
        connector: The configuration.
        config: The configuration's path.
        warn: Receives notices about the tables.

    Returns:
        The path of the list, and the names of the tables.

    Raises:
        ConfigurationError: A database has no table that passes the filters, or there are more tables than the
            guardrail allows.
    """
    databases: dict[str, list[dict[str, Any]]] = {}
    names: list[str] = []
    for catalog in connector.databases:
        looked = preflight(connector, open_source(connector), catalog, warn=warn)
        found = [table.newest.schema for table in looked.tables]
        for table in looked.tables:
            for line in notices(connector, table):
                warn(line)
        databases[looked.name] = [json.loads(schema.to_json()) for schema in found]
        names += [schema.table_id.text for schema in found]
    guard(connector, len(names), warn=warn)
    path = table_list_path(config)
    since = read_since(config) or datetime.now(UTC)
    unfinished = path.with_name(f".{path.name}.new")
    unfinished.write_text(
        json.dumps({"v": VERSION, "since": since.isoformat(), "databases": databases}, indent=1) + "\n",
        encoding="utf-8",
    )
    unfinished.replace(path)
    return path, names


def read_since(config: Path) -> datetime | None:
    """Return when the list was first written, which is where Dagster's windows begin; None if there is no list yet.

    A list of an earlier version does not record this; then it is when the file was last changed.
    """
    path = table_list_path(config)
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return datetime.fromisoformat(data["since"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        return datetime.fromtimestamp(path.stat().st_mtime, UTC)


def read_table_list(config: Path) -> dict[str, list[TableSchema]]:
    """Read the stored list, which maps each database to its tables.

    Raises:
        ConfigurationError: The list is missing or invalid; the message names the command that writes it.
    """
    path = table_list_path(config)
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["v"] != VERSION:
            raise ValueError(f"version {data['v']}, expected {VERSION}")
        return {
            name: [TableSchema.from_json(json.dumps(one)) for one in tables]
            for name, tables in data["databases"].items()
        }
    except FileNotFoundError:
        raise ConfigurationError(f"{path}: no such file; run mssql-cdc discover --config {config}") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigurationError(
            f"{path} is not a valid table list ({error}); run mssql-cdc discover --config {config}"
        ) from None

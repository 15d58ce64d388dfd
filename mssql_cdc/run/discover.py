"""The list of a connector's tables, stored next to its configuration and loaded by Dagster's code location.

Loading a code location must not query a database, so `mssql-cdc discover` does it beforehand.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mssql_cdc.capture.notices import notices
from mssql_cdc.config import Connector
from mssql_cdc.errors import ConfigurationError
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
        with open_source(connector).session(catalog) as session:
            name = session.require_ready()
            tables = session.tables()
            for table, problem in session.unreadable().items():
                warn(f"{table} cannot be captured: {problem}")
        found = [table.newest.schema for table in tables]
        for table in tables:
            for line in notices(connector, table):
                warn(line)
        if not found:
            raise ConfigurationError(
                f"Database {name!r} has no CDC-enabled table that passes the filters; enable CDC on a table "
                "(sys.sp_cdc_enable_table) or check table.include.list"
            )
        databases[name] = [json.loads(schema.to_json()) for schema in found]
        names += [schema.table_id.text for schema in found]
    guard(connector, len(names), warn=warn)
    path = table_list_path(config)
    unfinished = path.with_name(f".{path.name}.new")
    unfinished.write_text(json.dumps({"v": VERSION, "databases": databases}, indent=1) + "\n", encoding="utf-8")
    unfinished.replace(path)
    return path, names


def read_table_list(config: Path) -> dict[str, list[TableSchema]]:
    """Read the stored list: maps each database to its tables.

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
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(
            f"{path} is not a valid table list ({error}); run mssql-cdc discover --config {config}"
        ) from None

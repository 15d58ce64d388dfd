"""The code location: one connector per file in the folder `MSSQL_CDC_CONNECTORS`. Loading it queries no database."""

import os
from pathlib import Path

import dagster as dg

from mssql_cdc.config import load_connectors
from mssql_cdc.defs.build import build_definitions
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.run.discover import read_table_list, table_list_path

FOLDER_VARIABLE = "MSSQL_CDC_CONNECTORS"
DEFAULT_FOLDER = "connectors"


@dg.definitions
def defs() -> dg.Definitions:
    """Build the definitions of all connectors in the folder; an empty or missing folder yields an empty location."""
    folder = Path(os.environ.get(FOLDER_VARIABLE, DEFAULT_FOLDER))
    connectors = load_connectors(folder) if folder.is_dir() else {}
    missing = [path for path in connectors if not table_list_path(path).exists()]
    if missing:
        commands = "\n".join(f"  mssql-cdc discover --config {path}" for path in missing)
        raise ConfigurationError(
            f"These connectors have no table list yet; run\n{commands}\nand reload the code location"
        )
    parts: list[dg.Definitions] = []
    for path, connector in connectors.items():
        tables = [table for listed in read_table_list(path).values() for table in listed]
        parts.append(build_definitions(connector, tables=tables))
    return dg.Definitions.merge(*parts, dg.Definitions(executor=dg.in_process_executor))

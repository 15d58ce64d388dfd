"""The code location: one connector per file in the folder `MSSQL_CDC_CONNECTORS`. Loading it queries no database.

A connector that cannot be loaded never takes the others down: an asset in the group `not_loaded` shows the reason.
"""

import os
from pathlib import Path

import dagster as dg

from mssql_cdc.config import Connector, load_connectors
from mssql_cdc.defs.build import build_definitions
from mssql_cdc.defs.keys import encode
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.run.discover import read_since, read_table_list

FOLDER_VARIABLE = "MSSQL_CDC_CONNECTORS"
DEFAULT_FOLDER = "connectors"
NOT_LOADED = "not_loaded"


@dg.definitions
def defs() -> dg.Definitions:
    """Build the definitions of all connectors in the folder; an empty or missing folder yields an empty location."""
    folder = Path(os.environ.get(FOLDER_VARIABLE, DEFAULT_FOLDER))
    connectors, problems = load_connectors(folder) if folder.is_dir() else ({}, {})
    parts = [_connector(path, connector) for path, connector in connectors.items()]
    parts += [_not_loaded(path, error) for path, error in problems.items()]
    return dg.Definitions.merge(*parts, dg.Definitions(executor=dg.in_process_executor))


def _connector(path: Path, connector: Connector) -> dg.Definitions:
    try:
        found = read_table_list(path)
        tables = [table for listed in found.values() for table in listed]
        return build_definitions(connector.with_real_names(found), tables=tables, since=read_since(path))
    except ConfigurationError as error:
        return _not_loaded(path, error)
    except Exception as error:  # noqa: BLE001 (any: the other connectors still load)
        text = connector.redact(f"{type(error).__name__}: {error}")
        return _not_loaded(path, ConfigurationError(f"{text}; run mssql-cdc discover --config {path}"))


def _not_loaded(path: Path, error: ConfigurationError) -> dg.Definitions:
    """Return an external asset that shows why the connector has no other assets."""
    dg.get_dagster_logger().error("%s is not loaded: %s", path.name, error)
    key = dg.AssetKey([NOT_LOADED, encode(path.stem)])
    text = f"{path.name} is not loaded: {error}. Then reload the code location."
    return dg.Definitions(assets=[dg.AssetSpec(key, group_name=NOT_LOADED, kinds={"sqlserver"}, description=text)])

"""Debezium properties -> `Connector`: every documented property is known, an unknown one is an error.

Here: loading, validation, filters, masks, secrets, signal texts. Not here: anything that asks a database, and what
the values are used for. `load_connector(path)` and `connector_from_mapping(name, mapping)` are the ways in.
"""

from mssql_cdc.config.build import connector_from_mapping
from mssql_cdc.config.load import load_connector, load_connectors
from mssql_cdc.config.masks import MaskRule, MaskRules
from mssql_cdc.config.model import Connection, Connector
from mssql_cdc.config.secret import Secret, reveal

__all__ = [
    "Connection",
    "Connector",
    "MaskRule",
    "MaskRules",
    "Secret",
    "connector_from_mapping",
    "load_connector",
    "load_connectors",
    "reveal",
]

"""Debezium properties -> `Connector`: every documented property is known, an unknown one is an error.

The entry points are `load_connector(path)` and `connector_from_mapping(name, mapping)`. To add a property, add a field
to its section and regenerate `docs/configuration.md`; everything else follows from the field. Not here: anything
that queries a database, and what the values are used for.
"""

from mssql_cdc.config.connection import Connection
from mssql_cdc.config.filters import Filters
from mssql_cdc.config.load import load_connector, load_connectors
from mssql_cdc.config.masks import MaskRule
from mssql_cdc.config.model import Connector, SparkConf
from mssql_cdc.config.read_properties import connector_from_mapping
from mssql_cdc.config.record_settings import NameAdjustment, RecordSettings
from mssql_cdc.config.secret import Secret, reveal

__all__ = [
    "Connection",
    "Connector",
    "Filters",
    "MaskRule",
    "NameAdjustment",
    "RecordSettings",
    "Secret",
    "SparkConf",
    "connector_from_mapping",
    "load_connector",
    "load_connectors",
    "reveal",
]

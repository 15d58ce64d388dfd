"""Selects the source of a connector by `connector.class`: the only module that names the implementations."""

from __future__ import annotations

from mssql_cdc.config import Connector
from mssql_cdc.source.protocol import Source
from mssql_cdc.source.sqlserver.source import SqlServerSource


def open_source(connector: Connector) -> Source:
    """The source that the connector reads; no connection is made."""
    return SqlServerSource(connector)

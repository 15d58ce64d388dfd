"""Chooses the source of a connector by `connector.class`: the one place that names the implementations."""

from __future__ import annotations

from mssql_cdc.config import Connector
from mssql_cdc.source.protocol import CheckSource, Source
from mssql_cdc.source.sqlserver.source import SqlServerSource


def open_source(connector: Connector) -> Source:
    """The source that the connector reads; no connection is made."""
    return SqlServerSource(connector)


def open_check_source(connector: Connector) -> CheckSource:
    """The same source for a check."""
    return SqlServerSource(connector)

"""Selects the source of a connector by `connector.class`: the only module that names the implementations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from mssql_cdc.config import Connector
from mssql_cdc.config.model import SQL_SERVER
from mssql_cdc.source.protocol import CheckSource, Source
from mssql_cdc.source.sqlserver.source import SqlServerSource


class _CheckedSource(Source, CheckSource, Protocol):
    """The interfaces that every kind of source implements."""


_SOURCES: Mapping[str, Callable[[Connector], _CheckedSource]] = {SQL_SERVER: SqlServerSource}


def open_source(connector: Connector) -> Source:
    """The source that the connector reads; no connection is made."""
    return _SOURCES[connector.connector_class](connector)


def check_source(source: Source) -> CheckSource:
    """The source that capture reads, for a check to use: only if they share it do both stay on one replica.

    Args:
        source: The source of a connector.
    """
    assert isinstance(source, CheckSource)  # Every kind of source is both.
    return source


def open_check_source(connector: Connector) -> CheckSource:
    """The source of a connector for a caller that does not follow the log: its rows may come from another replica."""
    return _SOURCES[connector.connector_class](connector)

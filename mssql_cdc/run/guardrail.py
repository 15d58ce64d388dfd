"""`guardrail.collections.max`: how many captured tables a connector may have, asked when it starts (GRD-01, GRD-02)."""

from __future__ import annotations

from collections.abc import Callable

from mssql_cdc.config import Connector
from mssql_cdc.errors import ConfigurationError


def guard(connector: Connector, tables: int, *, warn: Callable[[str], None]) -> None:
    """Say, or refuse, that the connector has more captured tables than it may.

    Tables that are under CDC are counted; Debezium 3.3.1 also counts those that pass the filters and are not.

    Raises:
        ConfigurationError: there are more, and `guardrail.collections.limit.action` is `fail`.
    """
    most = connector.guardrail.max_tables
    if most is None or tables <= most:
        return
    text = f"{connector.topic_prefix}: {tables} captured tables, guardrail.collections.max allows {most}"
    if connector.guardrail.fail:
        raise ConfigurationError(f"{text}; narrow table.include.list, or raise the limit")
    warn(text)

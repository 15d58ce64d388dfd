"""Renders the records of a connector's databases, in order, from the lake alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mssql_cdc.config import Connector
from mssql_cdc.records.database_view import DatabaseView
from mssql_cdc.records.envelope import Envelopes
from mssql_cdc.records.sinks import RecordSink
from mssql_cdc.records.state import StreamState
from mssql_cdc.records.stream import Rendered, stream


def write_records(
    connector: Connector,
    *,
    sink: RecordSink,
    warehouse: str | None = None,
    databases: Sequence[str] | None = None,
) -> int:
    """Write every record up to the last complete cut of each database.

    Args:
        connector: The configuration; its modes shape the records.
        sink: The destination of the records.
        warehouse: Overrides `delta.warehouse`.
        databases: Only these databases of the connector; None: all.

    Returns:
        The number of records.

    Raises:
        ConfigurationError: A property changes the records in a way that is not built.
    """
    connector.require_rendered()
    count = 0
    for database in databases if databases is not None else connector.databases:
        for rendered in database_records(connector, database, warehouse=warehouse):
            sink.write(rendered.records)
            count += rendered.records.num_rows
    return count


def database_records(
    connector: Connector, database: str, *, warehouse: str | None = None, state: StreamState | None = None
) -> Iterator[Rendered]:
    """Yield the records of one database in Debezium's order; none before its first complete cut.

    Args:
        connector: The configuration; its modes shape the records.
        database: One of the connector's databases.
        warehouse: Overrides `delta.warehouse`.
        state: Begin behind this state; None: at the beginning.
    """
    state = state or StreamState()
    view = DatabaseView.load(connector, database, warehouse=warehouse, state=state)
    if view is not None:
        yield from stream(view, Envelopes(connector, database), state)

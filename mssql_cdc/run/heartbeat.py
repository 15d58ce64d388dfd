"""`heartbeat.action.query`: a statement on the source at every `heartbeat.interval.ms` (HB-03).

Heartbeats are due at looks at the source, as in Debezium; nothing beats between them.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from mssql_cdc.capture.database import Database


def beat(database: Database, last: datetime | None, now: datetime) -> datetime | None:
    """Run the statement if it is due; when it ran last (None: never).

    Raises:
        SourceUnavailableError, SourceError: it failed, which Debezium takes for fatal, too.
    """
    settings = database.connector.streaming
    if not is_due(settings.heartbeat_interval_ms, last, now) or settings.heartbeat_query is None:
        return last
    with database.session() as session:
        session.run_statement(settings.heartbeat_query, doing="running heartbeat.action.query")
    return now


def is_due(interval_ms: int, last: datetime | None, now: datetime) -> bool:
    """Whether the interval is over; an interval of 0 means no heartbeats."""
    return interval_ms > 0 and (last is None or now - last >= timedelta(milliseconds=interval_ms))

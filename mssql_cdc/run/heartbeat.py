"""`heartbeat.action.query`: runs a statement at the source every `heartbeat.interval.ms` (HB-03).

As in Debezium, heartbeats are sent only when the connector polls the source, not between polls.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from mssql_cdc.capture.database import Database


def beat(database: Database, last: datetime | None, now: datetime) -> datetime | None:
    """Run the statement if it is due.

    Args:
        database: The database.
        last: When the statement last ran; None: never.
        now: The current time.

    Returns:
        When the statement last ran.

    Raises:
        SourceUnavailableError, SourceError: The statement failed, which makes the poll fail.
    """
    settings = database.connector.streaming
    if not is_due(settings.heartbeat_interval_ms, last, now) or settings.heartbeat_query is None:
        return last
    with database.session() as session:
        session.run_statement(settings.heartbeat_query, doing="running heartbeat.action.query")
    return now


def is_due(interval_ms: int, last: datetime | None, now: datetime) -> bool:
    """Whether a heartbeat is due; setting the clock back does not delay it.

    Args:
        interval_ms: The interval in milliseconds; 0 disables heartbeats.
        last: The time of the last heartbeat; None: never.
        now: The current time.
    """
    return interval_ms > 0 and (last is None or abs(now - last) >= timedelta(milliseconds=interval_ms))

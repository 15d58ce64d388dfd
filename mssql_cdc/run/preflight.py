"""Reports the faults that keep a connector from its changes, before anything is read.

`mssql-cdc discover`, `run`, `check` and the sensor make the same checks, so that each reports the same. Faults of the
connection are reported by `source/` on the way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mssql_cdc.capture.notices import layout_notices
from mssql_cdc.capture.unmatched import unmatched_notices
from mssql_cdc.config import Connector
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.schema import TableId
from mssql_cdc.source.protocol import Source, SourceSession
from mssql_cdc.source.values import CapturedTable

_WRITES = re.compile(
    r"\b(?:INSERT(?:\s+INTO)?|UPDATE|MERGE(?:\s+INTO)?)\s+((?:\[(?:[^\]]|\]\])+\]|[\w$#@]+)"
    r"(?:\s*\.\s*(?:\[(?:[^\]]|\]\])+\]|[\w$#@]+)){0,2})",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Found:
    """What the source shows: the database's name in its own case, and the tables that the filters let through."""

    name: str
    tables: Sequence[CapturedTable]


def preflight(
    connector: Connector, source: Source, catalog: str, *, warn: Callable[[str], None], begun: bool = False
) -> Found:
    """Check a database, and report what is wrong.

    Args:
        connector: its configuration.
        source: where changes come from.
        catalog: the database.
        warn: receives a line about what does not keep tables from being read.
        begun: only warn if no table is captured: the lake has tables that the filters let through (a loss, which the
            run detects), or tables may still appear.

    Raises:
        ConfigurationError: CDC is off, no table can be captured, the signal table is missing or not captured, or the
            table of `heartbeat.action.query` is missing.
        SourceUnavailableError: the server cannot be reached.
    """
    with source.session(catalog) as session:
        found = Found(session.require_ready(), session.tables())
        others, unreadable = session.left_out(), dict(session.unreadable())
        is_signal_table = connector.filters.tables.is_signal_table
        nothing = all(is_signal_table(*table.table_id.parts) for table in found.tables)
        if nothing and (others or unreadable or not found.tables):
            problem = _no_table(connector, found.name, others, unreadable, session.hidden(), session.unstarted())
            if not begun:
                raise ConfigurationError(problem)
            warn(problem)
        else:
            for table, reason in unreadable.items():
                warn(f"{table} cannot be captured: {reason}")
            if instances := session.hidden():
                warn(f"{found.name}: {_hidden(instances)}")
        _require_signal_table(connector, source, session, catalog, found.tables)
        _check_heartbeat(connector, session, [*(table.table_id.text for table in found.tables), *others], warn)
        notices = [line for line in (session.concealed(), session.stalled()) if line is not None]
    for line in source.notices():
        warn(line)
    for line in layout_notices(connector, found.name, [table.table_id for table in found.tables]):
        warn(line)
    for line in unmatched_notices(connector, found.name, captured=found.tables, unreadable=unreadable, left_out=others):
        warn(line)
    for line in notices:
        warn(f"{found.name}: {line}")
    return found


def _no_table(
    connector: Connector,
    name: str,
    others: Sequence[str],
    unreadable: Mapping[TableId, str],
    instances: Sequence[str],
    unstarted: Sequence[str],
) -> str:
    """Why no table is left: unfit, hidden, excluded by the filters, not captured yet, or none is enabled for CDC."""
    filters = [n for n, _ in connector.properties if re.match(r"(schema|table)\.(include|exclude)\.list", n)]
    hidden = f"; {_hidden(instances)}" if instances else ""
    if unreadable:
        reasons = _listed([f"{table} cannot be captured: {reason}" for table, reason in unreadable.items()], "; ")
        excluded = f"; {' and '.join(filters)} exclude {_listed(others)}" if others else ""
        return f"Database {name!r} captures no table: {reasons}{excluded}{hidden}"
    if others:
        return (
            f"Database {name!r} captures no table: {' and '.join(filters)} exclude every table that is "
            f"enabled for CDC ({_listed(others)}){hidden}. After applying the include/exclude list filters, "
            "no changes will be captured. Please check your configuration!"
        )
    if instances:
        return f"Database {name!r}: {_hidden(instances)}"
    if unstarted:
        one = len(unstarted) == 1
        tables = "1 table" if one else f"{len(unstarted)} tables"
        return (
            f"Database {name!r} has {tables} enabled for CDC ({_listed(unstarted)}), and capture has not begun with "
            f"{'it' if one else 'them'}: start SQL Server Agent, or check its capture job (EXEC sys.sp_cdc_help_jobs)"
        )
    return f"Database {name!r} has no table enabled for CDC: run EXEC sys.sp_cdc_enable_table for each table to capture"


def _hidden(instances: Sequence[str]) -> str:
    """The server hides the names of such tables; an instance is called <schema>_<table> unless it was given a name."""
    one = len(instances) == 1
    tables = "1 capture instance belongs to a table" if one else f"{len(instances)} capture instances belong to tables"
    whose = "its" if one else "their"
    return (
        f"{tables} that the login cannot see ({_listed(instances)}): GRANT SELECT ON {whose} schema TO the login's user"
    )


def _listed(names: Sequence[str], separator: str = ", ") -> str:
    return separator.join(names[:10]) + (f"{separator}…" if len(names) > 10 else "")


def _require_signal_table(
    connector: Connector, source: Source, session: SourceSession, catalog: str, tables: Sequence[CapturedTable]
) -> None:
    named = connector.signals.table_of(catalog)
    try:
        source.signal_table(catalog, tables)
    except ConfigurationError:
        if named is None or session.has_table(".".join(_bracketed(part) for part in named)):
            raise
        raise ConfigurationError(
            f"The signal table {catalog}.{'.'.join(named)} does not exist, or the login cannot see it: CREATE TABLE "
            f"{'.'.join(_bracketed(part) for part in named)} (id varchar(42) PRIMARY KEY, type varchar(32) NOT NULL, "
            "data varchar(2048) NULL) and EXEC sys.sp_cdc_enable_table, or correct signal.data.collection"
        ) from None


def _check_heartbeat(
    connector: Connector, session: SourceSession, captured: Sequence[str], warn: Callable[[str], None]
) -> None:
    """Check the table that `heartbeat.action.query` writes to; skip a query in which no table is recognized."""
    query = connector.streaming.heartbeat_query
    named = _WRITES.search(query) if query and connector.streaming.heartbeat_interval_ms else None
    if named is None:
        return
    name = re.sub(r"\s+", "", named[1])
    if not session.has_table(name):
        raise ConfigurationError(
            f"heartbeat.action.query writes to {name}, which does not exist or which the login cannot see"
        )
    plain = re.sub(r"[\[\]]", "", name).lower()
    if not any(one.lower().endswith(f".{plain}") or one.lower() == plain for one in captured):
        warn(
            f"heartbeat.action.query writes to {name}, which is not enabled for CDC: its heartbeats reach no change log"
        )


def _bracketed(name: str) -> str:
    return f"[{name.replace(']', ']]')}]"

"""Views of change data capture: scan sessions, errors, and Agent among the server's services."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple

from mssql_sandbox.catalog.definitions import Scope, view
from mssql_sandbox.cdc.scan_sessions import ScanHistory, ScanSession, summary

_DATETIME_PER_SECOND = 300


def _history(scope: Scope) -> ScanHistory:
    """What the capture job has recorded; empty on a secondary, since capture scans the primary's log [dbz]."""
    capture = scope.server.catalog.cdc.capture(scope.database)
    if scope.server.replica.serves(scope.session.spid):
        return ScanHistory()
    return capture.history if capture is not None else ScanHistory()


def _session_row(session: ScanSession) -> tuple:
    active = session.end_time is None
    ended = session.start_time if session.end_time is None else session.end_time
    return (
        session.session_id,
        session.start_time,
        session.end_time,
        max(0, ended - session.start_time) // _DATETIME_PER_SECOND,
        session.phase,
        session.error_count,
        session.start_lsn,
        session.current_lsn,
        None if active else session.end_lsn,
        session.tran_count,
        session.last_commit_lsn,
        session.last_commit_time,
        session.log_record_count,
        session.schema_change_count,
        session.command_count,
        session.first_begin_lsn,
        session.last_commit_cdc_lsn,
        session.last_commit_cdc_time,
        session.latency,
        session.empty_scan_count,
        session.failed,
    )


def _scan_sessions(scope: Scope) -> Iterator[tuple]:
    history = _history(scope)
    total = summary([history.older, *history.sessions])
    if total is not None:
        yield _session_row(total)
    for session in reversed(history.sessions):
        yield _session_row(session)


def _errors(scope: Scope) -> Iterator[tuple]:
    for failure in _history(scope).errors:
        yield astuple(failure)


def _services(scope: Scope) -> Iterator[tuple]:
    server = scope.server
    ticks = server.clock.utc_ticks()
    path = "/opt/mssql/bin/sqlservr"
    for name, running in (("SQL Server", True), ("SQL Server Agent", server.agent_running)):
        yield (
            f"{name} (MSSQLSERVER)",
            4 if running else 1,
            "Running" if running else "Stopped",
            41 if running else None,
            (ticks, server.clock.offset_minutes) if running else None,
            path,
            "Y" if name == "SQL Server" else "N",
        )


VIEWS = (
    view(
        "sys.dm_cdc_log_scan_sessions",
        "session_id int, start_time datetime?, end_time datetime?, duration bigint?, scan_phase nvarchar(200)?, "
        "error_count int?, start_lsn nvarchar(23)?, current_lsn nvarchar(23)?, end_lsn nvarchar(23)?, "
        "tran_count bigint?, last_commit_lsn nvarchar(23)?, last_commit_time datetime?, log_record_count bigint?, "
        "schema_change_count int?, command_count bigint?, first_begin_cdc_lsn nvarchar(23)?, "
        "last_commit_cdc_lsn nvarchar(23)?, last_commit_cdc_time datetime?, latency int?, empty_scan_count int?, "
        "failed_sessions_count int?",
        _scan_sessions,
    ),
    view(
        "sys.dm_cdc_errors",
        "session_id int?, phase_number int?, entry_time datetime?, error_number int?, error_severity int?, "
        "error_state int?, error_message nvarchar(1024)?, start_lsn nvarchar(23)?, begin_lsn nvarchar(23)?, "
        "sequence_value nvarchar(23)?",
        _errors,
    ),
    view(
        "sys.dm_server_services",
        "servicename nvarchar(256), startup_type int? = 2, startup_type_desc nvarchar(256)? = 'Automatic', "
        "status int?, status_desc nvarchar(256)?, process_id int?, last_startup_time datetimeoffset(7)?, "
        "service_account nvarchar(256) = 'mssql', filename nvarchar(256), is_clustered nvarchar(1) = 'N', "
        "cluster_nodename nvarchar(256)? = NULL, instant_file_initialization_enabled nvarchar(1)",
        _services,
    ),
)

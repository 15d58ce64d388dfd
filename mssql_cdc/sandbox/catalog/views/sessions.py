"""Sessions, connections and requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mssql_cdc.sandbox.catalog.definitions import Scope, view

SYSTEM_SESSIONS = 50


def sessions(scope: Scope) -> Iterator[Any]:
    """The sessions which are connected, by number."""
    for spid in sorted(scope.server.sessions):
        yield scope.server.sessions[spid]


def open_transactions(scope: Scope, spid: int) -> int:
    """How many transactions a session has open: at most one here."""
    return sum(transaction.spid == spid for transaction in scope.server.transactions.active.values())


def _sessions(scope: Scope) -> Iterator[tuple]:
    now = scope.server.clock.local_datetime()
    for session in sessions(scope):
        login = scope.server.logins.get(session.login)
        made = getattr(session, "connected", now)
        yield (
            session.spid,
            made,
            session.host,
            session.application,
            login.sid if login is not None else b"",
            session.login,
            "running" if session is scope.session else "sleeping",
            made,
            now,
            int(session.transactions.isolation),
            session.options.lock_timeout,
            session.options.deadlock_priority,
            session.login,
            session.current_database.id,
            open_transactions(scope, session.spid),
        )


def _connections(scope: Scope) -> Iterator[tuple]:
    for session in sessions(scope):
        yield (
            session.spid,
            getattr(session, "connected", scope.server.clock.local_datetime()),
            "TRUE" if getattr(session, "encrypted", False) else "FALSE",
        )


def _requests(scope: Scope) -> Iterator[tuple]:
    now = scope.server.clock.local_datetime()
    waiting = {row.spid: row for row in scope.server.locks.rows() if row.status != "GRANT"}
    for session in sessions(scope):
        blocked = waiting.get(session.spid)
        if blocked is None and session is not scope.session:
            continue
        yield (
            session.spid,
            now,
            "suspended" if blocked is not None else "running",
            "SELECT",
            session.current_database.id,
            blocked.blocking_spid if blocked is not None else 0,
            f"LCK_M_{blocked.mode.value}" if blocked is not None else None,
            open_transactions(scope, session.spid),
            int(session.transactions.isolation),
        )


def _processes(scope: Scope) -> Iterator[tuple]:
    waiting = {row.spid: row for row in scope.server.locks.rows() if row.status != "GRANT"}
    for session in sessions(scope):
        blocked = waiting.get(session.spid)
        yield (
            session.spid,
            blocked.blocking_spid if blocked is not None else 0,
            session.current_database.id,
            open_transactions(scope, session.spid),
            ("running" if session is scope.session else "sleeping").ljust(30),
            session.host.ljust(128),
            session.application.ljust(128),
            "AWAITING COMMAND",
            session.login.ljust(128),
        )


VIEWS = (
    view(
        "sys.dm_exec_sessions",
        "session_id smallint, login_time datetime, host_name nvarchar(128)?, program_name nvarchar(128)?, "
        "host_process_id int? = NULL, client_version int? = 7, client_interface_name nvarchar(32)? = 'ODBC', "
        "security_id varbinary(85), login_name nvarchar(128), nt_domain nvarchar(128)? = NULL, "
        "nt_user_name nvarchar(128)? = NULL, status nvarchar(30), context_info varbinary(128)? = NULL, "
        "cpu_time int = 0, memory_usage int = 4, total_scheduled_time int = 0, total_elapsed_time int = 0, "
        "endpoint_id int = 4, "
        "last_request_start_time datetime, last_request_end_time datetime?, reads bigint = 0, writes bigint = 0, "
        "logical_reads bigint = 0, is_user_process bit = 1, text_size int = -1, "
        "language nvarchar(128)? = 'us_english', date_format nvarchar(3)? = 'mdy', date_first smallint = 7, "
        "quoted_identifier bit = 1, arithabort bit = 1, "
        "ansi_null_dflt_on bit = 1, ansi_defaults bit = 0, ansi_warnings bit = 1, ansi_padding bit = 1, "
        "ansi_nulls bit = 1, concat_null_yields_null bit = 1, transaction_isolation_level smallint, lock_timeout int, "
        "deadlock_priority int, row_count bigint = 0, prev_error int = 0, original_login_name nvarchar(128), "
        "authenticating_database_id int? = 1, database_id smallint, open_transaction_count int",
        _sessions,
    ),
    view(
        "sys.dm_exec_connections",
        "session_id int?, connect_time datetime, net_transport nvarchar(40) = 'TCP', "
        "protocol_type nvarchar(40)? = 'TSQL', "
        "protocol_version int? = 1946157060, encrypt_option nvarchar(40), auth_scheme nvarchar(40) = 'SQL', "
        "net_packet_size int? = 4096, client_net_address varchar(48)? = '127.0.0.1', "
        "local_net_address varchar(48)? = '127.0.0.1'",
        _connections,
    ),
    view(
        "sys.dm_exec_requests",
        "session_id smallint, request_id int = 0, start_time datetime, status nvarchar(30), command nvarchar(32), "
        "database_id smallint, blocking_session_id smallint?, wait_type nvarchar(60)?, wait_time int = 0, "
        "open_transaction_count int, transaction_isolation_level smallint, percent_complete real = 0, "
        "total_elapsed_time int = 0",
        _requests,
    ),
    view(
        "sys.sysprocesses",
        "spid smallint, blocked smallint, dbid smallint, open_tran smallint, status nchar(30), hostname nchar(128), "
        "program_name nchar(128), cmd nchar(26), loginame nchar(128)",
        _processes,
    ),
)

"""Sessions, connections and requests."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

from mssql_sandbox.catalog.definitions import Scope, view

SYSTEM_SESSIONS = 50
NOBODY = uuid.UUID(int=0)


def sessions(scope: Scope) -> Iterator[Any]:
    """The connected sessions, by number."""
    for spid in sorted(scope.server.sessions):
        yield scope.server.sessions[spid]


def open_transactions(scope: Scope, spid: int) -> int:
    """The number of open transactions of a session: at most one here."""
    return sum(transaction.spid == spid for transaction in scope.server.transactions.active.values())


def _sessions(scope: Scope) -> Iterator[tuple]:
    now = scope.server.clock.local_datetime()
    for session in sessions(scope):
        login, options, client = scope.server.logins.get(session.login), session.options, session.connection
        yield (
            session.spid, session.login_time, session.host, session.application, client.process_id,
            client.client_version, client.library[:32], login.sid if login is not None else b"", session.login,
            _status(scope, session), session.context_info or b"", now, now, options.text_size, options.language,
            options.date_format, options.date_first, int(options.quoted_identifier), int(options.arithabort),
            int(options.ansi_null_default), int(options.ansi_warnings), int(options.ansi_padding),
            int(options.ansi_nulls), int(options.concat_null), int(session.transactions.isolation),
            options.lock_timeout, options.deadlock_priority, session.row_count, session.last_error,
            session.original_login, session.current_database.id, open_transactions(scope, session.spid),
        )  # fmt: skip


def _status(scope: Scope, session: Any) -> str:
    return "running" if session is scope.session else "sleeping"


def _connections(scope: Scope) -> Iterator[tuple]:
    """Connections of clients; internal sessions have none."""
    for session in sessions(scope):
        client = session.connection
        yield (
            session.spid, session.spid, session.login_time, client.transport, client.protocol_version,
            "TRUE" if client.encrypted else "FALSE", client.packet_size, client.client_address, client.client_port,
            client.server_address, client.server_port,
        )  # fmt: skip


def _requests(scope: Scope) -> Iterator[tuple]:
    now = scope.server.clock.local_datetime()
    waiting = {row.spid: row for row in scope.server.locks.rows() if row.status != "GRANT"}
    transactions = {transaction.spid: transaction.id for transaction in scope.server.transactions.active.values()}
    for session in sessions(scope):
        blocked = waiting.get(session.spid)
        if blocked is None and session is not scope.session:
            continue
        wait = None if blocked is None else f"LCK_M_{blocked.mode.value}"
        resource = "" if blocked is None else _wait_resource(blocked.resource)
        options = session.options
        yield (
            session.spid, now, "running" if blocked is None else "suspended", session.current_database.id,
            0 if blocked is None else blocked.blocking_spid, wait, wait or "MISCELLANEOUS", resource,
            open_transactions(scope, session.spid), transactions.get(session.spid, 0), session.context_info or b"",
            options.text_size, options.language, options.date_format, options.date_first,
            int(options.quoted_identifier), int(options.arithabort), int(options.ansi_null_default),
            int(options.ansi_warnings), int(options.ansi_padding), int(options.ansi_nulls), int(options.concat_null),
            int(session.transactions.isolation), options.lock_timeout, options.deadlock_priority, session.row_count,
            session.last_error, NOBODY,
        )  # fmt: skip


def _wait_resource(resource: Any) -> str:
    """`OBJECT: 5:581577110:0`, `KEY: 5:… (…)`, `DATABASE: 5:0`."""
    if resource.kind == "OBJECT":
        return f"OBJECT: {resource.database_id}:{resource.object_id}:0"
    if resource.kind in ("RID", "KEY"):
        return f"KEY: {resource.database_id}:{resource.object_id} ({resource.key})"
    return f"{resource.kind}: {resource.database_id}:{resource.object_id}"


VIEWS = (
    view(
        "sys.dm_exec_sessions",
        "session_id smallint, login_time datetime, host_name nvarchar(128)?, program_name nvarchar(128)?, "
        "host_process_id int?, client_version int?, client_interface_name nvarchar(32)?, security_id varbinary(85), "
        "login_name nvarchar(128), nt_domain nvarchar(128)? = NULL, nt_user_name nvarchar(128)? = NULL, "
        "status nvarchar(30), context_info varbinary(128)?, cpu_time int = 0, memory_usage int = 4, "
        "total_scheduled_time int = 0, total_elapsed_time int = 0, endpoint_id int = 4, "
        "last_request_start_time datetime, last_request_end_time datetime?, reads bigint = 0, writes bigint = 0, "
        "logical_reads bigint = 0, is_user_process bit = 1, text_size int, language nvarchar(128)?, "
        "date_format nvarchar(3)?, date_first smallint, quoted_identifier bit, arithabort bit, "
        "ansi_null_dflt_on bit, ansi_defaults bit = 0, ansi_warnings bit, ansi_padding bit, ansi_nulls bit, "
        "concat_null_yields_null bit, transaction_isolation_level smallint, lock_timeout int, deadlock_priority int, "
        "row_count bigint, prev_error int, original_login_name nvarchar(128), "
        "last_successful_logon datetime? = NULL, last_unsuccessful_logon datetime? = NULL, "
        "unsuccessful_logons bigint? = NULL, group_id int = 2, database_id smallint, "
        "authenticating_database_id int? = 1, open_transaction_count int, page_server_reads bigint = 0",
        _sessions,
    ),
    view(
        "sys.dm_exec_connections",
        "session_id int?, most_recent_session_id int?, connect_time datetime, net_transport nvarchar(40), "
        "protocol_type nvarchar(40)? = 'TSQL', protocol_version int?, endpoint_id int? = 4, "
        "encrypt_option nvarchar(40), auth_scheme nvarchar(40) = 'SQL', node_affinity smallint = 0, "
        "num_reads int? = 0, num_writes int? = 0, last_read datetime? = NULL, last_write datetime? = NULL, "
        "net_packet_size int?, client_net_address varchar(48)?, client_tcp_port int?, "
        "local_net_address varchar(48)?, local_tcp_port int?, connection_id uniqueidentifier? = NULL, "
        "parent_connection_id uniqueidentifier? = NULL, most_recent_sql_handle varbinary(64)? = NULL",
        _connections,
    ),
    view(
        "sys.dm_exec_requests",
        "session_id smallint, request_id int = 0, start_time datetime, status nvarchar(30), "
        "command nvarchar(32) = 'SELECT', sql_handle varbinary(64)? = NULL, statement_start_offset int? = 0, "
        "statement_end_offset int? = -1, plan_handle varbinary(64)? = NULL, database_id smallint, user_id int = 1, "
        "connection_id uniqueidentifier? = NULL, blocking_session_id smallint?, wait_type nvarchar(60)?, "
        "wait_time int = 0, last_wait_type nvarchar(60), wait_resource nvarchar(256), open_transaction_count int, "
        "open_resultset_count int = 1, transaction_id bigint, context_info varbinary(128)?, "
        "percent_complete real = 0, estimated_completion_time bigint = 0, cpu_time int = 0, "
        "total_elapsed_time int = 0, scheduler_id int? = 0, task_address varbinary(8)? = NULL, reads bigint = 0, "
        "writes bigint = 0, logical_reads bigint = 0, text_size int, language nvarchar(128)?, "
        "date_format nvarchar(3)?, date_first smallint, quoted_identifier bit, arithabort bit, "
        "ansi_null_dflt_on bit, ansi_defaults bit = 0, ansi_warnings bit, ansi_padding bit, ansi_nulls bit, "
        "concat_null_yields_null bit, transaction_isolation_level smallint, lock_timeout int, deadlock_priority int, "
        "row_count bigint, prev_error int, nest_level int = 0, granted_query_memory int = 0, "
        "executing_managed_code bit = 0, group_id int = 2, query_hash binary(8)? = NULL, "
        "query_plan_hash binary(8)? = NULL, statement_sql_handle varbinary(64)? = NULL, "
        "statement_context_id bigint? = NULL, dop int = 1, parallel_worker_count int? = NULL, "
        "external_script_request_id uniqueidentifier? = NULL, is_resumable bit = 0, "
        "page_resource binary(8)? = NULL, page_server_reads bigint = 0, "
        "dist_statement_id uniqueidentifier",
        _requests,
    ),
)

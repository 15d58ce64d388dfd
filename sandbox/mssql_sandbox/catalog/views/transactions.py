"""Transactions and locks."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from mssql_sandbox.catalog.definitions import Scope, view
from mssql_sandbox.engine.log import LogPart
from mssql_sandbox.engine.transaction import Transaction

_LSN = "numeric(25,0)"
_RECORD_BYTES = 160
_DATETIME_PER_SECOND = 300


def _active(scope: Scope) -> list[Transaction]:
    return list(scope.server.transactions.active.values())


def _session_transactions(scope: Scope) -> Iterator[tuple]:
    for transaction in _active(scope):
        if transaction.spid:
            yield (transaction.spid, transaction.id, transaction.id.to_bytes(8, "big"))


def _active_transactions(scope: Scope) -> Iterator[tuple]:
    for transaction in _active(scope):
        yield (transaction.id, transaction.name, transaction.begin_time, 1 if transaction.parts else 2)


def lsn_number(lsn: bytes) -> int:
    """An LSN as the decimal that the transaction views show: VLF, then 10 digits of block, 5 of slot."""
    vlf, block, slot = (int.from_bytes(part, "big") for part in (lsn[:4], lsn[4:8], lsn[8:]))
    return (vlf * 10**10 + block) * 10**5 + slot


def _last_lsn(part: LogPart) -> bytes:
    return part.entries[-1].lsn if part.entries else part.begin_lsn


def _database_transactions(scope: Scope) -> Iterator[tuple]:
    for transaction in _active(scope):
        for database_id, part in transaction.parts.items():
            count, last = len(part.entries), Decimal(lsn_number(_last_lsn(part)))
            size = _RECORD_BYTES * (count + 1)
            yield (
                transaction.id, database_id, part.begin_time, count, count, size, size,
                Decimal(lsn_number(part.begin_lsn)), last, last,
            )  # fmt: skip


def _snapshot_transactions(scope: Scope) -> Iterator[tuple]:
    now = scope.server.clock.local_datetime()
    for transaction in _active(scope):
        if transaction.snapshot_sequence is not None:
            elapsed = max(0, now - transaction.begin_time) // _DATETIME_PER_SECOND
            yield (transaction.id, transaction.snapshot_sequence, transaction.spid, elapsed)


def _locks(scope: Scope) -> Iterator[tuple]:
    owners = {transaction.spid: transaction.id for transaction in _active(scope)}
    for row in scope.server.locks.rows():
        resource = row.resource
        rid = resource.kind == "RID"
        yield (
            "KEY" if rid else resource.kind,
            resource.database_id,
            f"({resource.key})" if rid else str(resource.key or ""),
            resource.object_id,
            row.mode.value,
            row.status,
            row.spid,
            "TRANSACTION",
            owners.get(row.spid),
            bytes(8),
        )
    for session in scope.server.sessions.values():
        yield (
            "DATABASE",
            session.current_database.id,
            "",
            0,
            "S",
            "GRANT",
            session.spid,
            "SHARED_TRANSACTION_WORKSPACE",
            0,
            bytes(8),
        )


VIEWS = (
    view(
        "sys.dm_tran_session_transactions",
        "session_id int, transaction_id bigint, transaction_descriptor binary(8), enlist_count int = 1, "
        "is_user_transaction bit = 1, is_local bit = 1, is_enlisted bit = 0, is_bound bit = 0, "
        "open_transaction_count int = 1",
        _session_transactions,
    ),
    view(
        "sys.dm_tran_active_transactions",
        "transaction_id bigint, name nvarchar(32), transaction_begin_time datetime, transaction_type int, "
        "transaction_uow uniqueidentifier? = NULL, transaction_state int = 2, transaction_status int = 0, "
        "transaction_status2 int = 0, dtc_state int = 0, dtc_status int = 0, dtc_isolation_level int = -1, "
        "filestream_transaction_id varbinary(128)? = NULL",
        _active_transactions,
    ),
    view(
        "sys.dm_tran_database_transactions",
        "transaction_id bigint, database_id int, database_transaction_begin_time datetime?, "
        "database_transaction_type int = 1, database_transaction_state int = 4, "
        "database_transaction_status int = 0, database_transaction_status2 int = 0, "
        "database_transaction_log_record_count bigint, database_transaction_replicate_record_count int, "
        "database_transaction_log_bytes_used bigint, database_transaction_log_bytes_reserved bigint, "
        "database_transaction_log_bytes_used_system int = 0, database_transaction_log_bytes_reserved_system int = 0, "
        f"database_transaction_begin_lsn {_LSN}?, database_transaction_last_lsn {_LSN}?, "
        f"database_transaction_most_recent_savepoint_lsn {_LSN}? = NULL, "
        f"database_transaction_commit_lsn {_LSN}? = NULL, database_transaction_last_rollback_lsn {_LSN}? = NULL, "
        f"database_transaction_next_undo_lsn {_LSN}?",
        _database_transactions,
    ),
    view(
        "sys.dm_tran_active_snapshot_database_transactions",
        "transaction_id bigint?, transaction_sequence_num bigint?, commit_sequence_num bigint? = NULL, "
        "session_id int?, is_snapshot bit? = 1, first_snapshot_sequence_num bigint? = NULL, "
        "max_version_chain_traversed int? = 0, average_version_chain_traversed real? = 0, "
        "elapsed_time_seconds bigint?",
        _snapshot_transactions,
    ),
    view(
        "sys.dm_tran_locks",
        "resource_type nvarchar(60), resource_subtype nvarchar(60) = '', resource_database_id int, "
        "resource_description nvarchar(256), resource_associated_entity_id bigint?, "
        "resource_lock_partition int = 0, request_mode nvarchar(60), request_type nvarchar(60) = 'LOCK', "
        "request_status nvarchar(60), request_reference_count smallint = 1, request_lifetime int = 0, "
        "request_session_id int, request_exec_context_id int = 0, request_request_id int = 0, "
        "request_owner_type nvarchar(60)?, request_owner_id bigint?, request_owner_guid uniqueidentifier? = NULL, "
        "request_owner_lockspace_id nvarchar(32) = '0x0000000000000000:0:0', lock_owner_address varbinary(8)",
        _locks,
    ),
)

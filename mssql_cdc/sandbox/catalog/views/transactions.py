"""Transactions and locks."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from mssql_cdc.sandbox.catalog.definitions import Scope, view
from mssql_cdc.sandbox.engine.log import LogPart
from mssql_cdc.sandbox.engine.transaction import Transaction

_LSN = "numeric(25,0)"


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
    """An LSN as the decimal which the views on transactions show: VLF, then 10 digits of block, 5 of slot."""
    vlf, block, slot = (int.from_bytes(part, "big") for part in (lsn[:4], lsn[4:8], lsn[8:]))
    return (vlf * 10**10 + block) * 10**5 + slot


def _last_lsn(part: LogPart) -> bytes:
    return part.entries[-1].lsn if part.entries else part.begin_lsn


def _database_transactions(scope: Scope) -> Iterator[tuple]:
    for transaction in _active(scope):
        for database_id, part in transaction.parts.items():
            yield (
                transaction.id,
                database_id,
                part.begin_time,
                len(part.entries),
                Decimal(lsn_number(part.begin_lsn)),
                Decimal(lsn_number(_last_lsn(part))),
            )


def _snapshot_transactions(scope: Scope) -> Iterator[tuple]:
    for transaction in _active(scope):
        if transaction.snapshot_sequence is not None:
            yield (transaction.id, transaction.snapshot_sequence, transaction.spid)


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
            owners.get(row.spid),
        )
    for session in scope.server.sessions.values():
        yield ("DATABASE", session.current_database.id, "", 0, "S", "GRANT", session.spid, None)


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
        "transaction_uow uniqueidentifier? = NULL, transaction_state int = 2, transaction_status int = 0",
        _active_transactions,
    ),
    view(
        "sys.dm_tran_database_transactions",
        "transaction_id bigint, database_id int, database_transaction_begin_time datetime?, "
        "database_transaction_type int = 1, database_transaction_state int = 4, "
        "database_transaction_log_record_count bigint, "
        f"database_transaction_begin_lsn {_LSN}?, database_transaction_last_lsn {_LSN}?, "
        f"database_transaction_commit_lsn {_LSN}? = NULL",
        _database_transactions,
    ),
    view(
        "sys.dm_tran_active_snapshot_database_transactions",
        "transaction_id bigint?, transaction_sequence_num bigint?, commit_sequence_num bigint? = NULL, "
        "session_id int?, is_snapshot bit? = 1",
        _snapshot_transactions,
    ),
    view(
        "sys.dm_tran_locks",
        "resource_type nvarchar(60), resource_subtype nvarchar(60) = '', resource_database_id int, "
        "resource_description nvarchar(256), resource_associated_entity_id bigint?, request_mode nvarchar(60), "
        "request_type nvarchar(60) = 'LOCK', request_status nvarchar(60), request_session_id int, "
        "request_owner_type nvarchar(60)? = 'TRANSACTION', request_owner_id bigint?",
        _locks,
    ),
)

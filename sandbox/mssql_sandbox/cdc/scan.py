"""One pass over the log: committed changes of tracked tables into change tables, in one transaction.

The pass reads up to `maxtrans` transactions after the database's position in the log, writes their change rows and the
mapping of LSNs to times, applies the DDL among them, activates new instances, and moves the position. The next pass
writes DDL history, so that it lags the change rows [fab]. `agent` decides when passes run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from mssql_sandbox.cdc.alter import follow_ddl
from mssql_sandbox.cdc.change_rows import change_rows
from mssql_sandbox.cdc.instances import CaptureInstance, DatabaseCapture
from mssql_sandbox.cdc.layout import DDL_HISTORY, LSN_TIME_MAPPING
from mssql_sandbox.cdc.metadata import Metadata, own_transaction
from mssql_sandbox.engine.lock_requests import MustWait
from mssql_sandbox.engine.log import (
    ZERO_LSN,
    CommittedTransaction,
    DdlChange,
    InstanceEnabled,
    RowChange,
    lsn_bytes,
    lsn_text,
)
from mssql_sandbox.errors import SqlError

DUMMY_SECONDS = 300
_DATETIME_PER_SECOND = 300
NO_TRANSACTION = b"\0"
"""The `tran_id` of rows that belong to no transaction: consumers filter `tran_id <> 0x00`."""


@dataclass(slots=True)
class _Pass:
    """What one pass has collected."""

    rows: dict[CaptureInstance, list[tuple]] = field(default_factory=dict)
    mappings: list[tuple] = field(default_factory=list)
    records: int = 0
    commands: int = 0
    schema_changes: int = 0


def scan(capture: DatabaseCapture, maxtrans: int) -> int:
    """One pass; returns the number of transactions it has read.

    A pass that cannot get a lock, or fails, changes nothing; the next one tries again.

    Raises:
        SqlError: the pass failed; the history has it already.
    """
    server = capture.database.server
    start = server.clock.local_datetime()
    before = (capture.position, list(capture.pending_ddl))
    try:
        with own_transaction(server, "CDC log scan") as transaction:
            read, gathered = _scan(capture, Metadata(capture.database, transaction), maxtrans)
    except MustWait as waiting:
        waiting.request.manager.cancel(waiting.request)
        capture.position, capture.pending_ddl = before
        return 0
    except SqlError as failure:
        capture.position, capture.pending_ddl = before
        place = lsn_text(capture.database.log.end_lsn)
        capture.history.fail(start, failure.number, failure.severity, failure.state, failure.message, place)
        raise
    capture.database.log.truncate(capture.position)
    _note(capture, read, gathered, start)
    return len(read)


def _scan(capture: DatabaseCapture, metadata: Metadata, maxtrans: int) -> tuple[list[CommittedTransaction], _Pass]:
    """Write the changes of the next transactions; the caller commits."""
    if capture.failures:
        raise capture.failures.popleft()
    if capture.pending_ddl:
        metadata.insert(DDL_HISTORY, *capture.pending_ddl)
        capture.pending_ddl = []
    log = capture.database.log
    read = _ripe(capture, _hardened(capture, log.read(capture.position, maxtrans)))
    gathered = _Pass()
    by_source = capture.by_source()
    for committed in read:
        _gather(capture, metadata, committed, by_source, gathered)
    for instance, rows in gathered.rows.items():
        _write(metadata, instance, rows)
    if gathered.mappings:
        metadata.insert(LSN_TIME_MAPPING, *gathered.mappings)
    elif not read:
        _heartbeat(capture, metadata)
    capture.position += len(read)
    return read, gathered


def _hardened(capture: DatabaseCapture, read: list[CommittedTransaction]) -> list[CommittedTransaction]:
    """Only transactions that the secondary has on disk: without trace flag 1448, capture waits for all replicas [doc].

    A pass that finds no other transactions counts as an empty one, and writes the dummy row of an idle database [?].
    """
    replica = capture.database.server.replica
    if not replica.active:
        return read
    end = lsn_bytes(replica.hardened_lsn(capture.database.log))
    return [committed for committed in read if committed.commit_lsn < end]


def _ripe(capture: DatabaseCapture, read: list[CommittedTransaction]) -> list[CommittedTransaction]:
    """Only transactions that are old enough, if a lag is simulated."""
    if not capture.lag_seconds:
        return read
    now = capture.database.server.clock.local_datetime()
    limit = now - int(capture.lag_seconds * _DATETIME_PER_SECOND)
    return [committed for committed in read if committed.commit_time <= limit]


def _gather(
    capture: DatabaseCapture,
    metadata: Metadata,
    committed: CommittedTransaction,
    by_source: dict[int, list[CaptureInstance]],
    gathered: _Pass,
) -> None:
    """The change rows of one transaction, its mapping row, and its DDL.

    A transaction that has enabled an instance has a mapping row like one with changes [dbz].

    One counter numbers the commands of all tables and instances, so that a change has another command id in each
    instance that captures it [pub].
    """
    commands, enabled = 0, False
    for entry in committed.entries:
        gathered.records += 1
        instances = [i for i in by_source.get(entry.table_id, ()) if i.start_lsn < entry.lsn]
        if isinstance(entry, RowChange):
            for instance in instances:
                rows = list(change_rows(entry, instance.resolved, committed.commit_lsn, commands + 1))
                gathered.rows.setdefault(instance, []).extend(rows)
                commands = rows[-1][-1] if rows else commands
        elif isinstance(entry, DdlChange):
            gathered.schema_changes += 1
            _flush(metadata, by_source.get(entry.table_id, ()), gathered)
            follow_ddl(capture, metadata, entry, by_source.get(entry.table_id, []))
        else:
            _announce(capture, entry, gathered)
            enabled = True
    gathered.commands += commands
    if commands or enabled:
        gathered.mappings.append(
            (
                committed.commit_lsn,
                committed.begin_time,
                committed.commit_time,
                committed.transaction_id.to_bytes(6, "big"),
                committed.begin_lsn,
            )
        )


def _write(metadata: Metadata, instance: CaptureInstance, rows: list[tuple]) -> None:
    """Insert change rows into their table, without command ids if it has no such column."""
    width = len(instance.change_table.columns)
    metadata_rows = rows if not rows or len(rows[0]) == width else [row[:width] for row in rows]
    instance.change_table.insert_many(metadata.transaction, metadata_rows)


def _flush(metadata: Metadata, instances: Iterable[CaptureInstance], gathered: _Pass) -> None:
    """Insert the rows of a table before its change table may be altered: they have the older shape."""
    for instance in instances:
        _write(metadata, instance, gathered.rows.pop(instance, []))


def _announce(capture: DatabaseCapture, enabled: InstanceEnabled, gathered: _Pass) -> None:
    """Add a mapping row for a new instance [sys], besides that of the transaction that enabled it."""
    for instance in capture.instances.values():
        if instance.start_lsn == enabled.lsn:
            made = instance.create_date
            gathered.mappings.append((instance.start_lsn, made, made, NO_TRANSACTION, ZERO_LSN))


def _heartbeat(capture: DatabaseCapture, metadata: Metadata) -> None:
    """Add a dummy row for an idle database, once its newest row is more than 300 s old [sys]."""
    latest = metadata.newest_time()
    if latest is None:
        return
    now = metadata.transaction.manager.clock.local_datetime()
    end = capture.database.log.end_lsn
    if now - latest > DUMMY_SECONDS * _DATETIME_PER_SECOND and metadata.mapping(end) is None:
        metadata.insert(LSN_TIME_MAPPING, (end, now, now, NO_TRANSACTION, ZERO_LSN))


def _note(capture: DatabaseCapture, read: list[CommittedTransaction], gathered: _Pass, start: int) -> None:
    """Add the pass to the history of scans."""
    now = capture.database.server.clock.local_datetime()
    if not read:
        capture.history.empty(now)
        return
    session = capture.history.begin(start)
    first, last = read[0], read[-1]
    session.end_time = now
    session.start_lsn = lsn_text(first.begin_lsn)
    session.current_lsn = session.end_lsn = lsn_text(last.commit_lsn)
    session.tran_count = len(read)
    session.last_commit_lsn = lsn_text(last.commit_lsn)
    session.last_commit_time = last.commit_time
    session.log_record_count = gathered.records + 2 * len(read)
    session.schema_change_count = gathered.schema_changes
    session.command_count = gathered.commands
    if gathered.commands:
        session.first_begin_lsn = lsn_text(first.begin_lsn)
        session.last_commit_cdc_lsn = lsn_text(last.commit_lsn)
        session.last_commit_cdc_time = last.commit_time
    session.latency = max(0, now - last.commit_time) // _DATETIME_PER_SECOND

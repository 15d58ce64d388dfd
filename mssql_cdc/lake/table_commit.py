"""Commits to a Delta table with our own log entries, put if absent, under Delta's conflict rules (rules A3, A6).

`commit` and `create` are for current tables, `append` for tables that only grow (`lake/log.py`). `deltalake` writes
checkpoints and cleans up the log.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from mssql_cdc import __version__
from mssql_cdc.errors import FencedError, OvertakenError
from mssql_cdc.lake.checkpoints import checkpoint, is_due
from mssql_cdc.lake.live_file import LiveFile
from mssql_cdc.lake.object_store import Folder
from mssql_cdc.lake.storage import LOCAL, Storage
from mssql_cdc.lake.table_log import (
    TableLog,
    actions_of,
    commit_facts,
    commit_path,
    commit_time,
    load_log,
    refresh_log,
)

CHECKPOINT_INTERVAL = 50
Action = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """What a commit does to a table: `adds` are actions, `removed` are files of the version that it was planned from.

    `protocol`, `metadata` and `domains` (actions) replace those of the table. With `only` the table may hold no files
    other than the removed ones when the commit is made: for a commit that replaces all rows.
    """

    operation: str
    adds: Sequence[Action] = ()
    removed: Sequence[LiveFile] = ()
    protocol: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] | None = None
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])
    only: bool = False
    domains: Sequence[Action] = ()


def commit(log: TableLog, change: Change, *, app_id: str, batch: int, facts: Mapping[str, Any]) -> TableLog:
    """Commit the change as the txn `app_id` at `batch`, and return the log after it.

    Args:
        log: the version that the change was planned from.
        change: what the commit does.
        app_id: the writer of the rows.
        batch: the progress of the writer, greater than before; after a RESTORE, which keeps it, at least as great.
        facts: the commit's userMetadata.

    Raises:
        FencedError: the writer has reached this batch already; nothing was written.
        OvertakenError: another commit changed the table so that the change no longer fits, or another run has written
            part of it; nothing was written.
    """
    if log.restored is None and log.txn(app_id) >= batch:
        raise _fenced(log, app_id, batch)
    mark = uuid.uuid4().hex
    entries = _entries(log.version, change, txns={app_id: batch}, facts=facts, mark=mark)
    content = _lines(entries)
    folder, base = log.opened(), log
    gone = {file.identity for file in change.removed}
    while not folder.put_new(commit_path(base.version + 1), content):
        if commit_facts(folder, base.version + 1).get("txnId") == mark:
            break  # The store's answer to the first attempt was lost.
        fresh = refresh_log(base)
        # Rows that both runs insert are in no file that we remove: only the txn reveals them.
        if fresh.txn(app_id) != log.txn(app_id):
            if fresh.txn(app_id) >= batch:
                raise _fenced(fresh, app_id, batch)
            raise _overtaken(log, fresh, f"another run has applied batch {fresh.txn(app_id)}")
        if fresh.restored != log.restored:
            raise _overtaken(log, fresh, "it was restored, or built again after that")
        if fresh.protocol != log.protocol or fresh.metadata != log.metadata:
            raise _overtaken(log, fresh, "its protocol or metadata changed")
        if not gone <= fresh.files.keys():
            raise _overtaken(log, fresh, "files were rewritten")
        if change.only and fresh.files.keys() - gone:
            raise _overtaken(log, fresh, "files were added")
        base = fresh
    done = base.advanced(base.version + 1, entries)
    if is_due(log.uri, log.version, done.version, CHECKPOINT_INTERVAL):
        checkpoint(log.uri, log.storage)
    return done


def create(
    uri: str,
    change: Change,
    *,
    facts: Mapping[str, Any],
    app_id: str | None = None,
    batch: int = 0,
    storage: Storage = LOCAL,
) -> TableLog:
    """Create the table and its first rows in one commit.

    Args:
        uri: the table's folder.
        change: its protocol, metadata and files.
        app_id: the writer of the rows; None: there are none.
        batch: the progress of the writer.
        facts: the commit's userMetadata.
        storage: how to reach the folder.

    Raises:
        OvertakenError: another run has created the table; nothing was written.
    """
    mark = uuid.uuid4().hex
    txns = {} if app_id is None else {app_id: batch}
    entries = _entries(None, change, txns=txns, facts=facts, mark=mark)
    folder = Folder(uri, storage)
    made = folder.put_new(commit_path(0), _lines(entries))
    if not made and commit_facts(folder, 0).get("txnId") != mark:
        raise OvertakenError(f"Another run has created {uri} at the same time; this run wrote nothing")
    blank = TableLog(uri, -1, {}, {}, {}, {}, {}, storage=storage, folder=folder)
    return blank.advanced(0, entries)


def append(
    folder: Folder, version: int, change: Change, *, txns: Mapping[str, int], facts: Mapping[str, Any], mark: str
) -> int | None:
    """Commit a change that only adds files, and return the version of the commit.

    This costs the same for every table, while `deltalake` (1.6.6) needs 4 ms of CPU for a commit, plus 0.2 ms for each
    one made with the same handle before and 2 ms for each 1,000 files (docs/benchmarks.md).

    Args:
        folder: the table's folder.
        version: the version that the change was planned from.
        change: what the commit does.
        txns: the writers of the rows, with their progress.
        facts: the commit's userMetadata.
        mark: what distinguishes the commit from all others.

    Returns:
        None if a commit since `version` has one of these txns, or changes protocol or metadata; nothing was written.

    Raises:
        StorageError: the store failed; whether the commit was made is not known.
    """
    content = _lines(_entries(version, change, txns=txns, facts=facts, mark=mark))
    while not folder.put_new(commit_path(version + 1), content):
        found = list(actions_of(folder, version + 1))
        if any(action.get("commitInfo", {}).get("txnId") == mark for action in found):
            break  # The store's answer to the first attempt was lost.
        if any("metaData" in one or "protocol" in one or one.get("txn", {}).get("appId") in txns for one in found):
            return None
        version += 1
    return version + 1


def current_log(uri: str, known: TableLog | None, storage: Storage = LOCAL) -> TableLog | None:
    """The newest version of a table's log, based on what is `known` if that is still part of it.

    A table that was removed and created again has another id; commits older than the retention are gone, and a
    very old version, whose successor is gone, would look like the newest.

    Args:
        uri: The folder of the table.
        known: What an earlier call returned, if there was one.
        storage: How to reach the folder.

    Returns:
        The log; None if there is no table.
    """
    if known is None or known.unreadable or _is_old(known):
        return load_log(uri, storage)
    stamp = commit_facts(known.opened(), known.version).get("timestamp")
    same = stamp is not None and known.committed == commit_time(stamp)
    return refresh_log(known) if same else load_log(uri, storage)


def _is_old(log: TableLog) -> bool:
    return log.committed is None or (datetime.now(UTC) - log.committed).total_seconds() > 3600


def _entries(
    version: int | None, change: Change, *, txns: Mapping[str, int], facts: Mapping[str, Any], mark: str
) -> list[dict[str, Any]]:
    now = datetime.now(UTC)
    stamp = int(now.timestamp() * 1000)
    info = {
        "timestamp": stamp,
        "operation": change.operation,
        "operationParameters": dict(change.parameters),
        **({} if version is None else {"readVersion": version}),
        "isolationLevel": "Serializable",
        "isBlindAppend": False,
        "operationMetrics": {
            "numAddedFiles": str(len(change.adds)),
            "numRemovedFiles": str(len(change.removed)),
            **{name: str(value) for name, value in facts.items() if name == "rows"},
        },
        "engineInfo": f"mssql_cdc/{__version__}",
        "userMetadata": json.dumps(dict(facts)),
        "txnId": mark,
    }
    found: list[dict[str, Any]] = [{"commitInfo": info}]
    if change.protocol is not None:
        found.append({"protocol": change.protocol})
    if change.metadata is not None:
        found.append({"metaData": change.metadata})
    found += [{"txn": {"appId": app, "version": number, "lastUpdated": stamp}} for app, number in txns.items()]
    found += [dict(action) for action in change.domains]
    found += [file.remove(now) for file in change.removed]
    return [*found, *(dict(action) for action in change.adds)]


def _lines(entries: Sequence[Action]) -> bytes:
    return "".join(json.dumps(entry, ensure_ascii=False, separators=(",", ":")) + "\n" for entry in entries).encode()


def _fenced(log: TableLog, app_id: str, batch: int) -> FencedError:
    return FencedError(
        f"Another run has written batch {log.txn(app_id)} to {log.uri}; this run wrote nothing (batch {batch})"
    )


def _overtaken(log: TableLog, fresh: TableLog, reason: str) -> OvertakenError:
    return OvertakenError(
        f"Another writer has changed {log.uri} since version {log.version} (now {fresh.version}): {reason}; "
        "this run wrote nothing"
    )

"""How an UPDATE is recorded in the log that change data capture reads: as updates, or as deletes and inserts.

What does not belong here: the update itself (writing.py), and what capture makes of the records.
"""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING

from mssql_sandbox.engine.transaction import Transaction

if TYPE_CHECKING:
    from mssql_sandbox.engine.storage.table import Table

SINGLETON_UPDATES = 8207
"""Trace flag: an update of one row is logged as an update, even if it changes keys [doc KB 302341]."""


def log_updates(
    table: Table,
    transaction: Transaction,
    done: list[tuple[int, tuple, tuple]],
    rekeyed: dict[int, bool],
    assigned: Container[int],
) -> None:
    """Log the updates of a statement: (row id, old, new) of each row.

    `rekeyed` holds the row ids whose unique keys changed (True: the primary key's), `assigned` the positions set.
    """
    if not done:
        return
    part = transaction.log_part(table.database)
    if not table.tracked:
        part.log.grow(len(done))
        return
    single = len(done) == 1 and SINGLETON_UPDATES in table.database.server.trace_flags
    # Several primary keys at once: all deletes come before all inserts, each with an LSN of its own. This includes
    # rows whose key is set to its old value [dbz].
    key = table.primary_key
    whole = key is not None and any(place in assigned for place in key.ordinals)
    split = [change for change in done if whole or rekeyed.get(change[0])] if len(done) > 1 else []
    moved = {rowid for rowid, _, _ in split}
    for _, old, _ in split:
        part.change(table.object_id, "delete", old, None)
    for rowid, old, new in done:
        mask = sum(1 << place for place, value in enumerate(new) if value != old[place])
        if rowid not in moved and mask:
            deferred = rowid in rekeyed and not single
            part.change(table.object_id, "update", old, new, deferred=deferred, changed=mask)
    for _, _, new in split:
        part.change(table.object_id, "insert", None, new)

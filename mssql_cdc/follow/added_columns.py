"""Requests an incremental snapshot of a table whose earlier rows lack what its next rows have (D24).

They lack columns, or values that an ALTER COLUMN has rewritten (`altered_columns.py`). An update that touched only a
new column wrote no change row before the capture instance had it, and a default added by DDL never does: only reading
the table shows what its rows have there. The request is an ordinary signal, so it is seen, stopped and paused like any
other. If the table could not be read, it is requested again, with growing pauses; a stopped request is not repeated.

The structure of the earlier rows is the one under which the whole table was last read, or requested to be read: not the
newest version, which others record before the stream reaches it (a snapshot of some rows, one that is stopped, a
repair, an incremental snapshot that looks ahead).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.incremental.state import State
from mssql_cdc.capture.incremental.store import load
from mssql_cdc.capture.requests import IGNORED, REQUESTED, SignalRow, ask_for_snapshot, note_signal
from mssql_cdc.capture.survey import Survey
from mssql_cdc.follow.altered_columns import altered_columns
from mssql_cdc.lake.delta_columns import with_delta_columns
from mssql_cdc.lake.small_tables import small_table
from mssql_cdc.plan.decisions import Range
from mssql_cdc.schema import TableId, TableSchema

CHANNEL = "capture instance"


def request_added_columns(database: Database, seen: Survey, decision: Range) -> None:
    """Request a snapshot of each table that the range reads from a capture instance with added or altered columns.

    Called before the range is read: if a run dies in between, this is called again and finds the request.

    Args:
        database: The database.
        seen: The survey on which the decision is based.
        decision: The range.
    """
    is_wanted, policy = database.connector.snapshot.incremental.added_columns, seen.facts.policy
    if not (is_wanted and policy.data and policy.stream):
        return
    filters, rows_of = database.connector.filters.tables, database.connector.snapshot.collections
    asked = _Asked(database, seen)
    for table, object_id in _read(seen, decision):
        if filters.is_signal_table(*table.parts) or not rows_of.matches(*table.parts):
            continue
        schema, known = seen.instance(table, object_id).schema, seen.history.versions.get(table.text, ())
        added = added_columns(schema, known, _since(seen, table, schema, asked))
        altered = _altered(seen, table, schema)
        if added:
            why = f"rows that were read before have no value of {', '.join(added)}"
            _request(database, table, schema, asked.id_of(object_id), why)
        elif altered is not None and not asked.holds(table, id_ := asked.altered_id(object_id, altered[0].version)):
            why = f"rows that were read before have values of {', '.join(altered[1])} that an ALTER COLUMN has changed"
            _request(database, table, schema, id_, why)


def _request(database: Database, table: TableId, schema: TableSchema, id_: str, why: str) -> None:
    if schema.key_columns:
        what = ask_for_snapshot(database, id_, [_pattern(table)], channel=CHANNEL, kind="incremental")
        what = f"requested: {what}"
    else:
        what = "as the table has no key, take a blocking snapshot to read them"
        note_signal(database, SignalRow(id_, "execute-snapshot", None), CHANNEL, IGNORED, what)
    database.log(f"{table}: {why}; {what}")


def added_columns(
    schema: TableSchema, versions: Sequence[TableSchema], since: Sequence[TableSchema] | None
) -> list[str]:
    """The columns of a structure whose values the earlier rows do not have.

    These are columns that are new, that were dropped and added again, or that continue in another Delta column.

    Args:
        schema: The structure of the rows to come.
        versions: The table's versions, oldest first.
        since: The versions that the earlier rows have: a column that one of them lacks starts over after it. None:
            nothing is missing.
    """
    if since is None:
        return []
    known = [{(column.name, column.position, column.stored_name) for column in one.value_columns} for one in since]
    return [
        column.name
        for column in with_delta_columns(schema, versions).value_columns
        if not all((column.name, column.position, column.stored_name) in one for one in known)
    ]


class _Asked:
    """What was requested in this epoch: after a restore, the source gives an instance's object id to another one."""

    def __init__(self, database: Database, seen: Survey) -> None:
        self._database, self._seen, self._epoch = database, seen, seen.offsets.epoch

    def id_of(self, object_id: int) -> str:
        """The id of the signal that requests the columns of a capture instance."""
        return self._in_epoch(f"added-columns-{object_id}")

    def altered_id(self, object_id: int, version: int) -> str:
        """The id of the signal that requests the values that a capture instance has had since a version."""
        return self._in_epoch(f"altered-columns-{object_id}-v{version}")

    def _in_epoch(self, text: str) -> str:
        return text + (f"-e{self._epoch}" if self._epoch else "")

    @cached_property
    def _rows(self) -> Mapping[str, Mapping[str, Any]]:
        """The last signal of each id."""
        table = small_table(self._database.layout, "signals", self._database.storage)
        rows = self._database.tables.get(table.uri, table.rows, self._database.storage)
        own = [row for row in rows if row["channel"] == CHANNEL]
        return {row["id"]: row for row in sorted(own, key=lambda row: row["_batch"])}

    @cached_property
    def _state(self) -> State:
        return load(self._database).state

    def holds(self, table: TableId, id_: str) -> bool:
        """Whether this was requested, and was read or stopped, or is still to be read.

        Args:
            table: The table.
            id_: The id of the signal.
        """
        row = self._rows.get(id_)
        if row is None or row["status"] != REQUESTED:
            return row is not None
        object_id = self._seen.tables[table].captured.object_id
        unread = self._state.unread_of(object_id, self._epoch)
        is_failed = unread is not None and unread.again <= self._seen.facts.now
        return not is_failed or row["_batch"] > self._state.taken or self._state.will_read(object_id, self._epoch)

    def columns_of(self, table: TableId, object_id: int | None) -> bool:
        """Whether `holds` is true for the columns of a capture instance.

        Args:
            table: The table.
            object_id: The capture instance.
        """
        return object_id is not None and self.holds(table, self.id_of(object_id))


def _read(seen: Survey, decision: Range) -> Iterator[tuple[TableId, int]]:
    """Yield the tables of a range with the object ids of the capture instances that it reads, or would read next."""
    for part in decision.slices:
        yield part.table, part.instance.object_id
    members = {one.table: one for one in seen.facts.members} if decision.idle else {}
    for table in decision.idle:
        member = members.get(table)
        instance = member.instance_at(decision.range.to) if member is not None else None
        if instance is not None:
            yield table, instance.object_id


def _since(seen: Survey, table: TableId, schema: TableSchema, asked: _Asked) -> list[TableSchema] | None:
    """The structures of a table's rows since it was read whole, or since that was requested; None: that is to come.

    A snapshot may have been ahead of the stream, which then reaches the snapshot's instance through an earlier one.
    """
    known, entry = seen.history.versions.get(table.text, ()), seen.tables[table].entry
    filled = entry.filled if entry is not None else None
    whole = next((one for one in known if one.version == filled), known[-1] if known else None)
    own = schema.capture_object_id
    if whole is None or all(one.capture_object_id == own for one in known if one.version >= whole.version):
        return None
    if asked.columns_of(table, own):
        return None
    # The first version of each requested instance: what its columns became afterwards may not have been read.
    first = {one.capture_object_id: one for one in reversed(known) if one.version > whole.version}
    requested = [one for number, one in first.items() if asked.columns_of(table, number)]
    base = max([whole, *requested], key=lambda one: one.version)
    if _is_earlier(seen, table, schema, base) or base.key_fingerprint != schema.key_fingerprint:
        return None  # After a key change, its rows are read anyway.
    later = [one for one in known if one.version > base.version and one.capture_object_id not in {own, None}]
    return [*([] if base.capture_object_id == own else [base]), *later]


def _altered(seen: Survey, table: TableId, schema: TableSchema) -> tuple[TableSchema, list[str]] | None:
    """The version since which a table's earlier rows differ from the source, and the columns in which they do."""
    known, entry = seen.history.versions.get(table.text, ()), seen.tables[table].entry
    if not known:
        return None
    filled = entry.filled if entry is not None else None
    since = [one for one in known if one.version >= (known[-1].version if filled is None else filled)]
    if not known[-1].same_structure(schema):
        # A structure that is not recorded yet will get the next number.
        since.append(replace(with_delta_columns(schema, known), version=known[-1].version + 1))
    return altered_columns(since)


def _is_earlier(seen: Survey, table: TableId, schema: TableSchema, base: TableSchema) -> bool:
    """Whether the capture instance of a structure comes before that of a version."""
    there = [one.object_id for one in seen.tables[table].captured.instances]
    other = base.capture_object_id
    return other in there and there.index(other) > there.index(schema.capture_object_id or 0)


def _pattern(table: TableId) -> str:
    """The table's name as signals contain it: a regular expression."""
    is_plain = all(re.fullmatch(r"\w+", part) for part in table.parts)
    return table.text if is_plain else re.escape(table.text)

"""Requests an incremental snapshot of a table whose next rows have columns that its rows of before lack (D24).

An update that touched only a new column wrote no change row before the capture instance had it, and a default added by
DDL never does: only reading the table shows what its rows have there. The request is an ordinary signal, so it is seen,
stopped and paused like any other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.requests import IGNORED, SignalRow, ask_for_snapshot, note_signal
from mssql_cdc.capture.survey import Survey
from mssql_cdc.lake.delta_columns import with_delta_columns
from mssql_cdc.lake.small_tables import small_table
from mssql_cdc.plan.decisions import Range
from mssql_cdc.schema import TableId, TableSchema

CHANNEL = "capture instance"


def request_added_columns(database: Database, seen: Survey, decision: Range) -> None:
    """Request a snapshot of each table that the range takes to a capture instance with further columns.

    Called before the range is read, which records the new structure: a run that dies in between asks again, and finds
    that it has asked.

    Args:
        database: The database.
        seen: The survey on which the decision is based.
        decision: The range.
    """
    is_wanted, policy = database.connector.snapshot.incremental.added_columns, seen.facts.policy
    if not (is_wanted and policy.data and policy.stream):
        return
    filters, rows_of = database.connector.filters.tables, database.connector.snapshot.collections
    for schema, added in _switches(seen, decision):
        table = schema.table_id
        if filters.is_signal_table(*table.parts) or not rows_of.matches(*table.parts):
            continue
        id_, columns = f"added-columns-{schema.capture_object_id}", ", ".join(added)
        if _is_known(database, id_):
            continue
        if schema.key_columns:
            what = ask_for_snapshot(database, id_, [_pattern(table)], channel=CHANNEL, kind="incremental")
            what = f"requested: {what}"
        else:
            what = "as the table has no key, take a blocking snapshot to read them"
            note_signal(database, SignalRow(id_, "execute-snapshot", None), CHANNEL, IGNORED, what)
        database.log(f"{table}: rows that were read before have no value of {columns}; {what}")


def added_columns(schema: TableSchema, versions: Sequence[TableSchema]) -> list[str]:
    """The columns of a structure whose values the rows of the newest version do not have.

    Those are columns that are new, that were dropped and added again, or that continue in another Delta column.

    Args:
        schema: The structure of the rows to come.
        versions: The table's versions, oldest first.
    """
    known = {(column.name, column.position, column.stored_name) for column in versions[-1].value_columns}
    return [
        column.name
        for column in with_delta_columns(schema, versions).value_columns
        if (column.name, column.position, column.stored_name) not in known
    ]


def _switches(seen: Survey, decision: Range) -> Iterator[tuple[TableSchema, list[str]]]:
    """Yield the structures that the range takes tables to, with the columns that they add."""
    for part in decision.slices:
        yield from _switch(seen, part.table, part.instance.object_id)
    members = {one.table: one for one in seen.facts.members} if decision.idle else {}
    for table in decision.idle:
        member = members.get(table)
        instance = member.instance_at(decision.range.to) if member is not None else None
        if instance is not None:
            yield from _switch(seen, table, instance.object_id)


def _switch(seen: Survey, table: TableId, object_id: int) -> Iterator[tuple[TableSchema, list[str]]]:
    schema, known = seen.instance(table, object_id).schema, seen.history.versions.get(table.text, ())
    if not known or known[-1].capture_object_id == schema.capture_object_id:
        return
    if known[-1].key_fingerprint != schema.key_fingerprint:
        return  # Its rows are read anyway, under the new key.
    if added := added_columns(schema, known):
        yield schema, added


def _is_known(database: Database, id_: str) -> bool:
    table = small_table(database.layout, "signals", database.storage)
    rows = database.tables.get(table.uri, table.rows, database.storage)
    return any(row["id"] == id_ for row in rows)


def _pattern(table: TableId) -> str:
    """The table's name as signals name it: a regular expression."""
    is_plain = all(re.fullmatch(r"\w+", part) for part in table.parts)
    return table.text if is_plain else re.escape(table.text)

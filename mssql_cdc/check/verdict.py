"""Evaluates the check of a table from the lake alone, when an operator clicks "Execute" on it.

During capture, the check reports the current results (`report.py`). This module inspects their persistent traces: the
table's status, the writers of its change log, the continuity of its commits, and its columns. It neither queries the
source nor starts a JVM. `mssql-cdc check` compares rows with the source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import Any

import pyarrow as pa

from mssql_cdc.capture.database import Database
from mssql_cdc.errors import MssqlCdcError
from mssql_cdc.lake.delta_schema import arrow_of
from mssql_cdc.lake.history import SchemaHistory
from mssql_cdc.lake.log import TableState, backwards, facts_of, load_state
from mssql_cdc.lake.named_entries import entries_by_name
from mssql_cdc.lake.named_gaps import gaps_by_name
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.steps import Entry, Reached
from mssql_cdc.lake.tamper import verify_untouched
from mssql_cdc.schema import TableId, change_log_schema

COMMITS = 200
"""The number of newest commits to inspect."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result; `problems` is empty if the table is correct."""

    problems: tuple[str, ...]
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])


def judge(database: Database, table: TableId) -> Verdict:
    """The verdict on one table."""
    offsets, history = database.offsets(), database.history()
    entry = entries_by_name(offsets, history.versions).get(table.text) or offsets.entry(table.text)
    if entry is None:
        return Verdict(("nothing has been captured for the table yet",))
    facts: dict[str, Any] = {"status": entry.status, "to_lsn": entry.to}
    problems = [f"the table is {entry.status}: {entry.reason}"] if entry.status in {"lost", "failed"} else []
    gaps = gaps_by_name(database.layout, offsets, history.versions, database.storage)
    problems += [gap.text for gap in gaps.get(table.text, [])]
    home = database.layout.home(table, folder=entry.folder)
    try:
        state = load_state(home.changes, owner=home.app_id, storage=database.storage)
        if state is None:
            if entry.batch:
                problems.append(f"the change log {home.changes} no longer exists")
            return Verdict(tuple(problems), facts)
        facts |= {"delta_version": state.delta_version, "batch": state.batch}
        verify_untouched(state, table_id=entry.delta_table_id, delta_version=entry.delta_version, batch=entry.batch)
    except MssqlCdcError as error:
        return Verdict((*problems, str(error)), facts)
    commits = _ranges(state)
    facts["commits_checked"] = len(commits)
    problems += _discontinuities(commits, offsets, table, entry)
    problems += _missing_columns(state, history, table)
    return Verdict(tuple(problems), facts)


def _ranges(state: TableState) -> list[tuple[Reached, Reached]]:
    """`from` and `to` of the newest commits of ranges, oldest first."""
    found: list[tuple[Reached, Reached]] = []
    for entry in reversed(list(islice(backwards(state), COMMITS))):
        facts = facts_of(entry)
        if facts and facts.get("kind") == "range":
            epoch = int(facts.get("epoch", 0))
            found.append((Reached(epoch, facts["from"]), Reached(epoch, facts["to"])))
    return found


def _discontinuities(
    commits: list[tuple[Reached, Reached]], offsets: Offsets, table: TableId, entry: Entry
) -> list[str]:
    """Return commits that overlap, or that leave a gap which `_offsets` does not explain."""
    known = offsets.history.reached(table.text, folder=entry.folder)
    problems: list[str] = []
    for (_, before), (start, _) in pairwise(commits):
        if start < before:
            problems.append(f"the commit from {start.to} overlaps the one up to {before.to}")
        elif start > before and start not in known:
            problems.append(f"no commit covers the changes between {before.to} and {start.to}")
    if commits and entry.reached is not None and entry.status == "streaming" and entry.reached < commits[-1][1]:
        problems.append(
            f"_offsets is at {entry.to}, behind the change log at {commits[-1][1].to}; the next range corrects it"
        )
    return problems


def _missing_columns(state: TableState, history: SchemaHistory, table: TableId) -> list[str]:
    newest = history.newest(table)
    if newest is None:
        return []
    stored = _columns(arrow_of(state.schema_json))
    missing = sorted(_columns(change_log_schema(newest)) - stored)
    return [f"the change log lacks columns of the newest structure: {', '.join(missing)}"] if missing else []


def _columns(schema: pa.Schema) -> set[str]:
    """Names of the columns, those inside `after` as `after.x`."""
    inner = schema.field("after").type if "after" in schema.names else pa.struct([])
    return {*schema.names, *(f"after.{inner.field(i).name}" for i in range(inner.num_fields))}

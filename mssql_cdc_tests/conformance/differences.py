"""The deliberate differences from Debezium, each with its reason: the one table that the documentation shows.

A difference that workloads show has `adapt`: it turns Debezium's records of a workload, beside those of this connector,
into those that this connector must render. Whatever else differs is a defect.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass

from mssql_cdc_tests.conformance.adapting import (
    Adapt,
    as_the_source_has_it,
    each_value,
    masked_keys,
    own_keys_of_snapshots,
    renamed,
    shown_marker,
    under_its_structure,
    until_first_alter,
    where_ours_are,
    with_a_snapshot,
    without_column,
    without_rows_of_snapshots,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A deliberate difference.

    Attributes:
        about: what differs.
        debezium: what Debezium does.
        ours: what this connector does.
        why: the reason.
        adapt: Debezium's records of a workload as this connector renders them; None: no workload can show it.
    """

    about: str
    debezium: str
    ours: str
    why: str
    adapt: Adapt | None = None


DIFFERENCES: Mapping[str, Difference] = {
    "no-converter": Difference(
        about="records without any converter property",
        debezium="the converter of the Kafka Connect worker, or of the engine, decides",
        ours="JSON without schemas; NULL is null, and `source.snapshot` is `false`",
        why="the lake has no worker. No setting of Connect's converter shows both values as they are",
        adapt=each_value(shown_marker),
    ),
    "rows-without-cdc": Difference(
        about="rows of a table without CDC that the filters let through, in modes that stream",
        debezium="the initial snapshot reads them; their changes never follow",
        ours="they are not read; records describe the table. `initial_only` reads them",
        why="a copy that nothing updates is wrong from its first minute on",
        adapt=without_rows_of_snapshots,
    ),
    "schema-change-position": Difference(
        about="the position in the source block and offset of a schema change while streaming",
        debezium="that of the newest event, or of a later poll that found no events",
        ours="that of the newest event",
        why="when Debezium polls is not part of the stream",
        adapt=where_ours_are,
    ),
    "read-position": Difference(
        about="the position of a row of an incremental snapshot",
        debezium="the source block has `change_lsn` and `event_serial_no` of the stream's newest event; the offset is "
        "`snapshot`, `snapshot_completed` and `commit_lsn`",
        ours="both are null in the source block; the offset is one of the stream: `commit_lsn`, `change_lsn` null, "
        "`event_serial_no` 0, and the open transaction",
        why="the row is not an event of the stream; a consumer that resumes after it misses nothing, even if a "
        "restarted connector writes `snapshot_completed` false",
    ),
    "key-of-before": Difference(
        about="the record key of a table with several unique indexes, in a lake that an earlier version began",
        debezium="the primary key, otherwise the first unique index by name, whatever its filter",
        ours="the index that identifies rows in the lake, until the table gets another key or is re-created; in new "
        "lakes, the same key as Debezium",
        why="consumers know the rows by this key",
    ),
    "excluded-key": Difference(
        about="the key of a snapshot's row, if a column filter excludes its column",
        debezium="has the type's zero, so all rows have one key",
        ours="has the row's own key, as in the stream",
        why="Debezium does not select the column in snapshots",
        adapt=own_keys_of_snapshots,
    ),
    "masked-key": Difference(
        about="a masked column in record keys",
        debezium="shows it unmasked",
        ours="shows it masked, as everywhere",
        why="a value that must be hidden stays hidden: it reaches neither the lake nor a record",
        adapt=masked_keys,
    ),
    "column-of-a-database": Difference(
        about="`column.exclude.list` and `column.include.list` with the database name in front",
        debezium="match no column",
        ours="match the column",
        why="a column that must be left out is left out; masks and key columns take both forms in Debezium, too",
        adapt=without_column("n"),
    ),
    "capture-time": Difference(
        about="`ts_*` of the envelope",
        debezium="when the connector processed the event",
        ours="when the range's `_offsets` row was written",
        why="rendering records again gives the same records",
    ),
    "shared-offset": Difference(
        about="a start after an offset that several records share, as a delete and its tombstone do",
        debezium="resumes after the last of them: a consumer that had only the first never gets the others",
        ours="resumes after the first of them: the others are sent again",
        why="a record that is sent twice is harmless, one that is lost is not",
    ),
    "once": Difference(
        about="a delayed or repeated start",
        debezium="may send events twice",
        ours="sends every event once, in one order",
        why="a range is one commit",
    ),
    "dropped-instance": Difference(
        about="a capture instance that is dropped before a newer one exists",
        debezium="continues with the new one; what happened in between is missing",
        ours="stops at the gap until a blocking snapshot closes it",
        why="a change must never be missing unnoticed",
        adapt=until_first_alter,
    ),
    "new-table": Difference(
        about="a table that is captured while the connector streams, or that the filters let through at a later start",
        debezium="its changes from the capture instance's start on, or from the connector's current position",
        ours="a snapshot of the table, then its changes; with `no_data` the same as Debezium",
        why="older rows would be missing",
        adapt=with_a_snapshot,
    ),
    "renamed-table": Difference(
        about="a table that is renamed while the connector streams",
        debezium="keeps the topic of its former name until the connector is restarted, and then shows a new table",
        ours="has the topic of its new name from the range after the rename on",
        why="when a connector is restarted is not part of the stream",
        adapt=renamed,
    ),
    "failed-conversion": Difference(
        about="a column whose type changes under its capture instance",
        debezium="continues with the type that it knows: a value that does not fit it is left unset, and if the column "
        "may not be NULL, the change is handled as `event.processing.failure.handling.mode` says",
        ours="a schema change, and the values as they are; what still cannot be rendered is handled as the mode says",
        why="a NULL that the source does not have is a wrong value, and a change that is left out is lost",
        adapt=under_its_structure,
    ),
    "unknown-structure": Difference(
        about="a change of a table whose structure is not known",
        debezium="handles it as `event.processing.failure.handling.mode` says, and counts it as erroneous",
        ours="stops records in every mode",
        why="a structure is stored before the rows that have it; if it is missing, the lake is damaged, and every "
        "later change of the table would be left out unnoticed",
    ),
    "old-dates": Difference(
        about="days from 1582-10-05 to 1582-10-14; `datetimeoffset` before 1582-10-15, and before 1970 with a fraction",
        debezium="shows them ten days later; as the Julian date; one second later",
        ours="shows what the source has",
        why="Debezium's driver reads another day or second than the source has",
        adapt=as_the_source_has_it,
    ),
    "tasks": Difference(
        about="the task that context headers name, with `tasks.max` above 1 and several databases",
        debezium="distributes the databases among its tasks in turn; each names itself",
        ours="`task.id` for all of them; a process of `records --follow` has its `--task-id`",
        why="one process reads all databases; if you run several, give each its databases and its id",
    ),
    "simultaneous-changes": Difference(
        about="capture instances of several tables that start within one poll",
        debezium="changes between their starts can lack the new columns, and the schema changes come late",
        ours="each schema change, then the changes of its instance",
        why="Debezium processes the tables in an order that is unrelated to where the instances start",
        adapt=under_its_structure,
    ),
    "sweep": Difference(
        about="rows that a repeated snapshot no longer finds",
        debezium="nothing",
        ours="a delete in the change log and the current table, none in the records",
        why="the lake must hold what the source holds",
    ),
    "read-uncommitted": Difference(
        about="snapshots at READ UNCOMMITTED",
        debezium="may contain rows that are rolled back",
        ours="read at READ COMMITTED",
        why="such rows were never in the table",
    ),
    "snapshot-locks": Difference(
        about="the locks of a snapshot",
        debezium="exclusive ones (TABLOCKX) on all tables: with `repeatable_read` while it reads their structure, "
        "with `exclusive` to its end; otherwise none, even on tables without a key",
        ours="shared ones (TABLOCK): with `exclusive` on all tables, and in every mode on those without a key, each "
        "while it is read. Where locks are not allowed (`snapshot.locking.mode=none`, a secondary), these are refused",
        why="structure is verified by the reader itself; rows of a keyed table that change meanwhile arrive again in "
        "the stream, which cannot replace rows of a table without a key",
    ),
    "repeatable-read": Difference(
        about="`snapshot.isolation.mode=repeatable_read`",
        debezium="keeps the locks of all rows that it has read until the snapshot ends",
        ours="reads at READ COMMITTED, chunk by chunk",
        why="the locks would escalate to a table lock and keep writers out; the stream corrects what changes meanwhile",
    ),
    "lock-timeout": Difference(
        about="`snapshot.lock.timeout.ms`",
        debezium="applies with `repeatable_read` and `exclusive`, until the snapshot has ended; not to incremental "
        "snapshots",
        ours="limits the wait for tables and rows that others have locked, in every mode and for incremental "
        "snapshots, too; the read is retried",
        why="a writer that holds a row must not delay the stream for `database.query.timeout.ms`",
    ),
    "heartbeats": Difference(
        about="when there is a heartbeat",
        debezium="at the end of a snapshot; by time, while it polls",
        ours="at the end of a snapshot; at complete cuts and, with `--follow`, at polls that find nothing, at least "
        "`heartbeat.interval.ms` apart; the same records, at the stream's position",
        why="the lake knows the cuts; polls that found nothing are not recorded anywhere",
    ),
    "notifications": Difference(
        about="where the notifications of a snapshot appear",
        debezium="among its rows; each notification of an initial snapshot has its own id",
        ours="around its rows: beginning and progress before them, ends after them; all have one id",
        why="rows are read together, and rendered later",
    ),
    "notified_keys": Difference(
        about="keys in notifications (`last_processed_key`, `maximum_key`)",
        debezium="in every channel, masked columns unmasked",
        ours="not in the channel `log`; `***` for a column with a mask or a column filter",
        why="row values are never logged, and a value that must be hidden stays hidden",
    ),
    "interrupted_snapshot": Difference(
        about="a snapshot that is interrupted",
        debezium="`ABORTED`, if it can tell; an initial one starts over, a blocking one is forgotten",
        ours="continues from its commits: one `STARTED`, and `ABORTED` only if a table cannot be read",
        why="what is committed is not read twice",
    ),
    "stopped_snapshot": Difference(
        about="the notifications of a stop that removes the whole incremental snapshot",
        debezium="`COMPLETED`, then `ABORTED` with a random id",
        ours="`ABORTED` with the id of the snapshot",
        why="a snapshot that was stopped is not complete",
    ),
    "filters": Difference(
        about="subqueries, joins, comments, variables and calls of user-defined functions in `additional-conditions`",
        debezium="run with the connector's permissions",
        ours="fail the table that they filter",
        why="anyone who may write a signal could read every table that the connector's login may read, row by row",
    ),
    "derived-statement": Difference(
        about="WITH before, or OPTION after, the SELECT of `snapshot.select.statement.overrides`",
        debezium="sends it as it is",
        ours="refuses it when the configuration is read: put it into a view or a subquery, leave the hint out",
        why="the statement is read as a table, whose rows may be read in parts",
    ),
    "ordered-filter": Difference(
        about="ORDER BY in a filter of `additional-conditions`, and in `snapshot.select.statement.overrides`",
        debezium="orders the rows",
        ours="has no effect: rows are read as the server finds them",
        why="the statement is read as a table, whose rows may be read in parts",
    ),
    "missing-columns": Difference(
        about="captured columns that a filter of `additional-conditions` does not select",
        debezium="are NULL in its records",
        ours="fail the table",
        why="a NULL that the source does not have is a wrong value",
    ),
    "schema-changes-signal": Difference(
        about="the signal `schema-changes`",
        debezium="writes the structure that the signal describes to the schema history, shows it as a schema change, "
        "and reads later events under it",
        ours="ignores it, with the reason",
        why="every row is read under the structure that the source has for it; under another one it has wrong values",
    ),
    "controlled-snapshots": Difference(
        about="the signals `pause-snapshot`, `resume-snapshot` and `stop-snapshot`",
        debezium="apply to incremental snapshots only",
        ours="also apply to blocking and initial ones, except that an initial one cannot be stopped",
        why="a long snapshot can be interrupted without losing what it has read",
    ),
    "queue": Difference(
        about="`max.queue.size`, `max.queue.size.in.bytes`, `max.batch.size`",
        debezium="bound what is read but not yet taken by the consumer",
        ours="`max.queue.size` bounds the records that wait for the reader of `records --follow`; a slow reader never "
        "holds back the capture",
        why="what is captured waits in the lake",
    ),
    "guardrail": Difference(
        about="the tables that `guardrail.collections.max` counts",
        debezium="all that the filters let through",
        ours="those of these that are captured",
        why="a table without CDC costs this connector nothing",
    ),
    "skipped-operations": Difference(
        about="`skipped.operations`",
        debezium="are not read from the change tables",
        ours="are left out of records; the change log has them",
        why="current tables and `check` need every change",
    ),
    "reselected": Difference(
        about="what ReselectColumns reads again",
        debezium="masked columns unmasked; values to which no custom converter was applied",
        ours="no masked column; values that look like all others",
        why="a value that must be hidden stays hidden, and a column has one form",
    ),
    "late-metadata": Difference(
        about="transaction metadata of transactions before it was enabled",
        debezium="none",
        ours="a new output has it for all, one that is continued only for later ones",
        why="records are rendered from the whole change log",
    ),
    "mask-and-type": Difference(
        about="a hash mask on a column whose source type is propagated",
        debezium="shows the value without the mask",
        ours="masks the value",
        why="a value that must be hidden stays hidden",
    ),
    "snapshot-threads": Difference(
        about="`snapshot.max.threads`, if it is not set",
        debezium="one reader",
        ours="as many as Spark has cores",
        why="a snapshot reads chunks under READ COMMITTED, so that more readers lock no more; set 1 to be gentle",
    ),
    "binary-keys": Difference(
        about="`last_processed_key` and `maximum_key` of a binary key in notifications",
        debezium="`[B@25c8b71b`: the identity of the array in Java's memory",
        ours="the hexadecimal digits",
        why="the former means nothing, and differs each time",
    ),
    "default-notations": Difference(
        about="defaults of dates and times that are not in ISO format",
        debezium="lets the server parse them",
        ours="shows no default",
        why="rendering records needs no server",
    ),
    "lineage": Difference(
        about="what is reported to OpenLineage",
        debezium="output datasets are topics, which a transform names; `debezium_config` shows passwords",
        ours="output datasets are the change log and the current table in the lake; secrets are hidden",
        why="there are no topics, transforms do not run here, and no secret leaves the process",
    ),
}


def document() -> str:
    """Return the table that `docs/records.md` shows."""
    rows = [f"| {one.about} | {one.debezium} | {one.ours} | {one.why} |" for one in DIFFERENCES.values()]
    return "\n".join(["| what | Debezium | mssql_cdc | why |", "|---|---|---|---|", *rows])


if __name__ == "__main__":
    sys.stdout.write(document() + "\n")

"""Counts the events that Debezium emits for the rows of a change log, by transaction and table (TXN-07).

The counts are those of the rendered records, because `emitted.py` decides for both. Only rows whose count depends on
their values are rendered to be counted: updates that change the row's key or may change the record's, with
`skip.messages.without.change` every update, and every row if failures are left out
(`event.processing.failure.handling.mode`). The order, for which `transactions.py` needs all tables, is not needed here.

Not known here: what ReselectColumns reads again, and whether a post-processor fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.config import Connector
from mssql_cdc.errors import ConfigurationError, SchemaError
from mssql_cdc.lake.history import SchemaHistory
from mssql_cdc.records.custom_converters import CustomConverters
from mssql_cdc.records.emitted import Emitted
from mssql_cdc.records.extending import Extensions
from mssql_cdc.records.failures import Failures
from mssql_cdc.records.pieces import WINDOW_ROWS
from mssql_cdc.records.post_processors import PostProcessors
from mssql_cdc.records.rows import changes_of
from mssql_cdc.records.schema_changes import as_first_seen
from mssql_cdc.records.shapes import Shapes
from mssql_cdc.records.topics import topics_of
from mssql_cdc.schema import TableId, TableSchema

COLUMNS = ("_pos", "_commit_ts", "_batch", "_schema", "op", "source", "_snapshot")
"""The columns of a change log that rows are counted from, if their values do not matter."""
COUNTED = pa.schema(
    [
        pa.field("transaction", pa.string()),
        pa.field("commit_lsn", pa.string()),
        pa.field("collection", pa.string()),
        pa.field("first", pa.string()),
        pa.field("last", pa.string()),
        pa.field("at", pa.int64()),
        pa.field("events", pa.int64()),
    ]
)
"""The events of one table in one transaction: `first` and `last` are `_pos` values, `at` is in microseconds.

`transaction` is the beginning of their positions: an LSN can recur after a restore."""
_TRANSACTION = 25
"""The length of the epoch and the commit LSN in `_pos`."""
_BEFORE_SPLIT, _AFTER_SPLIT = 3, 4


def counting_extensions(connector: Connector) -> Extensions:
    """Load the extensions that affect what counts as an event (raises ConfigurationError)."""
    return Extensions(topics_of(connector), CustomConverters.of(connector), PostProcessors())


def transaction_of(position: str) -> str:
    """Return the transaction of a position, as in `COUNTED`."""
    return position[:_TRANSACTION]


def merged_counts(counts: Sequence[pa.Table]) -> pa.Table:
    """Return the counts of several tables as one, by transaction and collection."""
    rows = pa.concat_tables([COUNTED.empty_table(), *counts]).group_by(["transaction", "collection"])
    found = rows.aggregate(
        [("commit_lsn", "min"), ("first", "min"), ("last", "max"), ("at", "max"), ("events", "sum")]
    ).select(["transaction", "commit_lsn_min", "collection", "first_min", "last_max", "at_max", "events_sum"])
    named = found.rename_columns(COUNTED.names).cast(COUNTED).combine_chunks()
    return named.sort_by([("transaction", "ascending"), ("collection", "ascending")])


@dataclass
class EventCounts:
    """Counts the events of one table.

    Rows are passed in at most twice: all of them without their values, then, if `needs_values`, all of them complete.

    Attributes:
        table_id: The table, by its name in the history.
        history: The schema versions.
        connector: The configuration.
        extensions: Take part in rendering; None: rows cannot be rendered, so each counts as one.
    """

    table_id: TableId
    history: SchemaHistory
    connector: Connector
    extensions: Extensions | None
    needs_values: bool = False
    _found: list[pa.Table] = field(default_factory=list[pa.Table])
    _halves: list[pa.RecordBatch] = field(default_factory=list[pa.RecordBatch])
    _rendered: dict[int, bool] = field(default_factory=dict[int, bool])

    def add(self, rows: pa.RecordBatch) -> None:
        """Count the rows whose values do not matter.

        Args:
            rows: Rows that belong to the stream, with `COLUMNS`, in any order.
        """
        needed = self._needs(rows)
        self.needs_values = self.needs_values or bool(pc.any(needed).as_py())
        op, skipped = rows.column("op"), self.connector.records.skipped
        left_out, is_half = pc.is_in(op, value_set=pa.array(sorted({"r", *skipped}), pa.string())), _is_half(rows)
        # Whatever their own op, they are an update.
        left_out = pc.or_(left_out, is_half) if "u" in skipped else pc.and_not(left_out, is_half)
        self._count(rows.filter(pc.invert(pc.or_(needed, left_out))))

    def add_values(self, rows: pa.RecordBatch) -> None:
        """Count the rows whose values matter.

        Args:
            rows: The same rows with all columns.
        """
        rows = rows.filter(self._needs(rows))
        is_half = _is_half(rows)
        self._render(rows.filter(pc.invert(is_half)))
        halves = rows.filter(is_half)
        if not halves.num_rows:
            return
        # Both halves of a key change are in one commit, but not always in one batch.
        halves = pa.concat_batches([*self._halves, halves])
        halves = halves.take(pc.sort_indices(halves.column("_pos")))
        stems = pc.utf8_slice_codeunits(halves.column("_pos"), 0, -1).to_numpy(zero_copy_only=False)
        same = stems[1:] == stems[:-1]
        paired = np.concatenate([same, [False]]) | np.concatenate([[False], same])
        self._render(halves.filter(pa.array(paired)))
        self._halves = [halves.filter(pa.array(~paired))]

    def counts(self) -> pa.Table:
        """Return the counts, as `COUNTED`."""
        for rows in self._halves:
            self._count(rows)  # The other half is missing: records stop here.
        self._halves = []
        return merged_counts(self._found)

    @cached_property
    def _shapes(self) -> Shapes:
        assert self.extensions is not None
        versions = tuple(as_first_seen(self.history.versions.get(self.table_id.text, ())))
        history = SchemaHistory({self.table_id.text: versions})
        return Shapes(history, self.connector, self.extensions)

    def _needs(self, rows: pa.RecordBatch) -> pa.Array:
        """Return for which rows the number of events depends on their values."""
        settings = self.connector.records
        is_update, version = pc.equal(rows.column("op"), "u"), rows.column("_schema")
        if settings.failure_handling != "fail":
            found = pa.repeat(pa.scalar(value=True), rows.num_rows)  # Any row may be left out.
        elif "u" in settings.skipped:
            found = pa.repeat(pa.scalar(value=False), rows.num_rows)
        else:
            found = pc.or_(_is_half(rows), pc.and_(is_update, self._are(version, self._may_differ)))
        return pc.and_(found, self._are(version.filter(found), self._is_rendered, version))

    def _are(self, some: pa.Array, what: Callable[[int], bool], all_: pa.Array | None = None) -> pa.Array:
        """Return which rows have a version that satisfies a condition.

        Args:
            some: Versions; only these are tested.
            what: The condition.
            all_: The versions of the rows; None: `some`.
        """
        chosen = pa.array([one for one in pc.unique(some).to_pylist() if what(one)], some.type)
        return pc.is_in(some if all_ is None else all_, value_set=chosen)

    def _may_differ(self, version: int) -> bool:
        """Whether an update that keeps the row's key may have no event or two."""
        schema = self._version(version)
        if schema is None or self.connector.records.skip_unchanged:
            return True
        table, columns = schema.table_id, [column.name for column in schema.columns]
        own = self.connector.records.keys.columns_for(table.catalog or "", table.schema, table.name, columns)
        return not {*(own or schema.record_key)} <= {*schema.key_columns}

    def _is_rendered(self, version: int) -> bool:
        """Whether rows of a version can be rendered at all; if not, that is a problem of records, not of capture."""
        if version not in self._rendered:
            try:
                self._rendered[version] = self.extensions is not None and bool(self._shapes.of(self.table_id, version))
            except (ConfigurationError, SchemaError):
                self._rendered[version] = False
        return self._rendered[version]

    def _version(self, version: int) -> TableSchema | None:
        found = (one for one in self.history.versions.get(self.table_id.text, ()) if one.version == version)
        return next(found, None)

    def _render(self, rows: pa.RecordBatch) -> None:
        settings = self.connector.records
        failures = Failures("skip")  # Records report them.
        rows = rows.take(pc.sort_indices(rows.column("_pos")))
        for start in range(0, rows.num_rows, WINDOW_ROWS):  # An even number: pairs stay together.
            part = rows.slice(start, WINDOW_ROWS)
            for one in changes_of(part, self.table_id, self._shapes, skipped=settings.skipped, failures=failures):
                name, events = one.shape.table_id.text, Emitted.of(one, settings).events
                self._add(one.pos, one.commit_lsn, one.commit_us, pa.repeat(name, len(one)), pa.array(events))

    def _count(self, rows: pa.RecordBatch) -> None:
        """Count each of the rows as one event."""
        versions = rows.column("_schema")
        known = pc.unique(versions)
        schemas = [self._version(one) for one in known.to_pylist()]
        names = [(self.table_id if one is None else one.table_id).text for one in schemas]
        collection = pa.array(names, pa.string()).take(pc.index_in(versions, value_set=known))
        at = rows.column("_commit_ts").cast(pa.int64())
        commits = pc.struct_field(rows.column("source"), "commit_lsn")
        self._add(rows.column("_pos"), commits, at, collection, pa.repeat(1, rows.num_rows))

    def _add(self, pos: pa.Array, commits: pa.Array, at: pa.Array, collection: pa.Array, events: pa.Array) -> None:
        """Add events, several of which may be of one transaction.

        Args:
            pos: `_pos` of each change.
            commits: Its commit LSN.
            at: Its commit time in microseconds.
            collection: Its table.
            events: The number of its events.
        """
        columns = [pc.utf8_slice_codeunits(pos, 0, _TRANSACTION), commits, collection, pos, pos, at, events]
        rows = pa.Table.from_arrays(
            [values.cast(one.type) for values, one in zip(columns, COUNTED, strict=True)], schema=COUNTED
        )
        rows = rows.filter(pc.greater(rows.column("events"), 0))
        if rows.num_rows:
            self._found.append(merged_counts([rows]))


def _is_half(rows: pa.RecordBatch) -> pa.Array:
    """Return which rows are a half of an update that changes the row's key (rule B13)."""
    op, operation = rows.column("op"), pc.struct_field(rows.column("source"), "operation")
    deleted = pc.and_(pc.equal(op, "d"), pc.equal(operation, _BEFORE_SPLIT))
    created = pc.and_(pc.equal(op, "c"), pc.equal(operation, _AFTER_SPLIT))
    return pc.fill_null(pc.or_(deleted, created), fill_value=False)

"""Reads the changes of one (table, sub-range] as neutral batches (STR-01 … STR-13; rules A2, A9, B11, E29).

One connection, one transaction: what is checked holds for what is read. Runs inside Spark executors: the reader is
a value that pickles, and secrets are resolved only when it reads.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.config import Connection
from mssql_cdc.errors import SourceError
from mssql_cdc.lsn import Lsn, LsnRange
from mssql_cdc.schema import TableSchema
from mssql_cdc.source.sqlserver.bulk import Bulk, open_bulk
from mssql_cdc.source.sqlserver.columns import RowPlan
from mssql_cdc.source.sqlserver.commit_times import CommitTimeLoader
from mssql_cdc.source.sqlserver.decode import RAW_META, ChangeDecoder
from mssql_cdc.source.sqlserver.numpy_arrays import fixed_bytes
from mssql_cdc.source.sqlserver.positions import require_held
from mssql_cdc.source.sqlserver.sql import lsn, quote, require_visible, text
from mssql_cdc.source.values import CaptureInstance

PAGE_ROWS = 100_000
ORDER_WITH_COMMAND = ("__$start_lsn", "__$command_id", "__$seqval", "__$operation")
ORDER_WITHOUT_COMMAND = ("__$start_lsn", "__$seqval", "__$operation")
_GONE_OR_NEW = pa.array(["c", "d"])


@dataclass(frozen=True, slots=True)
class Place:
    """The raw row after which the next page begins; `command_id` is None if the server has none."""

    start_lsn: Lsn
    command_id: int | None
    seqval: Lsn
    operation: int

    @classmethod
    def last_of(cls, raw: pa.RecordBatch) -> Place:
        """The place of a raw batch's last row."""
        row = {name: raw.column(name)[-1].as_py() for name in ("lsn", "cmd", "seq", "op")}
        return cls(Lsn(row["lsn"]), row["cmd"], Lsn(row["seq"]), row["op"])


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeReader:
    """The changes of one capture instance with commit LSN in `range`.

    `visible` is a commit of the mapping table, not below the range's end, that proves that the connection sees the
    range (rule A2); None: the range's end itself is one. `page_rows` is the largest page (STR-08).
    """

    connection: Connection
    catalog: str
    instance: CaptureInstance
    range: LsnRange
    visible: Lsn | None = None
    page_rows: int = PAGE_ROWS

    def read(self) -> Iterator[pa.RecordBatch]:
        """Neutral batches in order; the last one is held back until the rows are known to be complete.

        Raises:
            StaleReaderError: the connection does not see the end of the range.
            DataLostError: rows of the range were cleaned up.
            SourceUnavailableError, SourceError, ConfigurationError: see `classify`.
        """
        if self.range.is_empty:
            return
        plan = RowPlan.of(self.instance.schema.columns)
        with open_bulk(self.connection, self.catalog, by_rows=plan.by_rows) as bulk:
            bulk.execute(require_visible(self.visible or self.range.to), doing=self._doing)
            self._require_held(bulk)
            times = CommitTimeLoader(bulk, self.connection.server_timezone)
            decoder = ChangeDecoder(self.instance.schema, plan, self.instance.ordinals, self.range.epoch, times)
            held: pa.RecordBatch | None = None
            try:
                for batch in self._decoded(bulk, plan, decoder, times):
                    if held is not None:
                        yield held
                    held = batch
            except SourceError:
                # Cleanup leaves half an update when it overtakes the reader.
                self._require_still_held(bulk)
                raise
            self._require_still_held(bulk)
            if held is not None:
                yield held

    def _decoded(
        self, bulk: Bulk, plan: RowPlan, decoder: ChangeDecoder, times: CommitTimeLoader
    ) -> Iterator[pa.RecordBatch]:
        guard = OrderGuard(self.instance.schema) if self.instance.change_table is None else None
        for page in self._pages(bulk, plan):
            times.load([fixed_bytes(raw.column("lsn"), 10) for raw in page])
            for raw in page:
                for batch in decoder.push(raw):
                    if guard is not None:
                        guard.check(batch)
                    yield batch
        decoder.finish()

    def _pages(self, bulk: Bulk, plan: RowPlan) -> Iterator[list[pa.RecordBatch]]:
        fields = [*RAW_META, *plan.raw_fields()]
        after: Place | None = None
        while True:
            statement = page_statement(self.instance, plan, self.range, rows=self.page_rows, after=after)
            page = [raw for raw in bulk.read(statement, fields, doing=self._doing) if raw.num_rows]
            if page:
                after = Place.last_of(page[-1])
                yield page
            if sum(raw.num_rows for raw in page) < self.page_rows:
                return

    def _require_still_held(self, bulk: Bulk) -> None:
        """The after-check: in a new transaction, so that it sees what happened while this one was read."""
        bulk.rollback()
        self._require_held(bulk)

    def _require_held(self, bulk: Bulk) -> None:
        """Check the minimum of rule A9 with a separate statement."""
        name = self.instance.name
        rows = bulk.read(
            f"SELECT sys.fn_cdc_get_min_lsn({text(name)}) AS [m]", [pa.field("m", pa.binary(10))], doing=self._doing
        )
        found = [value for batch in rows for value in batch.column("m").to_pylist()]
        require_held(name, Lsn(found[0]) if found and found[0] is not None else None, self.range.from_)

    @property
    def _doing(self) -> str:
        return f"reading changes of {self.instance.schema.table_id} ({self.instance.name})"


# -- Statements: pages of a change table, in the one order that there is (rule B11) -----------------------


def change_source(instance: CaptureInstance, wanted: LsnRange) -> str:
    """What follows FROM in a statement about an instance's rows in a range: the change table, or its function."""
    if instance.change_table is not None:
        schema, name = instance.change_table
        return f"{quote(schema)}.{quote(name)}"
    function = quote(f"fn_cdc_get_all_changes_{instance.name}")
    return f"[cdc].{function}({lsn(wanted.from_.increment())}, {lsn(wanted.to)}, N'all update old')"


def between(wanted: LsnRange) -> str:
    """The T-SQL predicate that holds for a range's rows, `(from, to]` of their commit LSN."""
    return f"[__$start_lsn] > {lsn(wanted.from_)} AND [__$start_lsn] <= {lsn(wanted.to)}"


def page_statement(
    instance: CaptureInstance, plan: RowPlan, wanted: LsnRange, *, rows: int, after: Place | None = None
) -> str:
    """The SELECT of one page, with the fields of `RAW_META` and of the plan.

    Args:
        instance: whose change table, or function where it may not be read, has the rows.
        plan: how the captured columns are fetched.
        wanted: the commit LSNs, `(from, to]`.
        rows: how many rows a page has at most.
        after: the last row of the page before; None for the first page.
    """
    with_command = instance.change_table is not None and instance.has_command_id
    order = ORDER_WITH_COMMAND if with_command else ORDER_WITHOUT_COMMAND
    select = [
        "[__$start_lsn] AS [lsn]",
        f"{'[__$command_id]' if with_command else 'CAST(NULL AS int)'} AS [cmd]",
        "[__$seqval] AS [seq]",
        "[__$operation] AS [op]",
        "[__$update_mask] AS [mask]",
        *plan.select_list(),
    ]
    where = between(wanted)
    if after is not None:
        where = f"[__$start_lsn] >= {lsn(after.start_lsn)} AND {where} AND {_after(after)}"
    return (
        f"SELECT TOP ({int(rows)}) {', '.join(select)} FROM {change_source(instance, wanted)} WHERE {where} "
        f"ORDER BY {', '.join(quote(name) for name in order)}"
    )


def _after(place: Place) -> str:
    """The page predicate; rows of one transaction either all have a command id or all have none."""
    if place.command_id is None:
        return keyset_after(ORDER_WITHOUT_COMMAND, [lsn(place.start_lsn), lsn(place.seqval), str(int(place.operation))])
    return keyset_after(
        ORDER_WITH_COMMAND,
        [lsn(place.start_lsn), str(int(place.command_id)), lsn(place.seqval), str(int(place.operation))],
    )


def keyset_after(columns: Sequence[str], literals: Sequence[str]) -> str:
    """Return the T-SQL predicate for rows after a given one in the order of NOT NULL columns (rule B11).

    `literals` are the given row's values as T-SQL writes them, one per column.
    """
    alternatives: list[str] = []
    for depth in range(len(columns) - 1, -1, -1):
        equal = [f"{quote(columns[i])} = {literals[i]}" for i in range(depth)]
        alternatives.append(" AND ".join([*equal, f"{quote(columns[depth])} > {literals[depth]}"]))
    return "(" + " OR ".join(f"({alternative})" for alternative in alternatives) + ")"


# -- Function mode -------------------------------------------------------------------------------------------


class OrderGuard:
    """Rejects changes that function mode cannot order (second half of rule B11).

    The functions return no command id. When one transaction deletes and inserts the same key under different change
    LSNs (`UPDATE … SET id = id + 1`), the order of the two decides whether the row exists, and it is unknown. The guard
    watches the neutral batches of one table, in order; a transaction may span several of them.
    """

    def __init__(self, schema: TableSchema) -> None:
        self._schema = schema
        self._commit: str | None = None
        self._seen: dict[Any, dict[str, str]] = defaultdict(dict)

    def check(self, batch: pa.RecordBatch) -> None:
        """Looks at the next batch.

        Raises:
            SourceError: a key was deleted and inserted in an order that cannot be known.
        """
        if not self._schema.key_columns:
            return
        rows = batch.filter(pc.is_in(batch.column("op"), value_set=_GONE_OR_NEW))
        names = list(self._schema.key_columns)
        befores, afters = rows.column("before").to_pylist(), rows.column("after").to_pylist()
        places = zip(*(rows.column(name).to_pylist() for name in ("commit_lsn", "change_lsn", "op")), strict=True)
        for (commit, change, op), before, after in zip(places, befores, afters, strict=True):
            if commit != self._commit:
                self._commit = commit
                self._seen.clear()
            image = before if op == "d" else after
            operations = self._seen[tuple(image[name] for name in names)]
            operations[op] = change
            if len(operations) == 2 and operations["c"] != operations["d"]:
                raise SourceError(
                    f"{self._schema.table_id}: transaction {commit} deletes and inserts one key, and without SELECT "
                    f"on the change table of {self._schema.instance!r} their order is unknown. "
                    "GRANT SELECT ON SCHEMA::cdc TO the login's user"
                )

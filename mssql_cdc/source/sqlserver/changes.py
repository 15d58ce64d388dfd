"""Reads the changes of one (table, sub-range] as neutral batches (STR-01 … STR-13; rules A2, A9, B11, E29).

One connection, one transaction: what is checked holds for what is read. Runs inside Spark executors: the reader is
a picklable value, and secrets are resolved only when it reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa

from mssql_cdc.config import Connection
from mssql_cdc.errors import (
    AccessDeniedError,
    DataLostError,
    MssqlCdcError,
    SourceError,
    SourceUnavailableError,
    StaleStructureError,
)
from mssql_cdc.lsn import Lsn, LsnRange
from mssql_cdc.source.sqlserver.bulk import Bulk, open_bulk
from mssql_cdc.source.sqlserver.columns import RowPlan, needs_rows
from mssql_cdc.source.sqlserver.commit_times import CommitTimeLoader
from mssql_cdc.source.sqlserver.concealed import masked_changes
from mssql_cdc.source.sqlserver.decode import RAW_META, ChangeDecoder
from mssql_cdc.source.sqlserver.numpy_arrays import fixed_bytes
from mssql_cdc.source.sqlserver.order_guard import OrderGuard
from mssql_cdc.source.sqlserver.positions import require_held
from mssql_cdc.source.sqlserver.sql import IS_VISIBLE, LSN, changes_function, digits, quote, stale_reader, text
from mssql_cdc.source.sqlserver.structure import Structure
from mssql_cdc.source.values import CaptureInstance

PAGE_ROWS = 100_000
PAGE_BYTES = 16 * 1024 * 1024
"""A page is kept in memory while the times of its commits are read."""
ORDER_WITH_COMMAND = ("__$start_lsn", "__$command_id", "__$seqval", "__$operation")
ORDER_WITHOUT_COMMAND = ("__$start_lsn", "__$seqval", "__$operation")


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
    range (rule A2); None: the range's end itself is one. `page_rows` is the size of the largest page (STR-08),
    `fetch_rows` the number of rows per fetch (STR-09), `rows` the approximate number of rows, if it is known.
    `by_choice`: the configuration requires the CDC function.
    """

    connection: Connection
    catalog: str
    instance: CaptureInstance
    range: LsnRange
    visible: Lsn | None = None
    page_rows: int = PAGE_ROWS
    fetch_rows: int | None = None
    rows: int | None = None
    by_choice: bool = False

    def read(self) -> Iterator[pa.RecordBatch]:
        """Neutral batches in order; the last one is held back until the rows are known to be complete.

        Raises:
            StaleReaderError: the connection does not see the end of the range.
            StaleStructureError: the change table's columns differ from the instance's schema.
            DataLostError: rows of the range were cleaned up.
            AccessDeniedError: the login sees masks in place of values.
            SourceUnavailableError, SourceError, ConfigurationError: see `classify`.
        """
        if self.range.is_empty:
            return
        by_rows, structure = needs_rows(self.instance.schema.columns), Structure.of_instance(self.instance)
        with open_bulk(self.connection, self.catalog, by_rows=by_rows, fetch_rows=self.fetch_rows) as bulk:
            self.require_visible(bulk)
            self._require_held(bulk)
            structure.require(bulk, doing=self._doing)
            self._require_unmasked(bulk)
            times = CommitTimeLoader(bulk, self.connection.server_timezone)
            held: pa.RecordBatch | None = None
            try:
                for batch in self.batches(bulk, times):
                    if held is not None:
                        yield held
                    held = batch
            except (SourceError, SourceUnavailableError) as error:
                raise self._cause(bulk, structure, error) from None
            self._require_unchanged(bulk, structure)
            if held is not None:
                yield held

    def batches(self, bulk: Bulk, times: CommitTimeLoader) -> Iterator[pa.RecordBatch]:
        """Neutral batches in order, read over a connection that the caller checks before and after."""
        plan = RowPlan.of(self.instance.schema.columns)
        decoder = ChangeDecoder(self.instance.schema, plan, self.instance.ordinals, self.range.epoch, times)
        guard = self._guard(bulk) if self.instance.change_table is None else None
        for page in self._pages(bulk, plan):
            times.load([fixed_bytes(raw.column("lsn"), 10) for raw in page])
            for raw in page:
                for batch in decoder.push(raw):
                    if guard is not None:
                        guard.check(batch)
                    yield batch
        decoder.finish()

    def _guard(self, bulk: Bulk) -> OrderGuard:
        """The guard that rejects changes whose order the function does not show (rule B11)."""
        return OrderGuard(self.instance.schema, lambda commit: self._has_both(bulk, commit), by_choice=self.by_choice)

    def _pages(self, bulk: Bulk, plan: RowPlan) -> Iterator[list[pa.RecordBatch]]:
        after: Place | None = None
        while True:
            page, more = self._page(bulk, plan, after)
            if page:
                after = Place.last_of(page[-1])
                yield page
            if not more:
                return

    def _page(self, bulk: Bulk, plan: RowPlan, after: Place | None) -> tuple[list[pa.RecordBatch], bool]:
        """The raw rows of the next page, at most `page_rows` and about `PAGE_BYTES`, and whether more follow.

        First come the rows left in the last row's commit, then the next commits.
        """
        fields = [*RAW_META, *plan.raw_fields()]
        page: list[pa.RecordBatch] = []
        left, size = self.page_rows, 0
        for condition in conditions(self.instance, after):
            sql = page_statement(self.instance, plan, condition, after)
            given = page_parameters(self.range, left, after)
            with closing(bulk.read(sql, fields, given, doing=self._doing, rows=self.rows)) as batches:
                for raw in batches:
                    if raw.num_rows:
                        page.append(raw)
                    left, size = left - raw.num_rows, size + raw.nbytes
                    if size >= PAGE_BYTES:
                        return page, True
            if left <= 0:
                return page, True
        return page, False

    def require_visible(self, bulk: Bulk) -> None:
        """Raise StaleReaderError unless the connection sees the end of the range (rule A2)."""
        wanted = self.visible or self.range.to
        rows = bulk.read(IS_VISIBLE, [pa.field("n", pa.int32())], [digits(wanted)] * 2, doing=self._doing, rows=1)
        if not any(value for batch in rows for value in batch.column("n").to_pylist()):
            raise stale_reader(self._doing)

    def _require_unchanged(self, bulk: Bulk, structure: Structure) -> None:
        """Check after the read, in a new transaction, so that the check sees what happened during the read."""
        bulk.rollback()
        self._require_held(bulk)
        structure.require(bulk, doing=self._doing)
        self._require_unmasked(bulk)

    def _cause(self, bulk: Bulk, structure: Structure, error: MssqlCdcError) -> MssqlCdcError:
        """What to raise for an error of the read.

        Cleanup leaves half an update, DDL leaves values that do not fit, and masked keys make rows indistinguishable.

        If the connection no longer answers, the error itself says best what happened.
        """
        try:
            self._require_unchanged(bulk, structure)
        except (DataLostError, StaleStructureError, AccessDeniedError) as cause:
            return cause
        except MssqlCdcError:
            return error
        return error

    def _require_held(self, bulk: Bulk) -> None:
        """Check the minimum of rule A9 with a separate statement."""
        name = self.instance.name
        rows = bulk.read(
            f"SELECT sys.fn_cdc_get_min_lsn({text(name)}) AS [m]",
            [pa.field("m", pa.binary(10))],
            doing=self._doing,
            rows=1,
        )
        found = [value for batch in rows for value in batch.column("m").to_pylist()]
        require_held(name, Lsn(found[0]) if found and found[0] is not None else None, self.range.from_)

    def _require_unmasked(self, bulk: Bulk) -> None:
        """Raise AccessDeniedError if the login sees masks in place of values (`concealed`)."""
        for error in masked_changes(bulk, [self.instance], doing=self._doing).values():
            raise error

    def _has_both(self, bulk: Bulk, commit: str) -> bool:
        """Whether a transaction both deletes and inserts rows of the table."""
        lsn = Lsn.parse(commit)
        found = bulk.read(
            f"DECLARE @from binary(10) = {LSN}, @to binary(10) = {LSN}; SELECT COUNT(DISTINCT [__$operation]) AS [n] "
            f"FROM {change_source(self.instance, '@from', '@to')} WHERE [__$operation] IN (1, 2)",
            [pa.field("n", pa.int32())],
            [digits(lsn.decrement()), digits(lsn)],
            doing=self._doing,
            rows=1,
        )
        return any(value > 1 for batch in found for value in batch.column("n").to_pylist())

    @property
    def _doing(self) -> str:
        return f"reading changes of {self.instance.schema.table_id} ({self.instance.name})"


# -- Statements: pages of a change table, in the one order that there is (rule B11) -----------------------


def change_source(instance: CaptureInstance, from_: str, to: str) -> str:
    """What follows FROM in a statement about an instance's rows in a range: the change table, or its function.

    Args:
        instance: the instance that has the rows.
        from_: T-SQL for the LSN after which the range begins.
        to: T-SQL for its last LSN.
    """
    if instance.change_table is not None:
        schema, name = instance.change_table
        return f"{quote(schema)}.{quote(name)}"
    return f"{changes_function(instance.name)}(sys.fn_cdc_increment_lsn({from_}), {to}, N'all update old')"


def conditions(instance: CaptureInstance, after: Place | None) -> list[str]:
    """The conditions of the next page's rows, in order: each fixes a prefix of the order and bounds the next column.

    So the server seeks in the change table's index, even inside one huge transaction, where a single condition with OR
    would read again what is before the page. Rows of one transaction either all have a command id or all have none.

    Args:
        instance: determines whether there are command ids.
        after: the last row of the previous page; None for the first page.
    """
    if after is None:
        return ["[__$start_lsn] > @from AND [__$start_lsn] <= @to"]
    order = ORDER_WITH_COMMAND if _with_command(instance) else ORDER_WITHOUT_COMMAND
    fixed = [f"{quote(name)} = {_VARIABLES[name]}" for name in order]
    if after.command_id is None and _with_command(instance):
        fixed[1] = "[__$command_id] IS NULL"
    found: list[str] = []
    for depth in range(len(order) - 1, 0, -1):
        if fixed[depth] != "[__$command_id] IS NULL":
            found.append(" AND ".join([*fixed[:depth], f"{quote(order[depth])} > {_VARIABLES[order[depth]]}"]))
    return [*found, "[__$start_lsn] > @lsn AND [__$start_lsn] <= @to"]


def page_statement(instance: CaptureInstance, plan: RowPlan, condition: str, after: Place | None) -> str:
    """The SELECT of a part of a page, with the fields of `RAW_META` and of the plan; see `page_parameters`.

    Args:
        instance: the instance whose change table has the rows, or whose function if that table may not be read.
        plan: how the captured columns are fetched.
        condition: one of `conditions`.
        after: the last row of the previous page; None for the first page.
    """
    order = ORDER_WITH_COMMAND if _with_command(instance) else ORDER_WITHOUT_COMMAND
    select = [
        "[__$start_lsn] AS [lsn]",
        f"{'[__$command_id]' if _with_command(instance) else 'CAST(NULL AS int)'} AS [cmd]",
        "[__$seqval] AS [seq]",
        "[__$operation] AS [op]",
        "[__$update_mask] AS [mask]",
        *plan.select_list(),
    ]
    return (
        f"{_DECLARE if after is None else _DECLARE_AFTER}; "
        f"SELECT TOP (@rows) {', '.join(select)} FROM {change_source(instance, '@from', '@to')} WHERE {condition} "
        f"ORDER BY {', '.join(quote(name) for name in order)}"
    )


def page_parameters(wanted: LsnRange, rows: int, after: Place | None) -> list[str | None]:
    """The parameters of `page_statement`; each always has the same length, so that the server sees one declaration.

    Args:
        wanted: The range.
        rows: The number of rows per page.
        after: The last row of the previous page; None: the first page.
    """
    given: list[str | None] = [digits(wanted.from_), digits(wanted.to), f"{rows:010d}"]
    if after is None:
        return given
    command = f"{after.command_id or 0:010d}"
    return [*given, digits(after.start_lsn), command, digits(after.seqval), f"{after.operation:010d}"]


_VARIABLES = {
    "__$start_lsn": "@lsn",
    "__$command_id": "@command",
    "__$seqval": "@sequence",
    "__$operation": "@operation",
}
_DECLARE = f"DECLARE @from binary(10) = {LSN}, @to binary(10) = {LSN}, @rows bigint = ?"
_DECLARE_AFTER = (
    f"{_DECLARE}, @lsn binary(10) = {LSN}, @command int = ?, @sequence binary(10) = {LSN}, @operation int = ?"
)


def _with_command(instance: CaptureInstance) -> bool:
    return instance.change_table is not None and instance.has_command_id

"""Reads the changes of one (table, sub-range] as neutral batches (STR-01 … STR-13; rules A2, A9, B11, C29).

One connection, one transaction: what is checked holds for what is read. Runs inside Spark executors: the reader is
a value that pickles, and secrets are resolved only when it reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from mssql_cdc.config import Connection
from mssql_cdc.errors import SourceError
from mssql_cdc.lsn import Lsn, LsnRange
from mssql_cdc.source.sqlserver.arrays import Bytes, fixed_bytes
from mssql_cdc.source.sqlserver.bulk import Bulk, open_bulk
from mssql_cdc.source.sqlserver.columns import RowPlan
from mssql_cdc.source.sqlserver.decode import RAW_META, ChangeDecoder
from mssql_cdc.source.sqlserver.order_guard import OrderGuard
from mssql_cdc.source.sqlserver.pages import Place, page_statement
from mssql_cdc.source.sqlserver.positions import require_held
from mssql_cdc.source.sqlserver.sql import MAPPING, lsn, require_visible, text
from mssql_cdc.source.sqlserver.times import (
    LOCAL,
    CommitTimes,
    Zone,
    ambiguous_window,
    distinct,
    to_instants,
)
from mssql_cdc.source.values import CaptureInstance

PAGE_ROWS = 100_000
_LISTED = 400  # commit LSNs that are looked up one by one; more of them are fetched as a range


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
            times = _Times(bulk, self.connection.server_timezone)
            decoder = ChangeDecoder(self.instance.schema, plan, self.instance.ordinals, self.range.epoch, times)
            held: pa.RecordBatch | None = None
            try:
                for batch in self._decoded(bulk, plan, decoder, times):
                    if held is not None:
                        yield held
                    held = batch
            except SourceError:
                # Half an update is what cleanup leaves behind when it overtakes the reader.
                self._require_still_held(bulk)
                raise
            self._require_still_held(bulk)
            if held is not None:
                yield held

    def _decoded(self, bulk: Bulk, plan: RowPlan, decoder: ChangeDecoder, times: _Times) -> Iterator[pa.RecordBatch]:
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
        """The minimum of rule A9, by a statement of its own."""
        name = self.instance.name
        rows = bulk.read(
            f"SELECT sys.fn_cdc_get_min_lsn({text(name)}) AS [m]", [pa.field("m", pa.binary(10))], doing=self._doing
        )
        found = [value for batch in rows for value in batch.column("m").to_pylist()]
        require_held(name, Lsn(found[0]) if found and found[0] is not None else None, self.range.from_)

    @property
    def _doing(self) -> str:
        return f"reading changes of {self.instance.schema.table_id} ({self.instance.name})"


class _Times:
    """Commit times of the page at hand, read on the reader's own connection between two pages."""

    def __init__(self, bulk: Bulk, zone: str | None) -> None:
        self._bulk = bulk
        self._zone: Zone | None = zone
        self._known = CommitTimes(pa.array([], pa.binary(10)), pa.array([], LOCAL))

    def __call__(self, lsns: Bytes) -> pa.Array:
        return self._known(lsns)

    def load(self, pages: list[Bytes]) -> None:
        """Reads the times of these commits."""
        zone = self._zone = self._zone if self._zone is not None else self._server_offset()
        wanted = distinct(pages)
        first, last = (Lsn(wanted[i].tobytes()) for i in (0, -1))
        if len(wanted) <= _LISTED:
            where = f"start_lsn IN ({', '.join(lsn(Lsn(one.tobytes())) for one in wanted)})"
        else:
            where = f"start_lsn >= {lsn(first)} AND start_lsn <= {lsn(last)}"
        lsns, local = self._rows(where)
        window = ambiguous_window(local, zone)
        if window is not None:
            begin, end = (f"CAST('{edge:%Y-%m-%dT%H:%M:%S}' AS datetime)" for edge in window)
            lsns, local = self._rows(f"({where}) OR (tran_end_time >= {begin} AND tran_end_time < {end})")
        self._known = CommitTimes(lsns, to_instants(local, zone))

    def _rows(self, where: str) -> tuple[pa.Array, pa.Array]:
        fields = [pa.field("l", pa.binary(10)), pa.field("t", LOCAL)]
        batches = self._bulk.read(
            f"SELECT start_lsn AS [l], CAST(tran_end_time AS datetime2(3)) AS [t] FROM {MAPPING} WHERE {where} "
            "ORDER BY start_lsn",
            fields,
            doing="reading commit times",
        )
        table = pa.Table.from_batches(list(batches), pa.schema(fields)).combine_chunks()
        return _one_array(table.column("l")), _one_array(table.column("t"))

    def _server_offset(self) -> int:
        rows = self._bulk.read(
            "SELECT DATEPART(tzoffset, SYSDATETIMEOFFSET()) AS [o]",
            [pa.field("o", pa.int32())],
            doing="reading the server's offset from UTC",
        )
        return int(np.concatenate([batch.column("o").to_numpy() for batch in rows])[0])


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])

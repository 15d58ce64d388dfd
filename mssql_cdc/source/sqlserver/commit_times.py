"""Commit times: server-local `datetime` of the mapping table to instants (STR-13, rule B17).

Order never depends on these times; instead, LSN order disambiguates them when clocks go back.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.lsn import Lsn
from mssql_cdc.schema.arrow import INSTANT
from mssql_cdc.source.sqlserver.bulk import Bulk
from mssql_cdc.source.sqlserver.numpy_arrays import Bytes, Flags, Numbers
from mssql_cdc.source.sqlserver.sql import LSN, MAPPING, digits

Zone = str | int
"""An IANA time zone name, or the server's present offset from UTC in minutes."""

LOCAL = pa.timestamp("us")
_LISTED = 400  # commit LSNs that are looked up one by one; more of them are fetched as a range
_LISTS = (4, 40, _LISTED)
_SPAN = f"start_lsn >= {LSN} AND start_lsn <= {LSN}"
_WINDOW = "tran_end_time >= CAST(? AS datetime) AND tran_end_time < CAST(? AS datetime)"


class CommitTimeLoader:
    """Commit times of the page at hand, read on the reader's own connection between two pages.

    `zone` is the server's, an IANA name; None: its current offset from UTC, which is queried once.
    """

    def __init__(self, bulk: Bulk, zone: str | None) -> None:
        self._bulk = bulk
        self._zone: Zone | None = zone
        self._known = CommitTimes(pa.array([], pa.binary(10)), pa.array([], LOCAL))

    def __call__(self, lsns: Bytes) -> pa.Array:
        """Instants of an (n, 10) matrix of LSNs of the page that was loaded last."""
        return self._known(lsns)

    def load(self, pages: list[Bytes]) -> None:
        """Reads the times of a page's commits: (n, 10) matrices of LSNs in ascending order, one per raw batch."""
        zone = self._zone = self._zone if self._zone is not None else self._server_offset()
        wanted = distinct(pages)
        first, last = (Lsn(wanted[i].tobytes()) for i in (0, -1))
        where, parameters = listed(wanted) if len(wanted) <= _LISTED else (_SPAN, [digits(first), digits(last)])
        lsns, local = self._rows(where, parameters, len(wanted) if len(wanted) <= _LISTED else None)
        window = ambiguous_window(local, zone)
        if window is not None:
            edges = [f"{edge:%Y-%m-%dT%H:%M:%S}" for edge in window]
            lsns, local = self._rows(f"({where}) OR ({_WINDOW})", [*parameters, *edges])
        self._known = CommitTimes(lsns, to_instants(local, zone))

    def _rows(self, where: str, parameters: Sequence[str], rows: int | None = None) -> tuple[pa.Array, pa.Array]:
        fields = [pa.field("l", pa.binary(10)), pa.field("t", LOCAL)]
        batches = self._bulk.read(
            f"SELECT start_lsn AS [l], CAST(tran_end_time AS datetime2(3)) AS [t] FROM {MAPPING} WHERE {where} "
            "ORDER BY start_lsn",
            fields,
            parameters,
            doing="reading commit times",
            rows=rows,
        )
        table = pa.Table.from_batches(list(batches), pa.schema(fields)).combine_chunks()
        return _one_array(table.column("l")), _one_array(table.column("t"))

    def _server_offset(self) -> int:
        rows = self._bulk.read(
            "SELECT DATEPART(tzoffset, SYSDATETIMEOFFSET()) AS [o]",
            [pa.field("o", pa.int32())],
            doing="reading the server's offset from UTC",
            rows=1,
        )
        return int(np.concatenate([batch.column("o").to_numpy() for batch in rows])[0])


def listed(lsns: Bytes) -> tuple[str, list[str]]:
    """The condition of at most `_LISTED` commits, with its parameters.

    Lists have few lengths, so that the server meets few texts; the last commit fills the rest of one.
    """
    texts = [one.tobytes().hex() for one in lsns]
    length = next(length for length in _LISTS if len(texts) <= length)
    texts += [texts[-1]] * (length - len(texts))
    return f"start_lsn IN ({', '.join([LSN] * length)})", texts


class CommitTimes:
    """Instants by commit LSN, from rows of the mapping table."""

    def __init__(self, lsns: pa.Array, instants: pa.Array) -> None:
        self._lsns = lsns.cast(pa.binary(10)) if len(lsns) else pa.array([], pa.binary(10))
        self._instants = instants

    def __call__(self, lsn: Bytes) -> pa.Array:
        """Instants of an (n, 10) matrix of LSNs; NULL for one that the mapping table no longer has."""
        rows = len(lsn)
        wanted = pa.Array.from_buffers(pa.binary(10), rows, [None, pa.py_buffer(np.ascontiguousarray(lsn))])
        return self._instants.take(pc.index_in(wanted, value_set=self._lsns)).cast(INSTANT)


def to_instants(local: pa.Array, zone: Zone) -> pa.Array:
    """Instants of local times in LSN order; when an hour occurs twice, a fall of the local time begins its second pass.

    Args:
        local: timestamp[us] without a zone, in LSN order.
        zone: the server's.

    Returns:
        timestamp[us, UTC]; NULL stays NULL.
    """
    if isinstance(zone, int):
        return pa.array(_micros(local) - zone * 60_000_000, pa.int64(), mask=_nulls(local)).view(INSTANT)
    early, late = _micros(_assume(local, zone, "earliest")), _micros(_assume(local, zone, "latest"))
    instants = np.where(_second_pass(_micros(local), early != late), late, early)
    return pa.array(instants, pa.int64(), mask=_nulls(local)).view(INSTANT)


def ambiguous_window(local: pa.Array, zone: Zone) -> tuple[datetime, datetime] | None:
    """The first and last of these local times whose hour occurs twice, widened by two hours; None: there is none."""
    if isinstance(zone, int):
        return None
    twice = _assume(local, zone, "earliest").cast(pa.int64()).to_numpy(zero_copy_only=False) != _assume(
        local, zone, "latest"
    ).cast(pa.int64()).to_numpy(zero_copy_only=False)
    if not twice.any():
        return None
    times = local.filter(pa.array(twice))
    margin = timedelta(hours=2)
    return pc.min(times).as_py() - margin, pc.max(times).as_py() + margin


def distinct(lsns: Sequence[Bytes]) -> Bytes:
    """The different LSNs of sorted matrices, in order."""
    whole = np.concatenate(lsns) if lsns else np.empty((0, 10), dtype=np.uint8)
    if not len(whole):
        return whole
    first = np.ones(len(whole), dtype=bool)
    first[1:] = (whole[1:] != whole[:-1]).any(axis=1)
    return whole[first]


def _assume(local: pa.Array, zone: str, ambiguous: Any) -> pa.Array:
    return pc.assume_timezone(local, zone, ambiguous=ambiguous, nonexistent="earliest")


def _second_pass(local: Numbers, twice: Flags) -> Flags:
    """Rows of a repeated hour after the point where local time fell."""
    late = np.zeros(len(local), dtype=bool)
    starts = np.nonzero(twice & ~np.concatenate([[False], twice[:-1]]))[0]
    for start in starts:
        rest = np.nonzero(~twice[start:])[0]
        end = start + int(rest[0]) if len(rest) else len(local)
        falls = np.nonzero(np.diff(local[start:end]) < 0)[0]
        if len(falls):
            late[start + int(falls[0]) + 1 : end] = True
    return late


def _micros(times: pa.Array) -> Numbers:
    return times.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)


def _nulls(times: pa.Array) -> Flags | None:
    return None if times.null_count == 0 else pc.is_null(times).to_numpy(zero_copy_only=False)


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])

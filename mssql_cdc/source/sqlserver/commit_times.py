"""Converts commit times, the server-local `datetime` of the mapping table, to instants (STR-13, rule B17).

Order never depends on these times; instead, LSN order disambiguates them when clocks go back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.lsn import Lsn
from mssql_cdc.schema.arrow import INSTANT
from mssql_cdc.source.sqlserver.bulk import Bulk
from mssql_cdc.source.sqlserver.numpy_arrays import Bytes, Flags, Numbers, flags
from mssql_cdc.source.sqlserver.sql import LSN, MAPPING, digits

Zone = str | int
"""An IANA time zone name, or the server's current offset from UTC in minutes."""

LOCAL = pa.timestamp("us")
SET_BACK = timedelta(minutes=10)
"""The most that a clock is set back by, except to standard time: a smaller step back of local times does not count."""
_LISTED = 400  # commit LSNs that one statement looks up
_LISTS = (4, 40, _LISTED)
_MOST_LISTED = 10 * _LISTED  # more commits are read as a range, whatever lies between them
_NEAR = 10
"""How many rows of the range are read for each commit of a page before the rest is looked up in lists.

A row of the range costs a server little compared with a look-up. 400 commits took the sandbox 200 ms in a list, and
2 ms as a range of their own; a list of 400 has as many parameters.
"""
_SPAN = f"start_lsn >= {LSN} AND start_lsn <= {LSN}"
_WINDOW = "tran_end_time >= CAST(? AS datetime) AND tran_end_time < CAST(? AS datetime)"


class CommitTimeLoader:
    """Commit times of the current page, read on the reader's own connection between two pages.

    `zone` is the server's, an IANA name; None: its current offset from UTC, which is queried once. Of the rows that a
    statement returns, only those of the page are kept: the mapping table has the commits of all tables.
    """

    def __init__(self, bulk: Bulk, zone: str | None) -> None:
        self._bulk = bulk
        self._zone: Zone | None = zone
        self._known = CommitTimes(pa.array([], pa.binary(10)), pa.array([], LOCAL))
        self._expected: tuple[pa.Array, pa.Array] | None = None

    def __call__(self, lsns: Bytes) -> pa.Array:
        """Instants for an (n, 10) matrix of LSNs of the page that was loaded last."""
        return self._known(lsns)

    @property
    def kept(self) -> int:
        """The number of commits that are in memory."""
        return len(self._known)

    def expect(self, from_: Lsn, to: Lsn) -> None:
        """Read the times of a range at once, for pages of several tables; `load` then queries only what is missing.

        Rows up to a visible end do not change: capture writes a commit's row with its changes, in LSN order, and only
        cleanup removes any. A range of more than `_MOST_LISTED` commits is left to `load`.

        Args:
            from_: The range begins after this commit.
            to: Its end, which the connection sees (rule A2).
        """
        edges = [digits(from_.increment()), digits(to)]
        found = list(self._batches(_SPAN, edges, rows=_MOST_LISTED, top=_MOST_LISTED))
        read = sum(len(lsns) for lsns, _ in found)
        whole = _one_array(found, 0, pa.binary(10)), _one_array(found, 1, LOCAL)
        self._expected = whole if read < _MOST_LISTED else None

    def load(self, pages: list[Bytes]) -> None:
        """Read the times of a page's commits: (n, 10) matrices of LSNs in ascending order, one per raw batch."""
        zone = self._zone = self._zone if self._zone is not None else self._server_offset()
        commits = distinct(pages)
        wanted = _lsn_array(commits)
        found = list(self._near(commits, wanted))
        lsns, local = _one_array(found, 0, pa.binary(10)), _one_array(found, 1, LOCAL)
        instants, window = to_instants(local, zone), ambiguous_window(local, zone)
        if window is not None:
            told = self._told_apart(window, zone, wanted)
            instants = pc.coalesce(told.of(lsns), instants)
        self._known = CommitTimes(lsns, instants)

    def _told_apart(self, window: tuple[datetime, datetime], zone: Zone, wanted: pa.Array) -> CommitTimes:
        """The instants of the page's commits in a window, from the order of all commits in it."""
        clock, found = Clock(zone), list[tuple[pa.Array, pa.Array]]()
        edges = [f"{edge:%Y-%m-%dT%H:%M:%S}" for edge in window]
        for lsns, local in self._batches(_WINDOW, edges):
            found.append(_only(wanted, lsns, clock(local)))
        return CommitTimes(_one_array(found, 0, pa.binary(10)), _one_array(found, 1, INSTANT))

    def _near(self, commits: Bytes, wanted: pa.Array) -> Iterator[tuple[pa.Array, pa.Array]]:
        """The rows of a page's commits: read as a range if few others lie between, otherwise looked up in lists."""
        if not len(commits):
            return
        if self._expected is not None:
            known = _only(wanted, *self._expected)
            if len(known[0]) == len(wanted):
                yield known
                return
        length, read, last = next((one for one in (*_LISTS, _MOST_LISTED) if len(commits) <= one), None), 0, b""
        top = None if length is None else _NEAR * length
        edges = [digits(Lsn(commits[place].tobytes())) for place in (0, -1)]
        for lsns, local in self._batches(_SPAN, edges, rows=len(commits), top=top):
            yield _only(wanted, lsns, local)
            read, last = read + len(lsns), lsns[-1].as_py()
        if read == top:
            left = commits[sum(one.tobytes() <= last for one in commits) :]
            for first in range(0, len(left), _LISTED):
                part = left[first : first + _LISTED]
                for lsns, local in self._batches(*listed(part), rows=len(part)):
                    yield _only(wanted, lsns, local)

    def _batches(
        self, where: str, parameters: Sequence[str], *, rows: int | None = None, top: int | None = None
    ) -> Iterator[tuple[pa.Array, pa.Array]]:
        """LSNs and local times in LSN order, batch by batch."""
        batches = self._bulk.read(
            f"SELECT {'' if top is None else f'TOP ({top}) '}start_lsn AS [l], "
            f"CAST(tran_end_time AS datetime2(3)) AS [t] FROM {MAPPING} WHERE {where} ORDER BY start_lsn",
            [pa.field("l", pa.binary(10)), pa.field("t", LOCAL)],
            parameters,
            doing="reading commit times",
            rows=rows,
        )
        return ((batch.column("l"), batch.column("t")) for batch in batches)

    def _server_offset(self) -> int:
        rows = self._bulk.read(
            "SELECT DATEPART(tzoffset, SYSDATETIMEOFFSET()) AS [o]",
            [pa.field("o", pa.int32())],
            doing="reading the server's offset from UTC",
            rows=1,
        )
        return int(np.concatenate([batch.column("o").to_numpy() for batch in rows])[0])


def listed(lsns: Bytes) -> tuple[str, list[str]]:
    """The condition for at most `_LISTED` commits, with its parameters.

    Lists have few different lengths, so that the server sees few texts; the last commit pads the rest of a list.
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

    def __len__(self) -> int:
        return len(self._lsns)

    def __call__(self, lsn: Bytes) -> pa.Array:
        """Instants for an (n, 10) matrix of LSNs; NULL for one that the mapping table no longer has."""
        return self.of(_lsn_array(lsn))

    def of(self, lsns: pa.Array) -> pa.Array:
        """Instants for an array of LSNs; NULL for one that is not known."""
        return self._instants.take(pc.index_in(lsns, value_set=self._lsns)).cast(INSTANT)


class Clock:
    """Instants for local times that come in LSN order, batch by batch.

    The order of commits distinguishes the two passes of an hour that occurs twice: a local time that would be more than
    `SET_BACK` before the preceding commit belongs to the second pass. Neighboring commits may be slightly out of order,
    which is not such a step back. If no commit steps back, because the database was idle for an hour less `SET_BACK` or
    longer and capture wrote no row of its own either, the passes look alike and the first one is assumed.
    """

    def __init__(self, zone: Zone) -> None:
        self._zone = zone
        self._previous: int | None = None

    def __call__(self, local: pa.Array) -> pa.Array:
        """The instants of the next local times: timestamp[us, UTC]; NULL stays NULL.

        Args:
            local: timestamp[us] without a zone, in LSN order.
        """
        if isinstance(self._zone, int):
            return pa.array(_micros(local) - self._zone * 60_000_000, pa.int64(), mask=_nulls(local)).view(INSTANT)
        early, late = _micros(_assume(local, self._zone, "earliest")), _micros(_assume(local, self._zone, "latest"))
        if (early != late).any():
            early = np.where(self._second_pass(early, late, flags(local)), late, early)
        found = pa.array(early, pa.int64(), mask=_nulls(local)).view(INSTANT)
        known = found.drop_null()
        self._previous = known[-1].value if len(known) else self._previous
        return found

    def _second_pass(self, early: Numbers, late: Numbers, known: Flags) -> Flags:
        """Which of the known local times are in the second pass of a repeated hour."""
        found, previous, back = np.zeros(len(early), dtype=bool), self._previous, SET_BACK // timedelta(microseconds=1)
        rows = np.nonzero(known)[0]
        for row, first, second in zip(rows.tolist(), early[rows].tolist(), late[rows].tolist(), strict=True):
            found[row] = first != second and previous is not None and first < previous - back
            previous = second if found[row] else first
        return found


def to_instants(local: pa.Array, zone: Zone) -> pa.Array:
    """Instants for local times in LSN order (see `Clock`): timestamp[us, UTC].

    Args:
        local: timestamp[us] without a zone, in LSN order.
        zone: the server's zone.
    """
    return Clock(zone)(local)


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
    """The distinct LSNs of sorted matrices, in order."""
    whole = np.concatenate(lsns) if lsns else np.empty((0, 10), dtype=np.uint8)
    if not len(whole):
        return whole
    first = np.ones(len(whole), dtype=bool)
    first[1:] = (whole[1:] != whole[:-1]).any(axis=1)
    return whole[first]


def _assume(local: pa.Array, zone: str, ambiguous: Any) -> pa.Array:
    return pc.assume_timezone(local, zone, ambiguous=ambiguous, nonexistent="earliest")


def _micros(times: pa.Array) -> Numbers:
    return times.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)


def _nulls(times: pa.Array) -> Flags | None:
    return None if times.null_count == 0 else pc.is_null(times).to_numpy(zero_copy_only=False)


def _lsn_array(lsns: Bytes) -> pa.Array:
    return pa.Array.from_buffers(pa.binary(10), len(lsns), [None, pa.py_buffer(np.ascontiguousarray(lsns))])


def _only(wanted: pa.Array, lsns: pa.Array, times: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The rows with the wanted LSNs."""
    kept = pc.is_in(lsns, value_set=wanted)
    return lsns.filter(kept), times.filter(kept)


def _one_array(found: Sequence[tuple[pa.Array, pa.Array]], which: int, kind: pa.DataType) -> pa.Array:
    return pa.concat_arrays([one[which].cast(kind) for one in found]) if found else pa.array([], kind)

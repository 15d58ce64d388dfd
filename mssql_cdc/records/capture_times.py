"""Capture times of events: the time of the `_offsets` row that contains their batch replaces Debezium's own clock."""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.records.json_texts import Texts, joined, or_null
from mssql_cdc.records.tables import Tables

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def microseconds(at: datetime) -> int:
    """Return exact microseconds since 1970."""
    return (at - _EPOCH) // timedelta(microseconds=1)


def stamps(micros: int | None) -> dict[str, int | None]:
    """Return `ts_ms`, `ts_us` and `ts_ns` of one instant."""
    if micros is None:
        return {"ts_ms": None, "ts_us": None, "ts_ns": None}
    return {"ts_ms": micros // 1000, "ts_us": micros, "ts_ns": micros * 1000}


def stamp_texts(micros: pa.Array) -> tuple[Texts, Texts, Texts]:
    """Return the texts of `ts_ms`, `ts_us` and `ts_ns` of microseconds since 1970."""
    encoded = micros.dictionary_encode()  # Rows of one transaction have one time.
    distinct = encoded.dictionary
    us = distinct.cast(pa.string())
    ms = pa.array(distinct.to_numpy() // 1000, pa.int64()).cast(pa.string())
    ns = pc.if_else(pc.equal(distinct, 0), "0", joined(us, "000"))
    return tuple(or_null(texts.take(encoded.indices)) for texts in (ms, us, ns))  # type: ignore[return-value]


@dataclass(frozen=True)
class CaptureTimes:
    """For each table (`TableId.text`), the batches in its offsets entries, ascending, and their times."""

    batches: dict[str, list[int]]
    times: dict[str, list[int]]

    @classmethod
    def of(cls, offsets: Offsets, tables: Tables) -> CaptureTimes:
        """Build from all offsets rows.

        Args:
            offsets: The offsets.
            tables: The database's tables: batches count per change log.
        """
        found: dict[str, dict[int, int]] = {}
        for row in offsets.rows:
            for name, entry in row.tables.items():
                if entry.batch is not None:
                    found.setdefault(tables.named(name, entry), {}).setdefault(entry.batch, microseconds(row.at))
        ordered = {table: sorted(times.items()) for table, times in found.items()}
        return cls(
            {table: [batch for batch, _ in items] for table, items in ordered.items()},
            {table: [time for _, time in items] for table, items in ordered.items()},
        )

    def of_batch(self, table: str, batch: int) -> int | None:
        """Return the time in microseconds since 1970 of the first offsets row that contains this batch of the table."""
        batches = self.batches.get(table, [])
        place = bisect.bisect_left(batches, batch)
        return self.times[table][place] if place < len(batches) else None

    def of_batches(self, table: str, batches: np.ndarray[Any, Any]) -> pa.Array:
        """Return `of_batch` of many rows."""
        distinct, where = np.unique(batches, return_inverse=True)
        times = pa.array([self.of_batch(table, int(batch)) for batch in distinct], pa.int64())
        return times.take(pa.array(where))

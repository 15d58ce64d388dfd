"""Times in records. An event's capture time is that of its batch in `_offsets`; it replaces Debezium's own clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.records.json_texts import Texts, joined, or_null

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
    encoded = micros.dictionary_encode()  # Rows of one transaction have the same time.
    distinct = encoded.dictionary
    us = distinct.cast(pa.string())
    ms = pa.array(distinct.to_numpy() // 1000, pa.int64()).cast(pa.string())
    ns = pc.if_else(pc.equal(distinct, 0), "0", joined(us, "000"))
    return tuple(or_null(texts.take(encoded.indices)) for texts in (ms, us, ns))  # type: ignore[return-value]

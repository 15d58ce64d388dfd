"""Checksums of the lake's rows, by bucket of their key's hash, computed as the source computes its own.

A row is the bytes of its compared columns: for NULL 0x00; for a value 0x01, four bytes of length, and its bytes.
Its SHA-256 gives two 8-byte numbers, whose sums over a bucket are compared with the source's: 128 bits, in any order.
Buckets are based on hashes of keys, not on key ranges: only the server knows the order of a collation or of a
uniqueidentifier, while both sides can hash any key. The source sums one key range at a time, which keeps its statements
short.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.check.compared import Compared
from mssql_cdc.check.sides import CurrentRows, exact_maps, in_scale
from mssql_cdc.schema import Column, Kind
from mssql_cdc.source.canonical import Moment
from mssql_cdc.source.values import Checksum

_ROWS_PER_BUCKET = 64
_FEWEST, _MOST = 16, 65_536
_PIECE = 1024
_LONE = re.compile("[\ud800-\udfff]")
Sums = dict[int, Checksum]


def bucket_count(rows: int) -> int:
    """The number of buckets for a table of this size: a power of two, such that a differing bucket holds few rows."""
    wanted = max(_FEWEST, min(_MOST, rows // _ROWS_PER_BUCKET))
    return 1 << (wanted - 1).bit_length()


def add(sums: Sums, more: Mapping[int, Checksum]) -> None:
    """Add the checksums of another part."""
    for number, one in more.items():
        sums[number] = sums.get(number, Checksum()) + one


def bucket_of(data: bytes, count: int) -> int:
    """The bucket of a key's bytes."""
    return int.from_bytes(hashlib.sha256(data).digest()[:3], "big") % count


def lake_checksums(batches: Iterable[pa.RecordBatch], rows: CurrentRows, compared: Compared, count: int) -> Sums:
    """The checksum of each bucket of a current table.

    Args:
        batches: The rows of the current table.
        rows: Reads the compared columns of a batch.
        compared: The columns to compare.
        count: The number of buckets.
    """
    sums: Sums = {}
    for batch in batches:
        for start in range(0, batch.num_rows, _PIECE):
            piece = batch.slice(start, _PIECE)
            buckets, data = row_data(piece, rows, compared, count)
            add(sums, sums_of(buckets, data))
    return sums


def row_data(batch: pa.RecordBatch, rows: CurrentRows, compared: Compared, count: int) -> tuple[list[int], list[bytes]]:
    """Bucket and bytes of each row.

    Args:
        batch: Rows of the current table.
        rows: Reads the compared columns of a batch.
        compared: The columns to compare.
        count: The number of buckets.
    """
    exacts = exact_maps(batch.column("_exact"))
    encoded = {
        column.name: _framed(encode(column, array, exacts))
        for column, array in zip(compared.columns, rows.arrays(batch), strict=True)
    }
    keys = _joined([encoded[name] for name in compared.schema.key_columns])
    return [bucket_of(key, count) for key in keys], _joined([encoded[name] for name in compared.names])


def sums_of(buckets: Sequence[int], data: Sequence[bytes]) -> Sums:
    """The checksum of each bucket of some rows.

    Args:
        buckets: The bucket of each row.
        data: The bytes of each row.
    """
    digests = b"".join(hashlib.sha256(one).digest()[:16] for one in data)
    lanes = np.frombuffer(digests, dtype=">i8").astype(np.int64).reshape(-1, 2)
    numbers, places = np.unique(np.array(buckets, dtype=np.int64), return_inverse=True)
    sums: list[list[int]] = []
    for lane in (0, 1):
        # Two halves of 32 bits, whose sums cannot overflow.
        high, low = np.zeros(len(numbers), np.int64), np.zeros(len(numbers), np.int64)
        np.add.at(high, places, lanes[:, lane] >> 32)
        np.add.at(low, places, lanes[:, lane] & 0xFFFFFFFF)
        sums.append([(int(h) << 32) + int(one) for h, one in zip(high, low, strict=True)])
    rows = np.bincount(places, minlength=len(numbers)).tolist()
    return {
        number: Checksum(count, low, high)
        for number, count, low, high in zip(numbers.tolist(), rows, *sums, strict=True)
    }


def _joined(columns: Sequence[pa.Array]) -> list[bytes]:
    if len(columns) == 1:
        return columns[0].to_pylist()
    return pc.binary_join_element_wise(*columns, pa.scalar(b"", pa.binary())).to_pylist()


def _framed(values: pa.Array) -> pa.Array:
    """0x00 for NULL; 0x01, the length and the bytes for a value."""
    lengths = pc.fill_null(pc.binary_length(values), 0).to_numpy(zero_copy_only=False).astype(">i4")
    frame = np.ones((len(values), 5), np.uint8)
    frame[:, 1:] = lengths.view(np.uint8).reshape(-1, 4)
    heads = pa.Array.from_buffers(pa.binary(5), len(values), [None, pa.py_buffer(frame.tobytes())])
    whole = pc.binary_join_element_wise(heads.cast(pa.binary()), values, pa.scalar(b"", pa.binary()))
    return pc.fill_null(whole, b"\x00")


Exacts = Sequence[Mapping[str, str] | None]


def encode(column: Column, values: pa.Array, exacts: Exacts) -> pa.Array:
    """The bytes of a column's values, as the source's own expression produces them; NULL stays NULL.

    Args:
        column: The column.
        values: Its values.
        exacts: The exact texts of each row by column.
    """
    if column.type.kind is Kind.DECIMAL:
        return _numbers(in_scale(column, values))
    texts = [known.get(column.name) if known else None for known in exacts]
    made = _BY_KIND[column.type.kind](values, texts)
    return made if made.type == pa.binary() else made.cast(pa.binary())


def _text(values: pa.Array, _: Sequence[str | None]) -> pa.Array:
    return values.cast(pa.string()).cast(pa.binary())


def _whole(values: pa.Array, _: Sequence[str | None]) -> pa.Array:
    numbers = values.cast(pa.int8()) if pa.types.is_boolean(values.type) else values
    return numbers.cast(pa.string()).cast(pa.binary())


def _numbers(values: Iterable[Decimal | None]) -> pa.Array:
    # Arrow writes small numbers with an exponent.
    return pa.array([None if value is None else f"{value:f}".encode() for value in values], pa.binary())


def _float(values: pa.Array, _: Sequence[str | None]) -> pa.Array:
    numbers = pc.fill_null(values.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False).astype(">f8")
    data = pa.Array.from_buffers(pa.binary(8), len(values), [None, pa.py_buffer(numbers.tobytes())])
    return pc.if_else(values.is_valid(), data.cast(pa.binary()), None)


def _binary(values: pa.Array, _: Sequence[str | None]) -> pa.Array:
    return values


def _utf16(values: pa.Array, exacts: Sequence[str | None]) -> pa.Array:
    encoded = [
        _stored(value, exact) if exact is not None else None if value is None else value.encode("utf-16-le")
        for value, exact in zip(values.to_pylist(), exacts, strict=True)
    ]
    return pa.array(encoded, pa.binary())


def _stored(value: str | None, exact: str) -> bytes:
    """The bytes of an exact text, followed by an extra byte if the value stored beside it is not the same text."""
    text = bytes.fromhex(exact.removeprefix("utf16:")).decode("utf-16-be", "surrogatepass")
    stored = text.encode("utf-16-le", "surrogatepass")
    return stored if value in {None, _LONE.sub("\ufffd", text)} else stored + b"?"


def _time(values: pa.Array, _: Sequence[str | None]) -> pa.Array:
    dotted = pc.if_else(pc.equal(pc.utf8_length(values), 8), pc.binary_join_element_wise(values, ".", ""), values)
    return pc.utf8_rpad(dotted, 16, "0").cast(pa.binary())


def _moment(values: pa.Array, exacts: Sequence[str | None], zone: str = "") -> pa.Array:
    plain = values.cast(pa.timestamp("us")).cast(pa.string())
    texts = pc.binary_join_element_wise(plain, "0" + zone, "")
    if not any(exacts):
        return texts.cast(pa.binary())
    micros = values.cast(pa.int64()).to_pylist()
    made = [
        text if exact is None else _exact_moment(exact, at, zoned=bool(zone))
        for text, exact, at in zip(texts.to_pylist(), exacts, micros, strict=True)
    ]
    return pa.array(made, pa.string()).cast(pa.binary())


def _exact_moment(exact: str, micros: int | None, *, zoned: bool) -> str:
    """An exact text with all digits, followed by a suffix if the value stored beside it is a different moment."""
    moment = Moment.parse(exact)
    day, _, rest = exact.partition(" ")
    time, _, offset = rest.partition(" ")
    whole, _, fraction = time.partition(".")
    text = f"{day} {whole}.{fraction.ljust(7, '0')}" + (f" {offset or '+00:00'}" if zoned else "")
    return text if moment.micros == micros else f"{text} not as stored"


def _instant(values: pa.Array, exacts: Sequence[str | None]) -> pa.Array:
    return _moment(values, exacts, zone=" +00:00")


_BY_KIND: Mapping[Kind, Callable[[pa.Array, Sequence[str | None]], pa.Array]] = {
    Kind.BOOLEAN: _whole,
    Kind.INTEGER: _whole,
    Kind.FLOAT: _float,
    Kind.TEXT: _utf16,
    Kind.DOCUMENT: _utf16,
    Kind.UUID: _text,
    Kind.BINARY: _binary,
    Kind.CLR: _binary,
    Kind.DATE: _text,
    Kind.TIME: _time,
    Kind.TIMESTAMP: _moment,
    Kind.INSTANT: _instant,
}

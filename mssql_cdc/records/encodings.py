"""Texts of bytes and exact numbers, in the formats of Kafka Connect's converter and `binary.handling.mode`.

Whole columns are encoded at once. The texts contain nothing that JSON would escape.
"""

from __future__ import annotations

import base64
import string
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

Numbers = np.ndarray[Any, Any]
_LONG = 512
"""The average length above which one call per value is faster than working on all bytes of a column."""
_DIGITS = string.ascii_uppercase + string.ascii_lowercase + string.digits
_HEX = np.frombuffer("".join(f"{byte:02x}" for byte in range(256)).encode(), np.uint16)


def _pairs(digits: str) -> Numbers:
    return np.frombuffer("".join(first + second for first in digits for second in digits).encode(), np.uint16)


_STANDARD, _URL_SAFE = _pairs(f"{_DIGITS}+/"), _pairs(f"{_DIGITS}-_")


def unscaled_text(number: int) -> str:
    """Return the base64 of an unscaled number's shortest two's complement form (Java's `toByteArray`)."""
    bits = number.bit_length() if number >= 0 else (~number).bit_length()
    return base64.b64encode(number.to_bytes(bits // 8 + 1, "big", signed=True)).decode()


def unscaled_texts(values: pa.Array) -> pa.Array:
    """Return `unscaled_text` of a column of decimals."""
    raw = values.buffers()[1]
    if raw is None:
        return pa.nulls(len(values), pa.string())
    stored = np.frombuffer(raw, np.uint8).reshape(-1, 16)[values.offset : values.offset + len(values)]
    big_endian = stored[:, ::-1]
    sign = np.where(big_endian[:, 0] & 0x80, 0xFF, 0).astype(np.uint8)
    differs = big_endian != sign[:, None]
    first = np.where(differs.any(axis=1), differs.argmax(axis=1), 15)
    # The first byte must carry the sign.
    leading = big_endian[np.arange(len(values)), first]
    first -= ((leading ^ sign) & 0x80).astype(bool) & (first > 0)
    sizes = np.where(np.asarray(values.is_valid()), 16 - first, 0)
    kept = np.arange(16) >= (16 - sizes)[:, None]
    return _base64_texts(big_endian[kept], sizes, _STANDARD, values)


def binary_texts(values: pa.Array, mode: str) -> pa.Array:
    """Return the texts of a column of bytes in a `binary.handling.mode`; the mode `bytes` is base64 in JSON, too."""
    _, offsets, data = values.buffers()
    if data is None or values.null_count == len(values):
        return _long_texts(values, binary_encoder(mode))
    bounds = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values) + 1].astype(np.int64)
    if bounds[-1] - bounds[0] > _LONG * len(values):
        return _long_texts(values, binary_encoder(mode))
    sizes = np.diff(bounds)
    used = np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]]
    if mode == "hex":
        return _strings(_HEX[used].view(np.uint8), sizes * 2, values)
    return _base64_texts(used, sizes, _URL_SAFE if mode == "base64-url-safe" else _STANDARD, values)


def binary_encoder(mode: str) -> Callable[[bytes], str]:
    """Return the encoder of one value in a `binary.handling.mode`."""
    return {"hex": bytes.hex, "base64-url-safe": _url_safe}.get(mode, _base64)


def _base64_texts(data: Numbers, sizes: Numbers, pairs: Numbers, like: pa.Array) -> pa.Array:
    """Encode values that are stored consecutively: each is padded to groups of three bytes, shown as two pairs."""
    groups = (sizes + 2) // 3
    starts = np.cumsum(sizes) - sizes
    group_ends = np.cumsum(groups)
    shifts = (group_ends - groups) * 3 - starts
    padded = np.zeros(3 * int(groups.sum()), np.uint8)
    if (sizes == groups * 3).all():
        padded[:] = data
    else:
        padded[np.arange(len(data)) + np.repeat(shifts, sizes)] = data
    triples = padded.reshape(-1, 3).astype(np.uint32)
    bits = triples[:, 0] << 16 | triples[:, 1] << 8 | triples[:, 2]
    shown = np.empty((len(bits), 2), np.uint16)
    shown[:, 0], shown[:, 1] = pairs[bits >> 12], pairs[bits & 0xFFF]
    texts = shown.view(np.uint8).reshape(-1)
    rest = sizes % 3
    texts[group_ends[(rest > 0)] * 4 - 1] = ord("=")
    texts[group_ends[rest == 1] * 4 - 2] = ord("=")
    return _strings(texts, groups * 4, like)


def _strings(texts: Numbers, sizes: Numbers, like: pa.Array) -> pa.Array:
    """Build strings that are stored consecutively, NULL where `like` is NULL."""
    offsets = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    valid = pa.array(np.asarray(like.is_valid())).buffers()[1] if like.null_count else None
    buffers = [valid, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(texts))]
    return pa.Array.from_buffers(pa.string(), len(sizes), buffers)


def _long_texts(values: pa.Array, encode: Callable[[bytes], str]) -> pa.Array:
    return pa.array([None if value is None else encode(value) for value in values.to_pylist()], pa.string())


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _url_safe(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode()

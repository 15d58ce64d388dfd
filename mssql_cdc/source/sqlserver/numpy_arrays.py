"""Arrow arrays from numpy, without a Python loop per row: fixed-width texts, lists and maps of texts.

These are only building blocks; `images`, `decode` and `raw_values` interpret the texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]
Numbers = np.ndarray[Any, np.dtype[np.int64]]

_DIGITS = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
_HEX = np.stack([np.repeat(_DIGITS, 16), np.tile(_DIGITS, 16)], axis=1).view(np.uint16).ravel()


def hex_digits(data: Bytes) -> Bytes:
    """Lowercase hexadecimal digits of an (n, width) byte matrix, as an (n, 2 * width) matrix."""
    return _HEX[data].view(np.uint8)


def hex_number(values: Numbers, digits: int) -> Bytes:
    """Lowercase hexadecimal digits of non-negative numbers, `digits` (even) of them."""
    raw = values.astype(">u8").view(np.uint8).reshape(len(values), 8)
    return hex_digits(raw)[:, 16 - digits :]


def literal(text: str, rows: int) -> Bytes:
    """The same ASCII text in each of `rows` rows."""
    return np.broadcast_to(np.frombuffer(text.encode("ascii"), dtype=np.uint8), (rows, len(text)))


def fixed_text(*parts: Bytes, valid: Flags | None = None) -> pa.StringArray:
    """A string array whose row i joins row i of every ASCII matrix; NULL where `valid` is false."""
    matrix = np.ascontiguousarray(np.concatenate(parts, axis=1))
    rows, width = matrix.shape
    offsets = np.arange(rows + 1, dtype=np.int32) * np.int32(width)
    return string_array(offsets, pa.py_buffer(matrix), valid)


def string_array(offsets: np.ndarray[Any, Any], data: pa.Buffer, valid: Flags | None) -> pa.StringArray:
    """A string array over existing memory.

    Args:
        offsets: n + 1 offsets into `data`, converted to 32 bits.
        data: UTF-8.
        valid: which of the n rows are not NULL; None: all.
    """
    mask = None if valid is None or bool(valid.all()) else validity(valid)
    buffers = [mask, pa.py_buffer(np.ascontiguousarray(offsets, dtype=np.int32)), data]
    return pa.Array.from_buffers(pa.string(), len(offsets) - 1, buffers)


def validity(valid: Flags) -> pa.Buffer:
    """Arrow's validity bitmap of a boolean vector."""
    return pa.py_buffer(np.packbits(valid, bitorder="little"))


def flags(array: pa.Array) -> Flags:
    """Which rows of an array are not NULL."""
    if array.null_count == 0:
        return np.ones(len(array), dtype=bool)
    return pc.is_valid(array).to_numpy(zero_copy_only=False)


def numbers(array: pa.Array, null: int = 0) -> Numbers:
    """An integer array as int64, NULL as `null`."""
    return array.cast(pa.int64()).fill_null(null).to_numpy(zero_copy_only=False)


def fixed_bytes(array: pa.Array, width: int) -> Bytes:
    """The (n, width) matrix of a binary array without NULL whose values all have `width` bytes.

    Raises:
        ValueError: a value is NULL or has another length.
    """
    if array.null_count:
        raise ValueError(f"expected {width} bytes in every row, found NULL")
    if not isinstance(array, pa.FixedSizeBinaryArray):
        lengths = pc.binary_length(array)
        if len(array) and (pc.min(lengths).as_py() != width or pc.max(lengths).as_py() != width):
            raise ValueError(f"expected {width} bytes in every row, found others")
        array = array.cast(pa.binary(width))
    data = np.frombuffer(array.buffers()[1], dtype=np.uint8)
    return data[array.offset * width : (array.offset + len(array)) * width].reshape(len(array), width)


def text_lists(chosen: Flags, names: Sequence[str], valid: Flags | None = None) -> pa.ListArray:
    """Return the list of selected names of each row.

    Args:
        chosen: an (n, m) matrix; `[i, j]` says whether row i has name j.
        names: m names, in the order of the lists.
        valid: rows that are not NULL; None: all. Nothing may be chosen in the others.
    """
    which = np.nonzero(chosen)[1]
    values = pa.array(list(names), pa.string()).take(pa.array(which))
    kind = pa.list_(pa.field("element", pa.string()))
    mask = None if valid is None or bool(valid.all()) else validity(valid)
    return pa.ListArray.from_buffers(kind, len(chosen), [mask, pa.py_buffer(_list_offsets(chosen))], children=[values])


def text_maps(columns: Sequence[tuple[str, pa.Array]], rows: int) -> pa.MapArray:
    """Return each row's map from name to text for its non-NULL columns; a NULL map if all columns are NULL."""
    kind = pa.map_(pa.string(), pa.string())
    if not columns:
        return pa.nulls(rows, kind)
    chosen = np.stack([flags(texts) for _, texts in columns], axis=1)
    any_row = np.asarray(chosen.any(axis=1))
    if not any_row.any():
        return pa.nulls(rows, kind)
    row, which = np.nonzero(chosen)
    keys = pa.array([name for name, _ in columns], pa.string()).take(pa.array(which))
    items = pa.concat_arrays([texts for _, texts in columns]).take(pa.array(which * rows + row))
    entries = pa.StructArray.from_arrays([keys, items], fields=[kind.key_field, kind.item_field])
    mask = None if bool(any_row.all()) else validity(any_row)
    return pa.MapArray.from_buffers(kind, rows, [mask, pa.py_buffer(_list_offsets(chosen))], children=[entries])


def _list_offsets(chosen: Flags) -> np.ndarray[Any, np.dtype[np.int32]]:
    offsets = np.zeros(len(chosen) + 1, dtype=np.int32)
    np.cumsum(chosen.sum(axis=1), out=offsets[1:])
    return offsets

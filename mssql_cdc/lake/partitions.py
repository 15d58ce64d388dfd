"""A partitioned table's partition values: in the log, as folders and as columns; and the rows of each partition."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mssql_cdc.errors import SchemaError
from mssql_cdc.schema.arrow import PAIRS, TEXT_MAP

_NULL = "__HIVE_DEFAULT_PARTITION__"
_PLAIN = re.compile(r"[\w ~.,@-]")
_MOST_BYTES = 255

Values = tuple[str | None, ...]
"""The value of each partition column as text; None: NULL."""


def by_partition(rows: pa.RecordBatch, columns: Sequence[str]) -> dict[Values, pa.RecordBatch]:
    """The rows of each partition, without the partition columns.

    Args:
        rows: rows of the table.
        columns: the table's partition columns.
    """
    if not columns:
        return {(): rows} if rows.num_rows else {}
    left = rows.select([name for name in rows.schema.names if name not in columns])
    texts = [rows.column(name).cast(pa.string()) for name in columns]
    codes = np.zeros(rows.num_rows, dtype=np.int64)
    for text in texts:
        encoded = pc.dictionary_encode(text, null_encoding="encode")
        mixed = codes * max(1, len(encoded.dictionary)) + np.asarray(encoded.indices, dtype=np.int64)
        codes = np.unique(mixed, return_inverse=True)[1]
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    found: dict[Values, pa.RecordBatch] = {}
    for places in np.split(order, starts[1:]) if rows.num_rows else []:
        values = tuple(text[int(places[0])].as_py() for text in texts)
        found[values] = left.take(pa.array(places))
    return found


def without_empty_texts(rows: pa.RecordBatch, columns: Sequence[str], names: Mapping[str, str]) -> pa.RecordBatch:
    """The rows with NULL for an empty text in a partition column, and the text in `_exact`.

    Delta has no partition for the empty text: it means NULL.

    Args:
        rows: new rows of the table.
        columns: the table's partition columns.
        names: the column of the table for each column of the source.
    """
    arrays = {name: rows.column(name) for name in rows.schema.names}
    for source, name in names.items():
        if name not in columns or not pa.types.is_string(arrays[name].type):
            continue
        empty = np.flatnonzero(_flags(pc.equal(arrays[name], "")))
        if len(empty):
            arrays[name] = pc.if_else(pc.equal(arrays[name], ""), pa.scalar(None, pa.string()), arrays[name])
            exact = arrays["_exact"].to_pylist()
            for row in empty.tolist():
                if source not in dict(exact[row] or ()):
                    exact[row] = [*(exact[row] or ()), (source, "")]
            arrays["_exact"] = pa.array(exact, TEXT_MAP)
    return pa.RecordBatch.from_arrays(list(arrays.values()), schema=rows.schema)


def with_empty_texts(rows: pa.RecordBatch, names: Mapping[str, str]) -> pa.RecordBatch:
    """The rows as the source has them, with the empty texts that `without_empty_texts` has replaced.

    Args:
        rows: rows of a current table.
        names: the column of the table for each column of the source.
    """
    pairs = pc.cast(rows.column("_exact"), PAIRS)
    empty = _flags(pc.equal(pc.struct_field(pc.list_flatten(pairs), "value"), ""))
    if not empty.any():
        return rows
    owners = np.asarray(pc.list_parent_indices(pairs))
    columns = pc.struct_field(pc.list_flatten(pairs), "key")
    arrays = {name: rows.column(name) for name in rows.schema.names}
    for source, name in names.items():
        if name in arrays and pa.types.is_string(arrays[name].type):
            lost = np.zeros(rows.num_rows, dtype=bool)
            lost[owners[empty & _flags(pc.equal(columns, source))]] = True
            arrays[name] = pc.if_else(pa.array(lost), pa.scalar("", pa.string()), arrays[name])
    exact = [[pair for pair in one or () if pair[1]] or None for one in arrays["_exact"].to_pylist()]
    arrays["_exact"] = pa.array(exact, TEXT_MAP)
    return pa.RecordBatch.from_arrays(list(arrays.values()), schema=rows.schema)


def folder_of(names: Sequence[str], values: Values) -> str:
    """The folder of a partition: `name=value/…`, as Hive escapes it.

    Delta's readers take the values from the log, but Polars takes them from the folders.

    Args:
        names: the columns, as files name them.
        values: the values of the partition.

    Raises:
        SchemaError: a value is too long to be the name of a folder.
    """
    parts: list[str] = []
    for name, value in zip(names, values, strict=True):
        part = f"{_escaped(name)}={_NULL if value is None else _escaped(value)}"
        parts.append(part)
        if len(part.encode()) > _MOST_BYTES:
            raise SchemaError(
                f"A value of {name!r} is too long for a partition: the name of its folder would have "
                f"{len(part.encode())} bytes, expected at most {_MOST_BYTES}. Choose another column"
            )
    return "/".join(parts)


def column_of(value: str | None, count: int, kind: pa.DataType) -> pa.Array:
    """A column that holds the value of a partition.

    Args:
        value: the value as the log has it; the empty text means NULL.
        count: how many rows there are.
        kind: the type of the column.
    """
    if not value:
        return pa.nulls(count, kind)
    return pa.repeat(pc.cast(pa.scalar(value, pa.string()), kind), count)


def _flags(values: pa.Array) -> NDArray[np.bool_]:
    return np.asarray(pc.fill_null(values, False), dtype=bool)


def _escaped(text: str) -> str:
    return "".join(c if _PLAIN.match(c) else "".join(f"%{byte:02X}" for byte in c.encode()) for c in text)

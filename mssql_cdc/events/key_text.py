"""`_key`: the exact text that identifies a row in MERGE and everywhere else (rule B12).

Debezium's record key is different and belongs to `records/`.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.errors import ConfigurationError
from mssql_cdc.events.nested_arrays import map_value
from mssql_cdc.schema.tables import Column, TableSchema

_NULL_PART = "N"
_SURROGATES = "utf16:"
"""The prefix of the exact text of a string with a lone surrogate (`SqlServerType.loss`)."""


def key_texts(
    image: pa.StructArray,
    exact: pa.MapArray,
    *,
    table_schema: TableSchema,
    masked: Collection[str] = (),
    key_secret: bytes | None = None,
) -> pa.Array:
    """`_key` of each row of an image; NULL for a NULL image and for every row of a table without a key.

    For each key column, in key order, `N` for NULL or `<byte length>:<exact text>`. With a masked key column the whole
    text is replaced by its HMAC-SHA256 (hex), so that no part of the value can be read or guessed.

    Args:
        image: `before` or `after` of a neutral batch.
        exact: the image's exact texts, by column name.
        table_schema: says which columns the key has.
        masked: columns with a mask.
        key_secret: the HMAC's key.

    Raises:
        ConfigurationError: a key column is masked and there is no `key_secret`.
    """
    if not table_schema.key_columns:
        return pa.nulls(len(image), pa.string())
    parts = [_part(_exact_text(image, exact, column)) for column in table_schema.keys]
    texts = parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, "")
    texts = pc.if_else(image.is_valid(), texts, pa.scalar(None, pa.string()))
    hidden = sorted(set(table_schema.key_columns) & set(masked))
    if not hidden:
        return texts
    if not key_secret:
        raise ConfigurationError(
            f"The key columns {hidden} of {table_schema.table_id} are masked; set delta.key.secret so that "
            "rows can be told apart without their values"
        )
    # An HMAC has no vectorized form; this path exists only for masked keys.
    return pa.array(
        [None if t is None else hmac.digest(key_secret, t.encode(), "sha256").hex() for t in texts.to_pylist()],
        pa.string(),
    )


def _part(text: pa.Array) -> pa.Array:
    sized = pc.binary_join_element_wise(pc.binary_length(text).cast(pa.string()), text, ":")
    return pc.fill_null(sized, _NULL_PART)


def _exact_text(image: pa.StructArray, exact: pa.MapArray, column: Column) -> pa.Array:
    """Return a unique text for each value: its exact text if Arrow cannot represent it."""
    values = image.field(column.name)
    if pa.types.is_binary(values.type):
        text = hex_text(values)
    elif pa.types.is_string(values.type):
        text = values
    else:
        text = values.cast(pa.string())
    loss = column.type.loss
    sidecar = None if loss == "never" else map_value(exact, column.name)
    if sidecar is None:
        return text
    if loss == "base type":
        return pc.if_else(sidecar.is_valid(), pc.binary_join_element_wise(sidecar, text, "\x1f"), text)
    return pc.coalesce(sidecar, _escaped(text) if loss == "surrogates" else text)


def _escaped(text: pa.Array) -> pa.Array:
    """Escape texts that look like the exact text of a string with a lone surrogate."""
    alike = pc.fill_null(pc.starts_with(text, _SURROGATES), fill_value=False)
    if not pc.any(alike).as_py():
        return text
    exact = [_SURROGATES + one.encode("utf-16-be").hex() for one in text.filter(alike).to_pylist()]
    return pc.replace_with_mask(text, alike, pa.array(exact, text.type))


def hex_text(values: pa.Array) -> pa.Array:
    """Lowercase hexadecimal text of each binary value; NULL stays NULL."""
    binary = values.cast(pa.binary())
    offsets = np.frombuffer(binary.buffers()[1], np.int32, len(binary) + 1, binary.offset * 4)
    data = binary.buffers()[2]
    raw = memoryview(data)[offsets[0] : offsets[-1]] if data is not None else b""
    text = pa.py_buffer(bytes(raw).hex().encode("ascii"))
    doubled = pa.py_buffer(((offsets - offsets[0]) * 2).astype(np.int32))
    plain = pa.Array.from_buffers(pa.string(), len(binary), [None, doubled, text])
    return pc.if_else(binary.is_valid(), plain, None)

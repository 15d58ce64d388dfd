"""Columns of current tables that have statistics and become decimals with too many digits for them.

A table lists the columns with statistics when it is created. A listed one may be widened later: `bigint` to
`decimal(20, 0)`, `smallmoney` to `money`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from mssql_cdc.lake.delta_schema import arrow_of
from mssql_cdc.lake.properties import STATS, listed_stats, listing
from mssql_cdc.lake.table_layout import stored
from mssql_cdc.lake.table_log import TableLog

_EXACT_DIGITS = 15


def is_wide(kind: pa.DataType) -> bool:
    """Whether it is a decimal whose bounds pass through a double in other writers, as in `deltalake`'s OPTIMIZE."""
    return pa.types.is_decimal(kind) and kind.precision > _EXACT_DIGITS


def widened_stats(log: TableLog, columns: pa.Schema) -> list[str]:
    """The columns that the table lists for statistics and that are wide decimals.

    A clustering column stays listed: without its statistics, only Spark could write the table.

    Args:
        log: the table.
        columns: its columns, with the types that they have from now on.
    """
    known = arrow_of(log.schema_json).names
    listed = [name for name in listed_stats(log.properties) if name in known and name in columns.names]
    paths = zip(listed, stored(log.schema_json, listed), strict=True)
    return [name for name, path in paths if is_wide(columns.field(name).type) and (path,) not in log.cluster_by]


def without_stats(metadata: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Any]:
    """The table's metadata without statistics of these columns.

    Args:
        metadata: the metadata so far.
        columns: the columns.
    """
    before: dict[str, str] = metadata["configuration"] or {}
    left = [name for name in listed_stats(before) if name not in columns]
    return {**metadata, "configuration": {**before, STATS: listing(left)}}


def has_rounded_bounds(log: TableLog, columns: Sequence[str]) -> bool:
    """Whether a file may have rounded bounds of these columns: earlier versions and `deltalake` wrote such bounds.

    Args:
        log: the table.
        columns: wide decimals that it lists for statistics.
    """
    kinds = [arrow_of(log.schema_json).field(name).type for name in columns]
    # A former `bigint` has whole numbers as bounds, which are exact.
    scales = {
        path: kind.scale
        for path, kind in zip(stored(log.schema_json, columns), kinds, strict=True)
        if pa.types.is_decimal(kind)
    }
    bounds = [file.facts.get(end, {}) for file in log.files.values() for end in ("minValues", "maxValues")]
    return any(
        isinstance(found.get(path), float) and abs(found[path]) * 10**scale >= 10**_EXACT_DIGITS
        for found in bounds
        for path, scale in scales.items()
    )

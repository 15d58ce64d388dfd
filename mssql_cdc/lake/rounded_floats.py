"""Columns of current tables that become `float` while files have bounds that were rounded for `real`.

Spark writes the bounds of a `real` with just enough digits to distinguish it from its neighbors: `0.1` for
0.10000000149. Read as that of a `float`, such a maximum lies below the value itself, and readers skip the file that has
the value.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from mssql_cdc.lake.delta_schema import arrow_of
from mssql_cdc.lake.evolution import SchemaChange
from mssql_cdc.lake.table_layout import stored
from mssql_cdc.lake.table_log import TableLog


def rounded_floats(log: TableLog, change: SchemaChange) -> list[str]:
    """The columns that change from `real` to `float` and for which a file has a bound that is not a `real`.

    Args:
        log: The table before the change.
        change: What changes.
    """
    known = arrow_of(log.schema_json)
    names = [
        path[0]
        for path, kind in change.widened
        if len(path) == 1 and kind == pa.float64() and known.field(path[0]).type == pa.float32()
    ]
    bounds = [file.facts.get(end, {}) for file in log.files.values() for end in ("minValues", "maxValues")]
    paths = zip(names, stored(log.schema_json, names), strict=True)
    return [name for name, path in paths if any(_is_rounded(found.get(path)) for found in bounds)]


def _is_rounded(bound: object) -> bool:
    return isinstance(bound, float) and float(np.float32(bound)) != bound

"""File statistics in Delta's format: `numRecords`, `minValues`, `maxValues`, `nullCount` of selected columns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_TEXT_LENGTH = 32
_LAST_CHARACTER = "\U0010ffff"


class Statistics:
    """Running statistics of one file over its batches; columns are given as logical -> stored name."""

    def __init__(self, columns: Mapping[str, str]) -> None:
        self._columns = columns
        self._smallest: dict[str, Any] = {}
        self._largest: dict[str, Any] = {}
        self._nulls = dict.fromkeys(columns, 0)
        self.rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Take in one batch (by logical names)."""
        self.rows += batch.num_rows
        for name in self._columns:
            values = batch.column(name)
            self._nulls[name] += values.null_count
            found = pc.min_max(values).as_py()
            if found["min"] is None:
                continue
            low, high = found["min"], found["max"]
            self._smallest[name] = min(low, self._smallest.get(name, low))
            self._largest[name] = max(high, self._largest.get(name, high))

    def to_json(self) -> str:
        """The text of an `add` action's `stats`."""
        return json.dumps(
            {
                "numRecords": self.rows,
                "minValues": {self._columns[n]: _lower(v) for n, v in self._smallest.items()},
                "maxValues": {self._columns[n]: up for n, v in self._largest.items() if (up := _upper(v)) is not None},
                "nullCount": {self._columns[n]: count for n, count in self._nulls.items()},
            },
            ensure_ascii=False,
        )


def _lower(value: Any) -> Any:
    return value[:_TEXT_LENGTH] if isinstance(value, str) else _plain(value)


def _upper(value: Any) -> Any:
    """The bound that stands for a maximum; None: there is none."""
    # A truncated maximum must still be at least as large as every value with this prefix.
    if isinstance(value, str) and len(value) > _TEXT_LENGTH:
        return None if value[_TEXT_LENGTH] == _LAST_CHARACTER else value[:_TEXT_LENGTH] + _LAST_CHARACTER
    return _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.%f").zfill(26) + ("Z" if value.tzinfo else "")
    if isinstance(value, date):
        return value.isoformat()
    return float(value) if isinstance(value, Decimal) else value

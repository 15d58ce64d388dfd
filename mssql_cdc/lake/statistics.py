"""File statistics in Delta's format: `numRecords`, `minValues`, `maxValues`, `nullCount` of selected columns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_TEXT_LENGTH = 32
_LAST_CHARACTER = "\U0010ffff"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Statistics:
    """Running statistics of one file over its batches; columns are given as logical -> stored name."""

    def __init__(self, columns: Mapping[str, str]) -> None:
        self._columns = columns
        self._smallest: dict[str, Any] = {}
        self._largest: dict[str, Any] = {}
        self._nulls = dict.fromkeys(columns, 0)
        self._zones: dict[str, str | None] = {}
        self.rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Add one batch (with logical names)."""
        self.rows += batch.num_rows
        for name in self._columns:
            values = batch.column(name)
            self._nulls[name] += values.null_count
            if pa.types.is_timestamp(values.type):
                # As microseconds: with its offset, an instant may lie outside the years that Python supports.
                self._zones[name] = values.type.tz
                values = values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64())
            found = pc.min_max(values).as_py()
            if found["min"] is None:
                continue
            low, high = found["min"], found["max"]
            self._smallest[name] = min(low, self._smallest.get(name, low))
            self._largest[name] = max(high, self._largest.get(name, high))

    def to_json(self) -> str:
        """The text of an `add` action's `stats`."""
        lower = {self._columns[name]: _lower(self._value(name, one)) for name, one in self._smallest.items()}
        upper = {self._columns[name]: _upper(self._value(name, one)) for name, one in self._largest.items()}
        return _object(
            {
                "numRecords": _json(self.rows),
                "minValues": _object({name: _json(bound) for name, bound in lower.items() if bound is not None}),
                "maxValues": _object({name: _json(bound) for name, bound in upper.items() if bound is not None}),
                "nullCount": _object({self._columns[name]: _json(count) for name, count in self._nulls.items()}),
            }
        )

    def _value(self, name: str, found: Any) -> Any:
        """The smallest or largest value of a column; None: an instant that Delta's text cannot express."""
        if name not in self._zones:
            return found
        try:
            at = _EPOCH + timedelta(microseconds=found)
        except OverflowError:
            return None
        return at if self._zones[name] else at.replace(tzinfo=None)


def _object(members: Mapping[str, str]) -> str:
    """The JSON object with these members, whose values are already JSON."""
    return "{" + ", ".join(f"{json.dumps(name, ensure_ascii=False)}: {text}" for name, text in members.items()) + "}"


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
    return value.isoformat() if isinstance(value, date) else value


def _json(value: Any) -> str:
    # The nearest double of a decimal with more than 15 digits is another number, and a maximum that is rounded down
    # hides its row: `WHERE n = 9007199254740993` found nothing (deltalake 1.6.6, Polars 2.1).
    return f"{value:f}" if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False)

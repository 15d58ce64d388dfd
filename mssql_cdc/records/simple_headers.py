"""Keys in headers as Kafka Connect's SimpleHeaderConverter writes them: texts that look like JSON.

The converter escapes only quotes and backslashes. Few records have such headers, so this is done row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa

from mssql_cdc.config import RecordSettings
from mssql_cdc.config.java_texts import java_double
from mssql_cdc.records.json_texts import Texts, json_text, quoted
from mssql_cdc.records.number_texts import WrittenNumber, with_numbers_as_written
from mssql_cdc.records.shapes import TableShape
from mssql_cdc.schema import Column, Kind


def simple_texts(keys: Texts, shape: TableShape, settings: RecordSettings) -> Texts:
    """Return keys as JSON strings.

    Args:
        keys: The keys as JSON, with decimals as numbers.
        shape: The shape of their table.
        settings: The modes.
    """
    fields = shape.key_fields if shape.header_fields is None else shape.header_fields
    shown = {name: _number_style(column, settings) for name, column, _ in fields}
    return quoted(pa.array([_text(key, shown) for key in keys.to_pylist()], pa.string()))


def _number_style(column: Column, settings: RecordSettings) -> Callable[[str], str]:
    """Return a function that writes a column's numbers as Java does."""
    kind, mode = column.type.kind, settings.decimal_handling
    if kind is Kind.FLOAT or (kind is Kind.DECIMAL and mode == "double"):
        return java_double
    return _java_decimal if kind is Kind.DECIMAL and mode == "precise" else str


def _java_decimal(text: str) -> str:
    return str(Decimal(text))


def _text(key: str, shown: Mapping[str, Callable[[str], str]]) -> str:
    found: dict[str, Any] = with_numbers_as_written(key)
    texts = (f"{_escaped(name)}:{_value(value, shown.get(name, str))}" for name, value in found.items())
    return "{" + ",".join(texts) + "}"


def _value(value: Any, shown: Callable[[str], str]) -> str:
    if isinstance(value, WrittenNumber):
        return shown(value)
    return _escaped(value) if isinstance(value, str) else json_text(value)


def _escaped(text: str) -> str:
    found = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{found}"'

"""Renders one value under a configuration with the records package."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from mssql_cdc.config import MaskRule
from mssql_cdc.records.converters import converter
from mssql_cdc.schema import Column
from mssql_cdc_tests.unit.config.samples import connector_with


def printed(
    kind: Column, value: Any, exact: str | None = None, *, mask: MaskRule | None = None, **properties: object
) -> Any:
    """One value under a configuration.

    Args:
        kind: Its column.
        value: The value as the lake has it, masked.
        exact: Its exact text.
        mask: What hides the column.
        properties: The configuration's.
    """
    settings = connector_with({name.replace("__", "."): v for name, v in properties.items()}).records
    convert = converter(kind, settings, mask=mask)
    assert convert is not None
    texts = None if exact is None else pa.array([exact])
    if isinstance(value, datetime) and value.tzinfo is not None:
        # Importing pandera sets PYARROW_IGNORE_TIMEZONE, and pyarrow then drops every zone except UTC.
        value = value.astimezone(UTC)
    return json.loads(convert(pa.array([value], kind.type.arrow), texts)[0].as_py())

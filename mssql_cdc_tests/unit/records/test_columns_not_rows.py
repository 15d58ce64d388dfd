"""Records are rendered column by column: no Python runs for a row, whatever columns and envelopes it has."""

from __future__ import annotations

import io
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from mssql_cdc.records import JsonLinesStream, write_records
from mssql_cdc_tests.lake_kit import Change, column
from mssql_cdc_tests.unit.records.kit import Lake, table

FEW, MANY = 400, 4_000
SCHEMA = table(
    "a",
    column("id", "int", nullable=False),
    column("name", "nvarchar", length=50),
    column("amount", "decimal", precision=12, scale=2),
    column("at", "datetime2", scale=7),
    column("day", "date"),
    column("data", "varbinary", length=20),
    column("flag", "bit"),
)


def lake_of(folder: Path, count: int, properties: dict[str, object]) -> Lake:
    """A lake with so many rows of each operation, in one commit."""
    lake = Lake(folder, properties)
    schema = lake.add(SCHEMA)
    changes: list[Change] = []
    for number in range(1, count + 1):
        row = {"id": number, "name": f"name {number}", "data": b"x", "flag": number % 2 == 0}
        op = "cud"[number % 3]
        before, after = (None if op == "c" else row), (None if op == "d" else row)
        changes.append(Change(number, op, before, after))
    lake.append(schema, *changes)
    lake.cut(count)
    return lake


def calls(lake: Lake) -> int:
    """How many functions are called, those in C included, to render all records."""
    count = 0

    def counted(_frame: FrameType, event: str, _what: Any) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    output = JsonLinesStream(io.BytesIO())
    threading.setprofile(counted)
    sys.setprofile(counted)
    try:
        write_records(lake.connector, output=output)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return count


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"value.converter.schemas.enable": "true", "key.converter.schemas.enable": "true"},
        {"provide.transaction.metadata": "true"},
        {"decimal.handling.mode": "string", "binary.handling.mode": "hex", "time.precision.mode": "isostring"},
    ],
    ids=["default", "with schemas", "with transactions", "as texts"],
)
def test_more_records_take_no_more_calls(tmp_path: Path, properties: dict[str, object]):
    few, many = (lake_of(tmp_path / str(count), count, properties) for count in (FEW, MANY))
    calls(few)  # Caches are filled.
    first, more = calls(few), calls(many)
    assert more - first < (MANY - FEW) / 10

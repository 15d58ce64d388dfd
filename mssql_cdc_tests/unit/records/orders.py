# ruff: noqa: DTZ001 - SQL Server's values have no zone
"""The tables and rows of the stream that was recorded from the real Debezium."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from mssql_cdc.lsn import Lsn
from mssql_cdc_tests.lake_kit import Change, column
from mssql_cdc_tests.unit.records.kit import table

ORDERS = table(
    "orders",
    column("id", "int", nullable=False, identity=True),
    column("name", "nvarchar", length=50, nullable=False),
    column("qty", "int", default_text="((1))"),
    column("price", "decimal", precision=18, scale=2),
    column("created", "datetime2", scale=3),
    column("flag", "bit"),
    column("note", "nvarchar", length=-1),
    column("city", "nvarchar", length=40),
    column("weight", "float"),
    column("ref", "bigint"),
)


NOKEY = table("nokey", column("a", "int"), column("b", "varchar", length=10), keys=())


SIGNAL = table(
    "debezium_signal",
    column("id", "varchar", length=64, nullable=False),
    column("type", "varchar", length=32),
    column("data", "varchar", length=2048),
)


def number(text: str) -> int:
    return int.from_bytes(Lsn.parse(text).raw, "big")


def order(key: int, name: str = "n", **more: Any) -> dict[str, Any]:
    """A row that the recorded scenario inserts."""
    return {
        "id": key,
        "name": name,
        "qty": 1,
        "price": Decimal("1.25"),
        "created": datetime(2024, 3, 1, 1, 2, 3, 456000),
        "flag": True,
        "note": "note",
        "city": "C",
        "weight": 0.5,
        "ref": 7,
    } | more


def old_order(key: int) -> dict[str, Any]:
    """A row that existed before the recorded scenario."""
    return {
        "id": key,
        "name": f"name {key}",
        "qty": key,
        "price": Decimal("0.25") * key,
        "created": datetime(2024, 1, 1, 1, 2, 3, 456000) + timedelta(days=key - 1),
        "flag": key % 2 == 0,
        "note": f"note {key}",
        "city": "Zürich",
        "weight": 0.125 * key,
        "ref": 10 * key,
    }


def change(commit: str, change: str, op: str, *images: Any, **more: Any) -> Change:
    """A change at these LSNs of log block 2d; a delete has one image, its before image."""
    if op in {"c", "r"}:
        images = (None, *images)
    return Change(number(f"2d:{commit}"), op, *images, sequence=number(f"2d:{change}"), **more)

"""A table of several types, and its capture instance."""

from __future__ import annotations

from datetime import UTC, datetime

from mssql_cdc.lsn import LsnRange
from mssql_cdc.source.values import CaptureInstance
from mssql_cdc_tests.lake_kit import column, lsn
from mssql_cdc_tests.unit.records.kit import table

AT = datetime(2026, 1, 1, tzinfo=UTC)
THINGS = table(
    "things",
    column("id", "int", nullable=False),
    column("first-name", "nvarchar", length=50),
    column("price", "decimal", precision=18, scale=2),
    column("at", "datetime2", scale=3),
    column("raw", "varbinary", length=10),
    column("note", "varchar", length=9, default_text="('x')"),
)
ORDINALS = (1, 2, 3, 4, 5, 6)
INSTANCE = CaptureInstance(
    "dbo_things", 7, ("cdc", "dbo_things_CT"), 3, AT.replace(tzinfo=None), lsn(1), THINGS, ORDINALS
)
PART = (INSTANCE, LsnRange(lsn(1), lsn(9)))

"""Handwritten raw batches in the format that a driver delivers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import numpy as np
import pyarrow as pa

from mssql_cdc.lsn import Lsn
from mssql_cdc.schema import Column, SqlServerType, TableId, TableSchema
from mssql_cdc.schema.arrow import INSTANT
from mssql_cdc.source.sqlserver.columns import RowPlan
from mssql_cdc.source.sqlserver.decode import RAW_META, ChangeDecoder
from mssql_cdc.source.sqlserver.numpy_arrays import Bytes
from mssql_cdc.source.values import CaptureInstance

INT = SqlServerType("int")
NAME = SqlServerType("nvarchar", length=50, collation="Latin1_General_CI_AS")
TABLE = TableId("shop", "dbo", "orders")


def schema(*columns: Column, key: tuple[str, ...] = ("id",)) -> TableSchema:
    return TableSchema(TABLE, columns, key_columns=key, instance="dbo_orders")


ORDERS = schema(Column("id", INT, nullable=False, key_ordinal=1), Column("name", NAME))


def lsn(number: int) -> Lsn:
    return Lsn(number.to_bytes(10, "big"))


def instance(table: TableSchema = ORDERS, **more: object) -> CaptureInstance:
    given: dict[str, object] = {
        "name": "dbo_orders",
        "object_id": 7,
        "change_table": ("cdc", "dbo_orders_CT"),
        "source_object_id": 5,
        "created": datetime(2026, 1, 1),  # noqa: DTZ001 - the server's create_date has no zone
        "start_lsn": lsn(10),
        "schema": table,
        "ordinals": tuple(range(1, len(table.columns) + 1)),
    }
    return CaptureInstance(**(given | more))  # type: ignore[arg-type]


Row = tuple[int, int | None, int, int, bytes, *tuple[object, ...]]
"""(commit, command, change, operation, mask, raw values …)"""


def raw(table: TableSchema, rows: Sequence[Row]) -> pa.RecordBatch:
    plan = RowPlan.of(table.columns)
    fields = [*RAW_META, *plan.raw_fields()]
    values = [(lsn(r[0]).raw, r[1], lsn(r[2]).raw, *r[3:]) for r in rows]
    columns = list(zip(*values, strict=True)) if values else [()] * len(fields)
    arrays = [pa.array(list(c), f.type) for c, f in zip(columns, fields, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def decoder(table: TableSchema = ORDERS, ordinals: Sequence[int] | None = None, epoch: int = 0) -> ChangeDecoder:
    places = tuple(ordinals) if ordinals else tuple(range(1, len(table.columns) + 1))
    return ChangeDecoder(table, RowPlan.of(table.columns), places, epoch, no_times)


def no_times(lsns: Bytes) -> pa.Array:
    return pa.nulls(len(lsns), INSTANT)


def utf16(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-16-le", "surrogatepass")


def numbers(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)

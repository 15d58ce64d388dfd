"""A value that does not fit its column is an error that names the column and never the value."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from mssql_cdc.errors import SchemaError
from mssql_cdc.lake.delta_columns import with_delta_columns
from mssql_cdc.lake.delta_schema import conform, file_schema
from mssql_cdc.lake.read import lift
from mssql_cdc.lake.sweep import Sweep, sweep_rows
from mssql_cdc.schema import change_log_schema, current_schema
from mssql_cdc_tests.lake_kit import AT, column, delta_schema_text, lsn, orders

SECRET = 2**40 + 77


def test_value_that_does_not_fit_the_file_is_not_shown():
    inner = pa.struct([pa.field("pay", pa.int64())])
    batch = pa.RecordBatch.from_pylist([{"after": {"pay": SECRET}}], schema=pa.schema([pa.field("after", inner)]))
    narrow = pa.schema([pa.field("after", pa.struct([pa.field("pay", pa.int32())]))])
    with pytest.raises(SchemaError, match=r"after\.pay.*int64.*int32") as raised:
        conform(batch, narrow)
    assert str(SECRET) not in str(raised.value)
    with pytest.raises(SchemaError, match=r"after\.pay.*int64.*int32") as raised:
        lift(batch, narrow, narrow)
    assert str(SECRET) not in str(raised.value)


def test_sweep_keeps_values_of_a_narrowed_column():
    wide, narrow = orders(column("id", "bigint")), orders(column("id", "int"), version=2)
    rows = pa.RecordBatch.from_pylist(
        [{"id": SECRET, "_key": "1:1", "_pos": "p", "_batch": 1}], schema=current_schema(wide)
    )
    stored = file_schema(delta_schema_text(change_log_schema(wide)), change_log_schema(narrow), physical=False)
    sweep = Sweep(number=2, epoch=0, low=lsn(10), at=AT)
    (found,) = sweep_rows(iter([rows]), stored, table_schema=narrow, batch_number=3, sweep=sweep)
    assert found.column("before").to_pylist() == [{"id": SECRET}]


def test_sweep_deletes_a_row_that_is_older_than_the_delta_column_of_its_value():
    first = orders(column("id", "int"), column("pay", "int"))
    second = replace(with_delta_columns(orders(column("id", "int"), column("pay", "xml")), [first]), version=2)
    rows = pa.RecordBatch.from_pylist(
        [{"id": 1, "pay": 7, "_key": "1:1", "_pos": "p", "_batch": 1, "_unavailable": ["pay"]}],
        schema=current_schema(second),
    )
    sweep = Sweep(number=2, epoch=0, low=lsn(10), at=AT)
    schema = change_log_schema(second)
    (found,) = sweep_rows(iter([rows]), schema, table_schema=second, batch_number=3, sweep=sweep)
    assert found.column("before").to_pylist() == [{"id": 1, "pay_2": None}]
    assert found.column("key").to_pylist() == [{"id": 1}]
    assert found.column("_unavailable").to_pylist() == [["pay"]]


def test_sweep_deletes_a_row_of_a_current_table_that_lacks_a_new_column():
    """The table's structure is changed by the update that brings the column's first rows, which may come later."""
    first = orders(column("id", "int"), column("pay", "int"))
    second = orders(column("id", "int"), column("pay", "int"), column("extra", "int"), version=2)
    rows = pa.RecordBatch.from_pylist(
        [
            {"id": 1, "pay": 7, "_key": "1:1", "_pos": "p", "_batch": 1, "_unavailable": ["pay"]},
            {"id": 2, "pay": 8, "_key": "1:2", "_pos": "p", "_batch": 1},
        ],
        schema=current_schema(first),
    )
    sweep = Sweep(number=2, epoch=0, low=lsn(10), at=AT)
    schema = change_log_schema(second)
    (found,) = sweep_rows(iter([rows]), schema, table_schema=second, batch_number=3, sweep=sweep)
    assert found.column("before").to_pylist() == [
        {"id": 1, "pay": 7, "extra": None},
        {"id": 2, "pay": 8, "extra": None},
    ]
    assert found.column("_unavailable").to_pylist() == [["pay", "extra"], ["extra"]]

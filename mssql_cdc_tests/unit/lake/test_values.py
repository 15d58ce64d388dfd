"""A value that does not fit its column is an error that names the column and never the value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mssql_cdc.errors import SchemaError
from mssql_cdc.lake.current import CurrentTables
from mssql_cdc.lake.current_plan import CurrentRequest
from mssql_cdc.lake.delta_columns import with_delta_columns
from mssql_cdc.lake.delta_schema import conform, file_schema
from mssql_cdc.lake.read import lift, ordered, query, scan
from mssql_cdc.lake.sweep import Sweep, sweep_rows
from mssql_cdc.schema import change_log_schema, current_schema
from mssql_cdc_tests.lake_kit import (
    AT,
    Change,
    append,
    change_log,
    column,
    delta_schema_text,
    home_in,
    lsn,
    orders,
)
from mssql_cdc_tests.unit.lake.test_current_tables import no_spark

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


def test_instants_of_a_change_log_that_spark_has_compacted_are_what_they_were(tmp_path: Path):
    """Spark's default is INT96; in nanoseconds that ends in 2262, and instants behind it came back as others."""
    schema, home = orders(column("id", "int"), column("at", "datetimeoffset")), home_in(tmp_path)
    instants = [datetime(year, 12, 31, 23, 59, 59, 123456, tzinfo=UTC) for year in (1, 1676, 1970, 2263, 9999)]
    changes = [Change(1, "c", after={"id": n, "at": at}, sequence=n + 1) for n, at in enumerate(instants)]
    state = append(change_log(home, schema), schema, *changes)
    (path,) = Path(home.changes).glob("*.parquet")
    pq.write_table(pq.read_table(path), path, use_deprecated_int96_timestamps=True)
    assert pq.read_metadata(path).row_group(0).column(1).physical_type == "INT96"

    def told(batches: list[pa.RecordBatch]) -> list[datetime]:
        return [row["after"]["at"] for batch in batches for row in batch.to_pylist()]

    assert told(list(scan(home.changes))) == instants
    tables = ordered(home.changes, columns=["_batch", "after"])
    assert told([batch for table in tables for batch in table.to_batches()]) == instants
    CurrentTables(no_spark).apply_all([CurrentRequest(home, [schema], state.batch)])
    found = [row["at"] for batch in query(home.current, "SELECT at FROM t ORDER BY id") for row in batch.to_pylist()]
    assert found == instants


class WideFile(pq.ParquetFile):
    """A file whose texts are 2 GiB, which takes 4 GB of memory to try: 600,000 equal ones of 4,000 characters."""

    def read_row_group(self, *_: Any, **__: Any) -> NoReturn:
        """Fail as pyarrow 26 does."""
        raise NotImplementedError("Nested data conversions not implemented for chunked array outputs")


def test_a_row_group_that_pyarrow_does_not_read_at_once_is_read_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    schema, home = orders(), home_in(tmp_path)
    changes = [Change(1, "c", after={"id": n, "name": "a"}, sequence=n + 1) for n in range(25)]
    append(change_log(home, schema), schema, *changes)
    whole = list(scan(home.changes))
    monkeypatch.setattr("mssql_cdc.lake.read._PIECE_ROWS", (10,))
    monkeypatch.setattr(pq, "ParquetFile", WideFile)
    pieces = list(scan(home.changes))
    assert [batch.num_rows for batch in whole] == [25]
    assert [batch.num_rows for batch in pieces] == [10, 10, 5]
    assert pa.Table.from_batches(pieces) == pa.Table.from_batches(whole)
    assert [batch.num_rows for batch in scan(home.changes, columns=["op"])] == [10, 10, 5]


class WiderFile(WideFile):
    """A file in which ten texts behind the first rows have 2 GiB, too: 15,000 equal ones of 150,000 characters."""

    def iter_batches(self, batch_size: int = 0, **more: Any) -> Iterator[pa.RecordBatch]:
        """Fail as pyarrow 26 does."""
        for number, batch in enumerate(cast("Any", super()).iter_batches(batch_size=batch_size, **more)):
            if batch_size == 10 and number == 1:
                self.read_row_group()
            yield batch


def test_where_pieces_of_a_row_group_are_too_large_the_rest_of_it_is_read_in_smaller_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """They were read once: from 32 KB per value on, a compacted change log could not be read."""
    schema, home = orders(), home_in(tmp_path)
    changes = [Change(1, "c", after={"id": n, "name": "a"}, sequence=n + 1) for n in range(25)]
    append(change_log(home, schema), schema, *changes)
    whole = list(scan(home.changes))
    monkeypatch.setattr("mssql_cdc.lake.read._PIECE_ROWS", (10, 4))
    monkeypatch.setattr(pq, "ParquetFile", WiderFile)
    pieces = list(scan(home.changes))
    assert [batch.num_rows for batch in pieces] == [10, 2, 4, 4, 4, 1]
    assert pa.Table.from_batches(pieces) == pa.Table.from_batches(whole)
    monkeypatch.setattr("mssql_cdc.lake.read._PIECE_ROWS", (10,))
    with pytest.raises(NotImplementedError):
        list(scan(home.changes))

"""Columns are fetched correctly, and their raw parts decode to the stored type."""

from __future__ import annotations

import traceback
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from mssql_cdc.errors import SourceError, StaleStructureError
from mssql_cdc.schema import Column, SqlServerType
from mssql_cdc.source.sqlserver.columns import RowPlan
from mssql_cdc_tests.unit.source.raw import utf16

VARIANT = '{"base": "decimal", "precision": 5, "scale": 2, "length": 5}'
SAMPLES = [
    (SqlServerType("bit"), (True,), True, None),
    (SqlServerType("tinyint"), (255,), 255, None),
    (SqlServerType("bigint"), (-(2**63),), -(2**63), None),
    (SqlServerType("decimal", precision=38, scale=10), ("1.5000000000",), Decimal("1.5000000000"), None),
    (SqlServerType("money"), ("922337203685477.5807",), Decimal("922337203685477.5807"), None),
    (SqlServerType("float"), (1e308,), 1e308, None),
    (SqlServerType("varchar", length=20), (utf16("é"),), "é", None),
    (
        SqlServerType("varchar", length=8000),
        (utf16("a"), utf16("b"), utf16(""), utf16(""), utf16("")),
        "ab",
        None,
    ),
    (SqlServerType("nvarchar", length=-1), (utf16("long"), 8), "long", None),
    (SqlServerType("nchar", length=1), (b"\x00\xd8",), "\ufffd", "utf16:d800"),
    (SqlServerType("varbinary", length=-1), (b"\x00\x01", 2), b"\x00\x01", None),
    (SqlServerType("rowversion"), (b"\0\0\0\0\0\0\7\xd1",), b"\0\0\0\0\0\0\7\xd1", None),
    (SqlServerType("uniqueidentifier"), ("A" * 36,), "A" * 36, None),
    (SqlServerType("date"), ("9999-12-31",), date(9999, 12, 31), None),
    (SqlServerType("datetime"), ("1753-01-01 00:00:00.003",), datetime(1753, 1, 1, 0, 0, 0, 3000),  # noqa: DTZ001
     None),
    (SqlServerType("datetime2", scale=7), ("2021-07-30 00:00:00.0000001",), datetime(2021, 7, 30),  # noqa: DTZ001
     "2021-07-30 00:00:00.0000001"),
    (SqlServerType("time", scale=3), ("12:34:56.789",), "12:34:56.789", None),
    (SqlServerType("sql_variant"), (utf16("1.50"), 8, "decimal|5|2|5|"), "1.50", VARIANT),
    (SqlServerType("sql_variant"), (b"A\x00\x3d\xd8", 4, "nvarchar|||40|L"), "A\ufffd",
     '{"base": "nvarchar", "length": 40, "collation": "L", "utf16": "0041d83d"}'),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "parts", "value", "exact"), SAMPLES, ids=lambda v: getattr(v, "name", None))
def test_raw_parts_decode_to_the_stored_type(
    kind: SqlServerType, parts: tuple[object, ...], value: object, exact: str | None
) -> None:
    plan = RowPlan.of([Column("c", kind)])
    fields = plan.raw_fields()
    arrays = [pa.array([part, None], field.type) for part, field in zip(parts, fields, strict=True)]
    ((values, exacts),) = plan.decode(pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields)))

    assert values.type == kind.arrow
    assert values.to_pylist() == [value, None]
    assert (exacts.to_pylist() if exacts is not None else [None, None]) == [exact, None]


def test_a_value_truncated_in_transit_is_an_error_that_names_the_column() -> None:
    plan = RowPlan.of([Column("body", SqlServerType("varbinary", length=-1))])
    arrays = [pa.array([b"ab"], pa.binary()), pa.array([70_000], pa.int64())]

    with pytest.raises(SourceError, match=r"'body'.*70000 bytes, 2 arrived"):
        plan.decode(pa.RecordBatch.from_arrays(arrays, schema=pa.schema(plan.raw_fields())))


def test_a_value_out_of_range_is_not_quoted() -> None:
    """Arrow's message has the value, and would bring it into logs."""
    plan = RowPlan.of([Column("age", SqlServerType("tinyint"))])
    raw = pa.RecordBatch.from_arrays([pa.array([90_001], pa.int64())], names=["c0_0"])
    with pytest.raises(StaleStructureError, match=r"'age' does not fit tinyint.*out of its range") as caught:
        plan.decode(raw)
    assert "90001" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_only_columns_without_a_useful_limit_are_fetched_row_by_row() -> None:
    assert RowPlan.of([Column("c", SqlServerType("xml"))]).by_rows
    assert not RowPlan.of([Column("c", SqlServerType("varchar", length=8000))]).by_rows


WIDE = [Column(f"c{number}", SqlServerType("varchar", length=8000)) for number in range(450)]


def test_columns_that_are_wide_together_are_fetched_row_by_row() -> None:
    assert RowPlan.of(WIDE).by_rows
    assert not RowPlan.of(WIDE[:100]).by_rows


def test_text_of_a_row_that_is_fetched_by_itself_is_one_value_and_still_guarded() -> None:
    """Pieces of 450 or more columns come near the 4,096 expressions of a select list; the declaration still counts."""
    plan = RowPlan.of([*WIDE[:2], Column("body", SqlServerType("xml"))])
    texts = ("é" * 8000, "é" * 8001)
    fields = plan.raw_fields()
    assert [field.type for field in fields] == [pa.binary(), pa.int64()] * 3

    def decoded(text: str) -> list[object]:
        parts: list[object] = [utf16(text), 2 * len(text), None, None, None, None]
        arrays = [pa.array([part], field.type) for part, field in zip(parts, fields, strict=True)]
        return [
            values.to_pylist()
            for values, _ in plan.decode(pa.RecordBatch.from_arrays(arrays, names=[f.name for f in fields]))
        ]

    assert decoded(texts[0]) == [[texts[0]], [None], [None]]
    with pytest.raises(StaleStructureError, match=r"'c0' does not fit varchar\(8000\).*16002 bytes"):
        decoded(texts[1])


def test_a_datetime_is_never_widened_to_seven_digits() -> None:
    assert RowPlan.of([Column("c", SqlServerType("datetime"))]).select_list() == [
        "CONVERT(varchar(27), [c], 121) AS [c0_0]"
    ]


NAME = "Ada"


def test_a_value_of_another_form_is_an_error_that_does_not_show_it() -> None:
    plan = RowPlan.of([Column("born", SqlServerType("date"))])
    batch = pa.RecordBatch.from_arrays([pa.array([NAME])], schema=pa.schema(plan.raw_fields()))
    with pytest.raises(SourceError, match="'born'") as caught:
        plan.decode(batch)
    assert NAME not in "".join(traceback.format_exception(caught.value))

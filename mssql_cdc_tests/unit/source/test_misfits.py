"""A value that does not fit its declaration is an error and never cut, for every type of the type table (rule E26).

Most decoders see it. What arrives in a buffer of its own type has been converted by the driver: there the structure
that a reader verifies before and after its rows is the only guard, which holds for every type.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pyarrow as pa
import pytest

from mssql_cdc.errors import SourceError, StaleStructureError
from mssql_cdc.schema import TYPES, Column, Kind, SqlServerType
from mssql_cdc.source.sqlserver.columns import RowPlan
from mssql_cdc.source.sqlserver.structure import Structure
from mssql_cdc_tests.unit.source.raw import utf16
from mssql_cdc_tests.unit.test_every_type import EVERY, arrow_scale, every_type

BY_THE_DRIVER = {"bit", "tinyint", "smallint", "int", "bigint", "float"}
"""The types whose values a driver hands over as numbers of the declared size."""


def misfit(kind: SqlServerType) -> tuple[object, ...]:
    """The raw parts of a value that has more than the declaration holds, as the server sends it."""
    more = kind.fraction_digits + 1
    match kind.kind:
        case _ if kind.is_large:
            return _cut(kind)
        case Kind.DECIMAL:
            return (f"1.{'1' * (arrow_scale(kind) + 1)}",)
        case Kind.FLOAT:
            return (0.1,)
        case Kind.TEXT:
            size = 2000  # As `columns` fetches long text: in pieces.
            text = "x" * ((kind.length or 1) + 1)
            pieces = [utf16(text[start : start + size]) for start in range(0, len(text), size)]
            count = len(RowPlan.of([Column("c", kind)]).raw_fields())
            return tuple(pieces) if count > 1 else (utf16(text),)
        case Kind.UUID:
            return ("A" * 37,)
        case Kind.BINARY:
            return (bytes((kind.length or 8) + 1),)
        case Kind.DATE:
            return ("2021-07-30 00:00:00",)
        case Kind.TIME:
            return (f"12:34:56.{'1' * more}",)
        case Kind.TIMESTAMP:
            digits = {"smalldatetime": 4, "datetime": 4}.get(kind.name, more)
            return (f"2021-07-30 00:00:00.{'1' * digits}",)
        case Kind.INSTANT:
            return (f"2021-07-30 00:00:00.{'1' * more} +00:00",)
        case _:
            raise AssertionError(f"{kind.declaration}: say which value does not fit, or that the driver converts it")


def _cut(kind: SqlServerType) -> tuple[object, ...]:
    """A value of any length has none that does not fit; it may be cut on its way."""
    part = utf16("ab") if kind.kind in {Kind.TEXT, Kind.DOCUMENT, Kind.VARIANT} else b"ab"
    return (part, 70_000, *(["int|10|0|4|"] if kind.kind is Kind.VARIANT else []))


@pytest.mark.parametrize(
    "kind", [kind for kind in EVERY if kind.name not in BY_THE_DRIVER], ids=lambda kind: kind.declaration
)
def test_a_value_that_does_not_fit_is_an_error_of_every_type(kind: SqlServerType) -> None:
    plan = RowPlan.of([Column("c", kind)])
    fields = plan.raw_fields()
    parts = misfit(kind)
    assert len(parts) == len(fields)
    arrays = [pa.array([part], field.type) for part, field in zip(parts, fields, strict=True)]
    expected, says = (SourceError, "70000 bytes") if kind.is_large else (StaleStructureError, "'c' does not fit")
    with pytest.raises(expected, match=says):
        plan.decode(pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields)))


def test_only_numbers_of_a_fixed_size_are_left_to_the_driver() -> None:
    numbers = {name for name, row in TYPES.items() if row.kind in {Kind.BOOLEAN, Kind.INTEGER, Kind.FLOAT}}
    assert numbers - {"real"} == BY_THE_DRIVER


@pytest.mark.parametrize(
    ("kind", "parts"),
    [
        (SqlServerType("nvarchar", length=3), (utf16("four"),)),
        (SqlServerType("decimal", precision=8, scale=2), ("7.1234",)),
        (SqlServerType("decimal", precision=4, scale=2), ("123.45",)),
        (SqlServerType("smallmoney"), ("1234567.0000",)),
    ],
    ids=lambda value: getattr(value, "declaration", None),
)
def test_digits_on_both_sides_of_the_point_and_lengths_between_the_pieces_are_seen(
    kind: SqlServerType, parts: tuple[object, ...]
) -> None:
    plan = RowPlan.of([Column("c", kind)])
    fields = plan.raw_fields()
    arrays = [pa.array([part], field.type) for part, field in zip(parts, fields, strict=True)]
    with pytest.raises(StaleStructureError, match="'c' does not fit"):
        plan.decode(pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields)))


@every_type
def test_a_column_of_any_other_declaration_is_not_read_as_this_type(kind: SqlServerType) -> None:
    kind = replace(kind, scale=kind.fraction_digits) if kind.row.arguments == "scale" else kind
    table = Structure("t", "dbo", "t", 1, (Column("c", kind, position=1),), source=True)
    table.require_columns([in_catalog(kind)])
    for other in EVERY:
        if other.declaration != kind.declaration:
            with pytest.raises(StaleStructureError, match="'c' is"):
                table.require_columns([in_catalog(other)])


def in_catalog(kind: SqlServerType) -> SimpleNamespace:
    """The row of `sys.columns` for this type."""
    unit = 2 if kind.kind is Kind.TEXT and not kind.row.code_page else 1
    return SimpleNamespace(
        object_id=1,
        name="c",
        column_id=1,
        type_name=kind.name,
        max_length=-1 if kind.is_max else unit * (kind.length or 8),
        precision=kind.precision or 10,
        scale=kind.fraction_digits if kind.row.arguments == "scale" else kind.scale or 0,
        collation_name=None,
    )

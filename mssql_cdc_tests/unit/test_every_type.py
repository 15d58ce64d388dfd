"""Every part of the package supports every row of the type table; no other module lists types."""

# ruff: noqa: DTZ001 - SQL Server's values have no zone

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, get_args

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from mssql_cdc.check.sides import python_values
from mssql_cdc.config.masks import MaskKind, MaskRule
from mssql_cdc.config.patterns import PatternList
from mssql_cdc.config.record_settings import BinaryHandling, DecimalHandling, RecordSettings, TimePrecision
from mssql_cdc.errors import SchemaError
from mssql_cdc.events import HashMask, Mask, StarMask, Truncate
from mssql_cdc.events.key_text import key_texts
from mssql_cdc.lake import canonical
from mssql_cdc.lake.delta_schema import arrow_of
from mssql_cdc.records.converters import converter, null_text
from mssql_cdc.records.schema_changes import table_structure
from mssql_cdc.schema import TYPES, Column, Kind, SqlServerType, TableId, TableSchema, TypeRow
from mssql_cdc.source.sqlserver import check_texts
from mssql_cdc.source.sqlserver.catalog import sql_type
from mssql_cdc.source.sqlserver.chunks import bound_expression, bound_value
from mssql_cdc.source.sqlserver.columns import RowPlan, fetch
from mssql_cdc_tests.lake_kit import delta_schema_text
from mssql_cdc_tests.unit.config.samples import connector_with


@dataclass(frozen=True)
class Sample:
    """A value of a kind: as stored in the lake, its exact text, and as T-SQL sends it to the check."""

    stored: Any
    sent: Any
    exact: str | None = None


VARIANT = '{"base": "decimal", "precision": 5, "scale": 2, "length": 5}'
SAMPLES = {
    Kind.BOOLEAN: Sample(stored=True, sent="1"),
    Kind.INTEGER: Sample(7, "7"),
    Kind.DECIMAL: Sample(Decimal(1), "1"),
    Kind.FLOAT: Sample(1.5, "1.5000000000000000e+000"),
    Kind.TEXT: Sample("é", "é".encode("utf-16-le")),
    Kind.DOCUMENT: Sample("é", "é".encode("utf-16-le")),
    Kind.UUID: Sample("0E984725-C51C-4BF4-9960-E1C80E27ABA0", "0E984725-C51C-4BF4-9960-E1C80E27ABA0"),
    Kind.BINARY: Sample(b"\x01\xff", b"\x01\xff"),
    Kind.CLR: Sample(b"\x01\xff", b"\x01\xff"),
    Kind.DATE: Sample(date(2024, 2, 29), "2024-02-29"),
    Kind.TIME: Sample("12:34:56", "12:34:56"),
    Kind.TIMESTAMP: Sample(datetime(2024, 2, 29, 12, 34, 56), "2024-02-29 12:34:56"),
    Kind.INSTANT: Sample(datetime(2024, 2, 29, 12, 34, 56, tzinfo=UTC), "2024-02-29 12:34:56 +00:00"),
    Kind.VARIANT: Sample("12.30", "decimal|5|2|5||12.30".encode("utf-16-le"), VARIANT),
}
TABLE = TableId("shop", "dbo", "t")


def declared(row: TypeRow) -> Iterator[SqlServerType]:
    """The type in every form of its declaration."""
    match row.arguments:
        case "none":
            yield SqlServerType(row.name)
        case "length":
            yield from (SqlServerType(row.name, length=length) for length in (1, 4000, 8000, -1))
        case "precision and scale":
            yield from (SqlServerType(row.name, precision=p, scale=s) for p, s in ((18, 0), (38, 10)))
        case "scale":
            yield from (SqlServerType(row.name, scale=scale) for scale in (*range(8), None))


EVERY = [kind for row in TYPES.values() for kind in declared(row)]
every_type = pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.declaration)


def arrow_scale(kind: SqlServerType) -> int:
    """Digits after the point of a decimal type's Arrow type."""
    arrow: Any = kind.arrow
    return arrow.scale


def values_of(kind: SqlServerType) -> pa.Array:
    """The sample of its kind, and NULL."""
    stored = SAMPLES[kind.kind].stored
    if isinstance(stored, Decimal):
        stored = stored.quantize(Decimal(1).scaleb(-arrow_scale(kind)))
    return pa.array([stored, None], kind.arrow)


def settings() -> Iterator[RecordSettings]:
    for name, modes in (
        ("time.precision.mode", get_args(TimePrecision)),
        ("decimal.handling.mode", get_args(DecimalHandling)),
        ("binary.handling.mode", get_args(BinaryHandling)),
    ):
        yield from (connector_with({name: mode}).records for mode in modes)


def test_every_kind_has_a_type_and_every_type_its_own_name() -> None:
    assert {row.kind for row in TYPES.values()} == set(Kind)
    assert all(name == row.name == name.lower() for name, row in TYPES.items())


@every_type
def test_every_type_is_stored_in_a_delta_type(kind: SqlServerType) -> None:
    schema = pa.schema([pa.field("c", kind.arrow)])
    assert arrow_of(delta_schema_text(schema)) == schema


@every_type
def test_every_type_is_fetched_and_decoded_to_its_stored_type(kind: SqlServerType) -> None:
    plan = RowPlan.of([Column("c]", kind)])
    expressions, fields = plan.select_list("t"), plan.raw_fields()
    assert len(expressions) == len(fields)
    assert all("t.[c]]]" in expression and "{" not in expression for expression in expressions)
    nothing = pa.RecordBatch.from_arrays([pa.nulls(2, field.type) for field in fields], schema=pa.schema(fields))
    ((values, exact),) = plan.decode(nothing)
    assert values.type == kind.arrow
    assert values.null_count == 2
    assert exact is None or exact.null_count == 2


@every_type
def test_every_type_is_declared_as_the_catalog_says(kind: SqlServerType) -> None:
    unit = 2 if kind.kind is Kind.TEXT and not kind.row.code_page else 1
    catalog = SimpleNamespace(
        type_name=kind.name,
        max_length=-1 if kind.is_max else unit * (kind.length or 8),
        precision=kind.precision or 10,
        scale=kind.fraction_digits if kind.row.arguments == "scale" else kind.scale or 0,
        collation_name=None,
    )
    assert sql_type(catalog).declaration == kind.declaration
    assert sql_type(catalog).arrow == kind.arrow


@every_type
def test_every_type_bounds_a_chunk_or_reports_that_it_cannot(kind: SqlServerType) -> None:
    column = Column("k", kind)
    if not kind.has_bounds:
        assert kind.is_large
        with pytest.raises(SchemaError, match="cannot bound a chunk"):
            bound_expression(column)
        return
    assert "[k]" in bound_expression(column)
    assert bound_value(column).count("?") == 1


@every_type
def test_every_type_has_a_key_text(kind: SqlServerType) -> None:
    schema = TableSchema(TABLE, (Column("k", kind),), key_columns=("k",))
    image = pa.StructArray.from_arrays([values_of(kind)], names=["k"])
    exact = SAMPLES[kind.kind].exact
    maps = pa.array([{"k": exact} if exact else None, None], pa.map_(pa.string(), pa.string()))
    text, null = key_texts(image, maps, table_schema=schema).to_pylist()
    assert ":" in text
    assert null == "N"


@pytest.mark.feature("FLT-06", "FLT-07", "FLT-08")
@every_type
@pytest.mark.parametrize(
    ("rule", "mask"),
    [("fill", StarMask(5)), ("truncate", Truncate(1)), ("hash", HashMask("MD5", "salt"))],
    ids=["fill", "truncate", "hash"],
)
def test_a_mask_hides_values_of_every_maskable_type(kind: SqlServerType, rule: MaskKind, mask: Mask) -> None:
    if MaskRule(kind=rule, columns=PatternList("")).applies_to(kind.name):
        values = pc.binary_repeat(values_of(kind), 2)
        assert mask.apply(values, kind)[0] != values[0]


@every_type
def test_every_type_has_a_structure_for_debezium(kind: SqlServerType) -> None:
    (plain,) = table_structure(TableSchema(TABLE, (Column("c", kind),)))["columns"]
    assert plain["jdbcType"] == kind.row.jdbc.code
    assert plain["typeName"] in TYPES
    assert json.loads(json.dumps(plain)) == plain


@every_type
def test_every_type_prints_in_every_mode_and_null_of_not_null_as_the_same_json_type(kind: SqlServerType) -> None:
    exact = pa.array([SAMPLES[kind.kind].exact, None], pa.string())
    for modes in settings():
        convert = converter(Column("c", kind), modes)
        filled = converter(Column("c", kind, nullable=False), modes)
        if kind.kind is Kind.VARIANT:
            assert (convert, filled) == (None, None)
            continue
        assert convert is not None
        assert filled is not None
        value, null = map(json.loads, convert(values_of(kind), exact).to_pylist())
        assert null is None
        instead = json.loads(null_text(Column("c", kind, nullable=False), modes))
        assert list(map(json.loads, filled(values_of(kind), exact).to_pylist())) == [value, instead]
        assert type(instead) is type(value)


@every_type
def test_every_type_has_one_canonical_text_on_both_sides(kind: SqlServerType) -> None:
    column, sample = Column("c", kind), SAMPLES[kind.kind]
    sent = sample.sent
    if isinstance(sample.stored, Decimal):
        sent = f"{sample.stored.quantize(Decimal(1).scaleb(-arrow_scale(kind))):f}"
    stored, null = python_values(values_of(kind))
    assert "{c}" in check_texts.canon(Column("c", kind)).select
    assert canonical.lake_text(column, stored, sample.exact) == check_texts.source_text(column, sent)
    assert canonical.lake_text(column, null, None) is None


VIEWS: list[Callable[[SqlServerType], Any]] = [
    lambda kind: kind.arrow,
    lambda kind: kind.declaration,
    lambda kind: RowPlan.of([Column("c", kind)]).by_rows,
    fetch,
    lambda kind: bound_expression(Column("c", kind)),
    lambda kind: bound_value(Column("c", kind)),
    lambda kind: table_structure(TableSchema(TABLE, (Column("c", kind),))),
    lambda kind: converter(Column("c", kind), connector_with({}).records),
    lambda kind: null_text(Column("c", kind, nullable=False), connector_with({}).records),
    lambda kind: check_texts.canon(Column("c", kind)),
]


@pytest.mark.parametrize("view", VIEWS)
def test_an_unknown_type_is_the_same_error_in_every_view(view: Callable[[SqlServerType], Any]) -> None:
    with pytest.raises(SchemaError, match=r"The SQL Server type 'point' is unknown; known are bigint, binary, "):
        view(SqlServerType("Point"))

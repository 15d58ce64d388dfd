"""Blocks of rows: they have the bytes that the rows have one by one, whatever is NULL in them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mssql_sandbox.engine import types
from mssql_sandbox.engine.types import MAX, SqlType
from mssql_sandbox.tds.row_encoder import NBC_ROW, ROW, RowEncoder
from tests.tds.test_values import VALUES

MANY = 8  # rows from which on they are encoded as a block
LEGACY = {SqlType("text", MAX): VALUES[types.varchar(20)], SqlType("ntext", MAX): VALUES[types.nvarchar(20)]}
RAW = {SqlType("image", MAX): st.binary(max_size=9), types.ROWVERSION: st.binary(min_size=8, max_size=8)}
VARIANT = {SqlType("sql_variant"): st.integers(0, 9).map(lambda n: (types.INT, n))}
ALL = {**VALUES, **LEGACY, **RAW, **VARIANT}


def one_by_one(schema: tuple[SqlType, ...], rows: list[tuple]) -> bytes:
    out = bytearray()
    encode = RowEncoder(schema)
    for row in rows:
        assert encode(iter([row]), out, 1)
    return bytes(out)


def as_block(encode: RowEncoder, rows: list[tuple]) -> bytes:
    out = bytearray()
    assert encode(iter(rows), out, 1 << 30)
    return bytes(out)


@pytest.mark.parametrize("type_", ALL, ids=str)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_block_of_each_type_has_the_bytes_of_its_rows(type_: SqlType, data: st.DataObject) -> None:
    cells = data.draw(st.lists(ALL[type_], min_size=MANY, max_size=12))
    rows = [(cell,) for cell in cells]
    assert as_block(RowEncoder((type_,)), rows) == one_by_one((type_,), rows)


@pytest.mark.parametrize("type_", ALL, ids=str)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_null_that_comes_late_is_encoded_as_one_that_was_known(type_: SqlType, data: st.DataObject) -> None:
    cells = data.draw(st.lists(ALL[type_], min_size=MANY, max_size=MANY))
    place = data.draw(st.integers(0, MANY - 1))
    known, with_null = [(cell, 1) for cell in cells], [(cell, 2) for cell in cells]
    with_null[place] = (None, 3)
    encode = RowEncoder((type_, types.INT))
    expected = [one_by_one((type_, types.INT), rows) for rows in (known, with_null)]
    assert [as_block(encode, known), as_block(encode, with_null)] == expected
    assert [as_block(encode, known), as_block(encode, with_null)] == expected


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_rows_of_any_columns_have_the_same_bytes_in_blocks(data: st.DataObject) -> None:
    schema = tuple(data.draw(st.lists(st.sampled_from(list(ALL)), min_size=1, max_size=12)))
    row = st.tuples(*[ALL[type_] | st.none() for type_ in schema])
    rows = data.draw(st.lists(row, min_size=MANY, max_size=20))
    assert as_block(RowEncoder(schema), rows) == one_by_one(schema, rows)


def test_rows_keep_their_order_over_several_blocks() -> None:
    schema = (types.INT, types.nvarchar(10))
    rows = [(n, None if n % 3 else f"row {n}") for n in range(1000)]
    assert as_block(RowEncoder(schema), rows) == one_by_one(schema, rows)


def test_bitmap_counts_all_columns_and_not_only_those_that_have_nulls() -> None:
    schema = (types.TINYINT,) * 12
    rows = [(*range(10), None, 11)] * MANY + [tuple(range(12))]
    full = ROW + b"".join(bytes((1, n)) for n in range(12))
    short = NBC_ROW + b"\x00\x04" + b"".join(bytes((1, n)) for n in (*range(10), 11))
    assert as_block(RowEncoder(schema), rows) == short * MANY + full


def test_wide_rows_are_encoded_as_a_block() -> None:
    schema = (types.INT,) * 1024
    rows = [tuple(range(n, n + 1024)) for n in range(MANY)]
    assert as_block(RowEncoder(schema), rows) == one_by_one(schema, rows)


def test_value_longer_than_declared_is_an_error_in_a_block_too() -> None:
    with pytest.raises(ValueError, match="8 bytes in a column declared with 6"):
        as_block(RowEncoder((types.nvarchar(3),)), [("abcd",)] * MANY)


def test_value_of_another_type_is_an_error_and_not_taken_for_a_null() -> None:
    with pytest.raises(TypeError):
        as_block(RowEncoder((types.nvarchar(3),)), [(1,)] * MANY)

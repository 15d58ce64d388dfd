"""Values: for every type, what is encoded is what is decoded, and known values have the bytes of MS-TDS."""

import decimal
import math
import struct
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_sandbox.engine import types
from mssql_sandbox.engine.types import MAX, SqlType
from mssql_sandbox.tds.decoders import TICKS_PER_DAY, InvalidValueError
from mssql_sandbox.tds.row_encoder import NBC_ROW, ROW, encode_value, row_encoder
from mssql_sandbox.tds.type_codecs import CODECS
from mssql_sandbox.tds.type_info import read_type_info, type_info
from mssql_sandbox.tds.values import value_reader
from mssql_sandbox.tds.wire import ProtocolError, Reader, b_varchar

LAST_TICK = 3_652_059 * TICKS_PER_DAY - 1
latin = st.text(st.characters(codec="cp1252"), max_size=20)
utf16 = st.text(max_size=10)


def decimals(precision: int, scale: int) -> st.SearchStrategy[decimal.Decimal]:
    wide = decimal.Context(prec=80)
    limit = 10**precision - 1
    return st.integers(-limit, limit).map(lambda n: wide.scaleb(decimal.Decimal(n), -scale))


def ticks(scale: int, limit: int = LAST_TICK) -> st.SearchStrategy[int]:
    unit = 10 ** (7 - scale)
    return st.integers(0, limit // unit).map(lambda n: n * unit)


def real(value: float) -> float:
    return struct.unpack("<f", struct.pack("<f", value))[0]


VALUES: dict[SqlType, st.SearchStrategy] = {
    types.BIT: st.integers(0, 1),
    types.TINYINT: st.integers(0, 255),
    types.SMALLINT: st.integers(-(2**15), 2**15 - 1),
    types.INT: st.integers(-(2**31), 2**31 - 1),
    types.BIGINT: st.integers(-(2**63), 2**63 - 1),
    types.REAL: st.floats(width=32, allow_nan=False, allow_infinity=False).map(real),
    types.FLOAT: st.floats(allow_nan=False, allow_infinity=False),
    types.MONEY_TYPE: decimals(18, 4),
    types.SMALLMONEY: decimals(9, 4),
    **{types.decimal(p, s): decimals(p, s) for p, s in [(1, 0), (9, 9), (10, 2), (19, 0), (28, 5), (38, 0), (38, 38)]},
    types.numeric(20, 7): decimals(20, 7),
    types.DATE: st.integers(0, 3_652_058),
    **{types.time(n): ticks(n, TICKS_PER_DAY - 1) for n in range(8)},
    **{types.datetime2(n): ticks(n) for n in range(8)},
    **{types.datetimeoffset(n): st.tuples(ticks(n), st.integers(-840, 840)) for n in range(8)},
    types.DATETIME: st.integers(-53690 * 25_920_000, 2_958_464 * 25_920_000 - 1),
    types.SMALLDATETIME: st.integers(0, 65535 * 1440 + 1439),
    types.UNIQUEIDENTIFIER: st.uuids(),
    types.varchar(20): latin,
    types.varchar(MAX): latin,
    SqlType("char", 5): st.text(st.characters(codec="cp1252"), max_size=5).map(lambda s: s.ljust(5)),
    types.nvarchar(20): utf16,
    types.nvarchar(MAX): utf16,
    SqlType("nchar", 4): st.text(st.characters(max_codepoint=0xFFFF), max_size=4).map(lambda s: s.ljust(4)),
    types.varbinary(30): st.binary(max_size=30),
    types.varbinary(MAX): st.binary(max_size=300),
    types.binary(10): st.binary(min_size=10, max_size=10),
    types.XML: utf16.filter(lambda s: not s.startswith("\ufeff")),
    SqlType("hierarchyid", 892): st.binary(max_size=30),
    SqlType("geometry", MAX): st.binary(max_size=30),
    SqlType("geography", MAX): st.binary(max_size=30),
}
# rowversion announces itself as binary(8); text, ntext and image differ in rows and parameters (test_drivers).
ONE_WAY = {"rowversion", "text", "ntext", "image"}
IN_VARIANT = [t for t in VALUES if t.length != MAX and t.name not in {"xml", "hierarchyid"}]


def declared(type_: SqlType) -> bytes:
    """TYPE_INFO as a parameter has it: user-defined types are shorter there than in column metadata."""
    if type_.name in types.UDTS:
        return b"\xf0" + b_varchar("") + b_varchar("sys") + b_varchar(type_.name)
    return type_info(type_)


def decoded(type_: SqlType, framed: bytes) -> tuple[SqlType, object]:
    reader = Reader(declared(type_) + framed)
    wire = read_type_info(reader)
    value = value_reader(wire)(reader)
    assert reader.remaining == 0
    return wire.type, value


def test_every_type_of_the_table_is_tried() -> None:
    assert {t.name for t in VALUES} | ONE_WAY | {"sql_variant"} == set(CODECS)


@pytest.mark.parametrize("type_", VALUES, ids=str)
@given(data=st.data())
def test_value_survives_the_wire(type_: SqlType, data: st.DataObject) -> None:
    value = data.draw(VALUES[type_])
    assert decoded(type_, encode_value(value, type_)) == (type_, value)


@pytest.mark.parametrize("type_", list(VALUES), ids=str)
def test_null_survives_the_wire(type_: SqlType) -> None:
    assert decoded(type_, encode_value(None, type_)) == (type_, None)


@given(data=st.data())
def test_variant_keeps_base_type_and_value(data: st.DataObject) -> None:
    type_ = data.draw(st.sampled_from(IN_VARIANT))
    value = data.draw(VALUES[type_])
    assert decoded(types.SQL_VARIANT, encode_value((type_, value), types.SQL_VARIANT))[1] == (type_, value)


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        (types.INT, 1, "04 01000000"),
        (types.BIGINT, -2, "08 feffffffffffffff"),
        (types.MONEY_TYPE, decimal.Decimal("1.0000"), "08 00000000 10270000"),
        (types.MONEY_TYPE, decimal.Decimal("-0.0001"), "08 ffffffff ffffffff"),
        (types.SMALLMONEY, decimal.Decimal("2.5000"), "04 a8610000"),
        (types.decimal(5, 2), decimal.Decimal("-1.23"), "05 00 7b000000"),
        (types.DATETIME, 300, "08 00000000 2c010000"),
        (types.DATETIME, -1, "08 ffffffff ff818b01"),
        (types.SMALLDATETIME, 1441, "04 0100 0100"),
        (types.DATE, 1, "03 010000"),
        (types.time(0), 10_000_000, "03 010000"),
        (types.datetime2(7), TICKS_PER_DAY + 1, "08 0100000000 010000"),
        (types.datetimeoffset(3), (10_000, -90), "09 01000000 000000 a6ff"),
        (
            types.UNIQUEIDENTIFIER,
            uuid.UUID("00112233-4455-6677-8899-aabbccddeeff"),
            "10 33221100554477668899aabbccddeeff",
        ),
        (types.nvarchar(3), "a\u20ac", "0400 6100 ac20"),
        (types.varchar(3), "\u20ac", "0100 80"),
        (types.varchar(MAX), "ab", "0200000000000000 02000000 6162 00000000"),
        (types.varbinary(MAX), b"", "0000000000000000 00000000"),
        (types.XML, "<a/>", "0800000000000000 08000000 3c0061002f003e00 00000000"),
        (types.ROWVERSION, b"\0\0\0\0\0\0\x07\xd1", "0800 00000000000007d1"),
        (types.varchar(3), "\u4e2d", "0100 3f"),
    ],
    ids=str,
)
def test_known_values_have_the_specified_bytes(type_: SqlType, value: object, expected: str) -> None:
    assert encode_value(value, type_) == bytes.fromhex(expected.replace(" ", ""))


def test_text_in_rows_has_a_pointer_and_a_timestamp() -> None:
    framed = encode_value("ab", SqlType("ntext", MAX))
    assert framed[0] == 16
    assert framed[25:] == bytes.fromhex("04000000 61006200".replace(" ", ""))
    assert encode_value(None, SqlType("text", MAX)) == b"\0"


def test_rows_without_null_are_rows_and_with_null_are_compressed() -> None:
    schema = tuple([types.TINYINT] * 9)
    out = bytearray()
    assert row_encoder(schema)(iter([tuple(range(9)), (None, *range(7), None)]), out, 1 << 20)
    full = ROW + b"".join(bytes((1, n)) for n in range(9))
    assert out == full + NBC_ROW + b"\x01\x01" + b"".join(bytes((1, n)) for n in range(7))


def test_widest_result_can_be_encoded() -> None:
    out = bytearray()
    row = (None, *range(4095))
    assert row_encoder((types.INT,) * 4096)(iter([row, row[::-1]]), out, 1 << 30)
    assert out[: 1 + 512] == NBC_ROW + b"\x01" + bytes(511)
    assert len(out) == 2 * (1 + 512 + 5 * 4095)


def test_encoder_stops_after_the_block_that_reaches_the_limit_and_goes_on_there() -> None:
    rows = iter([(n,) for n in range(10_000)])
    encode = row_encoder((types.INT,))
    slices = []
    complete = False
    while not complete:
        out = bytearray()
        complete = encode(rows, out, 6000)
        slices.append(bytes(out))
    assert len(slices) > 2
    assert all(6000 <= len(piece) < 12_000 for piece in slices[:-1])
    assert b"".join(slices) == b"".join(ROW + b"\x04" + struct.pack("<i", n) for n in range(10_000))


def test_value_longer_than_declared_is_an_error_here_and_not_at_the_client() -> None:
    with pytest.raises(ValueError, match="8 bytes in a column declared with 6"):
        encode_value("abcd", types.nvarchar(3))


@pytest.mark.parametrize(
    ("type_", "framed"),
    [
        (types.FLOAT, b"\x08" + struct.pack("<d", math.nan)),
        (types.REAL, b"\x04" + struct.pack("<f", math.inf)),
        (types.decimal(3, 0), b"\x05\x01" + struct.pack("<I", 1000)),
        (types.DATE, b"\x03\xff\xff\xff"),
        (types.time(7), b"\x05\xff\xff\xff\xff\xff"),
        (types.DATETIME, b"\x08" + struct.pack("<iI", 0, 25_920_000)),
        (types.datetimeoffset(0), b"\x08" + bytes(6) + struct.pack("<h", 900)),
    ],
    ids=lambda v: str(v)[:20],
)
def test_bytes_that_are_no_value_are_refused(type_: SqlType, framed: bytes) -> None:
    with pytest.raises(InvalidValueError):
        decoded(type_, framed)


@pytest.mark.parametrize("framed", [b"\x05\1\2\3\4\5", b"\x04\1\2"], ids=["odd size", "cut off"])
def test_impossible_lengths_are_protocol_errors(framed: bytes) -> None:
    with pytest.raises(ProtocolError):
        decoded(types.INT, framed)


@given(st.binary(max_size=40))
def test_random_types_and_values_are_read_or_refused(data: bytes) -> None:
    reader = Reader(data)
    try:
        value_reader(read_type_info(reader))(reader)
    except (ProtocolError, InvalidValueError) as error:
        assert str(error)  # noqa: PT017
    assert reader.remaining >= 0

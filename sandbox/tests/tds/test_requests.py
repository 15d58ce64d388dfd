"""Requests: batches, calls with every form of parameter, transaction requests, and broken ones."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_sandbox.engine import types
from mssql_sandbox.engine.events import RpcParameter, TmRequest
from mssql_sandbox.engine.types import MAX, SqlType
from mssql_sandbox.tds.decoders import InvalidValueError
from mssql_sandbox.tds.requests import parse_batch, parse_rpc, parse_transaction_request, read_headers
from mssql_sandbox.tds.row_encoder import encode_value
from mssql_sandbox.tds.type_info import type_info
from mssql_sandbox.tds.wire import ProtocolError, Reader, b_varchar, us_varchar
from tests.tds.raw_client import HEADERS

COLLATION = bytes.fromhex("0904d00034")


def utf16(text: str) -> bytes:
    return text.encode("utf-16-le")


def parameter(name: str, status: int, info: bytes, value: bytes) -> bytes:
    return b_varchar(name) + bytes((status,)) + info + value


def typed(name: str, type_: SqlType, value: object, status: int = 0) -> bytes:
    return parameter(name, status, type_info(type_), encode_value(value, type_))


def test_headers_carry_the_transaction() -> None:
    data = struct.pack("<IIHQI", 22, 18, 2, 77, 1)
    assert read_headers(Reader(data)) == 77
    assert read_headers(Reader(struct.pack("<I", 4))) == 0


def test_batch_is_the_text_after_the_headers() -> None:
    assert parse_batch(HEADERS + utf16("SELECT 'ä\U0001f40d'")) == "SELECT 'ä\U0001f40d'"


def test_call_by_number_and_by_name_with_named_output_and_default_parameters() -> None:
    first = struct.pack("<HHH", 0xFFFF, 13, 0) + typed("", types.INT, None, 1) + typed("@p", types.nvarchar(5), "ab")
    second = us_varchar("dbo.p") + struct.pack("<H", 2) + typed("@x", types.BIGINT, 5, 2)
    calls = list(parse_rpc(HEADERS + first + b"\xff" + second))
    assert [(c.name, c.metadata, c.execute, c.last) for c in calls] == [
        ("sp_prepexec", True, True, False),
        ("dbo.p", False, True, True),
    ]
    assert calls[0].parameters == [
        RpcParameter("", types.INT, None, output=True),
        RpcParameter("@p", types.nvarchar(5), "ab"),
    ]
    assert calls[1].parameters == [RpcParameter("@x", types.BIGINT, 5, default=True)]


def test_no_exec_separator_says_not_to_run_the_call() -> None:
    call = us_varchar("p") + b"\0\0"
    assert [c.execute for c in parse_rpc(HEADERS + call + b"\xfe" + call)] == [False, True]


@pytest.mark.parametrize(
    ("info", "value", "expected"),
    [
        (b"\x30", b"\xff", RpcParameter("", types.TINYINT, 255)),
        (b"\x32", b"\x01", RpcParameter("", types.BIT, 1)),
        (b"\x34", b"\xff\xff", RpcParameter("", types.SMALLINT, -1)),
        (b"\x38", b"\x02\0\0\0", RpcParameter("", types.INT, 2)),
        (b"\x7f", struct.pack("<q", -3), RpcParameter("", types.BIGINT, -3)),
        (b"\x3b", struct.pack("<f", 0.5), RpcParameter("", types.REAL, 0.5)),
        (b"\x3e", struct.pack("<d", 0.1), RpcParameter("", types.FLOAT, 0.1)),
        (b"\x3d", struct.pack("<iI", 1, 3), RpcParameter("", types.DATETIME, 25_920_003)),
        (b"\x3a", struct.pack("<HH", 1, 3), RpcParameter("", types.SMALLDATETIME, 1443)),
        (b"\x1f", b"", RpcParameter("", types.INT, None)),
        (b"\x26\x08", b"\x04\xff\xff\xff\xff", RpcParameter("", types.BIGINT, -1)),
        (
            b"\x63" + struct.pack("<I", 100) + COLLATION,
            struct.pack("<i", 4) + utf16("ab"),
            RpcParameter("", SqlType("ntext", MAX), "ab"),
        ),
        (
            b"\x23" + struct.pack("<I", 100) + COLLATION,
            struct.pack("<i", 2) + b"a\x80",
            RpcParameter("", SqlType("text", MAX), "a\u20ac"),
        ),
        (b"\x22" + struct.pack("<I", 100), struct.pack("<i", -1), RpcParameter("", SqlType("image", MAX), None)),
        (
            b"\xe7\xff\xff" + COLLATION,
            struct.pack("<Q", 2**64 - 2) + b"\x02\0\0\0a\0\x02\0\0\0b\0\0\0\0\0",
            RpcParameter("", types.nvarchar(MAX), "ab"),
        ),
        (
            b"\xa7\x0a\0" + bytes.fromhex("1904d00000"),
            b"\x01\0\xcf",
            RpcParameter("", types.varchar(10), "\u041f"),
        ),
        (
            b"\xf1\0",
            struct.pack("<Q", 10) + b"\x0a\0\0\0" + b"\xff\xfe" + utf16("<a/>") + bytes(4),
            RpcParameter("", types.XML, "<a/>"),
        ),
    ],
    ids=lambda v: str(getattr(v, "type", ""))[:20],
)
def test_every_form_of_parameter_is_read(info: bytes, value: bytes, expected: RpcParameter) -> None:
    (call,) = parse_rpc(HEADERS + us_varchar("p") + b"\0\0" + parameter("", 0, info, value))
    assert call.parameters == [expected]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"\x05\0\x05\x02a\0", TmRequest("begin", "a", 5)),
        (b"\x05\0\0\0", TmRequest("begin")),
        (b"\x07\0\0\0", TmRequest("commit")),
        (b"\x07\0\0\x01\0\0", TmRequest("commit", begin_next=True)),
        (b"\x08\0\x02s\0\x01\x04\x02t\0", TmRequest("rollback", "s", begin_next=True, next_isolation=4, next_name="t")),
        (b"\x09\0\x02s\0", TmRequest("save", "s")),
    ],
    ids=str,
)
def test_transaction_requests_are_read(body: bytes, expected: TmRequest) -> None:
    assert parse_transaction_request(HEADERS + body) == expected


@pytest.mark.parametrize("body", [b"\x00\0", b"\x05\0\x09\0", b""], ids=["distributed", "isolation 9", "empty"])
def test_other_transaction_requests_are_refused(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        parse_transaction_request(HEADERS + body)


@pytest.mark.parametrize(
    ("info", "reason"),
    [(b"\xf3\0\0\0\0\0", "table-valued parameter of 0 columns"), (b"\x99", "type 0x99 is not known")],
)
def test_unsupported_parameters_say_what_they_are(info: bytes, reason: str) -> None:
    with pytest.raises(ProtocolError, match=reason):
        list(parse_rpc(HEADERS + us_varchar("p") + b"\0\0" + parameter("@t", 0, info, b"")))


def test_encrypted_parameter_is_refused_by_name() -> None:
    with pytest.raises(ProtocolError, match=r"'@secret'.*encrypt"):
        list(parse_rpc(HEADERS + us_varchar("p") + b"\0\0" + parameter("@secret", 8, b"\x38", bytes(4))))


def test_invalid_value_names_its_parameter() -> None:
    nan = parameter("@f", 0, b"\x3e", struct.pack("<d", float("nan")))
    with pytest.raises(InvalidValueError, match=r'Parameter 2 \("@f"\)'):
        list(parse_rpc(HEADERS + us_varchar("p") + b"\0\0" + typed("", types.INT, 1) + nan))


def test_call_cut_off_anywhere_inside_a_parameter_is_refused() -> None:
    head = HEADERS + us_varchar("p") + b"\0\0"
    whole = head + typed("@a", types.nvarchar(MAX), "text") + typed("@b", types.decimal(10, 2), None)
    ends = {len(head), len(head + typed("@a", types.nvarchar(MAX), "text"))}
    for cut in set(range(len(HEADERS) + 1, len(whole))) - ends:
        with pytest.raises(ProtocolError):
            list(parse_rpc(whole[:cut]))


@given(st.binary(max_size=80))
def test_random_calls_are_read_or_refused(data: bytes) -> None:
    try:
        for call in parse_rpc(HEADERS + data):
            assert isinstance(call.parameters, list)
    except (ProtocolError, InvalidValueError) as error:
        assert str(error)  # noqa: PT017

"""Responses: the order of tokens and the bits of every DONE."""

import struct

import pytest

from mssql_sandbox.engine import types
from mssql_sandbox.engine.collation import collation_named, known_collations
from mssql_sandbox.engine.events import (
    Columns,
    Done,
    EnvChange,
    Event,
    Message,
    Order,
    OutputParameter,
    ProcDone,
    ReturnStatus,
    Rows,
)
from mssql_sandbox.engine.types import MAX, ResultColumn, SqlType
from mssql_sandbox.tds.collations import collation_bytes, collation_of_bytes
from mssql_sandbox.tds.packets import HEADER_SIZE, PacketWriter
from mssql_sandbox.tds.response import SLICE_BYTES, Response
from mssql_sandbox.tds.tokens import column_metadata
from mssql_sandbox.tds.wire import b_varchar, us_varchar
from tests.tds.raw_client import done

DONE, DONEPROC, DONEINPROC = 0xFD, 0xFE, 0xFF
MORE, ERROR, INXACT, COUNT, SEVERE = 1, 2, 4, 16, 0x100
X = Columns((ResultColumn("x", types.INT),))
FAILURE = Message(208, 1, 16, "Invalid object name 't'.")


def answer(*events: Event, rpc: bool = False, in_transaction: bool = False) -> bytes:
    writer = PacketWriter(size=32767)
    response = Response(writer, server_name="S", rpc=rpc)
    response.start_call()
    for event in events:
        assert not list(response.add(event)), "nothing here fills a slice"
    if rpc:
        response.end_call(in_transaction=in_transaction)
    response.finish(in_transaction=in_transaction)
    return bytes(writer.finish())[HEADER_SIZE:]


def test_only_the_last_statement_says_that_it_is_the_last() -> None:
    assert answer(Done(1, "insert"), Done(2, "update", in_transaction=True), Done(None, "set")) == (
        done(DONE, MORE | COUNT, count=1, command=0xC3)
        + done(DONE, MORE | COUNT | INXACT, count=2, command=0xC5)
        + done(DONE, 0, command=0xF9)
    )


def test_empty_answer_still_ends_with_done() -> None:
    assert answer() == done(DONE, 0)
    assert answer(in_transaction=True) == done(DONE, INXACT)


def test_error_without_a_done_of_its_own_ends_in_an_error_done() -> None:
    assert answer(FAILURE).endswith(done(DONE, ERROR))
    assert answer(Done(1), FAILURE).endswith(done(DONE, ERROR))


@pytest.mark.parametrize("rpc", [False, True])
def test_fatal_error_is_followed_by_nothing_but_the_end_that_says_so(rpc: bool) -> None:  # noqa: FBT001
    fatal = Message(50000, 1, 20, "gone")
    text = answer(Done(1), fatal, rpc=rpc)
    token, last = (DONEINPROC, DONEPROC) if rpc else (DONE, DONE)
    assert text.startswith(done(token, MORE | COUNT, count=1, command=0xC1) + b"\xaa")
    assert text[15:].endswith(done(last, SEVERE))
    assert len(text) == 2 * 13 + 3 + struct.unpack_from("<H", text, 14)[0]


def test_information_after_the_last_statement_does_not_end_as_an_error() -> None:
    text = answer(Done(1), Message(0, 1, 0, "printed"))
    assert text[0] == DONE
    assert text[1] & MORE
    assert text.endswith(done(DONE, 0))


def test_call_ends_with_status_outputs_and_doneproc() -> None:
    text = answer(
        X, Rows([(1,)]), Done(1, in_procedure=True), ReturnStatus(-6), OutputParameter("@h", 0, types.INT, 7),
        ProcDone(), rpc=True,
    )  # fmt: skip
    assert text.endswith(
        done(DONEINPROC, MORE | COUNT, count=1, command=0xC1)
        + b"\x79" + struct.pack("<i", -6)
        + b"\xac\0\0" + b_varchar("@h") + b"\x01" + bytes(4) + b"\x01\0" + b"\x26\x04\x04\x07\0\0\0"
        + done(DONEPROC, 0, command=0xE0)
    )  # fmt: skip


def test_call_that_forgets_its_end_gets_one() -> None:
    assert answer(Done(1, "insert"), rpc=True) == done(DONEINPROC, MORE | COUNT, count=1, command=0xC3) + done(
        DONEPROC, 0, command=0xE0
    )


def test_several_calls_in_one_message_each_end_and_only_the_last_finally() -> None:
    writer = PacketWriter()
    response = Response(writer, server_name="S", rpc=True)
    for _ in range(2):
        response.start_call()
        for event in (ReturnStatus(0), ProcDone()):
            list(response.add(event))
        response.end_call(in_transaction=False)
    response.finish(in_transaction=False)
    status = b"\x79" + bytes(4)
    assert bytes(writer.finish())[8:] == status + done(DONEPROC, MORE, command=0xE0) + status + done(
        DONEPROC, 0, command=0xE0
    )


def test_procedure_in_a_batch_ends_its_own_way() -> None:
    assert answer(Done(3, in_procedure=True), ReturnStatus(0), ProcDone(), Done(1, "insert")) == (
        done(DONEINPROC, MORE | COUNT, count=3, command=0xC1)
        + b"\x79" + bytes(4)
        + done(DONEPROC, MORE, command=0xE0)
        + done(DONE, COUNT, count=1, command=0xC3)
    )  # fmt: skip


def test_abandoned_answer_keeps_what_was_held_and_ends_as_an_error() -> None:
    writer = PacketWriter()
    response = Response(writer, server_name="S")
    list(response.add(Done(1)))
    response.abandon()
    assert bytes(writer.finish())[8:] == done(DONE, MORE | COUNT, count=1, command=0xC1) + done(DONE, ERROR)


def test_rows_pause_between_blocks_whenever_a_slice_is_full() -> None:
    writer = PacketWriter(size=512)
    response = Response(writer, server_name="S")
    list(response.add(Columns((ResultColumn("x", types.varbinary(8000)),))))
    sent = bytearray()
    for _ in response.add(Rows([(bytes(8000),)] * 100)):
        assert SLICE_BYTES <= writer.pending < SLICE_BYTES + SLICE_BYTES // 2
        sent += writer.full_packets()
    assert len(sent) > SLICE_BYTES


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (EnvChange("database", "a", "b"), "e30700 01 01 6100 01 6200"),
        (EnvChange("begin", 5, 0), "e30b00 08 08 0500000000000000 00"),
        (EnvChange("commit", 0, 5), "e30b00 09 00 08 0500000000000000"),
        (EnvChange("rollback", 0, 5), "e30b00 0a 00 08 0500000000000000"),
        (EnvChange("reset"), "e30300 12 00 00"),
        (Order((2, 1)), "a90400 0200 0100"),
    ],
    ids=str,
)
def test_small_tokens_have_the_specified_bytes(event: Event, expected: str) -> None:
    assert answer(event).startswith(bytes.fromhex(expected.replace(" ", "")))


@pytest.mark.parametrize(("severity", "told"), [(0, 0), (1, 1), (9, 9), (10, 0), (11, 11), (16, 16)])
def test_severity_ten_is_told_to_clients_as_zero(severity: int, told: int) -> None:
    # pymssql raises for INFO above class 6: USE (5701) must not be an exception there.
    assert answer(Message(5701, 2, severity, "Changed database context to 'db'."))[8] == told


def test_message_is_information_up_to_severity_ten_and_an_error_above() -> None:
    expected = struct.pack("<iBB", 208, 1, 16) + us_varchar(FAILURE.text) + b_varchar("S") + b_varchar("") + b"\1\0\0\0"
    assert answer(FAILURE).startswith(b"\xaa" + struct.pack("<H", len(expected)) + expected)
    assert answer(Message(0, 1, 10, "hello"))[0] == 0xAB


def test_column_flags_and_user_types() -> None:
    columns = (
        ResultColumn("a", types.INT, nullable=False, identity=True),
        ResultColumn("b", types.ROWVERSION, computed=True),
        ResultColumn("c", SqlType("text", MAX), table=("dbo", "t")),
    )
    assert column_metadata(columns) == (
        b"\x81\x03\0"
        + bytes.fromhex("00000000 1000 2604".replace(" ", "")) + b_varchar("a")
        + bytes.fromhex("50000000 2100 ad0800".replace(" ", "")) + b_varchar("b")
        + bytes.fromhex("00000000 0100 23 ffffff7f 0904d00034 02".replace(" ", ""))
        + us_varchar("dbo") + us_varchar("t") + b_varchar("c")
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("SQL_Latin1_General_CP1_CI_AS", "0904d00034"),
        ("Latin1_General_CS_AS", "0904c00000"),
        ("Latin1_General_CI_AI_KS_WS", "0904300000"),
        ("Latin1_General_BIN", "0904000100"),
        ("Latin1_General_100_BIN2", "0904002200"),
        ("Latin1_General_100_CI_AS_SC_UTF8", "0904d02400"),
    ],
)
def test_collations_have_their_five_bytes(name: str, expected: str) -> None:
    assert collation_bytes(collation_named(name)).hex() == expected


def test_every_known_collation_keeps_its_code_page_on_the_way() -> None:
    for collation in known_collations():
        assert collation_of_bytes(collation_bytes(collation)).code_page == collation.code_page, collation.name

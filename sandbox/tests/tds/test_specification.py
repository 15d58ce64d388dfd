"""The examples of MS-TDS section 4, byte by byte: evidence that does not come from our own reading."""

from mssql_sandbox.engine import types
from mssql_sandbox.engine.events import Columns, Done, Event, ProcDone, ReturnStatus, Rows, RpcParameter
from mssql_sandbox.engine.types import ResultColumn
from mssql_sandbox.tds.packets import Message, MessageAssembler, PacketType, PacketWriter
from mssql_sandbox.tds.requests import parse_batch, parse_rpc, read_headers
from mssql_sandbox.tds.response import Response
from mssql_sandbox.tds.wire import Reader

BATCH_REQUEST = bytes.fromhex("""
    01 01 00 5C 00 00 01 00 16 00 00 00 12 00 00 00 02 00 00 00 00 00 00 00 00 01 00 00 00 00 0A 00
    73 00 65 00 6C 00 65 00 63 00 74 00 20 00 27 00 66 00 6F 00 6F 00 27 00 20 00 61 00 73 00 20 00
    27 00 62 00 61 00 72 00 27 00 0A 00 20 00 20 00 20 00 20 00 20 00 20 00 20 00 20 00
""")
BATCH_RESPONSE = bytes.fromhex("""
    04 01 00 33 00 00 01 00 81 01 00 00 00 00 00 20 00 A7 03 00 09 04 D0 00 34 03 62 00 61 00 72 00
    D1 03 00 66 6F 6F FD 10 00 C1 00 01 00 00 00 00 00 00 00
""")
RPC_REQUEST = bytes.fromhex("""
    03 01 00 2F 00 00 01 00 16 00 00 00 12 00 00 00 02 00 00 00 00 00 00 00 00 01 00 00 00 00 04 00
    66 00 6F 00 6F 00 33 00 00 00 00 02 26 02 00
""")
RPC_RESPONSE = bytes.fromhex("""
    04 01 00 27 00 00 01 00 FF 11 00 C1 00 01 00 00 00 00 00 00 00 79 00 00 00 00 FE 00 00 E0 00 00
    00 00 00 00 00 00 00
""")


def received(data: bytes) -> Message:
    assembler = MessageAssembler(limit=1000)
    assembler.feed(data)
    message = assembler.next_message()
    assert message is not None
    return message


def sent(*events: Event, rpc: bool) -> bytes:
    writer = PacketWriter()
    response = Response(writer, server_name="", rpc=rpc)
    response.start_call()
    for event in events:
        list(response.add(event))
    response.finish(in_transaction=False)
    return bytes(writer.finish())


def test_sql_batch_request_4_6() -> None:
    message = received(BATCH_REQUEST)
    assert message.kind is PacketType.BATCH
    assert read_headers(Reader(message.payload)) == 1 << 56
    assert parse_batch(message.payload) == "\nselect 'foo' as 'bar'\n        "


def test_sql_batch_response_4_7() -> None:
    columns = Columns((ResultColumn("bar", types.varchar(3), nullable=False, computed=True),))
    assert sent(columns, Rows([("foo",)]), Done(1), rpc=False) == BATCH_RESPONSE


def test_rpc_request_4_8() -> None:
    (call,) = parse_rpc(received(RPC_REQUEST).payload)
    assert call.name == "foo3"
    assert call.parameters == [RpcParameter("", types.SMALLINT, None, default=True)]


def test_rpc_response_4_9() -> None:
    assert sent(Done(1), ReturnStatus(0), ProcDone(), rpc=True) == RPC_RESPONSE

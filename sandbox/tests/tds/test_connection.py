"""Connections on real sockets: login, cancel, reset, and clients that misbehave."""

import contextlib
import socket
import struct
import time
from collections.abc import AsyncIterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mssql_sandbox.engine import types
from mssql_sandbox.engine.events import Columns, Done, Event, Message, Rows
from mssql_sandbox.engine.types import ResultColumn
from mssql_sandbox.tds.packets import PacketType, Status
from mssql_sandbox.tds.wire import us_varchar
from tests.tds.raw_client import HEADERS, PRELOGIN, RawClient, done, login7, raw_client
from tests.tds.scripted import PASSWORD, serving

DONE, ERROR, ATTENTION = 0xFD, 2, 0x20
ROW = b"\xd1\x04\x01\0\0\0"


async def script(sql: str) -> AsyncIterator[Event]:
    if sql == "endless":
        yield Columns((ResultColumn("x", types.INT),))
        while True:
            yield Rows([(1,)] * 1000)
    if sql == "broken":
        raise RuntimeError("an engine fault")
    if sql == "fatal":
        yield Message(596, 1, 21, "Cannot continue the execution because the session is in the kill state.")
        return
    yield Columns((ResultColumn("x", types.INT),))
    yield Rows([(1,)])
    yield Done(1)


def assert_serves(client: RawClient) -> None:
    client.batch("select")
    assert ROW + done(DONE, 0x10, count=1, command=0xC1) in client.receive()


@pytest.fixture(scope="module")
def port():
    with serving(script) as (port, _):
        yield port


def test_login_tells_database_collation_packet_size_and_version(port: int) -> None:
    with raw_client(port) as client:
        answer = client.log_in(PASSWORD, packet_size=8000)
        assert bytes.fromhex("e308000705" + "0904d00034" + "00") in answer
        assert "8000".encode("utf-16-le") in answer
        assert b"\x01\x74\0\0\x04" in answer
        assert answer.endswith(done(DONE, 0))
        assert_serves(client)


def test_wrong_password_is_18456_and_the_end(port: int) -> None:
    with raw_client(port) as client:
        answer = client.log_in("wrong")
        assert struct.pack("<iBB", 18456, 1, 14) in answer
        assert answer.endswith(done(DONE, ERROR))
        assert client.receive() == b""


def test_absent_database_is_4060_then_18456(port: int) -> None:
    with raw_client(port) as client:
        client.send(PacketType.PRELOGIN, PRELOGIN)
        client.receive()
        client.send(PacketType.LOGIN7, login7(user="sa", password=PASSWORD, database="absent"))
        answer = client.receive()
        assert 0 < answer.index(struct.pack("<iBB", 4060, 1, 11)) < answer.index(struct.pack("<iBB", 18456, 1, 14))


def test_attention_during_an_answer_ends_it_between_rows_and_is_acknowledged_apart(port: int) -> None:
    with raw_client(port) as client:
        client.log_in(PASSWORD)
        client.batch("endless")
        client.socket.recv(8, socket.MSG_PEEK)
        client.send(PacketType.ATTENTION, b"")
        answer = client.receive()
        metadata = answer.index(b"\xd1")
        rows = answer[metadata : -len(done(DONE, ERROR))]
        assert answer.endswith(done(DONE, ERROR))
        assert rows == ROW * (len(rows) // len(ROW))
        assert client.receive() == done(DONE, ATTENTION)
        assert_serves(client)


def test_attention_ends_a_wait(port: int) -> None:
    with raw_client(port) as client:
        client.log_in(PASSWORD)
        client.batch("wait")
        client.send(PacketType.ATTENTION, b"")
        assert client.receive() == done(DONE, ERROR)
        assert client.receive() == done(DONE, ATTENTION)
        assert_serves(client)


def test_attention_after_a_complete_answer_is_acknowledged_once(port: int) -> None:
    with raw_client(port) as client:
        client.log_in(PASSWORD)
        assert_serves(client)
        client.send(PacketType.ATTENTION, b"")
        assert client.receive() == done(DONE, ATTENTION)
        assert_serves(client)


def test_ignored_message_is_answered_with_an_error_and_not_executed() -> None:
    with serving(script) as (port, log), raw_client(port) as client:
        client.log_in(PASSWORD)
        client.batch("select", status=Status.IGNORE)
        assert client.receive() == done(DONE, ERROR)
        assert log.batches == []
        assert_serves(client)


@pytest.mark.parametrize(("flag", "keeps"), [(Status.RESET_CONNECTION, False), (Status.RESET_KEEP_TRANSACTION, True)])
def test_reset_happens_before_the_request_and_is_acknowledged_first(flag: Status, keeps: bool) -> None:  # noqa: FBT001
    with serving(script) as (port, log), raw_client(port) as client:
        client.log_in(PASSWORD)
        client.batch("select", status=flag)
        assert client.receive().startswith(bytes.fromhex("e30300120000"))
        assert log.resets == [keeps]


def test_engine_fault_is_told_and_ends_that_client_only(port: int, caplog: pytest.LogCaptureFixture) -> None:
    with raw_client(port) as client, raw_client(port) as other:
        client.log_in(PASSWORD)
        other.log_in(PASSWORD)
        client.batch("broken")
        assert "RuntimeError: an engine fault".encode("utf-16-le") in client.receive()
        assert client.receive() == b""
        assert_serves(other)


def test_fatal_error_is_sent_before_the_connection_ends(port: int) -> None:
    with raw_client(port) as client:
        client.log_in(PASSWORD)
        client.batch("fatal")
        assert struct.pack("<iBB", 596, 1, 21) in client.receive()
        assert client.receive() == b""


def test_request_that_cannot_be_cut_into_parts_is_4002_and_the_end(port: int) -> None:
    with raw_client(port) as client:
        client.log_in(PASSWORD)
        client.send(PacketType.RPC, HEADERS + us_varchar("p") + b"\0")
        assert struct.pack("<iBB", 4002, 2, 16) in client.receive()
        assert client.receive() == b""


def test_broken_request_is_an_error_and_the_end(port: int) -> None:
    with raw_client(port) as client:
        client.log_in(PASSWORD)
        client.send(PacketType.RPC, HEADERS + us_varchar("p") + b"\0\0" + b"\0\0\x99")
        assert struct.pack("<iBB", 8009, 2, 16) in client.receive()
        assert client.receive() == b""


def test_value_that_is_none_is_8023_and_the_connection_lives(port: int) -> None:
    with raw_client(port) as client:
        client.log_in(PASSWORD)
        nan = struct.pack("<d", float("nan"))
        client.send(PacketType.RPC, HEADERS + us_varchar("p") + b"\0\0" + b"\0\0\x3e" + nan)
        assert struct.pack("<iBB", 8023, 1, 16) in client.receive()
        assert_serves(client)


def test_message_that_never_ends_is_cut_off_before_login(port: int) -> None:
    with raw_client(port) as client, pytest.raises(ConnectionError):  # noqa: PT012
        endless = struct.pack(">BBHHBB", 0x12, 0, 32767, 0, 1, 0) + bytes(32759)
        for _ in range(1000):
            client.socket.sendall(endless)


def test_client_that_says_nothing_is_let_go() -> None:
    with serving(script, login_seconds=0.2) as (port, _), raw_client(port) as client:
        assert client.receive() == b""


def test_client_that_leaves_during_an_answer_leaves_its_session_closed() -> None:
    with serving(script) as (port, log):
        with raw_client(port) as client:
            client.log_in(PASSWORD)
            client.batch("endless")
            client.socket.recv(100)
        with raw_client(port) as other:
            other.log_in(PASSWORD)
            assert_serves(other)
    assert log.closed == 2


@pytest.mark.parametrize("busy", [False, True])
def test_killed_session_loses_its_connection(busy: bool) -> None:  # noqa: FBT001
    with serving(script) as (port, log), raw_client(port) as victim, raw_client(port) as killer:
        victim.log_in(PASSWORD)
        killer.log_in(PASSWORD)
        if busy:
            victim.batch("wait")
        killer.batch("kill")
        assert ROW in killer.receive()
        with contextlib.suppress(ConnectionResetError):  # the same, seen earlier
            assert victim.receive() == b""
    assert log.closed == 2


def test_client_that_does_not_read_holds_the_rows_back() -> None:
    produced = 0

    async def endless(_: str) -> AsyncIterator[Event]:
        nonlocal produced
        yield Columns((ResultColumn("x", types.binary(8000)),))
        while True:
            produced += 1
            yield Rows([(bytes(8000),)] * 100)

    with serving(endless) as (port, _), raw_client(port) as client:
        client.log_in(PASSWORD)
        client.batch("endless")
        before = -1
        while produced != before:  # until nothing more is made
            before = produced
            time.sleep(0.3)
        assert produced * 800_000 < 32 * 1024 * 1024


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(min_size=1, max_size=300), st.sampled_from(list(PacketType)), st.sampled_from([0, 1, 2]))
def test_no_bytes_harm_the_server(port: int, garbage: bytes, kind: PacketType, stage: int) -> None:
    with raw_client(port) as client:
        try:
            if stage == 2:
                client.log_in(PASSWORD)
            if stage == 0:
                client.socket.sendall(garbage)
            else:
                client.send(kind, garbage)
            client.socket.shutdown(socket.SHUT_WR)
            while client.socket.recv(65536):
                pass
        except ConnectionError:
            pass  # being thrown out is a right answer
    with raw_client(port) as other:
        other.log_in(PASSWORD)
        assert_serves(other)

"""Packets: what is cut is put together again; what is no packet is refused."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_sandbox.tds.packets import Message, MessageAssembler, PacketType, PacketWriter, Status
from mssql_sandbox.tds.wire import ProtocolError


def packet(kind: int, body: bytes, status: int = 1, length: int | None = None) -> bytes:
    return struct.pack(">BBHHBB", kind, status, len(body) + 8 if length is None else length, 0, 1, 0) + body


def messages(assembler: MessageAssembler) -> list[Message]:
    return list(iter(assembler.next_message, None))


@given(st.binary(max_size=5000), st.integers(512, 4096), st.integers(1, 700))
def test_message_survives_any_packet_size_and_any_arrival(payload: bytes, size: int, piece: int) -> None:
    writer = PacketWriter(size=size)
    writer.add(payload)
    sent = bytes(writer.finish(PacketType.BATCH))
    assembler = MessageAssembler(limit=10_000)
    received = []
    for start in range(0, len(sent), piece):
        assembler.feed(sent[start : start + piece])
        received += messages(assembler)
    assert [m.payload for m in received] == [payload]
    assert received[0].kind is PacketType.BATCH


@given(st.lists(st.binary(max_size=3000), max_size=5), st.integers(512, 1024))
def test_streamed_message_equals_the_sum_of_its_parts(parts: list[bytes], size: int) -> None:
    writer = PacketWriter(size=size)
    sent = bytearray()
    for part in parts:
        writer.add(part)
        sent += writer.full_packets()
        assert writer.pending <= size - 8
    sent += writer.finish()
    assembler = MessageAssembler(limit=20_000)
    assembler.feed(bytes(sent))
    assert [m.payload for m in messages(assembler)] == [b"".join(parts)]


def test_packets_are_numbered_from_one_and_only_the_last_ends_the_message() -> None:
    writer = PacketWriter(spid=300, size=512)
    writer.add(bytes(1100))
    sent = bytes(writer.finish())
    headers = [sent[start : start + 8] for start in range(0, len(sent), 512)]
    assert headers == [
        bytes.fromhex("0400 0200 012c 01 00".replace(" ", "")),
        bytes.fromhex("0400 0200 012c 02 00".replace(" ", "")),
        bytes.fromhex("0401 0064 012c 03 00".replace(" ", "")),
    ]


def test_attention_abandons_a_half_sent_request() -> None:
    assembler = MessageAssembler(limit=1000)
    assembler.feed(packet(1, b"half", status=0) + packet(6, b"") + packet(1, b"next"))
    assert [(m.kind, m.payload) for m in messages(assembler)] == [
        (PacketType.ATTENTION, b""),
        (PacketType.BATCH, b"next"),
    ]


def test_ignore_bit_marks_the_message_as_not_to_be_executed() -> None:
    assembler = MessageAssembler(limit=1000)
    assembler.feed(packet(1, b"half", status=0) + packet(1, b"", status=3))
    (message,) = messages(assembler)
    assert message.ignored


@pytest.mark.parametrize(("status", "keeps"), [(Status.RESET_CONNECTION, False), (Status.RESET_KEEP_TRANSACTION, True)])
def test_reset_flags_come_from_the_first_packet(status: Status, keeps: bool) -> None:  # noqa: FBT001
    assembler = MessageAssembler(limit=1000)
    assembler.feed(packet(1, b"a", status=int(status)) + packet(1, b"b", status=1))
    (message,) = messages(assembler)
    assert message.resets
    assert message.keeps_transaction is keeps


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n",
        b"\x16\x03\x01",
        packet(1, b"", length=7),
        packet(1, b"", length=40000),
        packet(1, b"a", status=0) + packet(3, b"b"),
        packet(1, bytes(800), status=0) + packet(1, bytes(800)),
    ],
    ids=["http", "tls", "too short", "too long", "kinds mixed", "above the limit"],
)
def test_what_is_no_message_is_a_protocol_error(data: bytes) -> None:
    assembler = MessageAssembler(limit=1000)
    assembler.feed(data)
    with pytest.raises(ProtocolError):
        messages(assembler)


@given(st.binary(max_size=200))
def test_random_bytes_end_in_messages_or_a_protocol_error(data: bytes) -> None:
    assembler = MessageAssembler(limit=1000)
    assembler.feed(data)
    try:
        assert all(isinstance(m, Message) for m in messages(assembler))
    except ProtocolError as error:
        assert str(error)  # noqa: PT017 - both outcomes are right

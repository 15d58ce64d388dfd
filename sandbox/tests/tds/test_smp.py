"""SMP (MC-SMP) to the byte: sessions, windows, and what ends a connection."""

import itertools
import struct
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mssql_sandbox.server import SandboxServer
from mssql_sandbox.tds.packets import PacketType, PacketWriter
from mssql_sandbox.tds.smp import HEADER_SIZE, WINDOW, Flag, Frames, Packet, Windows
from mssql_sandbox.tds.wire import ProtocolError
from tests.tds.raw_client import HEADERS, RawClient, login7

ASKING = bytes.fromhex("0000100006 0100160001 0400170001 ff 0b0000000000 02 01".replace(" ", ""))
BIG = "SELECT REPLICATE('x', 8000) FROM GENERATE_SERIES(1, 20)"


class MarsClient(RawClient):
    """A raw client whose requests travel in SMP sessions."""

    def __init__(self, port: int, password: str) -> None:
        super().__init__(port)
        self._frames = Frames()
        self._arrived: list[Packet] = []
        self.send(PacketType.PRELOGIN, ASKING)
        self.prelogin = self.receive()
        self.send(PacketType.LOGIN7, login7(user="sa", password=password))
        assert self.receive()

    def put(self, flag: Flag, session: int, sequence: int, window: int, data: bytes = b"") -> None:
        self.socket.sendall(Packet(flag, session, sequence, window, data).encode())

    def ask(self, session: int, sql: str, *, sequence: int = 1, window: int = WINDOW) -> None:
        writer = PacketWriter()
        writer.add(HEADERS + sql.encode("utf-16-le"))
        self.put(Flag.DATA, session, sequence, window, bytes(writer.finish(PacketType.BATCH)))

    def take(self) -> Packet:
        """The next SMP packet; EOFError once the server has hung up."""
        while not self._arrived:
            data = self.socket.recv(65536)
            if not data:
                raise EOFError
            self._arrived.extend(self._frames.feed(data))
        return self._arrived.pop(0)

    def silent(self) -> bool:
        """Whether nothing comes while another session is asked and answered."""
        probe = 99
        self.put(Flag.SYN, probe, 0, WINDOW)
        self.ask(probe, "SELECT 1")
        return self.take().session == probe


@pytest.fixture
def client(sandbox: SandboxServer) -> Iterator[MarsClient]:
    made = MarsClient(sandbox.port, sandbox.password)
    yield made
    made.socket.close()


def test_who_asks_for_mars_gets_it_and_nobody_else(sandbox: SandboxServer, client: MarsClient) -> None:
    """MS-TDS 2.2.6.5, B_MARS: 0x01 asks and grants."""
    assert b"\1" in _option(client.prelogin, 4)
    other = RawClient(sandbox.port)
    other.send(PacketType.PRELOGIN, ASKING[:-1] + b"\0")
    assert _option(other.receive(), 4) == b"\0"
    other.socket.close()


def _option(answer: bytes, token: int) -> bytes:
    for place in itertools.count(0, 5):
        if answer[place] == token:
            offset, length = struct.unpack_from(">HH", answer, place + 1)
            return answer[offset : offset + length]
    raise AssertionError("the list of options has no end")


def test_no_more_packets_than_the_window_allows(client: MarsClient) -> None:
    client.put(Flag.SYN, 0, 0, WINDOW)
    client.ask(0, BIG)
    assert [client.take().sequence for _ in range(WINDOW)] == [1, 2, 3, 4]
    assert client.silent()
    client.put(Flag.ACK, 0, 1, WINDOW + 2)
    assert [(packet := client.take()).session, packet.sequence] == [0, WINDOW + 1]
    assert client.take().sequence == WINDOW + 2


def test_room_is_given_back_for_what_was_taken(client: MarsClient) -> None:
    """A request of several packets: after two of them an ACK moves the window on."""
    client.put(Flag.SYN, 0, 0, WINDOW)
    writer = PacketWriter(size=512)
    writer.add(HEADERS + ("SELECT 1 --" + "x" * 2000).encode("utf-16-le"))
    packets = bytes(writer.finish(PacketType.BATCH))
    pieces = [packets[start : start + 512] for start in range(0, len(packets), 512)]
    window = WINDOW
    for number, piece in enumerate(pieces, 1):
        while number > window:
            answer = client.take()
            assert answer.flag is Flag.ACK
            window = answer.window
        client.put(Flag.DATA, 0, number, WINDOW, piece)
    while (answer := client.take()).flag is not Flag.DATA:
        assert answer.flag is Flag.ACK
    assert answer.window == len(pieces) + WINDOW


def test_a_closed_session_is_confirmed_and_its_number_is_free(client: MarsClient) -> None:
    for _ in range(2):
        client.put(Flag.SYN, 3, 0, WINDOW)
        client.ask(3, "SELECT 1")
        assert client.take().flag is Flag.DATA
        client.put(Flag.FIN, 3, 1, WINDOW + 1)
        assert client.take().flag is Flag.FIN


WRONG = {
    "a session that is not open": Packet(Flag.DATA, 7, 1, WINDOW, b"x").encode(),
    "opened twice": Packet(Flag.SYN, 0, 0, WINDOW).encode() * 2,
    "data out of turn": Packet(Flag.SYN, 0, 0, 4).encode() + Packet(Flag.DATA, 0, 2, 4, b"\1").encode(),
    "a window that shrinks": Packet(Flag.SYN, 0, 0, 4).encode() + Packet(Flag.ACK, 0, 0, 3).encode(),
    "two flags": struct.pack("<BBHIII", 0x53, 3, 0, 16, 0, 4),
    "no SMP": bytes(16),
    "a length that cannot be": struct.pack("<BBHIII", 0x53, 1, 0, 15, 0, 4),
}


@pytest.mark.parametrize("data", WRONG.values(), ids=WRONG)
def test_what_breaks_the_rules_ends_the_connection(client: MarsClient, data: bytes) -> None:
    client.socket.sendall(data)
    with pytest.raises(EOFError):
        client.take()


def test_data_beyond_the_window_is_an_error() -> None:
    windows = Windows(Packet(Flag.SYN, 0, 0, WINDOW))
    for number in range(1, WINDOW + 1):
        windows.heard(Packet(Flag.DATA, 0, number, WINDOW, b"x"))
    with pytest.raises(ProtocolError, match="beyond window 4"):
        windows.heard(Packet(Flag.DATA, 0, WINDOW + 1, WINDOW, b"x"))


@settings(deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1), st.binary(min_size=1, max_size=300))
def test_packets_are_found_however_the_bytes_arrive(cuts: list[int], data: bytes) -> None:
    sent = [Packet(Flag.SYN, 1, 0, 4), Packet(Flag.DATA, 1, 1, 4, data), Packet(Flag.FIN, 1, 1, 4)]
    stream = b"".join(packet.encode() for packet in sent)
    frames = Frames()
    found, place = [], 0
    for cut in itertools.cycle(cuts):
        if place >= len(stream):
            break
        found += frames.feed(stream[place : place + cut])
        place += cut
    assert found == sent
    assert len(sent[0].encode()) == HEADER_SIZE

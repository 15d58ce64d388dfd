"""Watching requests as they arrive, and damaging answers on the wire: the interface for faults and for the log.

`wire_faults` selects the requests; this module applies a fault to the packets of an answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from mssql_sandbox.engine.events import RpcParameter
from mssql_sandbox.tds.packets import split_packets

Kind = Literal["batch", "rpc", "transaction", "bulk"]
Cut = Literal["", "before", "unanswered", "middle", "after"]
_STATEMENTS = {
    "sp_executesql": 0, "sp_prepare": 2, "sp_prepexec": 2, "sp_cursoropen": 1, "sp_cursorprepare": 2,
    "sp_cursorprepexec": 3,
}  # fmt: skip
"""The position of the statement among the parameters of the special procedures."""


@dataclass(frozen=True, slots=True)
class Request:
    """A client's request: the text of a batch, or a procedure's name and parameters."""

    kind: Kind
    name: str = ""
    text: str = ""
    parameters: Sequence[RpcParameter] = ()


def call_request(name: str, parameters: Sequence[RpcParameter]) -> Request:
    """A remote procedure call; the statement in a special one is its text."""
    place = _STATEMENTS.get(name.lower().removeprefix("[sys].").removeprefix("sys."), -1)
    value = parameters[place].value if 0 <= place < len(parameters) else None
    return Request("rpc", name, value if isinstance(value, str) else "", parameters)


@dataclass(frozen=True, slots=True)
class WireFault:
    """A fault of an answer.

    `seconds` pass before each packet; packet number `corrupt` (from 1) arrives with other bytes; the connection is cut
    `before` the request is run, after it was run but `unanswered`, in the `middle` of the answer's packet number
    `packet`, or `after` the whole answer.
    """

    seconds: float = 0.0
    corrupt: int = 0
    cut: Cut = ""
    packet: int = 1


class Watch(Protocol):
    """Sees every request before it runs, while it is active."""

    @property
    def active(self) -> bool:
        """Whether requests are to be reported."""
        ...

    def request(self, spid: int, request: Request) -> WireFault | None:
        """The fault for the answer, if any."""
        ...


class FaultyAnswer:
    """Sends the packets of one answer as a fault orders it."""

    def __init__(self, fault: WireFault) -> None:
        self.fault = fault
        self._sent = 0

    async def send(self, packets: bytes | bytearray, write: Callable[[bytes], None]) -> None:
        """Write packet by packet.

        Raises:
            ConnectionAbortedError: the connection is to be cut here.
        """
        fault = self.fault
        if fault.cut == "unanswered":
            raise ConnectionAbortedError("cut before the answer, as ordered")
        for packet in split_packets(packets):
            self._sent += 1
            if fault.seconds:
                await asyncio.sleep(fault.seconds)
            if fault.cut == "middle" and self._sent >= fault.packet:
                write(packet[: max(len(packet) // 2, 1)])
                raise ConnectionAbortedError("cut in the middle of the answer, as ordered")
            write(_corrupted(packet) if self._sent == fault.corrupt else packet)


def _corrupted(packet: bytes) -> bytes:
    """The packet with the first bytes of its payload inverted; the header is unchanged."""
    return packet[:8] + bytes(byte ^ 0xFF for byte in packet[8:24]) + packet[24:]

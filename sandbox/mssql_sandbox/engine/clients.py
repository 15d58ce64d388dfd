"""What a server knows about the client of a session."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionFacts:
    """How a client is connected; sessions without a socket (scripts, jobs) use shared memory."""

    transport: str = "Shared memory"
    protocol_version: int = 0x74000004
    encrypted: bool = False
    packet_size: int = 4096
    client_address: str = "<local machine>"
    client_port: int | None = None
    server_address: str | None = None
    server_port: int | None = None
    process_id: int | None = None
    library: str = ".Net SqlClient Data Provider"
    client_version: int = 7


IN_PROCESS = ConnectionFacts()

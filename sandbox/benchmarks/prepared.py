"""A stream server as the yardstick: answers a SELECT with the bytes that a sandbox gave it once, all else with DONE.

What a driver fetches from it is what the driver can take; what a sandbox costs shows in the difference. Run as
`python -m benchmarks.prepared` with a sandbox's ready file.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mssql_sandbox.process import SandboxProcess, module_process
from mssql_sandbox.tds import tokens
from mssql_sandbox.tds.channel import Channel
from mssql_sandbox.tds.login import parse_login
from mssql_sandbox.tds.login_response import login_accepted
from mssql_sandbox.tds.packets import PacketType, PacketWriter
from mssql_sandbox.tds.prelogin import negotiate, parse_prelogin, prelogin_reply
from mssql_sandbox.tds.requests import parse_batch
from mssql_sandbox.tds.tokens import DoneStatus, DoneToken
from tests.tds.raw_client import RawClient

_SLICE = 256 * 1024


class Recorded:
    """Answers of a sandbox to SELECTs, as packets of one size."""

    def __init__(self, source: dict[str, str], database: str) -> None:
        self._source = source
        self._database = database
        self._known: dict[tuple[str, int], bytes] = {}

    def answer(self, statement: str, packet_size: int) -> bytes:
        """The packets of the answer; asked of the sandbox the first time."""
        key = statement, packet_size
        if key not in self._known:
            self._known[key] = self._ask(statement, packet_size)
        return self._known[key]

    def _ask(self, statement: str, packet_size: int) -> bytes:
        client = RawClient(int(self._source["port"]))
        try:
            client.socket.settimeout(600)
            client.log_in(self._source["password"], user=self._source["user"])
            client.batch(f"USE {self._database}")
            client.receive()
            client.batch(statement)
            writer = PacketWriter(size=packet_size)
            writer.add(client.receive())
            return bytes(writer.finish())
        finally:
            client.socket.close()


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, recorded: Recorded) -> None:
    """One client, until it leaves."""
    channel = Channel(reader, writer)
    message = await channel.receive()
    assert message is not None
    prelogin = parse_prelogin(message.payload)
    encryption, _ = negotiate("off", prelogin.encryption)
    channel.packets.add(prelogin_reply(prelogin, encryption))
    await channel.finish()
    message = await channel.receive()
    assert message is not None
    login = parse_login(message.payload)
    channel.packets.add(login_accepted(login, database=login.database, server_name="prepared", collation=None))
    await channel.finish()
    size = channel.packets.size = login.negotiated_packet_size
    channel.allow_messages(1 << 26)
    while (message := await channel.receive()) is not None:
        statement = parse_batch(message.payload) if message.kind is PacketType.BATCH else ""
        if not statement.startswith("SELECT"):
            channel.packets.add(tokens.done(DoneToken.DONE, DoneStatus.FINAL))
            await channel.finish()
            continue
        answer = recorded.answer(statement, size)
        for start in range(0, len(answer), _SLICE):
            writer.write(answer[start : start + _SLICE])
            await writer.drain()
    writer.close()


async def _run(recorded: Recorded, source: dict[str, str], ready: Path) -> None:
    listener = await asyncio.start_server(lambda r, w: serve(r, w, recorded), "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    made = ready.with_suffix(".new")
    made.write_text(json.dumps({**source, "port": port, "pid": os.getpid()}))
    made.rename(ready)
    await listener.serve_forever()


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, required=True, help="the ready file of the sandbox")
    parser.add_argument("--database", required=True, help="the database that SELECTs are about")
    parser.add_argument("--ready-file", type=Path, required=True, help="written once clients are accepted")
    options = parser.parse_args()
    source = json.loads(options.source.read_text())
    asyncio.run(_run(Recorded(source, options.database), source, options.ready_file))


@contextmanager
def prepared_stream(server: SandboxProcess, database: str, folder: Path) -> Iterator[SandboxProcess]:
    """The stream server beside a sandbox, as something to connect to."""
    place = folder / "prepared"
    place.mkdir(exist_ok=True)
    options = ("--source", str(server.ready_file), "--database", database)
    with module_process("benchmarks.prepared", place, *options, log=place / "prepared.log") as stream:
        yield stream


if __name__ == "__main__":
    main()

"""Commands from standard input (`MSSQL_CDC_CONTROL=stdin`): committed offsets, and signals.

`{"command": "commit", "offsets": […]}` has offsets in the form of Kafka Connect's REST API, `{"command": "signal",
"id": …, "type": …, "data": …}` a signal. A thread reads the commands, and stores committed offsets itself, whatever the
loop is doing; the loop takes signals between two steps.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from select import select
from threading import Thread
from typing import IO, Any

from mssql_cdc.capture.requests import SignalRow
from mssql_cdc.config import Connector
from mssql_cdc.config.json_texts import json_value
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.records.source_offsets import SourceOffset, parse_offsets
from mssql_cdc.serve.committed import CommittedOffsets
from mssql_cdc.serve.events import Events

CHUNK = 64 * 1024
CLOSE_SECONDS = 1.0
"""The maximum number of seconds to wait for a store that does not answer."""


@dataclass(frozen=True, slots=True)
class Commit:
    """The consumer has everything up to these offsets, by database."""

    offsets: dict[str, SourceOffset]


Command = Commit | SignalRow


class Control:
    """Reads commands until it is closed, or their writer closes its end."""

    def __init__(
        self, stream: IO[Any], connector: Connector, events: Events, *, committed: CommittedOffsets | None
    ) -> None:
        """Start reading.

        Args:
            stream: Where the commands come from: its file is read, not its buffer.
            connector: The connector.
            events: Reports commands that are refused.
            committed: Stores the offsets; None: they are refused.
        """
        self._connector, self._events, self._committed = connector, events, committed
        self._signals: deque[SignalRow] = deque()
        self._error: Exception | None = None
        self._closed, self._close = os.pipe()
        self._thread = Thread(target=self._run, args=(stream.fileno(),), name="control", daemon=True)
        self._thread.start()

    def take(self) -> list[SignalRow]:
        """Return the signals that have arrived since the last call, in order.

        Raises:
            MssqlCdcError: Offsets could not be kept.
            Exception: Commands can no longer be read.
        """
        if self._error is not None:
            raise self._error
        return [self._signals.popleft() for _ in range(len(self._signals))]

    def close(self) -> None:
        """Carry out the commands that have been written so far, and stop reading."""
        os.write(self._close, b"x")
        self._thread.join(CLOSE_SECONDS)

    def _run(self, source: int) -> None:
        try:
            self._read(source)
        except Exception as error:  # noqa: BLE001 (any: the loop raises it, instead of ignoring later commands)
            self._error = error

    def _read(self, source: int) -> None:
        rest = b""
        while source in (found := select([source, self._closed], [], [])[0]) or self._closed not in found:
            chunk = os.read(source, CHUNK)
            *lines, rest = (rest + chunk).split(b"\n")
            self._carry_out([*lines, rest] if not chunk else lines)
            if not chunk:
                return

    def _carry_out(self, lines: Sequence[bytes]) -> None:
        offsets: dict[str, SourceOffset] = {}
        for line in lines:
            if not line.strip():
                continue
            try:
                command = parse_command(line.decode(errors="replace"), self._connector)
            except ConfigurationError as error:
                self._events.log(f"A command was refused: {error}")
                continue
            if isinstance(command, SignalRow):
                self._signals.append(command)
            elif self._committed is None:
                self._events.log(
                    "A command was refused: committed offsets are kept in the folder of --state-dir, which is not "
                    "set. Set it, or keep the offsets and start with --offsets"
                )
            else:
                offsets |= command.offsets
        if offsets and self._committed is not None:
            self._committed.keep(offsets)


def parse_command(line: str, connector: Connector) -> Command:
    """Parse a command.

    Raises:
        ConfigurationError: The line is not a command, or its offsets are those of another connector.
    """
    try:
        found: dict[str, Any] = json_value(line)
        match found["command"]:
            case "commit":
                return Commit(parse_offsets(line, connector))
            case "signal":
                data = found.get("data")
                text = data if data is None or isinstance(data, str) else json.dumps(data)
                return SignalRow(str(found["id"]), str(found["type"]), text)
            case other:
                problem = f"unknown command {other!r}"
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        problem = f"{type(error).__name__}: {error}"
    raise ConfigurationError(
        f"{problem} in {line.strip()[:200]}; expected a JSON object with the command commit (and offsets) or signal "
        "(and id, type, data)"
    )

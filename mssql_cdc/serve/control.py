"""Commands from standard input (`MSSQL_CDC_CONTROL=stdin`): committed offsets, and signals.

`{"command": "commit", "offsets": […]}` has the offsets of Kafka Connect's REST API, `{"command": "signal", "id": …,
"type": …, "data": …}` a signal. A thread reads them; the loop takes them between two steps.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from threading import Thread
from typing import Any, TextIO

from mssql_cdc.capture.requests import SignalRow
from mssql_cdc.config import Connector
from mssql_cdc.config.signals import ExecuteSnapshot, StopSnapshot, parse_signal
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.records.source_offsets import SourceOffset, parse_offsets
from mssql_cdc.serve.events import Events


@dataclass(frozen=True, slots=True)
class Commit:
    """The consumer has everything up to these offsets, by database."""

    offsets: dict[str, SourceOffset]


Command = Commit | SignalRow


class Control:
    """The commands that have arrived."""

    def __init__(self, stream: TextIO, connector: Connector, events: Events) -> None:
        self._stream, self._connector, self._events = stream, connector, events
        self._arrived: deque[Command] = deque()
        Thread(target=self._read, name="control", daemon=True).start()

    def take(self) -> list[Command]:
        """Return what has arrived since the last call, in order."""
        return [self._arrived.popleft() for _ in range(len(self._arrived))]

    def _read(self) -> None:
        for line in self._stream:
            if line.strip():
                try:
                    self._arrived.append(parse_command(line, self._connector))
                except ConfigurationError as error:
                    self._events.log(f"A command was refused: {error}")


def concerns(signal: SignalRow, database: str, databases: Collection[str]) -> bool:
    """Whether a signal is for a database: not if it names tables of the connector's other databases only.

    Args:
        signal: The signal.
        database: The database.
        databases: All databases of the connector.
    """
    found = parse_signal(signal.id, signal.type, signal.data)
    names = found.collections if isinstance(found, ExecuteSnapshot | StopSnapshot) else ()
    others = tuple(f"{one.casefold()}." for one in databases if one.casefold() != database.casefold())
    return not names or not all(name.casefold().startswith(others) for name in names)


def parse_command(line: str, connector: Connector) -> Command:
    """Return a command.

    Raises:
        ConfigurationError: The line is not a command, or its offsets are those of another connector.
    """
    try:
        found: dict[str, Any] = json.loads(line)
        match found["command"]:
            case "commit":
                return Commit(parse_offsets(line, connector))
            case "signal":
                data = found.get("data")
                text = data if data is None or isinstance(data, str) else json.dumps(data)
                return SignalRow(str(found["id"]), str(found["type"]), text)
            case other:
                problem = f"unknown command {other!r}"
    except (ValueError, TypeError, KeyError) as error:
        problem = f"{type(error).__name__}: {error}"
    raise ConfigurationError(
        f"{problem} in {line.strip()[:200]}; expected a JSON object with the command commit (and offsets) or signal "
        "(and id, type, data)"
    )

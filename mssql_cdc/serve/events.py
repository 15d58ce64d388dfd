"""The events of a followed connector: one JSON object per line, for the program that started it.

`started`, `snapshot`, `streaming`, `metrics`, `notification`, `log`, `retry`, `error`; docs/records.md lists their
members.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from threading import Lock
from typing import Any, TextIO

from mssql_cdc.errors import MssqlCdcError

_LOGGER = "mssql_cdc"


class Events:
    """Writes events to a stream; several threads may."""

    def __init__(self, stream: TextIO) -> None:
        self.redact: Callable[[str], str] = str
        self._stream = stream
        self._lock = Lock()

    def emit(self, event: str, **members: Any) -> None:
        """Write one event at once; secrets are taken out."""
        text = json.dumps({"event": event, **members}, ensure_ascii=False, default=_text)
        with self._lock:
            self._stream.write(f"{self.redact(text)}\n")
            self._stream.flush()

    def log(self, message: str, level: str = "INFO") -> None:
        """Write a line of the log."""
        self.emit("log", level=level, logger=_LOGGER, message=message)

    def error(self, error: BaseException) -> None:
        """Write why the connector ends: `code` is the class of the error, which stays the same."""
        known = isinstance(error, MssqlCdcError)
        message = str(error) if known else f"{type(error).__name__}: {error}"
        self.emit("error", message=message, code=type(error).__name__, retriable=known and error.retriable)


def _text(value: Any) -> str:
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else str(value)

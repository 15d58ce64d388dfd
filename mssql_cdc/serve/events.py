"""The events of a followed connector: one JSON object per line, for the program that started it.

`started`, `snapshot`, `streaming`, `metrics`, `notification`, `log`, `retry`, `error`; docs/records.md lists their
members.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from threading import Lock
from typing import Any, TextIO

from mssql_cdc.config.redaction import redacted_values
from mssql_cdc.errors import MssqlCdcError
from mssql_cdc.serve.conditions import LOGGER, condition_named, condition_of

_CONSTANTS = frozenset({"level", "code", "state"})
"""Members whose values are words of this program, by which its reader distinguishes events."""


class Events:
    """Writes events to a stream; several threads may use it."""

    def __init__(self, stream: TextIO, *, traces: bool = False) -> None:
        """Begin.

        Args:
            stream: Where the events go.
            traces: Show the traceback of an error, too.
        """
        self.redact: Callable[[str], str] = str
        self._traces = traces
        self._stream = stream
        self._lock = Lock()

    def emit(self, event: str, **members: Any) -> None:
        """Write one event at once, with secrets removed; do nothing once nobody reads the events."""
        shown = {
            name: value if name in _CONSTANTS else redacted_values(value, self.redact)
            for name, value in members.items()
        }
        text = json.dumps({"event": event, **shown}, ensure_ascii=False, default=self._text)
        with self._lock, suppress(BrokenPipeError):
            self._stream.write(f"{text}\n")
            self._stream.flush()

    def log(self, message: str, level: str | None = None, *, logger: str = LOGGER, code: str | None = None) -> None:
        """Write a line to the log.

        Args:
            message: The line.
            level: INFO, WARN or ERROR; None: that of the condition that the line reports.
            logger: The logger, if the condition has none of its own.
            code: The condition; None: the message shows which it is, if any.
        """
        found = condition_named(code) if code is not None else condition_of(message)
        members = {} if found is None else {"code": found.code}
        level = level or ("INFO" if found is None else found.level)
        logger = logger if found is None or found.logger == LOGGER else found.logger
        self.emit("log", level=level, logger=logger, message=message, **members)

    def error(self, error: BaseException) -> None:
        """Write why the connector ends: `code` is the class of the error, which is stable."""
        known = isinstance(error, MssqlCdcError)
        message = str(error) if known else f"{type(error).__name__}: {error}"
        traces = {"trace": "".join(traceback.format_exception(error))} if self._traces else {}
        self.emit("error", message=message, code=type(error).__name__, retriable=known and error.retriable, **traces)

    def _text(self, value: Any) -> str:
        return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else self.redact(str(value))


@contextmanager
def logged(events: Events) -> Generator[None]:
    """Turn what this process would otherwise print on standard error into events.

    These are warnings from Python's logging, whoever logs them, Python's own warnings, and errors in threads.
    """
    handler = _Handler(events)
    root = logging.getLogger()
    former = threading.excepthook, sys.unraisablehook
    root.addHandler(handler)
    logging.captureWarnings(capture=True)
    threading.excepthook = lambda found: _uncaught(events, found.exc_value, found.thread)
    sys.unraisablehook = lambda found: _uncaught(events, found.exc_value, found.object)
    try:
        yield
    finally:
        threading.excepthook, sys.unraisablehook = former
        logging.captureWarnings(capture=False)
        root.removeHandler(handler)


class _Handler(logging.Handler):
    """Writes the records of Python's logging as events, with Debezium's level names."""

    def __init__(self, events: Events) -> None:
        super().__init__(logging.WARNING)
        self._events = events

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line to the log."""
        message = record.getMessage()
        if record.exc_info is not None and record.exc_info[1] is not None:
            message = f"{message}: {_named(record.exc_info[1])}"
        self._events.log(message, "ERROR" if record.levelno >= logging.ERROR else "WARN", logger=record.name)


def _uncaught(events: Events, error: BaseException | None, where: object) -> None:
    events.log(f"An error ended {where}: {_named(error)}", "ERROR")


def _named(error: BaseException | None) -> str:
    return f"{type(error).__name__}: {error}"

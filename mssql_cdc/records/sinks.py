"""The sinks of records: one class per kind of output, selected by the output's name.

To add a sink, write a class with a `write` method and add it to `open_sink`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TextIO

_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False)
_ASCII_JSON = json.JSONEncoder(separators=(",", ":"))


class RecordSink(Protocol):
    """Accepts records in order."""

    def write(self, record: Mapping[str, Any]) -> None:
        """Write one record: its topic, partition, key, value, headers and source offset."""
        ...


class JsonLines:
    """One JSON object per line, in UTF-8."""

    def __init__(self, output: TextIO) -> None:
        self._output = output

    def write(self, record: Mapping[str, Any]) -> None:
        """Write one line."""
        self._output.write(line_of(record))
        self._output.write("\n")


@contextmanager
def open_sink(target: str) -> Generator[RecordSink]:
    """Open the sink with this name: `-` is standard output, anything else is the path of a JSON Lines file."""
    if target == "-":
        yield JsonLines(sys.stdout)
        return
    with Path(target).open("w", encoding="utf-8", newline="\n") as file:
        yield JsonLines(file)


def line_of(record: Mapping[str, Any]) -> str:
    """Return one line of JSON; lone surrogates, which UTF-8 cannot encode, are escaped."""
    text = _JSON.encode(record)
    try:
        text.encode()
    except UnicodeEncodeError:
        return _ASCII_JSON.encode(record)
    return text

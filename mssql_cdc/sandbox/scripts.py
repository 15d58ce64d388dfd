"""T-SQL script files as sqlcmd runs them: batches between GO lines, stop at the first error.

What a batch means belongs to the session.
"""

import re
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mssql_cdc.sandbox.engine.events import Event, Message

_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\[[^\]\n]*\]|--[^\n]*|/\*.*?\*/", re.DOTALL)
_SEPARATOR = re.compile(r"^[ \t]*GO(?:[ \t]+(\d+))?[ \t\r]*$", re.IGNORECASE | re.MULTILINE)
_INFORMATION = 10


class ScriptError(Exception):
    """A script cannot be read, or one of its statements failed; the text names file and line."""


class BatchRunner(Protocol):
    """The part of a session that scripts need."""

    def batch(self, sql: str) -> AsyncGenerator[Event, None]:
        """Run a batch of SQL text."""
        ...


@dataclass(frozen=True, slots=True)
class Batch:
    """The text between two separators, the line it starts at, and how often it is to run."""

    text: str
    line: int
    times: int = 1


def split_batches(script: str) -> Iterator[Batch]:
    """The batches of a script; GO inside strings, brackets and comments separates nothing."""
    # Same length and lines, so that positions in the blanked text are positions in the script.
    blanked = _QUOTED.sub(
        lambda match: re.sub(r"[^\n]", ".", match[0]) if match[0][0] != "-" else " " * len(match[0]), script
    )
    start, line = 0, 1
    for separator in _SEPARATOR.finditer(blanked):
        text = script[start : separator.start()]
        if text.strip():
            yield Batch(text, line, int(separator[1] or 1))
        line += script.count("\n", start, separator.end())
        start = separator.end()
    if script[start:].strip():
        yield Batch(script[start:], line)


async def run_script(session: BatchRunner, path: Path) -> None:
    """Run every batch of the file.

    Raises:
        ScriptError: the file cannot be read, or a statement failed; names the file and the line.
    """
    for batch in split_batches(_read(path)):
        for _ in range(batch.times):
            async for event in session.batch(batch.text):
                if isinstance(event, Message) and event.severity > _INFORMATION:
                    raise ScriptError(_describe(path, batch, event))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ScriptError(f"{path}: the script cannot be read: {error}") from error


def _describe(path: Path, batch: Batch, message: Message) -> str:
    # Lines of a message inside a procedure count from the procedure's own start.
    line = batch.line if message.procedure else batch.line + max(message.line, 1) - 1
    within = f", procedure {message.procedure} line {message.line}" if message.procedure else ""
    return (
        f"{path}:{line}: Msg {message.number}, Level {message.severity}, State {message.state}{within}: {message.text}"
    )
